//! Batches of several partitions in one statement: each is written or not as it would be alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::{LOG, Model};
use crate::commit::{Batch, PostgresStore};
use crate::testing::story::{Story, agent, main_of, mark};
use crate::{Error, Mark, Outcome, ReadStore as _, conversation, system};

const PARTITIONS: u16 = 8;

/// What happened in a partition: a turn of the agent with its number.
fn story(partition: u16, said: &str) -> Story {
  let mut story = Story::default();
  story.create(agent(partition.into()));
  story.turn(agent(partition.into()), said, "yes");
  story
}

fn batch(story: &Story) -> Batch {
  let mut batch = Batch::new(&BTreeMap::new());
  story.decisions.iter().for_each(|decision| decision.add_to(&mut batch));
  batch
}

/// Commits one batch for each partition, all at the same time.
async fn commit(model: &Model, stories: &[Story], expected: impl Fn(u16) -> Mark) -> Vec<Result<Outcome, Error>> {
  let store = Arc::new(PostgresStore::new(&model.db.database, &model.schema));
  let mut committing = JoinSet::new();
  for (partition, story) in (0..).zip(stories) {
    let (store, expected, next, batch) = (Arc::clone(&store), expected(partition), mark(&story.decisions), batch(story));
    committing.spawn(async move { (partition, store.commit(partition, &expected, &next, &batch).await) });
  }
  let outcomes: BTreeMap<u16, _> = committing.join_all().await.into_iter().collect();
  outcomes.into_values().collect()
}

async fn model() -> Model {
  let model = Model::new().await;
  for partition in 0..PARTITIONS {
    model.store.load(partition, LOG).await.unwrap();
  }
  model
}

/// One transaction wrote the positions of these partitions.
async fn transactions(model: &Model) -> i64 {
  sqlx::query_scalar("SELECT count(DISTINCT xmin::text) FROM projection_position WHERE next_position > 0").fetch_one(&model.pool).await.unwrap()
}

#[tokio::test]
async fn partitions_that_wait_at_the_same_time_are_written_in_one_transaction() {
  let model = model().await;
  let stories: Vec<Story> = (0..PARTITIONS).map(|partition| story(partition, "hello")).collect();
  for outcome in commit(&model, &stories, |_| Mark::default()).await {
    assert_eq!(outcome.unwrap(), Outcome::Committed);
  }
  assert_eq!(transactions(&model).await, 1);
  for (partition, story) in (0..).zip(&stories) {
    let id = agent(u128::from(partition));
    assert_eq!(model.store.load(partition, LOG).await.unwrap().mark, mark(&story.decisions));
    assert_eq!(system::progress(&model.pool, id).await.unwrap(), story.ordinal(id));
    let page = conversation::page(&model.pool, id, main_of(id), 50, None).await.unwrap();
    assert_eq!(page.entries.iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>(), ["hello", "yes"]);
  }
}

#[tokio::test]
async fn a_partition_that_somebody_else_moved_leaves_the_others_alone() {
  let model = model().await;
  let stories: Vec<Story> = (0..PARTITIONS).map(|partition| story(partition, "hello")).collect();
  let elsewhere = |partition| if partition == 3 { Mark { next_position: 7, ..Mark::default() } } else { Mark::default() };
  let outcomes = commit(&model, &stories, elsewhere).await;
  for (partition, outcome) in (0..).zip(outcomes) {
    let moved = partition != 3;
    assert_eq!(outcome.unwrap(), if moved { Outcome::Committed } else { Outcome::Stale }, "partition {partition}");
    assert_eq!(model.store.load(partition, LOG).await.unwrap().mark != Mark::default(), moved);
    assert_eq!(system::progress(&model.pool, agent(u128::from(partition))).await.unwrap() > 0, moved);
  }
}

#[tokio::test]
async fn rows_that_the_database_refuses_are_refused_for_their_partition_alone() {
  let model = model().await;
  let constraint = format!("ALTER TABLE {}.entries ADD CONSTRAINT no_poison CHECK (body <> 'poison')", model.schema.name());
  sqlx::raw_sql(sqlx::AssertSqlSafe(constraint)).execute(&model.db.pool).await.unwrap();
  let stories: Vec<Story> = (0..PARTITIONS).map(|partition| story(partition, if partition == 5 { "poison" } else { "hello" })).collect();
  let outcomes = commit(&model, &stories, |_| Mark::default()).await;
  for (partition, outcome) in (0_u16..).zip(outcomes) {
    let fine = partition != 5;
    match outcome {
      Ok(outcome) => assert!(fine && outcome == Outcome::Committed, "partition {partition}"),
      Err(error) => assert!(!fine && matches!(error, Error::Refused(_)), "partition {partition}: {error:?}"),
    }
    assert_eq!(system::progress(&model.pool, agent(u128::from(partition))).await.unwrap() > 0, fine);
  }
}
