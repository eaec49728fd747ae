//! Settings: the last change, whole.

use pa_domain::settings::Effort;

use super::of;
use crate::testing::story::{Story, agent, settings};
use crate::tests::Model;

#[tokio::test]
async fn the_last_change_counts_whole() {
  let mut story = Story::default();
  story.create(agent(1));
  let mut later = settings(2, "Ada");
  later.effort = Effort::High;
  later.time_zone = "Asia/Shanghai".into();
  story.settings(agent(1), later);
  for size in [1, 500] {
    let model = Model::new().await;
    crate::tests::project(&model.store, &story.decisions, size).await;
    let row = of(&model.pool, agent(1)).await.unwrap().unwrap();
    assert_eq!((row.version, row.name.as_str(), row.effort, row.time_zone.as_str()), (2, "Ada", Effort::High, "Asia/Shanghai"));
    assert_eq!(row.changed, 4);
    assert_eq!(of(&model.pool, agent(2)).await.unwrap(), None);
  }
}
