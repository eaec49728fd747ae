//! The same log gives the same tables: in batches of any size, with restarts, told twice, and in memory.

use super::{LOG, Model, project, seen};
use crate::commit::{Batch, MemoryStore};
use crate::conversation::{self, Status};
use crate::testing::story::{self, Story, agent, everything, main_of, mark};
use crate::{Outcome, ReadStore as _, queue};

#[tokio::test]
async fn the_tables_do_not_depend_on_where_batches_end() {
  let story = everything();
  let whole = Model::of(&story.decisions).await.tables().await;
  assert!(whole["entries"].len() > 20 && whole["audit"].len() > 100, "the story fills the tables");
  for size in [1, 7] {
    let model = Model::new().await;
    project(&model.store, &story.decisions, size).await;
    let tables = model.tables().await;
    for (table, rows) in &whole {
      assert_eq!(&tables[table], rows, "{table} in batches of {size}");
    }
  }
}

#[tokio::test]
async fn a_restart_at_any_batch_boundary_goes_on_where_it_stood() {
  let story = everything();
  let whole = Model::of(&story.decisions).await.tables().await;
  let model = Model::new().await;
  for end in (5..story.decisions.len()).step_by(9).chain([story.decisions.len()]) {
    // A store of its own each time: nothing is carried over in memory.
    let fresh = crate::commit::PostgresStore::new(&model.db.database, &model.schema);
    project(&fresh, &story.decisions[..end], 4).await;
  }
  assert_eq!(model.tables().await, whole);
}

#[tokio::test]
async fn a_batch_that_was_written_already_writes_nothing() {
  let story = everything();
  let model = Model::of(&story.decisions).await;
  let before = model.tables().await;
  let half = story.decisions.len() / 2;
  let mut batch = Batch::new(&std::collections::BTreeMap::new());
  for decision in &story.decisions[half..] {
    decision.add_to(&mut batch);
  }
  let (from, to) = (mark(&story.decisions[..half]), mark(&story.decisions));
  assert_eq!(model.store.commit(story::PARTITION, &from, &to, &batch).await.unwrap(), Outcome::Stale);
  assert_eq!(model.tables().await, before);
}

#[tokio::test]
async fn of_two_projectors_on_one_partition_only_one_writes_each_batch() {
  let story = everything();
  let model = Model::new().await;
  let other = crate::commit::PostgresStore::new(&model.db.database, &model.schema);
  let loaded = model.store.load(story::PARTITION, LOG).await.unwrap();
  for (start, end) in [(0, 10), (10, 40), (40, story.decisions.len())] {
    let mut batch = Batch::new(&loaded.parked);
    for decision in &story.decisions[start..end] {
      decision.add_to(&mut batch);
    }
    let (from, to) = (mark(&story.decisions[..start]), mark(&story.decisions[..end]));
    let (one, two) = tokio::join!(model.store.commit(story::PARTITION, &from, &to, &batch), other.commit(story::PARTITION, &from, &to, &batch));
    let outcomes = [one.unwrap(), two.unwrap()];
    assert!(
      outcomes.contains(&Outcome::Committed) && outcomes.contains(&Outcome::Stale),
      "{outcomes:?} {start} {end} {from:?} {:?}",
      model.store.load(story::PARTITION, LOG).await
    );
  }
  assert_eq!(model.tables().await, Model::of(&story.decisions).await.tables().await);
}

#[tokio::test]
async fn the_read_model_in_memory_is_the_one_in_postgres() {
  let story = everything();
  let model = Model::of(&story.decisions).await;
  let agents = [agent(1), agent(2), agent(3)];
  let mut worlds = Vec::new();
  for size in [1, 7, 500] {
    let memory = MemoryStore::new();
    project(&memory, &story.decisions, size).await;
    worlds.push(seen(&memory, agents));
    for id in agents {
      let kept: Vec<_> = memory.entries(id, main_of(id)).into_iter().map(|row| (row.id, row.place, row.changed, row.status)).collect();
      let page = conversation::page(&model.pool, id, main_of(id), 200, None).await.unwrap();
      let shown: Vec<_> = page.entries.iter().map(|row| (row.id.0, row.place, row.changed, row.status)).collect();
      assert_eq!(kept, shown);
      for (of, job) in memory.jobs() {
        let row = queue::job(&model.pool, of, job.id).await.unwrap().unwrap();
        assert_eq!((row.state, row.execution, row.since, row.limit, row.changed), (job.state, job.execution, job.since, job.limit, job.changed));
      }
    }
  }
  assert!(worlds.iter().all(|world| *world == worlds[0]));
}

#[tokio::test]
async fn without_the_guard_of_the_position_a_stale_batch_is_seen() {
  let mut story = Story::default();
  story.create(agent(1));
  let turn = story.message(agent(1), "hello");
  story.start(turn, 1);
  story.finish(turn, 1, "hi", None);
  let memory = MemoryStore::new();
  project(&memory, &story.decisions, 500).await;
  let mut stale = Batch::new(&std::collections::BTreeMap::new());
  story.decisions[2].add_to(&mut stale);
  let (from, to) = (mark(&story.decisions[..2]), mark(&story.decisions[..3]));
  assert_eq!(memory.commit(story::PARTITION, &from, &to, &stale).await.unwrap(), Outcome::Stale);
  assert_eq!(memory.entries(agent(1), turn.conversation)[1].status, Status::Posted);
  memory.guard_cursor(false);
  assert_eq!(memory.commit(story::PARTITION, &from, &to, &stale).await.unwrap(), Outcome::Committed);
  assert_eq!(memory.entries(agent(1), turn.conversation)[1].status, Status::Writing);
}
