//! Usage: one line a step, and what is not known stays not known.

use super::{Cost, Span, of_job, sum};
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

/// Proves the sums of a task, a reply and a stretch of time: what nobody knows is counted as such.
#[tokio::test]
async fn sums_are_by_job_and_by_time_and_say_what_is_not_known() {
  let mut story = Story::default();
  story.create(agent(1));
  let told = story.task(agent(1), "Compare", "Compare them.");
  for step in 1..=3 {
    story.step(told, step, "on it", &[]);
  }
  let noon = story.now();
  let turn = story.message(agent(1), "send it");
  story.start(turn, 1);
  story.calls(turn, 1, true);
  story.finish(turn, 1, "sent", None);
  let model = Model::of(&story.decisions).await;
  let of = async |span| sum(&model.pool, agent(1), span).await.unwrap();
  let task = of(Span { job: Some(told.id.into()), ..Span::default() }).await;
  assert_eq!((task.steps, task.input_tokens, task.unpriced_steps), (3, 15, 0));
  assert_eq!(task.costs, [Cost { currency: "USD".into(), micros: 45 }]);
  let reply = of(Span { job: Some(turn.job()), ..Span::default() }).await;
  assert_eq!((reply.steps, reply.input_tokens, reply.uncounted_steps, reply.unpriced_steps), (2, 10, 1, 1));
  assert_eq!(of(Span { until: Some(noon), ..Span::default() }).await.steps, 2, "the last step before is not before itself");
  assert_eq!(of(Span { since: Some(noon), ..Span::default() }).await.steps, 3);
  assert_eq!(of(Span::default()).await.steps, 5);
  assert_eq!(sum(&model.pool, agent(2), Span::default()).await.unwrap().steps, 0);
}
