//! What stands in a conversation: every entry's life, pages, history, files.

use pa_domain::conversation::{Author, ConversationKind, MessageAdmitted, NoticeParam};
use pa_domain::{ConversationId, MessageId, conversation as domain};
use uuid::Uuid;

use super::{EntryKind, Role, Status, attachment, by_input, conversations, entry, history, one, page};
use crate::commit::Batch;
use crate::testing::story::{Story, Turn, agent, file, main_of};
use crate::tests::Model;

const ME: u128 = 1;

fn begun() -> Story {
  let mut story = Story::default();
  story.create(agent(ME));
  story
}

/// The statuses of a turn's message and of its reply, if that is shown.
async fn statuses(story: &Story, turn: Turn) -> (Status, Option<Status>) {
  let model = Model::of(&story.decisions).await;
  let shown = page(&model.pool, turn.agent, turn.conversation, 200, None).await.unwrap().entries;
  let of = |id: MessageId| shown.iter().find(|entry| entry.id == id).map(|entry| entry.status);
  (of(turn.message).unwrap(), of(turn.reply))
}

#[tokio::test]
async fn a_message_and_its_reply_go_through_their_states() {
  let mut story = begun();
  let turn = story.message(agent(ME), "hello");
  assert_eq!(statuses(&story, turn).await, (Status::Pending, None));
  story.start(turn, 1);
  assert_eq!(statuses(&story, turn).await, (Status::Pending, Some(Status::Writing)));
  story.lose(turn, 1);
  assert_eq!(statuses(&story, turn).await, (Status::Pending, Some(Status::Writing)));
  story.start(turn, 2);
  story.finish(turn, 2, "hi there", None);
  assert_eq!(statuses(&story, turn).await, (Status::Answered, Some(Status::Posted)));
  let model = Model::of(&story.decisions).await;
  let reply = entry(&model.pool, turn.agent, turn.reply).await.unwrap().unwrap();
  assert_eq!((reply.text.as_str(), reply.reply_to, reply.attempt, reply.role), ("hi there", Some(turn.message), 2, Role::Agent));
  let message = entry(&model.pool, turn.agent, turn.message).await.unwrap().unwrap();
  assert_eq!((message.reply, message.role, message.changed), (Some(turn.reply), Role::Owner, story.ordinal(agent(ME))));
}

#[tokio::test]
async fn a_stopped_reply_keeps_what_was_shown_and_an_unseen_one_goes() {
  let mut story = begun();
  let seen = story.message(agent(ME), "tell me a story");
  story.start(seen, 1);
  story.stop(seen, Some(1), "Once upon");
  let unseen = story.message(agent(ME), "another");
  story.start(unseen, 1);
  story.stop(unseen, Some(1), "");
  let waiting = story.admit(agent(ME), "and another", &[], false);
  story.stop(waiting, None, "");
  assert_eq!(statuses(&story, seen).await, (Status::Stopped, Some(Status::Stopped)));
  assert_eq!(statuses(&story, unseen).await, (Status::Stopped, None));
  assert_eq!(statuses(&story, waiting).await, (Status::Stopped, None));
  let model = Model::of(&story.decisions).await;
  let reply = entry(&model.pool, seen.agent, seen.reply).await.unwrap().unwrap();
  assert_eq!((reply.text.as_str(), reply.incomplete), ("Once upon", true));
  let gone = entry(&model.pool, unseen.agent, unseen.reply).await.unwrap().unwrap();
  assert!(gone.removed && gone.text.is_empty(), "it stays as a tombstone");
  assert_eq!(entry(&model.pool, waiting.agent, waiting.reply).await.unwrap(), None, "there never was a row");
}

#[tokio::test]
async fn a_failed_reply_makes_place_for_a_notice_and_comes_back_with_a_retry() {
  let mut story = begun();
  let turn = story.message(agent(ME), "too hard");
  story.start(turn, 1);
  let place = story.ordinal(agent(ME)) - 1;
  let notice = story.fail(turn, 1);
  assert_eq!(statuses(&story, turn).await, (Status::Failed, None));
  let model = Model::of(&story.decisions).await;
  let shown = entry(&model.pool, turn.agent, notice).await.unwrap().unwrap();
  assert_eq!((shown.kind, shown.role, shown.text.as_str(), shown.code.as_str()), (EntryKind::Notice, Role::Notice, "", "REPLY_INTERRUPTED"));
  assert_eq!(shown.params, [NoticeParam { name: "losses".into(), value: "2".into() }]);
  assert_eq!(shown.reply_to, Some(turn.message));
  story.retry(turn);
  assert_eq!(statuses(&story, turn).await, (Status::Pending, None));
  story.start(turn, 2);
  story.finish(turn, 2, "now it works", None);
  assert_eq!(statuses(&story, turn).await, (Status::Answered, Some(Status::Posted)));
  let model = Model::of(&story.decisions).await;
  let reply = entry(&model.pool, turn.agent, turn.reply).await.unwrap().unwrap();
  assert_eq!((reply.place, reply.removed, reply.incomplete), (place, false, false), "the place is that of the first attempt");
}

/// Proves USE-27.
#[tokio::test]
async fn tool_calls_of_a_turn_are_no_entries() {
  let mut story = begun();
  let turn = story.message(agent(ME), "send it");
  story.start(turn, 1);
  let calls = story.calls(turn, 1, true);
  for size in [1, 500] {
    let model = Model::new().await;
    crate::tests::project(&model.store, &story.decisions, size).await;
    let shown = page(&model.pool, turn.agent, turn.conversation, 50, None).await.unwrap().entries;
    assert_eq!(shown.iter().map(|entry| entry.id).collect::<Vec<_>>(), [turn.message, turn.reply]);
    for call in calls {
      assert_eq!(entry(&model.pool, turn.agent, MessageId(call.0)).await.unwrap(), None);
    }
  }
}

/// Proves RUN-28.
#[tokio::test]
async fn older_entries_come_in_pages_that_neither_overlap_nor_miss() {
  let mut story = begun();
  for number in 0..25 {
    story.turn(agent(ME), &format!("question {number}"), &format!("answer {number}"));
  }
  let model = Model::of(&story.decisions).await;
  let whole = page(&model.pool, agent(ME), main_of(agent(ME)), 200, None).await.unwrap();
  assert_eq!((whole.entries.len(), whole.has_previous), (50, false));
  assert!(whole.entries.is_sorted_by_key(|entry| entry.place));
  let mut pages = Vec::new();
  let mut before = None;
  loop {
    let older = page(&model.pool, agent(ME), main_of(agent(ME)), 7, before).await.unwrap();
    before = older.entries.first().map(|entry| entry.place);
    assert!(older.entries.len() == 7 || !older.has_previous);
    pages.push(older.entries);
    if !older.has_previous {
      break;
    }
  }
  assert_eq!(pages.into_iter().rev().flatten().collect::<Vec<_>>(), whole.entries);
}

#[tokio::test]
async fn attachments_keep_their_order_and_are_found_by_their_file() {
  let mut story = begun();
  let turn = story.admit(agent(ME), "", &[file(3), file(1), file(2)], true);
  let model = Model::of(&story.decisions).await;
  let message = entry(&model.pool, turn.agent, turn.message).await.unwrap().unwrap();
  let names: Vec<_> = message.attachments.iter().map(|attachment| attachment.name.as_str()).collect();
  assert_eq!(names, ["note 3.txt", "note 1.txt", "note 2.txt"]);
  let found = attachment(&model.pool, turn.agent, &file(1).id).await.unwrap().unwrap();
  assert_eq!(found, message.attachments[1]);
  assert_eq!(attachment(&model.pool, turn.agent, "no such file").await.unwrap(), None);
}

#[tokio::test]
async fn the_message_of_an_input_is_found_by_the_input() {
  let mut story = begun();
  let turn = story.message(agent(ME), "hello");
  let input = story.decisions.last().unwrap().facts[0].0.cause;
  let model = Model::of(&story.decisions).await;
  assert_eq!(by_input(&model.pool, turn.agent, input).await.unwrap().unwrap().id, turn.message);
  assert_eq!(by_input(&model.pool, turn.agent, Uuid::from_u128(9)).await.unwrap(), None);
}

#[tokio::test]
async fn history_pairs_each_earlier_message_with_its_reply_newest_first() {
  let mut story = begun();
  for number in 0..40 {
    story.turn(agent(ME), &format!("question {number}"), &format!("answer {number}"));
  }
  // Two messages before the first of them is answered: its reply then stands after the second.
  let first = story.message(agent(ME), "first");
  let second = story.admit(agent(ME), "second", &[], false);
  let third = story.admit(agent(ME), "third", &[], false);
  story.start(first, 1);
  story.finish(first, 1, "to the first", Some(second));
  story.start(second, 1);
  let model = Model::of(&story.decisions).await;
  let turns = history(&model.pool, agent(ME), second.message, |_| true).await.unwrap();
  let said: Vec<_> = turns.iter().map(|turn| (turn.message.text.as_str(), turn.reply.as_ref().map(|reply| reply.text.as_str()))).collect();
  assert_eq!(said[..3], [("second", None), ("first", Some("to the first")), ("question 39", Some("answer 39"))]);
  assert_eq!(said.len(), 42, "everything before it, over more than one read, and nothing after it");
  assert!(turns.iter().all(|turn| turn.message.id != third.message));
  let mut room = 60;
  let kept = history(&model.pool, agent(ME), second.message, |turn| {
    room -= i64::try_from(turn.message.text.len() + turn.reply.as_ref().map_or(0, |reply| reply.text.len())).unwrap();
    room >= 0
  })
  .await
  .unwrap();
  assert_eq!(kept.len(), 3, "whole turns only, as long as there is room");
}

#[tokio::test]
async fn the_main_conversation_comes_first_and_is_found_without_an_id() {
  let mut story = begun();
  let channel = ConversationId(Uuid::from_u128(0xc));
  for title in ["Kim", "Kim L."] {
    story.decide(agent(ME), |_| {
      let opened =
        domain::ConversationOpened { conversation: channel, kind: ConversationKind::Channel, title: title.to_owned(), connection: "lark-1".to_owned() };
      vec![domain::Event::from(opened).into()]
    });
  }
  let model = Model::of(&story.decisions).await;
  let all = conversations(&model.pool, agent(ME)).await.unwrap();
  assert_eq!(all.iter().map(|row| row.id).collect::<Vec<_>>(), [main_of(agent(ME)), channel]);
  assert_eq!((all[1].title.as_str(), all[1].connection.as_str(), all[1].changed), ("Kim L.", "lark-1", 5));
  assert_eq!(one(&model.pool, agent(ME), None).await.unwrap().unwrap().id, main_of(agent(ME)));
  assert_eq!(one(&model.pool, agent(ME), Some(channel)).await.unwrap().unwrap(), all[1]);
}

#[tokio::test]
async fn what_postgres_can_not_hold_is_replaced_and_the_rest_stays() {
  let mut story = begun();
  let conversation = main_of(agent(ME));
  let message = MessageId(Uuid::from_u128(0x77));
  story.decide(agent(ME), |_| {
    let admitted = MessageAdmitted {
      message,
      conversation,
      author: Author::Person,
      author_name: "Ev\u{0}a".to_owned(),
      text: "A\u{0}B \u{1F600} C".to_owned(),
      attachments: Vec::new(),
      reply: MessageId(Uuid::from_u128(0x78)),
    };
    vec![domain::Event::from(admitted).into()]
  });
  let model = Model::of(&story.decisions).await;
  let entry = entry(&model.pool, agent(ME), message).await.unwrap().unwrap();
  assert_eq!((entry.text.as_str(), entry.author.as_str(), entry.role), ("A\u{FFFD}B \u{1F600} C", "Ev\u{FFFD}a", Role::Person));
}

#[test]
fn a_turn_changes_its_own_rows_only() {
  let mut story = begun();
  let turn = story.message(agent(ME), "hello");
  story.start(turn, 1);
  story.finish(turn, 1, "hi", None);
  let mut batch = Batch::new(&std::collections::BTreeMap::new());
  for decision in &story.decisions[1..] {
    decision.add_to(&mut batch);
  }
  let ids: Vec<_> = batch.conversation.entries.iter().map(|(_, id, _)| *id).collect();
  assert_eq!(ids, [turn.message.0, turn.reply.0], "three decisions, one write a row");
}
