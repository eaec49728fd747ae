//! Tasks: carried out from the record, steered, ended.

use std::sync::Arc;

use pa_domain::call;
use pa_domain::execution::JobKind;
use pa_domain::task::{self, Decision};
use pa_domain::testing::tasks;
use pa_domain::{ActionId, Event, JobId, TaskId};
use pa_tools::Tool;
use pa_tools::testing::{Counter, Ending, TestTool};
use tokio::sync::Notify;

use super::model::{calling, results_of, text_of};
use super::{Line, ScriptedModel, World};

fn finishing(result: &str) -> Line {
  calling(&[("pa_finish", &serde_json::json!({ "result": result }).to_string())])
}

/// Starts a task of the owner.
async fn begun(world: &World, number: u64, goal: &str) -> TaskId {
  let task = tasks::task(number);
  world.give(tasks::start(task, goal).into()).await;
  task
}

/// The first event of tasks that `of` takes.
async fn seen<T>(world: &World, of: impl Fn(&task::Event) -> Option<T>) -> T {
  world
    .rows
    .until(|rows| {
      let events = rows.events.lock();
      events.iter().find_map(|recorded| if let Event::Task(event) = &recorded.event { of(event) } else { None })
    })
    .await
}

async fn result(world: &World, task: TaskId) -> String {
  seen(world, |event| match event {
    task::Event::TaskCompleted(completed) if completed.task == task => Some(completed.text.clone()),
    _ => None,
  })
  .await
}

async fn card(world: &World, number: usize) -> ActionId {
  world
    .rows
    .until(|rows| {
      let events = rows.events.lock();
      let cards = events.iter().filter_map(|recorded| if let Event::Call(call::Event::CallHeld(held)) = &recorded.event { Some(held.card) } else { None });
      cards.skip(number).collect::<Vec<_>>().first().copied()
    })
    .await
}

/// Proves RUN-29: a task works with its tools and ends with the text of `pa_finish`.
#[tokio::test(start_paused = true)]
async fn a_task_works_step_by_step_and_ends_with_its_result() {
  let world = World::new().await;
  let counter = Counter::default();
  let model = ScriptedModel::new([
    calling(&[("pa_slow_read", r#"{"text":"a"}"#), ("pa_checkpoint", r#"{"notes":"read a"}"#)]),
    calling(&[("pa_deliver", r#"{"request_key":"r1","path":"/workspace/work/report.txt","caption":"here"}"#)]),
    finishing("all of it"),
  ]);
  let _process = world.works_on(JobKind::Task, 1, &model, vec![Arc::new(TestTool::slow_read(counter.clone()))]);
  let task = begun(&world, 1, "Read a and tell me").await;
  assert_eq!(result(&world, task).await, "all of it");
  let requests = model.requests();
  assert!(text_of(&requests[0]).contains("Read a and tell me"));
  assert!(requests[0].tools.iter().any(|tool| tool.name == "pa_finish") && requests[0].tools.iter().all(|tool| tool.name != "pa_task_start"));
  assert!(results_of(&requests[1])[0].contains("done: a"), "{:?}", results_of(&requests[1]));
  assert!(text_of(&requests[1]).contains("read a"), "the notes are in the next request");
  assert!(results_of(&requests[2]).last().unwrap().contains("\"delivered\":true"), "{:?}", results_of(&requests[2]));
  let delivered = seen(&world, |event| if let task::Event::OutputDelivered(delivered) = event { Some(delivered.file.name.clone()) } else { None }).await;
  assert_eq!((delivered.as_str(), counter.done()), ("report.txt", 1));
}

/// Proves RUN-31: what a model says in place of an end is made into the text by one request without tools.
#[tokio::test(start_paused = true)]
async fn a_model_that_stops_without_an_end_is_asked_once_for_the_text() {
  let world = World::new().await;
  let model = ScriptedModel::new([Line::Say("I think I am done"), Line::Say("The answer is 7.")]);
  let _process = world.works_on(JobKind::Task, 1, &model, vec![]);
  let task = begun(&world, 1, "What is it?").await;
  assert_eq!(result(&world, task).await, "The answer is 7.");
  assert!(model.requests()[1].tools.is_empty());
}

/// Progress is never a result.
#[tokio::test(start_paused = true)]
async fn a_text_that_says_it_is_not_done_is_no_result() {
  let world = World::new().await;
  let model = ScriptedModel::new([Line::Say("half"), Line::Say("NOT DONE: half of it is missing")]);
  let _process = world.works_on(JobKind::Task, 1, &model, vec![]);
  begun(&world, 1, "What is it?").await;
  let failed = seen(&world, |event| if let task::Event::TaskFailed(failed) = event { Some((failed.code.clone(), failed.text.clone())) } else { None }).await;
  assert_eq!(failed, ("INCOMPLETE".to_owned(), "half of it is missing".to_owned()));
}

/// Proves STR-1, STR-2, RUN-25: what runs finishes, what has not begun is skipped, and the next request has the new words.
#[tokio::test(start_paused = true)]
async fn an_instruction_counts_from_the_next_boundary_on() {
  let world = World::new().await;
  let counter = Counter::default();
  counter.hold();
  let model = ScriptedModel::new([calling(&[("pa_contained", r#"{"text":"one"}"#), ("pa_contained", r#"{"text":"two"}"#)]), finishing("as you say")]);
  let _process = world.works_on(JobKind::Task, 1, &model, vec![Arc::new(TestTool::contained(counter.clone()))]);
  let task = begun(&world, 1, "Do one and two").await;
  counter.reached(1).await;
  world.give(tasks::instruct(task, "leave two").into()).await;
  seen(&world, |event| matches!(event, task::Event::TaskInstructed(_)).then_some(())).await;
  counter.release();
  assert_eq!(result(&world, task).await, "as you say");
  let requests = model.requests();
  assert_eq!((requests.len(), counter.done()), (2, 1), "the second call never began");
  let results = results_of(&requests[1]);
  assert!(results[0].contains("done: one") && results[1].contains("newer instruction"), "{results:?}");
  assert!(text_of(&requests[1]).contains("New instruction:\nleave two"));
}

/// Proves STR-6, DEL-18: a result that was ready when an instruction came is not published.
#[tokio::test(start_paused = true)]
async fn a_result_that_an_instruction_overtook_is_discarded() {
  let world = World::new().await;
  let released = Arc::new(Notify::new());
  let model = ScriptedModel::new([Line::Hold(&["the old ", "words"], Arc::clone(&released)), finishing("the new result")]);
  let _process = world.works_on(JobKind::Task, 1, &model, vec![]);
  let task = begun(&world, 1, "Write").await;
  model.reached(1).await;
  world.give(tasks::instruct(task, "in French").into()).await;
  seen(&world, |event| matches!(event, task::Event::TaskInstructed(_)).then_some(())).await;
  released.notify_one();
  assert_eq!(result(&world, task).await, "the new result");
  assert!(text_of(&model.requests()[1]).contains("in French"));
}

/// Proves USE-13: an external action waits for the owner's word on its card, and is made once.
#[tokio::test(start_paused = true)]
async fn an_approved_action_is_made_once_by_the_next_execution() {
  let world = World::new().await;
  let counter = Counter::default();
  let model = ScriptedModel::new([calling(&[("pa_external", r#"{"text":"hello"}"#)]), finishing("sent")]);
  let _process = world.works_on(JobKind::Task, 1, &model, vec![Arc::new(TestTool::external(counter.clone()))]);
  let task = begun(&world, 1, "Send it").await;
  let card = card(&world, 0).await;
  seen(&world, |event| matches!(event, task::Event::TaskWaiting(_)).then_some(())).await;
  assert_eq!(counter.begun(), 0, "nothing is sent before the owner allows it");
  world.give(tasks::decide(task, card, Decision::ApproveOnce)).await;
  assert_eq!(result(&world, task).await, "sent");
  assert_eq!((counter.done(), model.requests().len()), (1, 2));
}

/// A rejected action is told to the model, which goes on.
#[tokio::test(start_paused = true)]
async fn a_rejected_action_is_not_made_and_the_task_goes_on() {
  let world = World::new().await;
  let counter = Counter::default();
  let model = ScriptedModel::new([calling(&[("pa_external", r#"{"text":"hello"}"#)]), finishing("not sent")]);
  let _process = world.works_on(JobKind::Task, 1, &model, vec![Arc::new(TestTool::external(counter.clone()))]);
  let task = begun(&world, 1, "Send it").await;
  let card = card(&world, 0).await;
  world.give(tasks::decide(task, card, Decision::Reject)).await;
  assert_eq!(result(&world, task).await, "not sent");
  assert_eq!(counter.begun(), 0);
  assert!(results_of(&model.requests()[1])[0].contains("rejected"));
}

/// Proves RUN-4, RUN-18: an unknown effect waits for the owner's word, and is not repeated.
#[tokio::test(start_paused = true)]
async fn an_unknown_effect_waits_for_the_owners_word() {
  let world = World::new().await;
  let counter = Counter::default();
  let model = ScriptedModel::new([calling(&[("pa_external", r#"{"text":"hello"}"#)]), finishing("it was sent")]);
  let tool: Arc<dyn Tool> = Arc::new(TestTool::external(counter.clone()).ending(Ending::DoesNotKnow));
  let _process = world.works_on(JobKind::Task, 1, &model, vec![tool]);
  let task = begun(&world, 1, "Send it").await;
  let card = card(&world, 0).await;
  world.give(tasks::decide(task, card, Decision::ApproveOnce)).await;
  let waits = |event: &task::Event| matches!(event, task::Event::TaskWaiting(waiting) if waiting.reason == task::WaitReason::UnknownEffect).then_some(());
  seen(&world, waits).await;
  let call = pa_domain::ids::call(JobId::from(task), 1, 0);
  world.give(pa_domain::testing::inputs::reconcile(task.into(), call, true)).await;
  assert_eq!(result(&world, task).await, "it was sent");
  assert_eq!(counter.begun(), 1);
}

/// Proves RUN-23 for tools in the process: a stop ends what runs, and the request to the model.
#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_request_and_what_runs() {
  let world = World::new().await;
  let counter = Counter::default();
  counter.hold();
  let model = ScriptedModel::new([calling(&[("pa_contained", "{}")]), Line::Hang("never")]);
  let process = world.works_on(JobKind::Task, 1, &model, vec![Arc::new(TestTool::contained(counter.clone()))]);
  let one = begun(&world, 1, "One").await;
  counter.reached(1).await;
  let two = begun(&world, 2, "Two").await;
  model.reached(2).await;
  world.give(tasks::stop(one)).await;
  world.give(tasks::stop(two)).await;
  model.idle().await;
  world.happened(one.into(), "CallUnknown", 1).await;
  assert_eq!(counter.done(), 0, "it was dropped before its effect");
  process.stop().await;
}

/// Proves RUN-25 for a pause: what runs finishes, nothing begins, and the work goes on where it was.
#[tokio::test(start_paused = true)]
async fn a_paused_task_goes_on_where_it_was() {
  let world = World::new().await;
  let counter = Counter::default();
  counter.hold();
  let model = ScriptedModel::new([calling(&[("pa_contained", r#"{"text":"one"}"#), ("pa_contained", r#"{"text":"two"}"#)]), finishing("done")]);
  let _process = world.works_on(JobKind::Task, 1, &model, vec![Arc::new(TestTool::contained(counter.clone()))]);
  let task = begun(&world, 1, "Do both").await;
  counter.reached(1).await;
  world.give(tasks::pause(task)).await;
  seen(&world, |event| matches!(event, task::Event::TaskPaused(_)).then_some(())).await;
  counter.release();
  world.happened(task.into(), "ExecutionSuspended", 1).await;
  assert_eq!((counter.done(), model.requests().len()), (1, 1));
  world.give(tasks::resume(task)).await;
  assert_eq!(result(&world, task).await, "done");
  assert!(results_of(&model.requests()[1])[1].contains("paused"), "the call that had not begun is paired");
}

/// Proves BB-13, PR-21 on tasks: a worker that dies is seen, and another one goes on from the record, with no step repeated.
#[tokio::test(start_paused = true)]
async fn a_killed_workers_task_is_taken_up_and_no_step_is_repeated() {
  let world = World::new().await;
  let counter = Counter::default();
  let tool = || -> Vec<Arc<dyn Tool>> { vec![Arc::new(TestTool::slow_read(counter.clone()))] };
  let model = ScriptedModel::new([calling(&[("pa_slow_read", r#"{"text":"a"}"#)]), Line::Hang("thinking")]);
  let first = world.works_on(JobKind::Task, 1, &model, tool());
  let task = begun(&world, 1, "Read").await;
  model.reached(2).await;
  first.kill();
  let other = ScriptedModel::new([finishing("from the record")]);
  let _second = world.works_on(JobKind::Task, 2, &other, tool());
  assert_eq!(result(&world, task).await, "from the record");
  assert_eq!((counter.done(), other.requests().len()), (1, 1));
  assert!(results_of(&other.requests()[0])[0].contains("done: a"));
  world.happened(task.into(), "ExecutionLost", 1).await;
}

/// Proves RUN-17, RUN-18: after two returns by itself a task waits, and the conversation says so.
#[tokio::test(start_paused = true)]
async fn after_two_returns_a_task_waits_for_its_owner() {
  let world = World::new().await;
  let task = tasks::task(1);
  for life in 1..=3 {
    let model = ScriptedModel::new([Line::Hang("…")]);
    let process = world.works_on(JobKind::Task, life, &model, vec![]);
    if life == 1 {
      begun(&world, 1, "Unlucky").await;
    }
    model.reached(1).await;
    process.kill();
    // Somebody has to see it: a process that works on nothing, since its model is never asked.
    if life == 3 {
      let model = ScriptedModel::new([]);
      let _observer = world.works_on(JobKind::Task, 9, &model, vec![]);
      world.happened(task.into(), "TaskWaiting", 1).await;
      return;
    }
  }
}

/// Proves RUN-24: a model that asks for the same again and again is stopped with an explanation.
#[tokio::test(start_paused = true)]
async fn a_model_that_repeats_itself_is_paused_with_an_explanation() {
  let world = World::new().await;
  let counter = Counter::default();
  let model = ScriptedModel::new((0..10).map(|_| calling(&[("pa_slow_read", r#"{"text":"again"}"#)])));
  let _process = world.works_on(JobKind::Task, 1, &model, vec![Arc::new(TestTool::slow_read(counter.clone()))]);
  begun(&world, 1, "Loop").await;
  let detail = seen(&world, |event| match event {
    task::Event::TaskPaused(paused) if paused.reason == task::PauseReason::OutputLooped => Some(paused.detail.clone()),
    _ => None,
  })
  .await;
  assert!(detail.contains("pa_slow_read"), "{detail}");
  world.rows.until(|rows| rows.events.lock().iter().any(|event| event.event.type_name().ends_with("NoticePosted")).then_some(())).await;
}

/// Bad calls are told to the model, which may mend them: no JSON, an unknown tool, an end beside other calls.
#[tokio::test(start_paused = true)]
async fn calls_that_cant_be_made_are_told_to_the_model() {
  let world = World::new().await;
  let model = ScriptedModel::new([
    calling(&[("pa_checkpoint", "{no json"), ("pa_nothing", "{}"), ("pa_task_start", r#"{"goal":"x","request_key":"k"}"#), ("pa_finish", r#"{"result":"r"}"#)]),
    calling(&[("pa_finish", r#"{"wrong":1}"#)]),
    finishing("in the end"),
  ]);
  let _process = world.works_on(JobKind::Task, 1, &model, vec![]);
  let task = begun(&world, 1, "Bad calls").await;
  assert_eq!(result(&world, task).await, "in the end");
  let results = results_of(&model.requests()[1]);
  assert!(results[0].contains("no JSON") && results[1].contains("no such tool") && results[3].contains("by itself"), "{results:?}");
  assert!(results_of(&model.requests()[2])[4].contains("must be the result"));
}

/// A model that can't be reached for a while is waited for; the task goes on.
#[tokio::test(start_paused = true)]
async fn a_model_that_is_away_for_a_while_is_waited_for() {
  let world = World::new().await;
  let away = || Line::Fail(pa_model::Error::Unavailable { status: 503, after: None, detail: String::new() });
  let model = ScriptedModel::new([away(), away(), finishing("there again")]);
  let _process = world.works_on(JobKind::Task, 1, &model, vec![]);
  let task = begun(&world, 1, "Wait").await;
  assert_eq!(result(&world, task).await, "there again");
}

/// A stop of the process gives the task back without counting it.
#[tokio::test(start_paused = true)]
async fn a_stopping_process_gives_its_task_back() {
  let world = World::new().await;
  let model = ScriptedModel::new([Line::Hang("…")]);
  let process = world.works_on(JobKind::Task, 1, &model, vec![]);
  let task = begun(&world, 1, "Long").await;
  model.reached(1).await;
  process.stop().await;
  world.happened(task.into(), "ExecutionYielded", 1).await;
  let other = ScriptedModel::new([finishing("later")]);
  let _next = world.works_on(JobKind::Task, 2, &other, vec![]);
  assert_eq!(result(&world, task).await, "later");
}
