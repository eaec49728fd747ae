//! What an agent has before it exists in the log.

use std::sync::Arc;

use pa_domain::AgentId;
use pa_projections::schema::{Indexes, Schemas};
use pa_store::Role;
use pa_store::keys::MasterKey;
use pa_store::testing::TestDb;
use uuid::Uuid;

use super::*;

const AGENT: AgentId = AgentId(Uuid::from_u128(7));

fn beginning(db: &TestDb, folder: &std::path::Path) -> Beginning {
  let schema = pa_projections::schema::current();
  let keys = Arc::new(KeyRing::new(db.database.pool(Role::Decider), Arc::new(MasterKey::ephemeral())));
  let reads = db.database.read_pool(Role::Decider, &schema);
  Beginning { keys, workspaces: Arc::new(Workspaces::new(folder.to_owned(), None)), schema, reads }
}

/// A key that is gone while the agent has a history is a database that was restored wrongly: another key in its place would lock that history for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_with_facts_and_without_a_key_gets_no_new_one() {
  let (db, folder) = (TestDb::new().await, tempfile::tempdir().unwrap());
  let beginning = beginning(&db, folder.path());
  Schemas::new(&db.database).create(&beginning.schema, Indexes::Now).await.unwrap();
  sqlx::query("INSERT INTO agent_progress (agent, ordinal) VALUES ($1, 3)").bind(AGENT.0).execute(&beginning.reads).await.unwrap();
  let refused = beginning.make(AGENT).await.unwrap_err().to_string();
  assert!(refused.contains("no key") && refused.contains("restore the database's backup"), "{refused}");
  assert!(matches!(beginning.keys.get(AGENT).await.unwrap(), Lookup::Missing), "no key was made");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_agent_gets_a_key_and_a_workspace_also_before_there_is_a_read_model() {
  let (db, folder) = (TestDb::new().await, tempfile::tempdir().unwrap());
  let beginning = beginning(&db, folder.path());
  for _ in 0..2 {
    beginning.make(AGENT).await.unwrap();
  }
  assert!(matches!(beginning.keys.get(AGENT).await.unwrap(), Lookup::Key(_)));
  Schemas::new(&db.database).create(&beginning.schema, Indexes::Now).await.unwrap();
  beginning.make(AGENT).await.unwrap();
}
