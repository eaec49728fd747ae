//! Usage: one line a step, and what is not known stays not known.

use super::of_job;
use crate::testing::story::{Story, agent};
use crate::tests::Model;

#[tokio::test]
async fn a_step_has_one_line_and_the_unknown_is_not_zero() {
  let mut story = Story::default();
  story.create(agent(1));
  let turn = story.message(agent(1), "send it");
  story.start(turn, 1);
  story.calls(turn, 1, true);
  story.finish(turn, 1, "sent", None);
  let model = Model::of(&story.decisions).await;
  let lines = of_job(&model.pool, agent(1), turn.job()).await.unwrap();
  assert_eq!(lines.iter().map(|line| (line.step, line.input_tokens, line.price_micros)).collect::<Vec<_>>(), [(1, Some(10), Some(30)), (7, None, None)]);
  assert_eq!(lines[0].currency.as_deref(), Some("USD"));
  assert_eq!(lines[1].currency, None);
}
