//! The owner: the first account, its token, and the links that sign it in.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use pa_domain::account::{AccountAddAsked, AccountAdded, Event as AccountEvent, Input as AccountInput, Role};
use pa_domain::codes::reason;
use pa_domain::ids::{INSTALLATION, derived};
use pa_domain::limits::NAME_CHARS_MAX;
use pa_domain::log::{Event as LogEvent, Settlement};
use pa_domain::{AgentId, Event, Origin};
use pa_eventlog::appender::Submission;
use pa_eventlog::reader::Decision;
use pa_projections::{accounts, settings};
use pa_store::PgPool;
use pa_store::data_dir;
use pa_store::ops::nodes::{self, Node};
use pa_store::ops::tokens::{self, Kind, NewToken};
use secrecy::{ExposeSecret, SecretString};

use crate::cli::RoleName;
use crate::config::Config;
use crate::storage::Paths;
use crate::wire::Shared;

/// How long a decision may take before the account counts as not added; the input stays accepted, and the same key gets its decision later.
const DECISION_MAX: Duration = Duration::from_secs(30);
/// How long a sign-in link works.
const LINK_LIVES_FOR_MS: i64 = 60 * 60 * 1000;
const TOKEN_FILE: &str = "owner.token";
/// What a tool says that needs the running product.
const NOT_RUNNING: &str = "pa is not running: start it with infra/up (or `pa up`)";

/// Adds an account, or finds the one that was added under the same key.
pub(crate) async fn add(shared: &Shared, name: &str, role: Role, key: &str) -> Result<AgentId> {
  somebody_decides(shared).await?;
  let appender = shared.appender("pa/cli");
  let input = AccountInput::AccountAddAsked(AccountAddAsked { name: name.to_owned(), role }).into();
  let submission = Submission {
    agent: INSTALLATION,
    input,
    producer: "platform",
    key: Some(key),
    content: None,
    actor: "platform",
    origin: Origin::Platform,
    cause: None,
    correlation: None,
    traceparent: None,
  };
  let prepared = appender.prepare(submission).await?;
  let expected = shared.tail.expect(INSTALLATION, prepared.id);
  appender.append(std::slice::from_ref(&prepared)).await?;
  match expected.within(DECISION_MAX).await {
    Some(decision) => account_of(&decision),
    None => bail!("the account is asked for but not yet decided"),
  }
}

fn account_of(decision: &Decision) -> Result<AgentId> {
  for recorded in decision.events.iter() {
    match &recorded.event {
      Event::Account(AccountEvent::AccountAdded(AccountAdded { account, .. })) => return Ok(*account),
      Event::Log(LogEvent::InputSettled(settled)) => match (settled.outcome, settled.of) {
        (Settlement::Repeated, Some(first)) => return Ok(AgentId(derived(first.0, 0))),
        _ if settled.reason == reason::VALUE_INVALID => {
          bail!("the account was not added: a name has 1 to {NAME_CHARS_MAX} characters, is not blank, and holds no control characters")
        }
        _ => bail!("the account was not added: {}", settled.reason),
      },
      _ => {}
    }
  }
  bail!("the account was not added")
}

/// An input that nobody decides had better not be appended.
pub(crate) async fn somebody_decides(shared: &Shared) -> Result<()> {
  ensure!(is_running(shared).await?, NOT_RUNNING);
  Ok(())
}

/// Whether a decider is there.
async fn is_running(shared: &Shared) -> Result<bool> {
  let decides = |node: &Node| node.roles.iter().any(|role| role == RoleName::Decider.name());
  Ok(nodes::alive(&shared.control).await?.iter().any(decides))
}

/// Where the page of the running product is.
pub(crate) async fn page(config: &Config, shared: &Shared) -> Result<String> {
  if !config.server.public_url.is_empty() {
    return Ok(config.server.public_url.clone());
  }
  nodes::alive(&shared.control).await?.into_iter().find_map(|node| node.listen).context(NOT_RUNNING)
}

/// Waits until the account and its agent are in the read model.
pub(crate) async fn agent_ready(shared: &Shared, account: AgentId) -> Result<()> {
  let deadline = tokio::time::Instant::now() + DECISION_MAX;
  while settings::of(&shared.reads, account).await?.is_none() || accounts::one(&shared.reads, account).await?.is_none() {
    if tokio::time::Instant::now() >= deadline {
      bail!("the agent of account {account} was not made in time");
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
  }
  Ok(())
}

/// The owner's token as it stands; `None` before the first start.
pub(crate) fn token_there(config: &Config, paths: &Paths) -> Result<Option<SecretString>> {
  if !config.data.owner_token.expose_secret().is_empty() {
    return Ok(Some(config.data.owner_token.clone()));
  }
  let Some(found) = data_dir::read_secret(&paths.secret(TOKEN_FILE)).context("the owner's token file")? else { return Ok(None) };
  Ok(Some(SecretString::from(String::from_utf8(found).context("the owner's token file")?)))
}

/// The owner's token: the configured one, or the one in its file, which is made at the first start.
pub(crate) fn token(config: &Config, paths: &Paths) -> Result<SecretString> {
  if !config.data.owner_token.expose_secret().is_empty() {
    return Ok(config.data.owner_token.clone());
  }
  let made = data_dir::read_or_create_secret(&paths.secret(TOKEN_FILE), fresh).context("the owner's token file")?;
  Ok(SecretString::from(String::from_utf8(made).context("the owner's token file")?))
}

fn fresh() -> Vec<u8> {
  use base64::Engine;
  let mut bytes = [0_u8; 32];
  aws_lc_rs::rand::fill(&mut bytes).expect("the operating system's random generator does not fail once it is seeded");
  format!("pa_{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)).into_bytes()
}

/// Makes the owner's token valid, and only this one.
pub(crate) async fn adopt(pool: &PgPool, account: AgentId, token: &SecretString) -> Result<()> {
  let new = NewToken { account, kind: Kind::Owner, label: "owner".into(), lives_for_ms: None };
  match tokens::find(pool, token.expose_secret(), &[Kind::Owner]).await? {
    Some(found) if found.account == account => Ok(()),
    _ => {
      tokens::revoke_all(pool, account, Kind::Owner).await?;
      Ok(tokens::adopt(pool, &new, token).await?)
    }
  }
}

/// Forgets the owner's token file, so that the next use makes another.
pub(crate) fn forget_token(paths: &Paths) -> Result<()> {
  match std::fs::remove_file(paths.secret(TOKEN_FILE)) {
    Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context("remove the owner's token file"),
    _ => Ok(()),
  }
}

/// A fresh link that signs the account in once.
pub(crate) async fn link(pool: &PgPool, account: AgentId, origin: &str) -> Result<String> {
  let new = NewToken { account, kind: Kind::SignIn, label: "sign-in link".into(), lives_for_ms: Some(LINK_LIVES_FOR_MS) };
  let code = tokens::create(pool, &new).await?;
  Ok(format!("{}/sign-in/{}", origin.trim_end_matches('/'), code.expose_secret()))
}

/// The owner's account, as far as it was added.
pub(crate) async fn account(shared: &Shared) -> Result<AgentId> {
  add(shared, "Owner", Role::Owner, "owner").await
}
