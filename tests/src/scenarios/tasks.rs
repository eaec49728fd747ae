//! "Background tasks": started from the conversation, steered on their page or in words, told when they are done; and what a crash leaves of them.

use pa_domain::{JobId, ids};
use pa_model::rehearsal::{Hold, Reply, Seen};
use serde_json::{Value, json};

use super::sound;
use crate::harness::{Client, Dump, Engine, Model, PATIENCE, Product, Setup, eventually, fresh_key, text_of_last};

/// What the turn of a message says when it has started its task.
const BEGUN: &str = "It has begun.";

/// Whether a request is one of a task.
pub(super) fn is_task(seen: &Seen) -> bool {
  offers(seen, "pa_finish") || seen.system_text().contains("one background task")
}

fn offers(seen: &Seen, tool: &str) -> bool {
  seen.body["tools"].as_array().is_some_and(|tools| tools.iter().any(|offered| offered["function"]["name"] == tool))
}

/// Whether a request tells a result.
fn is_result(seen: &Seen) -> bool {
  seen.system_text().contains("The last message is the result of a background task")
}

/// How many results of tools stand behind the last words of the user.
pub(super) fn results(seen: &Seen) -> usize {
  seen.messages().iter().rev().take_while(|message| message["role"] != "user").filter(|message| message["role"] == "tool").count()
}

pub(super) fn call(tool: &str, arguments: &Value) -> Reply {
  Reply::new().call("c0", tool, &arguments.to_string())
}

pub(super) fn finish(result: &str) -> Reply {
  call("pa_finish", &json!({ "result": result }))
}

/// A model that starts a task for every message, with the message's words as the goal, and tells results as they are.
pub(super) async fn starting() -> Model {
  let model = Model::silent().await;
  model.script.on(|seen| is_result(seen).then(|| Reply::text(&format!("Here it is: {}", inside(&text_of_last(seen))))));
  model.script.on(|seen| {
    let is_new = !is_task(seen) && offers(seen, "pa_task_start");
    is_new.then(|| match results(seen) {
      0 => call("pa_task_start", &json!({ "request_key": "k", "title": text_of_last(seen), "goal": text_of_last(seen) })),
      _ => Reply::text(BEGUN),
    })
  });
  model
}

/// What stands between the marks of a material.
fn inside(text: &str) -> String {
  text.lines().filter(|line| !line.starts_with("<<")).collect::<Vec<_>>().join("\n")
}

/// The id of the task that a message's turn starts.
pub(super) fn task_of(message: &str) -> String {
  let job: JobId = message.parse().expect("a message's id");
  ids::task(job, "k").to_string()
}

/// The task as the page has it, once it is so.
pub(super) async fn until(owner: &Client, task: &str, is_so: impl Fn(&Value) -> bool) -> Value {
  eventually(&format!("task {task} is so"), async || {
    let data = owner.ask("query($id: ID!) { task(id: $id) { id title state reason run } }", json!({ "id": task })).await;
    Some(data["task"].clone()).filter(|task| !task.is_null() && is_so(task))
  })
  .await
}

pub(super) async fn verb(owner: &Client, name: &str, task: &str) -> Value {
  let query = format!("mutation($input: TaskVerbInput!) {{ answer: {name}(input: $input) {{ decided userErrors {{ code }} }} }}");
  owner.ask(&query, json!({ "input": { "requestKey": fresh_key(name), "taskId": task } })).await["answer"].clone()
}

pub(super) async fn instruct(owner: &Client, task: &str, text: &str) -> Value {
  let query = "mutation($input: InstructTaskInput!) { answer: instructTask(input: $input) { decided userErrors { code } } }";
  owner.ask(query, json!({ "input": { "requestKey": fresh_key("i"), "taskId": task, "text": text } })).await["answer"].clone()
}

/// The text of the agent's entry that has these words.
pub(super) async fn told(owner: &Client, words: &str) -> String {
  eventually(&format!("the conversation tells {words:?}"), async || {
    owner
      .messages()
      .await
      .into_iter()
      .find(|message| message.role == "AGENT" && message.status == "POSTED" && message.text.contains(words))
      .map(|message| message.text)
  })
  .await
}

fn story(dump: &Dump, task: &str) -> Vec<String> {
  dump.events().filter(|line| ["job", "task"].iter().any(|field| line.body[*field] == task)).map(|line| line.kind.clone()).collect()
}

async fn product(model: &Model) -> Product {
  Setup::new().await.model(model).start().await
}

/// Proves USE-5, REP-9, REP-10, REP-24, RUN-2, RUN-7, RUN-29: a message starts a task, the task runs, its result is told in the conversation.
#[tokio::test]
async fn a_message_starts_a_task_and_its_result_is_told() {
  let model = starting().await;
  model.script.on(|seen| is_task(seen).then(|| finish("the total is 1,204,883.07, see https://example.org/a?b=1")));
  let product = product(&model).await;
  let owner = product.owner();
  let message = owner.send("add the numbers").await.id();
  assert_eq!(owner.reply_to(&message).await.text, BEGUN);
  let text = told(&owner, "Here it is").await;
  assert_eq!(text, "Here it is: the total is 1,204,883.07, see https://example.org/a?b=1");
  until(&owner, &task_of(&message), |task| task["state"] == "COMPLETED").await;
  let dump = sound(&product);
  let story = story(&dump, &task_of(&message));
  for kind in ["TaskOrdered", "TaskStarted", "TaskRunRequested", "ExecutionStarted", "ExecutionFinished", "TaskCompleted", "ReportAdmitted"] {
    assert_eq!(story.iter().filter(|known| *known == kind).count(), 1, "{kind} in {story:?}");
  }
}

/// Proves REP-26, REP-27, REP-29: a long result, and one whose telling fails, are posted as they are.
#[tokio::test]
async fn a_long_result_and_one_that_cant_be_told_are_posted_unchanged() {
  let model = Model::silent().await;
  let long = format!("begin {} end", "0123456789 ".repeat(1_000));
  let result = long.clone();
  model.script.on(|seen| is_result(seen).then(|| Reply::status(400)));
  model.script.on(move |seen| is_task(seen).then(|| finish(if text_of_last(seen) == "the long one" { &result } else { "the short one: 42" })));
  model.script.on(|seen| {
    Some(match results(seen) {
      0 => call("pa_task_start", &json!({ "request_key": "k", "title": "t", "goal": text_of_last(seen) })),
      _ => Reply::text(BEGUN),
    })
  });
  let product = product(&model).await;
  let owner = product.owner();
  owner.send("the long one").await;
  assert_eq!(told(&owner, "begin").await, long);
  owner.send("the short one").await;
  assert_eq!(told(&owner, "42").await, "the short one: 42");
  sound(&product);
}

/// A result whose numbers were changed in the telling is posted as it is.
///
/// Proves REP-25.
#[tokio::test]
async fn a_result_that_was_told_wrong_is_posted_as_it_is() {
  let model = Model::silent().await;
  model.script.on(|seen| is_result(seen).then(|| Reply::text("It comes to about 1.2 million.")));
  model.script.on(|seen| is_task(seen).then(|| finish("The total is 1,204,883.07, see https://example.org/a?b=1")));
  model.script.on(|seen| {
    Some(match results(seen) {
      0 => call("pa_task_start", &json!({ "request_key": "k", "title": "t", "goal": text_of_last(seen) })),
      _ => Reply::text(BEGUN),
    })
  });
  let product = product(&model).await;
  let owner = product.owner();
  owner.send("add the numbers").await;
  assert_eq!(told(&owner, "1,204,883.07").await, "The total is 1,204,883.07, see https://example.org/a?b=1");
  sound(&product);
}

/// Proves RUN-3, RUN-12, RUN-23, STR-1, STR-3, REP-22: three tasks at once; one is steered, one paused, one stopped, on their pages; a fourth waits for its turn.
#[tokio::test]
async fn tasks_are_steered_paused_and_stopped_on_their_pages() {
  let model = starting().await;
  let holds = ["one", "two", "three"].map(|name| (name, Hold::new()));
  for (name, hold) in holds.clone() {
    let begins = move |seen: &Seen| is_task(seen) && goal(seen) == name && !whole(seen).contains("New instruction:");
    model.script.on(move |seen| begins(seen).then(|| Reply::new().say("I think ").hold(&hold).say("still")));
  }
  model.script.on(|seen| is_task(seen).then(|| finish(&format!("{} is done: {}", goal(seen), text_of_last(seen)))));
  let product = product(&model).await;
  let owner = product.owner();
  let mut tasks = Vec::new();
  for name in ["one", "two", "three", "four"] {
    tasks.push(task_of(&owner.send(name).await.id()));
  }
  for (_, hold) in &holds {
    reached(hold).await;
  }
  until(&owner, &tasks[3], |task| task["state"] == "QUEUED").await;

  assert_eq!(verb(&owner, "pauseTask", &tasks[1]).await["userErrors"], json!([]));
  until(&owner, &tasks[1], |task| task["state"] == "PAUSED").await;
  told(&owner, "four is done").await;
  assert_eq!(verb(&owner, "stopTask", &tasks[2]).await["userErrors"], json!([]));
  until(&owner, &tasks[2], |task| task["state"] == "STOPPED").await;
  assert_eq!(instruct(&owner, &tasks[0], "in French").await["userErrors"], json!([]));
  holds[0].1.release();
  told(&owner, "one is done: New instruction:\nin French").await;

  // The paused one goes on, and the stopped one too when it is instructed.
  holds[1].1.release();
  assert_eq!(verb(&owner, "resumeTask", &tasks[1]).await["userErrors"], json!([]));
  until(&owner, &tasks[1], |task| task["state"] == "COMPLETED").await;
  assert_eq!(instruct(&owner, &tasks[2], "after all").await["userErrors"], json!([]));
  told(&owner, "three is done: New instruction:\nafter all").await;
  until(&owner, &tasks[2], |task| task["state"] == "COMPLETED" && task["run"] == 2).await;
  sound(&product);
}

/// Waits until the model holds an answer back.
async fn reached(hold: &Hold) {
  tokio::time::timeout(PATIENCE, hold.reached()).await.expect("the model is asked");
}

/// The first message of a task's request: its goal.
fn goal(seen: &Seen) -> String {
  let first = seen.messages().iter().find(|message| message["role"] == "user");
  first.map(|message| crate::harness::words(&message["content"])).unwrap_or_default()
}

fn whole(seen: &Seen) -> String {
  seen.body["messages"].to_string()
}

/// Proves USE-6, USE-7, REP-3, REP-7, REP-12, REP-13, REP-23: in words, after reading it, each task gets its own part.
#[tokio::test]
async fn one_message_changes_several_tasks_and_each_gets_its_own_part() {
  let model = Model::silent().await;
  let holds = [Hold::new(), Hold::new()];
  for (name, hold) in ["deploy", "travel"].into_iter().zip(holds.clone()) {
    model
      .script
      .on(move |seen| (is_task(seen) && goal(seen) == name && !whole(seen).contains("New instruction:")).then(|| Reply::new().say("… ").hold(&hold).say("on")));
  }
  model.script.on(|seen| is_task(seen).then(|| finish(&text_of_last(seen))));
  model.script.on(|seen| is_result(seen).then(|| Reply::text(&inside(&text_of_last(seen)))));
  model.script.on(|seen| {
    let words = text_of_last(seen);
    let ids: Vec<String> =
      seen.system_text().lines().filter_map(|line| Some(line.strip_prefix("- ")?.split_once(" \"")?.0.to_owned())).filter(|id| id.len() == 36).collect();
    let id =
      |title: &str| seen.system_text().lines().find_map(|line| line.strip_prefix("- ")?.split_once(&format!(" \"{title}\"")).map(|(id, _)| id.to_owned()));
    Some(match (words.as_str(), results(seen)) {
      ("deploy" | "travel", 0) => call("pa_task_start", &json!({ "request_key": "k", "title": words, "goal": words })),
      ("deploy" | "travel", _) => Reply::text(BEGUN),
      (_, 0) => {
        assert_eq!(ids.len(), 2, "both tasks are in the prompt: {}", seen.system_text());
        let (deploy, travel) = (id("deploy").unwrap(), id("travel").unwrap());
        let early = json!({ "task": deploy, "instruction": "too early" }).to_string();
        let read = |task: &str| json!({ "task": task }).to_string();
        Reply::new().calls(&[("a", "pa_task_instruct", &early), ("b", "pa_task_read", &read(&deploy)), ("c", "pa_task_read", &read(&travel))])
      }
      (_, 3) => {
        let (deploy, travel) = (id("deploy").unwrap(), id("travel").unwrap());
        let instruct = json!({ "task": deploy, "instruction": "use feature/demo" }).to_string();
        let pause = json!({ "task": travel }).to_string();
        Reply::new().calls(&[("a", "pa_task_instruct", &instruct), ("b", "pa_task_pause", &pause)])
      }
      (_, _) => Reply::text("Both done."),
    })
  });
  let product = product(&model).await;
  let owner = product.owner();
  let deploy = task_of(&owner.send("deploy").await.id());
  let travel = task_of(&owner.send("travel").await.id());
  for hold in &holds {
    reached(hold).await;
  }
  for task in [&deploy, &travel] {
    until(&owner, task, |task| task["state"] == "RUNNING").await;
  }
  let message = owner.send("Use the feature/demo branch for the deployment and pause the travel plan").await.id();
  assert_eq!(owner.reply_to(&message).await.text, "Both done.");
  until(&owner, &travel, |task| task["state"] == "PAUSED").await;
  holds[0].release();
  assert!(told(&owner, "use feature/demo").await.contains("use feature/demo"));
  let dump = sound(&product);
  let instructed: Vec<_> = dump.of("TaskInstructed").into_iter().map(|line| (line.text("task").to_owned(), line.text("text").to_owned())).collect();
  assert_eq!(instructed, [(deploy, "use feature/demo".to_owned())], "what had not been read was not changed");
}

/// A killed process's task goes on from the record; after two returns it waits, and the conversation says so once.
///
/// Proves BB-13, BB-14, RUN-17, RUN-18.
#[tokio::test]
async fn a_killed_process_leaves_its_task_to_the_next_life() {
  a_task_is_killed_three_times(Engine::Embedded).await;
}

/// Proves BB-13, BB-14, RUN-17, RUN-18.
#[tokio::test]
async fn on_kafka_a_killed_process_leaves_its_task_to_the_next_life() {
  a_task_is_killed_three_times(Engine::Kafka).await;
}

async fn a_task_is_killed_three_times(engine: Engine) {
  let model = starting().await;
  let holds: Vec<Hold> = (0..3).map(|_| Hold::new()).collect();
  // One step is recorded; then each life hangs in the second.
  let again = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
  let (lives, counted) = (holds.clone(), std::sync::Arc::clone(&again));
  model.script.on(move |seen| {
    if !is_task(seen) {
      return None;
    }
    Some(match results(seen) {
      0 => call("pa_checkpoint", &json!({ "notes": "one step" })),
      _ => match lives.get(counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst)) {
        Some(hold) => Reply::new().say("thinking ").hold(hold).say("on"),
        None => finish("in the end"),
      },
    })
  });
  let mut product = Setup::on(engine).await.model(&model).start().await;
  let task = task_of(&product.owner().send("unlucky").await.id());
  for hold in &holds {
    reached(hold).await;
    product.restart9().await;
  }
  let owner = product.owner();
  let waiting = until(&owner, &task, |task| task["state"] == "WAITING").await;
  assert_eq!(waiting["reason"], "NOTICE", "{waiting}");
  let notices: Vec<_> = owner.messages().await.into_iter().filter(|message| message.role == "NOTICE").collect();
  assert_eq!(notices.len(), 1, "{notices:?}");
  assert_eq!(notices[0].notice.as_ref().unwrap()["code"], "TASK_INTERRUPTED");
  assert_eq!(verb(&owner, "resumeTask", &task).await["userErrors"], json!([]));
  told(&owner, "in the end").await;
  let dump = sound(&product);
  let story = story(&dump, &task);
  assert_eq!(story.iter().filter(|kind| *kind == "ExecutionLost").count(), 3, "{story:?}");
  assert_eq!(dump.of("CheckpointRecorded").len(), 1, "no step was repeated");
}

/// A newcomer without a key: the rehearsal starts a task, is told to change it, hands a file over, and tells the result.
///
/// Proves RUN-32, DEL-1, DEL-14.
#[tokio::test]
async fn the_rehearsal_shows_a_task_from_its_start_to_its_file() {
  let product = Setup::new().await.start().await;
  let owner = product.owner();
  let help = owner.send("help").await.id();
  assert!(owner.reply_to(&help).await.text.contains("start a task"));
  let started = owner.send("start a task: write a file").await.id();
  assert!(owner.reply_to(&started).await.text.contains("The task has begun"));
  assert!(told(&owner, "This is the rehearsal's result of the task").await.contains("write a file"));
  let told_to = owner.send("tell the task: add a title").await.id();
  assert!(owner.reply_to(&told_to).await.text.contains("INSTRUCTED"));
  let result = told(&owner, "and what you added").await;
  assert!(result.contains("write a file") && result.contains("add a title"), "{result}");
  let dump = sound(&product);
  assert_eq!(dump.of("OutputDelivered").len(), 1);
  let file = &dump.of("OutputDelivered")[0].body["file"];
  let answer = owner.get(&format!("/files/{}", file["id"].as_str().unwrap())).await.expect("it answers");
  assert_eq!(answer.status(), 200);
  assert!(answer.text().await.expect("text").contains("Written by the rehearsal."));
}
