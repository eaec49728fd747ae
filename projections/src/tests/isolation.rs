//! Every agent is alone: no read shows another agent's rows.

use super::Model;
use crate::testing::story::{agent, everything, file, main_of};
use crate::{audit, conversation, queue, updates, usage};

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
  let stranger = agent(9);
  assert_eq!(conversation::attachment(&model.pool, stranger, &file(1).id).await.unwrap(), None);
  assert_eq!(conversation::conversations(&model.pool, stranger).await.unwrap(), []);
  assert_eq!(audit::page(&model.pool, stranger, &audit::Filter::default(), 200, None).await.unwrap().rows, []);
  assert_eq!(updates::after(&model.pool, stranger, 0, 500).await.unwrap().changes, []);
}
