//! `pa token`: the owner's token and sign-in links.

use anyhow::Result;
use pa_store::ops::nodes;
use pa_store::ops::tokens::{self, Kind};
use secrecy::ExposeSecret;

use crate::config::Config;
use crate::wire::Shared;
use crate::{owner, up};

/// Prints the owner's token.
pub(crate) async fn show(config: &Config) -> Result<()> {
  super::with(config, async |storage, shared| {
    let token = owner::token(config, &storage.paths)?;
    owner::adopt(&shared.control, owner::account(shared).await?, &token).await?;
    super::print(token.expose_secret())
  })
  .await
}

/// Prints a fresh sign-in link.
pub(crate) async fn link(config: &Config) -> Result<()> {
  super::with(config, async |_, shared| {
    let link = owner::link(&shared.control, owner::account(shared).await?, &origin(config, shared).await?).await?;
    super::print(&link)
  })
  .await
}

/// Replaces the owner's token, and signs everybody of that account out.
pub(crate) async fn reset(config: &Config) -> Result<()> {
  super::with(config, async |storage, shared| {
    anyhow::ensure!(config.data.owner_token.expose_secret().is_empty(), "PA_OWNER_TOKEN is set: change it there and start again");
    let account = owner::account(shared).await?;
    for kind in [Kind::Owner, Kind::Session, Kind::SignIn] {
      tokens::revoke_all(&shared.control, account, kind).await?;
    }
    owner::forget_token(&storage.paths)?;
    let token = owner::token(config, &storage.paths)?;
    owner::adopt(&shared.control, account, &token).await?;
    super::print(token.expose_secret())
  })
  .await
}

/// Where the page is: as configured, or where a running process listens.
async fn origin(config: &Config, shared: &Shared) -> Result<String> {
  if !config.server.public_url.is_empty() {
    return Ok(config.server.public_url.clone());
  }
  let running = nodes::alive(&shared.control).await?.into_iter().find_map(|node| node.listen);
  match running {
    Some(listen) => Ok(listen),
    None => Ok(up::origin(config, config.listen()?)),
  }
}
