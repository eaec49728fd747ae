//! Records as JSON, one object a line: `pa log export` and `pa log tail`.
//!
//! Raw by intent: every stored record is shown, also one that does not count (then `void` says why) and one that nobody can open (then `unreadable` does). With
//! `open` the body stands beside the metadata; an erased agent's says that it is erased.

mod line;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use pa_domain::AgentId;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::fence::FenceState;
use crate::meta::partition_of;
use crate::opener::{self, Opener};
use crate::port::{EventLog, LogError};
use crate::reader::{DecisionReader, Judged};
use crate::record::{Partition, Position, Stored, Stream};

/// Records of one read.
const READ_MAX: usize = 500;
/// Pause of a tail after a failed read.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Which records, and how much of them.
#[derive(Clone, Debug, Default)]
pub struct Filter {
  /// Only this agent's.
  pub agent: Option<AgentId>,
  /// With the body.
  pub open: bool,
}

/// An export that broke off.
#[derive(Debug, thiserror::Error)]
pub enum Error {
  #[error(transparent)]
  Log(#[from] LogError),
  #[error(transparent)]
  Keys(#[from] crate::seal::KeysError),
  #[error("the output can't be written")]
  Output(#[from] std::io::Error),
}

/// One stream's partition on its way out.
struct Source<'a> {
  opener: &'a Opener,
  filter: &'a Filter,
  stream: Stream,
  partition: Partition,
  next: Position,
  /// Says what counts, where the events were read from the beginning.
  fence: Option<DecisionReader>,
}

/// Writes every record that stands in `streams` now, partition by partition. Answers how many.
///
/// # Errors
/// The log, the keys or the output failed; what was written until then stands.
pub async fn export(
  log: &Arc<dyn EventLog>,
  opener: &Opener,
  filter: &Filter,
  streams: &[Stream],
  out: &mut (impl AsyncWrite + Unpin + Send),
) -> Result<u64, Error> {
  let mut count = 0;
  for &stream in streams {
    for partition in partitions(log, filter).await? {
      let end = log.end(stream, partition).await?;
      let mut source = Source { opener, filter, stream, partition, next: 0, fence: (stream == Stream::Events).then(|| DecisionReader::new(FenceState::START)) };
      while source.next < end {
        let batch = log.read(stream, partition, source.next, READ_MAX).await?;
        if batch.is_empty() {
          break;
        }
        count += source.write(batch.iter().take_while(|stored| stored.position < end), out).await?;
        source.next = batch.last().map_or(end, |stored| stored.position + 1);
      }
    }
  }
  out.flush().await?;
  Ok(count)
}

/// Writes what comes after now, for ever; an outage of the log is waited out.
///
/// # Errors
/// The log can't be used, or the output failed.
pub async fn tail(
  log: &Arc<dyn EventLog>,
  opener: &Opener,
  filter: &Filter,
  streams: &[Stream],
  out: &mut (impl AsyncWrite + Unpin + Send),
) -> Result<std::convert::Infallible, Error> {
  let mut sources = Vec::new();
  for &stream in streams {
    for partition in partitions(log, filter).await? {
      let next = log.end(stream, partition).await?;
      sources.push(Source { opener, filter, stream, partition, next, fence: None });
    }
  }
  loop {
    let mut idle = true;
    for source in &mut sources {
      match log.read(source.stream, source.partition, source.next, READ_MAX).await {
        Ok(batch) => {
          source.write(batch.iter(), out).await?;
          source.next = batch.last().map_or(source.next, |stored| stored.position + 1);
          idle &= batch.is_empty();
        }
        Err(LogError::Away(_)) => tokio::time::sleep(AGAIN_AFTER).await,
        Err(error) => return Err(error.into()),
      }
    }
    out.flush().await?;
    if idle {
      any_woken(log, &sources).await;
    }
  }
}

async fn any_woken(log: &Arc<dyn EventLog>, sources: &[Source<'_>]) {
  let waits = sources.iter().map(|source| log.wait(source.stream, source.partition, source.next));
  if sources.is_empty() {
    tokio::time::sleep(AGAIN_AFTER).await;
  } else {
    futures::future::select_all(waits).await;
  }
}

/// The partitions that a filter reaches.
async fn partitions(log: &Arc<dyn EventLog>, filter: &Filter) -> Result<Vec<Partition>, LogError> {
  let count = log.identity().await?.partitions;
  Ok(match filter.agent {
    Some(agent) => vec![partition_of(agent, count)],
    None => (0..count).collect(),
  })
}

impl Source<'_> {
  async fn write(&mut self, records: impl Iterator<Item = &Arc<Stored>>, out: &mut (impl AsyncWrite + Unpin + Send)) -> Result<u64, Error> {
    let mut count = 0;
    for stored in records {
      let void = self.void(stored);
      if self.filter.agent.is_some_and(|agent| stored.meta().map_or(true, |meta| meta.core.agent != agent)) {
        continue;
      }
      let body = if self.filter.open { Some(self.body(stored).await?) } else { None };
      let mut text = line::of(self.stream, self.partition, stored, void, body).to_string();
      text.push('\n');
      out.write_all(text.as_bytes()).await?;
      count += 1;
    }
    Ok(count)
  }

  /// Why a record does not count, as far as that is known here.
  fn void(&mut self, stored: &Arc<Stored>) -> Option<String> {
    let fence = self.fence.as_mut()?;
    match fence.judge(stored) {
      Ok(judged) => {
        fence.accept(judged, stored);
        match judged {
          Judged::Void(_, reason) => Some(format!("{reason:?}")),
          Judged::Part(_) | Judged::Complete(..) | Judged::Announced { .. } => None,
        }
      }
      Err(error) => {
        self.fence = None;
        Some(error.to_string())
      }
    }
  }

  async fn body(&self, stored: &Stored) -> Result<line::Body, Error> {
    if self.stream == Stream::Pieces {
      return Ok(line::Body::Unreadable("a piece is no record of its own".into()));
    }
    let about_partition = stored.meta().is_ok_and(|meta| meta.is_about_partition());
    let opened = match (self.stream, about_partition) {
      (Stream::Events, true) => return Ok(self.opener.announcement(stored).map_or_else(line::Body::failed, |announced| line::Body::json(&announced))),
      (Stream::Events, false) => self.opener.event(stored).await,
      (Stream::Inputs | Stream::Pieces, _) => self.opener.input(stored).await,
    };
    match opened {
      Ok(opened) => Ok(line::Body::of(&opened)),
      Err(opener::Error::Keys(error)) => Err(error.into()),
      Err(error) => Ok(line::Body::failed(error)),
    }
  }
}
