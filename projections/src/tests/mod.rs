//! Tests of all projections together: the same log gives the same tables, whatever happens on the way.

mod isolation;
mod parking;
mod past;
mod plans;
mod replay;
mod resuming;
mod together;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pa_domain::AgentId;
use pa_store::testing::TestDb;
use pa_store::{ReadSchema, Role};
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use crate::commit::{Batch, MemoryStore, PostgresStore};
use crate::schema::{self, Indexes, Schemas};
use crate::testing::story::{Decision, PARTITION, mark};
use crate::{Mark, Outcome, ReadStore};

/// The log that the stories stand in.
pub(crate) const LOG: Uuid = Uuid::from_u128(0x10c);

/// A read model in a database of its own.
pub(crate) struct Model {
  pub(crate) db: TestDb,
  pub(crate) schema: ReadSchema,
  /// Sees the schema, as the gateway does.
  pub(crate) pool: PgPool,
  pub(crate) store: PostgresStore,
}

impl Model {
  pub(crate) async fn new() -> Self {
    let db = TestDb::new().await;
    Self::in_schema(Arc::new(db), schema::current()).await
  }

  async fn in_schema(db: Arc<TestDb>, schema: ReadSchema) -> Self {
    Schemas::new(&db.database).create(&schema, Indexes::Now).await.unwrap();
    let pool = db.database.read_pool(Role::Gateway, &schema);
    let store = PostgresStore::new(&db.database, &schema);
    let db = Arc::try_unwrap(db).unwrap();
    Self { db, schema, pool, store }
  }

  /// A read model that has a whole story.
  pub(crate) async fn of(decisions: &[Decision]) -> Self {
    let model = Self::new().await;
    project(&model.store, decisions, 500).await;
    model
  }

  /// Every row of every table as text, in the order of keys.
  pub(crate) async fn tables(&self) -> BTreeMap<&'static str, Vec<String>> {
    let mut tables = BTreeMap::new();
    for (table, key) in schema::TABLES.iter().copied().chain([("projection_position", "next_position")]) {
      let agent = if table == "projection_position" { "part" } else { "agent" };
      let text = format!("SELECT t::text FROM {table} t ORDER BY {agent}, {key}");
      let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(text)).fetch_all(&self.pool).await.unwrap();
      tables.insert(table, rows);
    }
    tables
  }
}

/// Projects decisions in batches of `size`, from wherever the store stands.
pub(crate) async fn project<S: ReadStore>(store: &S, decisions: &[Decision], size: usize) {
  let mut loaded = store.load(PARTITION, LOG).await.unwrap();
  let done = decisions.iter().position(|decision| decision.first == loaded.mark.next_position).unwrap_or(if loaded.mark == Mark::default() {
    0
  } else {
    decisions.len()
  });
  for end in (done..decisions.len()).step_by(size).map(|start| (start + size).min(decisions.len())) {
    let start = decisions.iter().position(|decision| decision.first == loaded.mark.next_position).unwrap();
    let mut batch = Batch::new(&loaded.parked);
    for decision in &decisions[start..end] {
      decision.add_to(&mut batch);
    }
    let next = mark(&decisions[..end]);
    assert_eq!(store.commit(PARTITION, &loaded.mark, &next, &batch).await.unwrap(), Outcome::Committed);
    loaded.mark = next;
    loaded.parked.clone_from(batch.skipped());
  }
}

/// What the simulator sees of an agent.
pub(crate) fn seen(memory: &MemoryStore, agents: impl IntoIterator<Item = AgentId>) -> BTreeSet<String> {
  let mut seen: BTreeSet<String> = memory.jobs().iter().map(|row| format!("{row:?}")).collect();
  seen.extend(memory.calls().iter().map(|row| format!("{row:?}")));
  seen.extend(memory.due(pa_domain::Timestamp(i64::MAX)).iter().map(|row| format!("{row:?}")));
  for agent in agents {
    seen.extend(memory.all_entries(agent).iter().map(|row| format!("{row:?}")));
    seen.extend(memory.conversations(agent).iter().map(|row| format!("{row:?}")));
    seen.insert(format!("{agent:?} {}", memory.progress(agent)));
  }
  seen
}
