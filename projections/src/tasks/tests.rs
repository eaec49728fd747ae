//! Tasks: what each event makes of a row, pages, and what a prompt lists.

use pa_domain::task::PauseReason;

use super::{Page, Status, Task, Window, listed, one, page};
use crate::testing::story::{Story, agent};
use crate::testing::tasks::Told;
use crate::tests::{Model, project};

fn begun() -> (Story, Told) {
  let mut story = Story::default();
  story.create(agent(1));
  let task = story.task(agent(1), "Compare", "Compare the offers.");
  (story, task)
}

/// The task, which is the same in batches of any size.
async fn seen(story: &Story, told: Told) -> Task {
  let mut seen = Vec::new();
  for size in [1, 500] {
    let model = Model::new().await;
    project(&model.store, &story.decisions, size).await;
    seen.push(one(&model.pool, told.agent, told.id).await.unwrap().unwrap());
  }
  assert_eq!(seen[0], seen[1]);
  seen.remove(0)
}

/// Proves RUN-2.
#[tokio::test]
async fn a_task_goes_through_its_states() {
  let (mut story, told) = begun();
  let task = seen(&story, told).await;
  assert_eq!((task.status, task.title.as_str(), task.goal.as_str(), task.run), (Status::Queued, "Compare", "Compare the offers.", 1));
  assert_eq!((task.conversation, task.place), (told.conversation(), story.ordinal(agent(1)) - 1));
  story.begin_task(told, 1);
  assert_eq!(seen(&story, told).await.status, Status::Running);
  story.interrupt(told, 1);
  assert_eq!(seen(&story, told).await.status, Status::Queued);
  story.begin_task(told, 2);
  let held = story.hold_email(told, (1, 0));
  let waiting = seen(&story, told).await;
  assert_eq!((waiting.status, waiting.reason.as_str(), waiting.running), (Status::Waiting, "APPROVAL", false));
  story.approve(told, held, None);
  story.begin_task(told, 3);
  story.pause(told, PauseReason::Asked);
  let paused = seen(&story, told).await;
  assert_eq!((paused.status, paused.reason.as_str()), (Status::Paused, "ASKED"));
  story.resume(told, 1);
  story.begin_task(told, 4);
  story.complete(told, "The second.");
  let done = seen(&story, told).await;
  assert_eq!((done.status, done.reason.as_str(), done.execution, done.ended), (Status::Completed, "", 4, Some(story.now())));
  assert!(done.result.is_some() && done.changed == story.ordinal(agent(1)));
}

/// Proves RUN-3.
#[tokio::test]
async fn an_ended_task_goes_on_in_itself_and_keeps_its_result() {
  let (mut story, told) = begun();
  story.begin_task(told, 1);
  story.complete(told, "The second.");
  let result = seen(&story, told).await.result;
  story.instruct(told, "and the third?", None);
  let again = seen(&story, told).await;
  assert_eq!((again.status, again.ended, again.result, again.instructions), (Status::Queued, None, result, 1));
  assert_eq!(again.revision, story.ordinal(agent(1)) - 1);
  story.stop_task(told, false);
  assert_eq!(seen(&story, told).await.status, Status::Stopped);
  story.resume(told, 2);
  story.begin_task(told, 2);
  story.fail_task(told, "INCOMPLETE");
  let failed = seen(&story, told).await;
  assert_eq!((failed.status, failed.reason.as_str(), failed.run, failed.result), (Status::Failed, "INCOMPLETE", 2, result));
}

#[tokio::test]
async fn a_reply_that_is_lost_changes_no_task() {
  let (mut story, told) = begun();
  let turn = story.message(agent(1), "hello");
  story.start(turn, 1);
  story.lose(turn, 1);
  let model = Model::of(&story.decisions).await;
  let all = page(&model.pool, agent(1), &[], Window::Last(50, None)).await.unwrap();
  assert_eq!(all.rows.iter().map(|task| task.id).collect::<Vec<_>>(), [told.id]);
}

#[tokio::test]
async fn pages_go_both_ways_newest_last_and_by_status() {
  let mut story = Story::default();
  story.create(agent(1));
  let tasks: Vec<Told> = (0..7).map(|number| story.task(agent(1), &format!("task {number}"), "do it")).collect();
  story.begin_task(tasks[2], 1);
  story.begin_task(tasks[5], 1);
  story.stop_task(tasks[3], false);
  let model = Model::of(&story.decisions).await;
  let read = async |statuses: &[Status], window| page(&model.pool, agent(1), statuses, window).await.unwrap();
  let titles = |page: &Page<Task>| page.rows.iter().map(|task| task.title[5..].parse::<u32>().unwrap()).collect::<Vec<_>>();
  let newest = read(&[], Window::Last(3, None)).await;
  assert_eq!((titles(&newest), newest.has_previous, newest.has_next), (vec![4, 5, 6], true, false));
  let older = read(&[], Window::Last(5, Some(newest.rows[0].place))).await;
  assert_eq!((titles(&older), older.has_previous, older.has_next), (vec![0, 1, 2, 3], false, true));
  let first = read(&[], Window::First(2, None)).await;
  assert_eq!((titles(&first), first.has_previous, first.has_next), (vec![0, 1], false, true));
  let next = read(&[], Window::First(9, Some(first.rows[1].place))).await;
  assert_eq!((titles(&next), next.has_previous, next.has_next), (vec![2, 3, 4, 5, 6], true, false));
  assert_eq!(titles(&read(&[Status::Running], Window::Last(9, None)).await), [2, 5]);
  assert_eq!(titles(&read(&[Status::Queued, Status::Stopped], Window::First(9, None)).await), [0, 1, 3, 4, 6]);
  // Open ones first, each newest change first, then those that ended.
  let listed: Vec<_> = listed(&model.pool, agent(1), 6).await.unwrap().into_iter().map(|task| task.title[5..].parse::<u32>().unwrap()).collect();
  assert_eq!(listed, [5, 2, 6, 4, 1, 0]);
  let all = super::listed(&model.pool, agent(1), 50).await.unwrap();
  assert_eq!((all.len(), all[6].status), (7, Status::Stopped));
}
