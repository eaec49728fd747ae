//! A task's entries: one order, one card a call, pages, and nothing of replies.

use pa_domain::Origin;
use uuid::Uuid;

use super::{Entry, Kind, Status, one, page};
use crate::testing::story::{Story, agent, file};
use crate::testing::tasks::{Told, entry_of};
use crate::tests::{Model, project};
use crate::updates::{self, Update};

fn begun() -> (Story, Told) {
  let mut story = Story::default();
  story.create(agent(1));
  let task = story.task(agent(1), "Compare", "Compare the offers.");
  story.begin_task(task, 1);
  (story, task)
}

/// All entries of the task, which are the same in batches of any size.
async fn seen(story: &Story, told: Told) -> Vec<Entry> {
  let mut seen = Vec::new();
  for size in [1, 3, 500] {
    let model = Model::new().await;
    project(&model.store, &story.decisions, size).await;
    seen.push(page(&model.pool, told.agent, told.id, 200, None).await.unwrap().rows);
  }
  assert_eq!(seen[0], seen[2]);
  assert_eq!(seen[1], seen[2]);
  seen.remove(0)
}

/// Proves RUN-8: earlier progress, the added instruction, then continued progress.
#[tokio::test]
async fn entries_stand_in_the_order_in_which_they_were_admitted() {
  let (mut story, told) = begun();
  story.step(told, 1, "I look first.", &["pa_read_file"]);
  let read = story.tool(told, (1, 0), "pa_read_file", None);
  story.instruct(told, "and the third one", None);
  // The tool that ran meanwhile returns afterwards: its own card has the result, at its place (RUN-9).
  story.returned(told, read, "three offers");
  story.step(told, 2, "Now the third.", &[]);
  story.deliver(told, read, "table", 11);
  story.complete(told, "The second.");
  let entries = seen(&story, told).await;
  let kinds: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.body.as_str())).collect();
  let expected = [
    (Kind::Goal, "Compare the offers."),
    (Kind::Words, "I look first."),
    (Kind::Tool, "three offers"),
    (Kind::Instruction, "and the third one"),
    (Kind::Words, "Now the third."),
    (Kind::Output, "Here it is."),
    (Kind::Result, "The second."),
  ];
  assert_eq!(kinds, expected);
  assert!(entries.is_sorted_by_key(|entry| entry.place));
  assert_eq!(entries.iter().map(|entry| entry.attachments.len()).collect::<Vec<_>>(), [1, 0, 0, 0, 0, 1, 0]);
  assert_eq!((entries[0].attachments[0].id.as_str(), entries[5].attachments[0].id.as_str()), (file(7).id.as_str(), file(11).id.as_str()));
  assert_eq!((entries[0].origin, entries[3].origin, entries[4].origin), (Origin::Agent, Origin::Owner, Origin::Agent));
}

/// Proves RUN-5, RUN-9.
#[tokio::test]
async fn a_call_has_one_card_through_its_whole_life() {
  let (mut story, told) = begun();
  story.step(told, 1, "", &["pa_email_send"]);
  let held = story.hold_email(told, (1, 0));
  let card = async |story: &Story| {
    let entries = seen(story, told).await;
    assert_eq!(entries.len(), 2, "the goal and the call: a step without words is no entry");
    entries.into_iter().next_back().unwrap()
  };
  let before = card(&story).await;
  assert_eq!((before.status, before.code.as_str(), before.action.as_str()), (Status::Held, "pa_email_send", crate::testing::tasks::EMAIL));
  story.approve(told, held, None);
  story.begin_task(told, 2);
  let call = story.begin_call(told, (1, 0), ("pa_email_send", pa_domain::call::Class::External, crate::testing::tasks::EMAIL), Some(held.card));
  assert_eq!(card(&story).await.status, Status::Started);
  story.unknown(told, call);
  assert_eq!(card(&story).await.status, Status::Unknown);
  story.settle(told, call, false);
  let settled = card(&story).await;
  assert_eq!((settled.status, settled.reason.as_str(), settled.body.as_str()), (Status::Reconciled, "NOT_EXECUTED", ""));
  story.noted(told, call);
  let late = card(&story).await;
  assert_eq!((late.status, late.reason.as_str(), late.body.as_str()), (Status::Reconciled, "EXECUTED", "sent after all"));
  assert_eq!((late.place, late.action), (before.place, before.action));
}

#[tokio::test]
async fn what_was_skipped_keeps_what_it_would_have_done() {
  let (mut story, told) = begun();
  let held = story.hold_email(told, (1, 0));
  story.instruct(told, "wait", Some((held, (1, 0))));
  let entries = seen(&story, told).await;
  let skipped = entries.iter().find(|entry| entry.kind == Kind::Tool).unwrap();
  assert_eq!((skipped.status, skipped.reason.as_str(), skipped.action.as_str()), (Status::Skipped, "STEERED", crate::testing::tasks::EMAIL));
}

/// Proves USE-27.
#[tokio::test]
async fn what_a_reply_does_is_no_entry_of_a_task() {
  let (mut story, told) = begun();
  let turn = story.message(agent(1), "send it");
  story.start(turn, 1);
  let [call, _] = story.calls(turn, 1, true);
  for size in [1, 500] {
    let model = Model::new().await;
    project(&model.store, &story.decisions, size).await;
    assert_eq!(one(&model.pool, agent(1), call.0).await.unwrap(), None);
    assert_eq!(page(&model.pool, agent(1), turn.job().into(), 50, None).await.unwrap().rows, []);
    assert_eq!(page(&model.pool, agent(1), told.id, 50, None).await.unwrap().rows.len(), 1);
  }
}

/// Proves RUN-10.
#[tokio::test]
async fn pages_and_live_changes_give_the_same_entries_in_the_same_order() {
  let (mut story, told) = begun();
  for step in 1..=12 {
    story.step(told, step, &format!("step {step}"), &["pa_read_file"]);
    story.tool(told, (step, 0), "pa_read_file", Some("a text"));
  }
  story.instruct(told, "one more thing", None);
  let whole = seen(&story, told).await;
  assert_eq!(whole.len(), 26);
  let model = Model::new().await;
  let (mut live, mut after) = (std::collections::BTreeMap::new(), 0);
  for end in (1..story.decisions.len()).step_by(4).chain([story.decisions.len()]) {
    project(&model.store, &story.decisions[..end], 500).await;
    let changed = updates::after(&model.pool, agent(1), after, 500).await.unwrap();
    for (_, update) in changed.changes {
      if let Update::TaskEntry(entry) = update {
        live.insert(entry.place, *entry);
      }
    }
    after = changed.upto;
  }
  assert_eq!(live.into_values().collect::<Vec<_>>(), whole);
  let (mut pages, mut before) = (Vec::new(), None);
  loop {
    let older = page(&model.pool, agent(1), told.id, 7, before).await.unwrap();
    assert_eq!(older.has_next, before.is_some());
    before = older.rows.first().map(|entry| entry.place);
    pages.push(older.rows);
    if !older.has_previous {
      break;
    }
  }
  assert_eq!(pages.into_iter().rev().flatten().collect::<Vec<_>>(), whole);
}

#[tokio::test]
async fn events_of_a_task_are_told_by_codes() {
  let (mut story, told) = begun();
  story.pause(told, pa_domain::task::PauseReason::Asked);
  story.resume(told, 1);
  story.begin_task(told, 2);
  story.interrupt(told, 3);
  story.stop_task(told, false);
  let entries = seen(&story, told).await;
  let codes: Vec<_> = entries.iter().filter(|entry| entry.kind == Kind::Event).map(|entry| entry.code.as_str()).collect();
  assert_eq!(codes, ["PAUSED", "RESUMED", "INTERRUPTED", "STOPPED"]);
  let model = Model::of(&story.decisions).await;
  let last = entry_of(&story, story.decisions.len() - 1, 0);
  assert_eq!(one(&model.pool, agent(1), last).await.unwrap().unwrap().code, "STOPPED");
  assert_eq!(one(&model.pool, agent(1), Uuid::from_u128(9)).await.unwrap(), None);
}
