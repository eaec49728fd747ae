//! `pa account`: another account with its agent.

use anyhow::Result;
use pa_domain::account::Role;
use pa_store::ops::tokens::{self, Kind, NewToken};
use secrecy::ExposeSecret;

use crate::config::Config;
use crate::owner;

/// Adds an account and prints its token, once.
pub(crate) async fn add(config: &Config, name: &str) -> Result<()> {
  super::with(config, async |_, shared| {
    let account = owner::add(shared, name, Role::Member, &shared.ids.new_id().to_string()).await?;
    owner::agent_ready(shared, account).await?;
    let token = tokens::create(&shared.control, &NewToken { account, kind: Kind::Api, label: "first token".into(), lives_for_ms: None }).await?;
    super::print(&format!("account={account}"))?;
    super::print(&format!("token={}", token.expose_secret()))
  })
  .await
}
