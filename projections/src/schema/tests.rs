//! The schema's name, its tables, and what can be done to it.

use std::collections::BTreeSet;

use pa_store::testing::TestDb;

use super::{ERASURES, FOLDERS, Indexes, Schemas, TABLES, current, is_index, statements};
use crate::testing::story::{PARTITION, agent, everything};
use crate::tests::{LOG, Model};
use crate::{ReadStore as _, system};

fn tables_of_files() -> BTreeSet<&'static str> {
  statements().flat_map(str::lines).filter_map(|line| line.strip_prefix("CREATE TABLE ")).filter_map(|line| line.split(' ').next()).collect()
}

#[test]
fn every_table_of_an_agent_is_erased_compared_and_exchanged() {
  let mut known: BTreeSet<_> = TABLES.iter().map(|(table, _)| *table).collect();
  assert_eq!(ERASURES.len(), known.len());
  for table in &known {
    assert!(ERASURES.iter().any(|text| text.starts_with(&format!("DELETE FROM {table} t "))), "{table} is not erased");
  }
  // These two are about partitions and the schema itself.
  known.extend(["projection_position", "rebuilt"]);
  assert_eq!(tables_of_files(), known);
}

#[test]
fn the_name_is_a_hash_of_all_table_files() {
  let name = current();
  assert!(name.name().starts_with("read_") && name.name().len() == 17, "{name:?}");
  assert_eq!(FOLDERS.len(), 13);
  assert!(statements().filter(|text| is_index(text)).count() >= 10);
}

#[tokio::test]
async fn a_schema_is_made_once_and_dropped_whole() {
  let db = TestDb::new().await;
  let schemas = Schemas::new(&db.database);
  let schema = current();
  let (one, two) = tokio::join!(schemas.create(&schema, Indexes::Now), schemas.create(&schema, Indexes::Now));
  one.unwrap();
  two.unwrap();
  assert_eq!(schemas.list().await.unwrap(), std::slice::from_ref(&schema));
  schemas.drop(&schema).await.unwrap();
  assert!(!schemas.exists(&schema).await.unwrap());
}

#[tokio::test]
async fn indexes_made_later_are_those_made_at_once() {
  let db = TestDb::new().await;
  let schemas = Schemas::new(&db.database);
  let (now, later) = (current(), current().beside("build").unwrap());
  schemas.create(&now, Indexes::Now).await.unwrap();
  schemas.create(&later, Indexes::Later).await.unwrap();
  let indexes = |name: String| {
    let pool = db.pool.clone();
    async move {
      let rows: Vec<String> = sqlx::query_scalar("SELECT replace(indexdef, schemaname || '.', '') FROM pg_catalog.pg_indexes WHERE schemaname = $1 ORDER BY 1")
        .bind(name)
        .fetch_all(&pool)
        .await
        .unwrap();
      rows
    }
  };
  assert_ne!(indexes(now.name().to_owned()).await, indexes(later.name().to_owned()).await);
  schemas.finish(&later).await.unwrap();
  assert_eq!(indexes(now.name().to_owned()).await, indexes(later.name().to_owned()).await);
}

#[tokio::test]
async fn emptying_a_schema_says_why_and_happens_once() {
  let story = everything();
  let model = Model::of(&story.decisions).await;
  let schemas = Schemas::new(&model.db.database);
  let seen = schemas.positions(&model.schema).await.unwrap();
  assert!(schemas.reset(&model.schema, &seen, "the log is another one", 7).await.unwrap());
  assert!(!schemas.reset(&model.schema, &seen, "again", 8).await.unwrap(), "somebody else was faster");
  assert_eq!(system::rebuilt(&model.pool).await.unwrap().map(|rebuilt| rebuilt.because).as_deref(), Some("the log is another one"));
  assert_eq!(system::progress(&model.pool, agent(1)).await.unwrap(), 0);
  assert!(model.tables().await.values().all(Vec::is_empty));
  let loaded = model.store.load(PARTITION, LOG).await.unwrap();
  assert_eq!(loaded.mark, crate::Mark::default());
}

#[tokio::test]
async fn one_process_at_a_time_builds_beside_a_schema() {
  let db = TestDb::new().await;
  let schemas = Schemas::new(&db.database);
  let lock = schemas.try_lock(&current()).await.unwrap().unwrap();
  assert!(schemas.try_lock(&current()).await.unwrap().is_none());
  lock.release().await;
  // The server notices the end of a session a moment later.
  for _ in 0..100 {
    if schemas.try_lock(&current()).await.unwrap().is_some() {
      return;
    }
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
  }
  panic!("the lock was not given back");
}

#[tokio::test]
async fn a_snapshot_tells_one_changed_cell_and_one_missing_row() {
  let story = everything();
  let model = Model::of(&story.decisions).await;
  let schemas = Schemas::new(&model.db.database);
  let before = schemas.snapshot(&model.schema).await.unwrap();
  assert_eq!(before, schemas.snapshot(&model.schema).await.unwrap());
  for (table, change) in [
    ("entries", "UPDATE entries SET body = body || ' ' WHERE place = (SELECT max(place) FROM entries WHERE agent = $1) AND agent = $1"),
    ("usage", "DELETE FROM usage WHERE ctid = (SELECT ctid FROM usage WHERE agent = $1 LIMIT 1)"),
    ("audit", "UPDATE audit SET actor = 'somebody' WHERE agent = $1 AND ordinal = 3"),
  ] {
    let done = sqlx::query(change).bind(agent(1).0).execute(&model.pool).await.unwrap();
    assert_eq!(done.rows_affected(), 1, "{table}");
    let after = schemas.snapshot(&model.schema).await.unwrap();
    assert_ne!(before.tables[table][&agent(1)], after.tables[table][&agent(1)]);
    assert_eq!(before.tables[table][&agent(2)], after.tables[table][&agent(2)]);
  }
}
