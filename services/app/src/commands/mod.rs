//! The tools of the command line: each opens what it needs, does one thing, and ends.

pub(crate) mod account;
pub(crate) mod log;
pub(crate) mod rebuild;
pub(crate) mod token;
pub(crate) mod verify;

use std::io::Write;

use anyhow::{Context, Result};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::storage::Storage;
use crate::wire::{self, Shared};

/// Opens what a tool needs, lets it work, and closes it whatever came of it.
async fn with<T>(config: &Config, work: impl AsyncFnOnce(&Storage, &Shared) -> Result<T>) -> Result<T> {
  let storage = Storage::tool(config).await?;
  let stop = CancellationToken::new();
  let done = match wire::shared(&storage, false, &stop).await {
    Ok(shared) => work(&storage, &shared).await,
    Err(error) => Err(error),
  };
  stop.cancel();
  storage.close().await?;
  done
}

/// Prints one line of an answer.
pub(crate) fn print(line: &str) -> Result<()> {
  let mut out = std::io::stdout().lock();
  writeln!(out, "{line}").and_then(|()| out.flush()).context("write the answer")
}
