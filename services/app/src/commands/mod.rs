//! The tools of the command line: each opens what it needs, does one thing, and ends.

pub(crate) mod account;
pub(crate) mod backup;
pub(crate) mod copy;
mod landed;
pub(crate) mod log;
mod manifest;
pub(crate) mod migrate;
pub(crate) mod rebuild;
pub(crate) mod restore;
pub(crate) mod token;
pub(crate) mod verify;

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result, ensure};
use pa_domain::AgentId;
use pa_store::keys::Lookup;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::Config;
use crate::signals::Signals;
use crate::storage::Storage;
use crate::wire::{self, Shared};

/// Opens what a tool needs, lets it work, and closes it whatever came of it, an interruption included.
async fn with<T>(config: &Config, work: impl AsyncFnOnce(&Storage, &Shared) -> Result<T>) -> Result<T> {
  let mut signals = Signals::listen()?;
  let storage = Storage::tool(config, &mut signals).await?;
  let stop = CancellationToken::new();
  let works = async { work(&storage, &wire::shared(&storage, false, &stop).await?).await };
  let done = tokio::select! {
    done = works => done,
    signal = signals.next() => Err(signal.into()),
  };
  stop.cancel();
  let closed = storage.close().await;
  let done = done?;
  closed.map(|()| done)
}

/// Prints one line of an answer. A reader that has seen enough, such as `head`, is no failure.
pub(crate) fn print(line: &str) -> Result<()> {
  let mut out = std::io::stdout().lock();
  match writeln!(out, "{line}").and_then(|()| out.flush()) {
    Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("write the answer"),
    _ => Ok(()),
  }
}

/// Refuses an agent that this installation has never had.
async fn known(shared: &Shared, agent: Option<Uuid>) -> Result<()> {
  let Some(agent) = agent else { return Ok(()) };
  let keys = shared.keys.get(AgentId(agent)).await?;
  ensure!(!matches!(keys, Lookup::Missing), "there is no agent {agent}: `pa account list` shows them");
  Ok(())
}
