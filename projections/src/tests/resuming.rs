//! A subscription that resumes anywhere ends with the rows as they are.

use std::collections::BTreeMap;

use super::{Model, project};
use crate::pending_actions::State;
use crate::tasks::Window;
use crate::testing::story::{Story, agent, everything, main_of};
use crate::updates::{self, Update};
use crate::{conversation, indicator, settings};

#[tokio::test]
async fn resuming_from_any_position_gives_every_row_that_changed_since() {
  let story = everything();
  let model = Model::new().await;
  let id = agent(1);
  // A reader that was away for three decisions each time.
  let (mut entries, mut tasks, mut task_entries, mut actions, mut outputs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), Vec::new());
  let (mut after, mut settings_seen, mut indicator_seen) = (0, None, None);
  for end in (1..=story.decisions.len()).step_by(3).chain([story.decisions.len()]) {
    project(&model.store, &story.decisions[..end], 500).await;
    let updates = updates::after(&model.pool, id, after, 500).await.unwrap();
    assert!(!updates.more);
    assert!(updates.changes.is_sorted_by_key(|(changed, _)| *changed));
    for (changed, update) in updates.changes {
      assert!(changed > after && changed <= updates.upto);
      match update {
        Update::Entry(entry) => drop(entries.insert(entry.id, *entry)),
        Update::Settings(settings) => settings_seen = Some(settings),
        Update::Indicator(indicator) => indicator_seen = Some(indicator),
        Update::Conversation(_) => {}
        Update::Task(task) => drop(tasks.insert(task.id, *task)),
        Update::TaskEntry(entry) => drop(task_entries.insert(entry.place, *entry)),
        Update::Action(action) => drop(actions.insert(action.id, *action)),
        Update::Output(output) => outputs.push(*output),
      }
    }
    after = updates.upto;
  }
  assert_eq!(after, story.ordinal(id));
  let mut shown: Vec<_> = entries.into_values().filter(|entry| !entry.removed).collect();
  shown.sort_by_key(|entry| entry.place);
  assert_eq!(shown, conversation::page(&model.pool, id, main_of(id), 200, None).await.unwrap().entries);
  let mut all: Vec<_> = tasks.into_values().collect();
  all.sort_by_key(|task| task.place);
  assert_eq!(all, crate::tasks::page(&model.pool, id, &[], Window::Last(200, None)).await.unwrap().rows);
  for task in &all {
    let live: Vec<_> = task_entries.values().filter(|entry| entry.task == task.id).cloned().collect();
    assert_eq!(live, crate::task_entries::page(&model.pool, id, task.id, 200, None).await.unwrap().rows);
  }
  let waiting: Vec<_> = actions.into_values().filter(|action| matches!(action.state, State::Pending | State::Unknown)).collect();
  assert_eq!(waiting, crate::pending_actions::pending(&model.pool, id).await.unwrap());
  assert_eq!(outputs, crate::outputs::page(&model.pool, id, None, Window::Last(200, None)).await.unwrap().rows);
  assert_eq!(settings_seen, settings::of(&model.pool, id).await.unwrap());
  assert_eq!(indicator_seen, Some(indicator::of(&model.pool, id).await.unwrap()));
  assert_eq!(updates::after(&model.pool, id, after, 500).await.unwrap().changes, []);
}

#[tokio::test]
async fn whoever_is_too_far_behind_is_told_so() {
  let mut story = Story::default();
  story.create(agent(1));
  for _ in 0..10 {
    story.turn(agent(1), "question", "answer");
  }
  let model = Model::of(&story.decisions).await;
  let updates = updates::after(&model.pool, agent(1), 0, 12).await.unwrap();
  assert!(updates.more);
  assert_eq!(updates.changes.len(), 12);
  assert!(!updates::after(&model.pool, agent(1), 0, 500).await.unwrap().more);
}
