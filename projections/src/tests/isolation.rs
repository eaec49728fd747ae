//! Every agent is alone: no read shows another agent's rows.

use super::Model;
use crate::tasks::Window;
use crate::testing::story::{agent, everything, file, main_of};
use crate::{audit, conversation, outputs, pending_actions, queue, task_entries, tasks, updates, usage};

#[tokio::test]
async fn no_read_crosses_agents() {
  let story = everything();
  let model = Model::of(&story.decisions).await;
  let (mine, other) = (agent(1), agent(2));
  let page = conversation::page(&model.pool, mine, main_of(mine), 200, None).await.unwrap();
  for entry in &page.entries {
    assert_eq!(conversation::entry(&model.pool, other, entry.id).await.unwrap(), None);
    assert_eq!(queue::job(&model.pool, other, entry.id.into()).await.unwrap(), None);
    assert_eq!(usage::of_job(&model.pool, other, entry.id.into()).await.unwrap(), []);
  }
  assert_eq!(conversation::page(&model.pool, other, main_of(mine), 200, None).await.unwrap().entries, []);
  assert_eq!(conversation::one(&model.pool, other, Some(main_of(mine))).await.unwrap(), None);
  let tasks = tasks::page(&model.pool, mine, &[], Window::Last(200, None)).await.unwrap().rows;
  assert!(tasks.len() > 3);
  for task in &tasks {
    assert_eq!(tasks::one(&model.pool, other, task.id).await.unwrap(), None);
    assert_eq!(task_entries::page(&model.pool, other, task.id, 200, None).await.unwrap().rows, []);
    assert_eq!(outputs::page(&model.pool, other, Some(task.id), Window::Last(200, None)).await.unwrap().rows, []);
    for entry in task_entries::page(&model.pool, mine, task.id, 200, None).await.unwrap().rows {
      assert_eq!(task_entries::one(&model.pool, other, entry.id).await.unwrap(), None);
    }
  }
  let actions = pending_actions::pending(&model.pool, mine).await.unwrap();
  assert!(!actions.is_empty());
  for action in &actions {
    assert_eq!(pending_actions::one(&model.pool, other, action.id).await.unwrap(), None);
  }
  let stranger = agent(9);
  assert_eq!(tasks::listed(&model.pool, stranger, 50).await.unwrap(), []);
  assert_eq!(pending_actions::pending(&model.pool, stranger).await.unwrap(), []);
  assert_eq!(outputs::page(&model.pool, stranger, None, Window::Last(200, None)).await.unwrap().rows, []);
  assert_eq!(conversation::attachment(&model.pool, stranger, &file(1).id).await.unwrap(), None);
  assert_eq!(conversation::conversations(&model.pool, stranger).await.unwrap(), []);
  assert_eq!(audit::page(&model.pool, stranger, &audit::Filter::default(), 200, None).await.unwrap().rows, []);
  assert_eq!(updates::after(&model.pool, stranger, 0, 500).await.unwrap().changes, []);
}
