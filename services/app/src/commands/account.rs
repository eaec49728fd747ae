//! `pa account`: who has an account here, and another one with its agent.

use anyhow::{Result, bail, ensure};
use pa_domain::AgentId;
use pa_domain::account::Role;
use pa_projections::accounts::{self, Account};
use pa_store::keys::Lookup;
use pa_store::ops::tokens::{self, Kind, NewToken};
use secrecy::ExposeSecret;
use uuid::Uuid;

use crate::config::Config;
use crate::owner;
use crate::wire::Shared;

/// Adds an account; prints its token, once, and a link that signs it in.
pub(crate) async fn add(config: &Config, name: &str) -> Result<()> {
  super::with(config, async |_, shared| {
    owner::somebody_decides(shared).await?;
    // Two accounts that people can't tell apart are a mistake; whoever wants them finds another name.
    if let Some(same) = living(shared).await?.into_iter().find(|account| same_name(&account.name, name)) {
      bail!("there is an account called {} already ({}): choose another name", same.name, same.id);
    }
    let account = owner::add(shared, name, Role::Member, &shared.ids.new_id().to_string()).await?;
    owner::agent_ready(shared, account).await?;
    let token = fresh_token(shared, account).await?;
    let link = owner::link(&shared.control, account, &owner::page(config, shared).await?).await?;
    super::print(&format!("account={account}"))?;
    super::print(&format!("token={token}"))?;
    super::print(&format!("sign-in={link}"))
  })
  .await
}

/// Prints every account.
pub(crate) async fn list(config: &Config) -> Result<()> {
  super::with(config, async |_, shared| {
    for account in living(shared).await? {
      super::print(&format!("{}  {:<13}  {}", account.id, role(account.role), account.name))?;
    }
    Ok(())
  })
  .await
}

fn role(role: Role) -> &'static str {
  match role {
    Role::Owner => "owner",
    Role::Administrator => "administrator",
    Role::Member => "member",
  }
}

/// Another bearer token of an account, to be shown this once.
pub(super) async fn fresh_token(shared: &Shared, account: AgentId) -> Result<String> {
  let new = NewToken { account, kind: Kind::Api, label: "from the command line".into(), lives_for_ms: None };
  Ok(tokens::create(&shared.control, &new).await?.expose_secret().to_owned())
}

/// The account with this id or name.
pub(super) async fn named(shared: &Shared, name_or_id: &str) -> Result<Account> {
  let wanted = name_or_id.trim();
  let id: Option<Uuid> = wanted.parse().ok();
  let found: Vec<_> = living(shared).await?.into_iter().filter(|account| Some(account.id.0) == id || same_name(&account.name, wanted)).collect();
  ensure!(
    found.len() < 2,
    "several accounts are called {wanted}; take the id of one: {}",
    found.iter().map(|account| account.id.to_string()).collect::<Vec<_>>().join(", ")
  );
  match found.into_iter().next() {
    Some(account) => Ok(account),
    None => bail!("there is no account {wanted:?}: `pa account list` shows them"),
  }
}

/// The accounts that were not erased, the oldest first.
async fn living(shared: &Shared) -> Result<Vec<Account>> {
  ensure!(shared.schema.exists(&shared.control).await?, "this version of pa has no read model yet: start it with infra/up (or `pa up`), then try again");
  let mut living = Vec::new();
  for account in accounts::all(&shared.reads).await? {
    if !matches!(shared.keys.get(account.id).await?, Lookup::Erased(_)) {
      living.push(account);
    }
  }
  Ok(living)
}

fn same_name(one: &str, other: &str) -> bool {
  one.trim().to_lowercase() == other.trim().to_lowercase()
}
