//! `pa token`: the owner's token and sign-in links.

use anyhow::{Context, Result};
use pa_store::ops::nodes;
use pa_store::ops::tokens::{self, Kind};
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::storage::{Paths, Storage};
use crate::wire::{self, Shared};
use crate::{owner, up};

/// Prints the owner's token.
pub(crate) async fn show(config: &Config) -> Result<()> {
  with(config, async |shared, paths| {
    let token = owner::token(config, paths)?;
    owner::adopt(&shared.control, owner::account(shared).await?, &token).await?;
    super::print(token.expose_secret())
  })
  .await
}

/// Prints a fresh sign-in link.
pub(crate) async fn link(config: &Config) -> Result<()> {
  with(config, async |shared, _| {
    let link = owner::link(&shared.control, owner::account(shared).await?, &origin(config, shared).await?).await?;
    super::print(&link)
  })
  .await
}

/// Replaces the owner's token, and signs everybody of that account out.
pub(crate) async fn reset(config: &Config) -> Result<()> {
  with(config, async |shared, paths| {
    anyhow::ensure!(config.data.owner_token.expose_secret().is_empty(), "PA_OWNER_TOKEN is set: change it there and start again");
    let account = owner::account(shared).await?;
    for kind in [Kind::Owner, Kind::Session, Kind::SignIn] {
      tokens::revoke_all(&shared.control, account, kind).await?;
    }
    owner::forget_token(paths)?;
    let token = owner::token(config, paths)?;
    owner::adopt(&shared.control, account, &token).await?;
    super::print(token.expose_secret())
  })
  .await
}

async fn with(config: &Config, work: impl AsyncFnOnce(&Shared, &Paths) -> Result<()>) -> Result<()> {
  let storage = Storage::tool(config).await?;
  let stop = CancellationToken::new();
  let shared = wire::shared(&storage, false, &stop).await?;
  let done = work(&shared, &storage.paths).await;
  stop.cancel();
  storage.close().await?;
  done
}

/// Where the page is: as configured, or where a running process listens.
async fn origin(config: &Config, shared: &Shared) -> Result<String> {
  if !config.server.public_url.is_empty() {
    return Ok(config.server.public_url.clone());
  }
  let running = nodes::alive(&shared.control).await?.into_iter().find_map(|node| node.listen);
  match running {
    Some(listen) => Ok(listen),
    None => up::origin(config, config.listen()?).context("say where the page is"),
  }
}
