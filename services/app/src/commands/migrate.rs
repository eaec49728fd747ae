//! `pa migrate`: what this version keeps beside the log (tables to read from, the decider's state), built while another version serves. The switch is the start of this one.

use std::sync::Arc;

use anyhow::Result;
use pa_pipeline::decider::{beside, store};
use pa_pipeline::projector::build;
use pa_projections::schema::Schemas;
use pa_store::Role;
use pa_store::ops::nodes::{self, Node};

use crate::cli::RoleName;
use crate::config::Config;
use crate::roles;
use crate::storage::Storage;
use crate::wire::{self, Shared};

/// Builds both to where the log ends now. Called again it goes on from there.
pub(crate) async fn run(config: &Config) -> Result<()> {
  super::with(config, async |storage, shared| {
    let running = nodes::alive(&shared.control).await?;
    tables(storage, shared, &running).await?;
    state(storage, shared, &running).await?;
    super::print("ready: stop the version that runs, then start this one")
  })
  .await
}

async fn tables(storage: &Storage, shared: &Shared, running: &[Node]) -> Result<()> {
  let name = shared.schema.name();
  if running.iter().any(|node| keeps(node, RoleName::Projector, |schema, _| format!("read_{schema}") == name)) {
    return super::print(&format!("{name}: in use, the process that runs keeps it up to date"));
  }
  let built = build::prepare(&roles::projector_parts(storage, shared), &Schemas::new(&storage.database)).await?;
  super::print(&format!("{name}: built from {} facts", built.facts))
}

async fn state(storage: &Storage, shared: &Shared, running: &[Node]) -> Result<()> {
  let version = wire::fold_version();
  if running.iter().any(|node| keeps(node, RoleName::Decider, |_, state| state == version.to_string())) {
    return super::print(&format!("decider state {version}: in use, the process that runs keeps it up to date"));
  }
  let pool = storage.database.pool(Role::Decider);
  let mut parts = shared.decider(pool.clone());
  parts.store = Arc::new(store::PostgresStore::beside(pool, shared.holder, version));
  let built = beside::build(&parts, shared.identity.partitions).await?;
  super::print(&format!("decider state {version}: built from {} events", built.events))
}

/// Whether a process has a role, and what it keeps is meant. Versions without a build are others.
fn keeps(node: &Node, role: RoleName, meant: impl Fn(&str, &str) -> bool) -> bool {
  let build = node.version.split_once('+').and_then(|(_, build)| build.split_once('.'));
  node.roles.iter().any(|known| known == role.name()) && build.is_some_and(|(schema, state)| meant(schema, state))
}

#[cfg(test)]
mod tests {
  use pa_domain::NodeId;
  use pa_store::lease::Holder;
  use uuid::Uuid;

  use super::*;

  fn node(version: &str, roles: &[&str]) -> Node {
    let holder = Holder { node: NodeId(Uuid::nil()), process: Uuid::nil() };
    Node { holder, roles: roles.iter().map(|role| (*role).to_owned()).collect(), listen: None, version: version.to_owned() }
  }

  #[test]
  fn what_a_process_keeps_is_told_by_its_build_and_roles() {
    let schema = |schema: &str, _: &str| schema == "0a1b";
    let state = |_: &str, state: &str| state == "3";
    assert!(keeps(&node("0.1.0+0a1b.3", &["projector"]), RoleName::Projector, schema));
    assert!(keeps(&node("0.1.0+0a1b.3", &["gateway", "decider"]), RoleName::Decider, state));
    assert!(!keeps(&node("0.1.0+0a1b.3", &["gateway"]), RoleName::Projector, schema));
    assert!(!keeps(&node("0.1.0+ffff.4", &["projector"]), RoleName::Projector, schema));
    assert!(!keeps(&node("0.1.0+0a1b.4", &["decider"]), RoleName::Decider, state));
    assert!(!keeps(&node("0.1.0", &["decider", "projector"]), RoleName::Decider, state));
    assert!(wire::build().contains(&format!(".{}", wire::fold_version())));
  }
}
