//! `pa token`: the ways in. The owner's token lies in a file, those of other accounts are kept as hashes only.

use anyhow::{Context, Result, bail, ensure};
use pa_domain::AgentId;
use pa_domain::account::Role;
use pa_store::ops::tokens::{self, Kind};
use secrecy::ExposeSecret;

use super::account;
use crate::config::Config;
use crate::owner;
use crate::storage::Paths;
use crate::wire::Shared;

/// Prints the owner's token.
pub(crate) async fn show(config: &Config, of: Option<&str>) -> Result<()> {
  let paths = Paths::existing(config)?;
  if let Some(name) = of {
    super::with(config, async |_, shared| {
      let account = account::named(shared, name).await?;
      ensure!(
        account.role == Role::Owner,
        "the token of {0} can't be shown: only its hash is kept; `pa token reset --account {1}` makes a new one, `pa token link --account {1}` a sign-in link",
        account.name,
        account.id
      );
      Ok(())
    })
    .await?;
  }
  let token = owner::token_there(config, &paths)?.context("the owner has no token yet: start pa with infra/up (or `pa up`)")?;
  super::print(token.expose_secret())
}

/// Prints a fresh sign-in link.
pub(crate) async fn link(config: &Config, of: Option<&str>) -> Result<()> {
  super::with(config, async |_, shared| {
    owner::somebody_decides(shared).await?;
    let account = match of {
      Some(name) => account::named(shared, name).await?.id,
      None => owner::account(shared).await?,
    };
    super::print(&owner::link(&shared.control, account, &owner::page(config, shared).await?).await?)
  })
  .await
}

/// Replaces an account's token, and signs it out everywhere.
pub(crate) async fn reset(config: &Config, of: Option<&str>) -> Result<()> {
  super::with(config, async |storage, shared| {
    let named = match of {
      Some(name) => Some(account::named(shared, name).await?),
      None => None,
    };
    match named {
      Some(other) if other.role != Role::Owner => {
        sign_out(shared, other.id, Kind::Api).await?;
        super::print(&account::fresh_token(shared, other.id).await?)
      }
      named => {
        if !config.data.owner_token.expose_secret().is_empty() {
          bail!("PA_OWNER_TOKEN is set: change it there and start again");
        }
        let owner = match named {
          Some(owner) => owner.id,
          None => owner::account(shared).await?,
        };
        sign_out(shared, owner, Kind::Owner).await?;
        owner::forget_token(&storage.paths)?;
        let token = owner::token(config, &storage.paths)?;
        owner::adopt(&shared.control, owner, &token).await?;
        super::print(token.expose_secret())
      }
    }
  })
  .await
}

/// Revokes sessions and links that nobody has used, and tokens of one kind.
async fn sign_out(shared: &Shared, account: AgentId, bearer: Kind) -> Result<()> {
  for kind in [bearer, Kind::Session, Kind::SignIn] {
    tokens::revoke_all(&shared.control, account, kind).await?;
  }
  Ok(())
}
