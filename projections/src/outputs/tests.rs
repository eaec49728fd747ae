//! Outputs: one row a receipt, the file that stands in the conversation, and pages.

use super::page;
use crate::conversation::{self, EntryKind, Role, Status};
use crate::tasks::Window;
use crate::testing::story::{Story, agent, file, main_of};
use crate::tests::{Model, project};

/// Proves DEL-1, DEL-3, DEL-4, DEL-14, RUN-32.
#[tokio::test]
async fn a_delivered_file_stands_in_the_conversation_and_in_the_list_while_the_task_goes_on() {
  let mut story = Story::default();
  story.create(agent(1));
  let told = story.task(agent(1), "Report", "Write it.");
  story.begin_task(told, 1);
  let call = story.tool(told, (1, 0), "pa_deliver", None);
  let output = story.deliver(told, call, "report-1", 11);
  for size in [1, 500] {
    let model = Model::new().await;
    project(&model.store, &story.decisions, size).await;
    let shown = conversation::page(&model.pool, agent(1), main_of(agent(1)), 50, None).await.unwrap().entries;
    let [entry] = <[_; 1]>::try_from(shown).unwrap();
    assert_eq!(
      (entry.id.0, entry.kind, entry.role, entry.status, entry.text.as_str()),
      (output.0, EntryKind::File, Role::Agent, Status::Posted, "Here it is.")
    );
    let outputs = page(&model.pool, agent(1), None, Window::Last(50, None)).await.unwrap().rows;
    let [listed] = <[_; 1]>::try_from(outputs).unwrap();
    assert_eq!((listed.id, listed.task, listed.title.as_str(), listed.source.as_str()), (output, told.id, "Report", "outputs/report-1.txt"));
    assert_eq!(listed.file, entry.attachments[0], "both are the same file");
    assert_eq!(conversation::attachment(&model.pool, agent(1), &file(11).id).await.unwrap(), Some(listed.file), "and the page can fetch it");
    assert_eq!(page(&model.pool, agent(2), None, Window::Last(50, None)).await.unwrap().rows, []);
  }
}

#[tokio::test]
async fn outputs_come_in_pages_newest_last_and_by_task() {
  let mut story = Story::default();
  story.create(agent(1));
  let (one, two) = (story.task(agent(1), "One", "a"), story.task(agent(1), "Two", "b"));
  for number in 0..5 {
    let told = if number % 2 == 0 { one } else { two };
    let call = story.tool(told, (number, 0), "pa_deliver", None);
    story.deliver(told, call, &format!("key {number}"), 20 + u32::try_from(number).unwrap());
  }
  let model = Model::of(&story.decisions).await;
  let read = async |task, window| page(&model.pool, agent(1), task, window).await.unwrap();
  let newest = read(None, Window::Last(2, None)).await;
  assert_eq!(newest.rows.iter().map(|row| row.source.as_str()).collect::<Vec<_>>(), ["outputs/key 3.txt", "outputs/key 4.txt"]);
  assert!(newest.has_previous && !newest.has_next);
  let older = read(None, Window::Last(9, Some(newest.rows[0].place))).await;
  assert_eq!((older.rows.len(), older.has_previous, older.has_next), (3, false, true));
  assert_eq!(read(Some(two.id), Window::First(9, None)).await.rows.len(), 2);
}

/// A file is no turn of the conversation: a prompt's history has the messages.
#[tokio::test]
async fn a_delivered_file_is_no_turn_of_the_history() {
  let mut story = Story::default();
  story.create(agent(1));
  story.turn(agent(1), "hello", "hi");
  let told = story.task(agent(1), "Report", "Write it.");
  let call = story.tool(told, (1, 0), "pa_deliver", None);
  story.deliver(told, call, "report-1", 11);
  let asked = story.message(agent(1), "and?");
  let model = Model::of(&story.decisions).await;
  let turns = conversation::history(&model.pool, agent(1), asked.message, |_| true).await.unwrap();
  assert_eq!(turns.iter().map(|turn| turn.message.text.as_str()).collect::<Vec<_>>(), ["and?", "hello"]);
}
