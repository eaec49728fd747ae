//! `pa log tail` and `pa log export`: records as JSON lines.

use std::io::ErrorKind;
use std::os::fd::AsFd;

use anyhow::{Context, Result};
use pa_domain::AgentId;
use pa_eventlog::{Stream, export};

use crate::cli::LogFilter;
use crate::config::Config;

/// Facts and what led to them; pieces of replies are no records to keep.
const STREAMS: [Stream; 2] = [Stream::Inputs, Stream::Events];

/// Prints what there is, or, to follow, what comes.
pub(crate) async fn run(config: &Config, filter: &LogFilter, follow: bool) -> Result<()> {
  let options = export::Filter { agent: filter.agent.map(AgentId), open: filter.open };
  let mut out = stdout()?;
  super::with(config, async |_, shared| {
    super::known(shared, filter.agent).await?;
    let done = if follow {
      export::tail(&shared.log, &shared.opener, &options, &STREAMS, &mut out).await.map(|_| ())
    } else {
      export::export(&shared.log, &shared.opener, &options, &STREAMS, &mut out).await.map(|_| ())
    };
    match done {
      // Whoever reads has seen enough, such as `head`.
      Err(export::Error::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
      done => Ok(done?),
    }
  })
  .await
}

/// Standard output for the runtime: the same open file under another descriptor.
fn stdout() -> Result<tokio::fs::File> {
  let descriptor = std::io::stdout().as_fd().try_clone_to_owned().context("open standard output")?;
  Ok(tokio::fs::File::from_std(std::fs::File::from(descriptor)))
}
