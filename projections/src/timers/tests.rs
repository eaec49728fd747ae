//! Timers: due ones, the next one, and those that are gone.

use pa_domain::Timestamp;
use pa_domain::timer::Purpose;

use super::{due, next_due};
use crate::testing::story::{Story, agent, timer_of};
use crate::tests::Model;

#[tokio::test]
async fn due_timers_come_earliest_first_and_cancelled_ones_never() {
  let mut story = Story::default();
  let mut turns = Vec::new();
  for number in 1..=3 {
    story.create(agent(number));
    let turn = story.message(agent(number), "hello");
    story.start(turn, 1);
    turns.push(turn);
  }
  let model = Model::of(&story.decisions).await;
  let all = due(&model.pool, Timestamp(i64::MAX), 10).await.unwrap();
  assert_eq!(all.iter().map(|timer| timer.id).collect::<Vec<_>>(), turns.iter().map(|turn| timer_of(*turn, 1)).collect::<Vec<_>>());
  assert_eq!((all[0].purpose, all[0].thing, all[0].agent), (Purpose::AttemptLimit, Some(turns[0].job().into()), agent(1)));
  assert_eq!(next_due(&model.pool, Timestamp(all[0].due.0 - 1)).await.unwrap(), Some(all[0].due));
  assert_eq!(next_due(&model.pool, all[0].due).await.unwrap(), Some(all[1].due), "one that is due is not the next");
  assert_eq!(next_due(&model.pool, all[2].due).await.unwrap(), None);
  assert_eq!(due(&model.pool, all[1].due, 10).await.unwrap().len(), 2, "one that is due at the instant is due");
  assert_eq!(due(&model.pool, Timestamp(all[0].due.0 - 1), 10).await.unwrap(), []);
  story.finish(turns[0], 1, "done", None);
  story.give_back(turns[1], 1);
  let model = Model::of(&story.decisions).await;
  assert_eq!(due(&model.pool, Timestamp(i64::MAX), 10).await.unwrap().len(), 1);
}
