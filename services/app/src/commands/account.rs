//! `pa account`: another account with its agent.

use anyhow::Result;
use pa_domain::account::Role;
use pa_store::ops::tokens::{self, Kind, NewToken};
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::storage::Storage;
use crate::{owner, wire};

/// Adds an account and prints its token, once.
pub(crate) async fn add(config: &Config, name: &str) -> Result<()> {
  let storage = Storage::tool(config).await?;
  let stop = CancellationToken::new();
  let shared = wire::shared(&storage, false, &stop).await?;
  let key = shared.ids.new_id().to_string();
  let account = owner::add(&shared, name, Role::Member, &key).await?;
  owner::agent_ready(&shared, account).await?;
  let token = tokens::create(&shared.control, &NewToken { account, kind: Kind::Api, label: "first token".into(), lives_for_ms: None }).await?;
  super::print(&format!("account={account}"))?;
  super::print(&format!("token={}", token.expose_secret()))?;
  stop.cancel();
  storage.close().await
}
