//! The queue: what may be claimed, what runs, and which calls are open.

use pa_domain::execution::JobKind;
use pa_domain::{JobId, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use super::{JobState, candidates, job, open_calls, open_calls_of_ended, running, running_without_lease};
use crate::testing::story::{Story, Turn, agent};
use crate::tests::Model;

async fn claimable(model: &Model) -> Vec<JobId> {
  candidates(&model.pool, JobKind::Reply, 10).await.unwrap().into_iter().map(|(job, _)| job).collect()
}

async fn lease(pool: &PgPool, turn: Turn, seconds: i32) {
  sqlx::query(
    "INSERT INTO ops.leases (kind, job, agent, node, process, claimed_at, expires_at) VALUES ('REPLY', $1, $2, $3, $3, now(), now() + make_interval(secs => $4)) \
     ON CONFLICT (kind, job) DO UPDATE SET expires_at = excluded.expires_at",
  )
  .bind(turn.message.0)
  .bind(turn.agent.0)
  .bind(Uuid::from_u128(1))
  .bind(f64::from(seconds))
  .execute(pool)
  .await
  .unwrap();
}

#[tokio::test]
async fn a_job_is_offered_from_its_turn_to_its_start_and_again_after_a_loss() {
  let mut story = Story::default();
  story.create(agent(1));
  let waiting = story.admit(agent(1), "not yet my turn", &[], false);
  assert_eq!(claimable(&Model::of(&story.decisions).await).await, []);
  let turn = story.message(agent(1), "my turn");
  assert_eq!(claimable(&Model::of(&story.decisions).await).await, [turn.job()]);
  story.start(turn, 1);
  let model = Model::of(&story.decisions).await;
  assert_eq!(claimable(&model).await, []);
  let row = job(&model.pool, turn.agent, turn.job()).await.unwrap().unwrap();
  assert_eq!((row.state, row.execution, row.since, row.limit.is_some()), (JobState::Running, 1, story.now(), true));
  story.lose(turn, 1);
  let model = Model::of(&story.decisions).await;
  assert_eq!(claimable(&model).await, [turn.job()]);
  let row = job(&model.pool, turn.agent, turn.job()).await.unwrap().unwrap();
  assert_eq!((row.state, row.execution, row.limit), (JobState::Claimable, 1, None));
  story.start(turn, 2);
  story.finish(turn, 2, "done", Some(waiting));
  let model = Model::of(&story.decisions).await;
  assert_eq!(job(&model.pool, turn.agent, turn.job()).await.unwrap(), None);
  assert_eq!(claimable(&model).await, [waiting.job()], "the next one has its turn");
}

#[tokio::test]
async fn who_waits_longest_comes_first_and_a_living_claim_is_left_alone() {
  let mut story = Story::default();
  let mut turns = Vec::new();
  for number in 1..=4 {
    story.create(agent(number));
    turns.push(story.message(agent(number), "hello"));
  }
  let model = Model::of(&story.decisions).await;
  assert_eq!(claimable(&model).await, turns.iter().map(Turn::job).collect::<Vec<_>>());
  lease(&model.pool, turns[0], 60).await;
  lease(&model.pool, turns[1], -1).await;
  assert_eq!(claimable(&model).await, turns[1..].iter().map(Turn::job).collect::<Vec<_>>(), "a claim that has run out does not count");
  assert_eq!(candidates(&model.pool, JobKind::Reply, 2).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_job_with_an_open_external_call_is_not_offered_until_its_outcome_is_known() {
  let mut story = Story::default();
  story.create(agent(1));
  let turn = story.message(agent(1), "send it");
  story.start(turn, 1);
  let [call, _] = story.calls(turn, 1, false);
  story.lose(turn, 1);
  let model = Model::of(&story.decisions).await;
  assert_eq!(claimable(&model).await, []);
  let open = open_calls(&model.pool, turn.agent, turn.job()).await.unwrap();
  assert_eq!(open.iter().map(|open| (open.id, open.unknown)).collect::<Vec<_>>(), [(call, true)], "the skipped one never was open");
  story.reconcile(turn, call);
  let model = Model::of(&story.decisions).await;
  assert_eq!(claimable(&model).await, [turn.job()]);
  assert_eq!(open_calls(&model.pool, turn.agent, turn.job()).await.unwrap(), []);
}

#[tokio::test]
async fn a_call_whose_execution_is_over_is_seen_by_observers() {
  let mut story = Story::default();
  story.create(agent(1));
  let turn = story.message(agent(1), "send it");
  story.start(turn, 1);
  story.calls(turn, 1, false);
  // Everything up to the call's start.
  let started = story.decisions.len() - 2;
  let model = Model::of(&story.decisions[..started]).await;
  assert_eq!(open_calls_of_ended(&model.pool, JobKind::Reply, 10).await.unwrap(), [], "its execution runs");
  sqlx::query("UPDATE jobs SET execution = 2").execute(&model.pool).await.unwrap();
  let seen = open_calls_of_ended(&model.pool, JobKind::Reply, 10).await.unwrap();
  assert_eq!(seen.iter().map(|call| (call.job, call.execution)).collect::<Vec<_>>(), [(turn.job(), 1)]);
}

#[tokio::test]
async fn executions_without_a_lease_are_found() {
  let mut story = Story::default();
  let mut turns = Vec::new();
  for number in 1..=3 {
    story.create(agent(number));
    let turn = story.message(agent(number), "hello");
    story.start(turn, 1);
    turns.push(turn);
  }
  let model = Model::of(&story.decisions).await;
  lease(&model.pool, turns[1], -60).await;
  let found = running_without_lease(&model.pool, JobKind::Reply, Timestamp(i64::MAX), 10).await.unwrap();
  assert_eq!(found.iter().map(|job| job.id).collect::<Vec<_>>(), [turns[0].job(), turns[2].job()]);
  assert_eq!(running_without_lease(&model.pool, JobKind::Reply, Timestamp(0), 10).await.unwrap(), [], "those that have just begun may not be leased yet");
  let pairs: Vec<_> = turns.iter().map(|turn| (turn.agent, turn.job())).collect();
  assert_eq!(running(&model.pool, &pairs).await.unwrap().len(), 3);
  assert_eq!(running(&model.pool, &[(agent(9), turns[0].job())]).await.unwrap(), []);
}

#[tokio::test]
async fn an_ended_job_comes_back_with_a_retry() {
  let mut story = Story::default();
  story.create(agent(1));
  let turn = story.message(agent(1), "too hard");
  story.start(turn, 1);
  story.fail(turn, 1);
  assert_eq!(claimable(&Model::of(&story.decisions).await).await, []);
  story.retry(turn);
  for size in [1, 500] {
    let model = Model::new().await;
    crate::tests::project(&model.store, &story.decisions, size).await;
    let row = job(&model.pool, turn.agent, turn.job()).await.unwrap().unwrap();
    assert_eq!((row.state, row.execution), (JobState::Claimable, 0), "in batches of {size}");
  }
}
