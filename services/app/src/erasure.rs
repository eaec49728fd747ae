//! What goes with an erased agent, beside its state: keys first, so that nothing of it can be read any more, then everything that is kept under its name.

use std::sync::Arc;

use anyhow::{Context, Result};
use futures::FutureExt;
use futures::future::BoxFuture;
use pa_blobs::Blobs;
use pa_domain::AgentId;
use pa_pipeline::decider::Eraser;
use pa_store::PgPool;
use pa_store::keys::KeyRing;
use pa_store::ops::{leftovers, uploads};
use pa_workspace::Workspaces;

/// Deletes all of an agent; what was cut off is done again from the beginning.
pub(crate) struct Everything {
  pub(crate) keys: Arc<KeyRing>,
  pub(crate) blobs: Arc<Blobs>,
  pub(crate) workspaces: Arc<Workspaces>,
  pub(crate) control: PgPool,
}

impl Everything {
  /// Bytes before their name: a name that is left finds them again.
  async fn uploads(&self, agent: AgentId) -> Result<()> {
    loop {
      let some = uploads::of(&self.control, agent).await?;
      if some.is_empty() {
        return Ok(());
      }
      for upload in &some {
        self.blobs.discard(upload.id).await?;
      }
      let ids: Vec<_> = some.iter().map(|upload| upload.id).collect();
      uploads::forget(&self.control, &ids).await?;
    }
  }
}

impl Eraser for Everything {
  fn erase(&self, agent: AgentId) -> BoxFuture<'_, Result<()>> {
    async move {
      self.keys.erase(agent).await.context("delete an agent's keys")?;
      // Nobody can sign in and bring something new from here on.
      leftovers::delete(&self.control, agent).await.context("delete an agent's credentials")?;
      self.uploads(agent).await.context("delete an agent's uploads")?;
      self.blobs.erase(agent).await.context("delete an agent's blobs")?;
      self.workspaces.remove(agent).await.context("delete an agent's workspace")
    }
    .boxed()
  }
}

#[cfg(test)]
mod tests {
  use pa_domain::{JobId, NodeId};
  use pa_store::clock::{Ids, SystemIds};
  use pa_store::keys::{MasterKey, secrets};
  use pa_store::lease::{Holder, work};
  use pa_store::ops::presence;
  use pa_store::ops::tokens::{self, Kind, NewToken};
  use pa_store::testing::TestDb;

  use super::*;

  const EDGE: [&str; 5] = [
    "SELECT count(*) FROM ops.tokens WHERE account = $1",
    "SELECT count(*) FROM ops.secrets WHERE agent = $1",
    "SELECT count(*) FROM ops.presence WHERE account = $1",
    "SELECT count(*) FROM ops.leases WHERE agent = $1",
    "SELECT count(*) FROM ops.uploads WHERE agent = $1",
  ];

  async fn rows(db: &TestDb, agent: AgentId) -> Vec<i64> {
    let mut rows = Vec::new();
    for count in EDGE {
      rows.push(sqlx::query_scalar(count).bind(agent.0).fetch_one(&db.pool).await.unwrap());
    }
    rows
  }

  /// Gives an agent something of everything; its upload and its blob.
  async fn furnish(db: &TestDb, all: &Everything, master: &MasterKey, agent: AgentId) -> (uuid::Uuid, String) {
    let keys = all.keys.get_or_create(agent).await.unwrap();
    let new = NewToken { account: agent, kind: Kind::Session, label: "a browser".to_owned(), lives_for_ms: None };
    tokens::create(&db.pool, &new).await.unwrap();
    secrets::put(&db.pool, master, SystemIds.new_id(), agent, &secrecy::SecretString::from("planted")).await.unwrap();
    presence::seen(&db.pool, agent).await.unwrap();
    let holder = Holder { node: NodeId(SystemIds.new_id()), process: SystemIds.new_id() };
    work::claim(&db.pool, "REPLY", holder, &[(JobId(SystemIds.new_id()), agent)], &[SystemIds.new_id()]).await.unwrap();
    let upload = SystemIds.new_id();
    let content = futures::stream::iter([Ok(bytes_of("staged"))]);
    let staged = all.blobs.stage(upload, content).await.unwrap();
    let row = uploads::Upload { id: upload, agent, name: "a.txt".to_owned(), media_type: "text/plain".to_owned(), size: staged.size, sha256: staged.sha256 };
    uploads::put(&db.pool, &row).await.unwrap();
    let blob = all.blobs.put(agent, &keys, bytes_of("kept")).await.unwrap();
    all.workspaces.create(agent).await.unwrap();
    (upload, blob.name)
  }

  fn bytes_of(text: &'static str) -> bytes::Bytes {
    bytes::Bytes::from_static(text.as_bytes())
  }

  #[tokio::test]
  async fn nothing_of_an_erased_agent_is_left_and_others_keep_theirs() {
    let (db, folder, master) = (TestDb::new().await, tempfile::tempdir().unwrap(), Arc::new(MasterKey::ephemeral()));
    let all = Everything {
      keys: Arc::new(KeyRing::new(db.pool.clone(), Arc::clone(&master))),
      blobs: Arc::new(Blobs::local(folder.path()).unwrap()),
      workspaces: Arc::new(Workspaces::new(folder.path().join("workspaces"), None)),
      control: db.pool.clone(),
    };
    let (erased, other) = (AgentId(SystemIds.new_id()), AgentId(SystemIds.new_id()));
    let (upload, _) = furnish(&db, &all, &master, erased).await;
    let (others_upload, others_blob) = furnish(&db, &all, &master, other).await;
    assert_eq!(rows(&db, erased).await, [1; 5]);
    for _ in 0..2 {
      all.erase(erased).await.unwrap();
      assert_eq!(rows(&db, erased).await, [0; 5]);
    }
    assert!(all.blobs.staged(upload).await.is_err(), "the staged bytes are gone");
    assert!(!all.workspaces.of(erased).path.exists());
    assert_eq!(rows(&db, other).await, [1; 5]);
    assert!(all.blobs.staged(others_upload).await.is_ok());
    let keys = all.keys.get_or_create(other).await.unwrap();
    assert_eq!(all.blobs.get_all(other, &keys, &others_blob, 100).await.unwrap(), bytes_of("kept"));
    assert!(all.workspaces.of(other).path.exists());
  }
}
