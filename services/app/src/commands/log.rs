//! `pa log tail` and `pa log export`: records as JSON lines.

use anyhow::Result;
use pa_domain::AgentId;
use pa_eventlog::export;
use tokio_util::sync::CancellationToken;

use crate::cli::LogFilter;
use crate::config::Config;
use crate::storage::Storage;
use crate::wire;

/// Prints what there is, or, to follow, what comes.
pub(crate) async fn run(config: &Config, filter: &LogFilter, follow: bool) -> Result<()> {
  let storage = Storage::tool(config).await?;
  let stop = CancellationToken::new();
  let shared = wire::shared(&storage, false, &stop).await?;
  let options = export::Options { agent: filter.agent.map(AgentId), open: filter.open };
  let mut out = tokio::io::stdout();
  if follow {
    export::tail(&shared.log, &shared.opener, &options, &mut out).await?;
  } else {
    export::export(&shared.log, &shared.opener, &options, &mut out).await?;
  }
  stop.cancel();
  storage.close().await
}
