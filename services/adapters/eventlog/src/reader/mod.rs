//! Reads `pa.events` of one partition: fenced, assembled into whole decisions, opened.
//!
//! A reader starts at the beginning or at a saved state, and what it saves is always the state before the first part of an open decision. At start and after every
//! reconnect it checks that the log is the one it knew: its identity, that it reaches as far, and that the record before the state is the same whole record.
//! Records are opened only once their decision is whole, so nothing in a void record can stop a reader. [`decision`] has the pure part, `ahead.rs` where records come from.

mod ahead;
pub mod decision;

use std::sync::Arc;

use crate::fence::{FenceState, VoidReason};
use crate::meta::{self, digest};
use crate::opener::{self, Opened, Opener};
use crate::port::{EventLog, Identity, LogError};
use crate::record::{Partition, Position, Stored, Stream};
use ahead::Batches;

pub use crate::opener::{Recorded, RecordedInput};
pub use decision::{Announced, Decision, DecisionHead, DecisionReader, Item, Judged, Unopened, Void};

/// Records in one read: what a projector commits at once.
pub const READ_RECORDS_MAX: usize = 500;

/// How a log differs from the one that was read before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogChanged {
  #[error("partition {partition} is in another log now")]
  Identity { partition: Partition },
  #[error("partition {partition} ends at {end}, before {next_position}")]
  Cut { partition: Partition, next_position: Position, end: Position },
  #[error("partition {partition} has another record at {position}")]
  History { partition: Partition, position: Position },
}

/// Reading stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
  #[error(transparent)]
  Log(#[from] LogError),
  /// What was derived from the old log is void: a read schema is rebuilt, a checkpoint dropped.
  #[error(transparent)]
  Changed(#[from] LogChanged),
  #[error("partition {partition} stops at {position}")]
  Stopped {
    partition: Partition,
    position: Position,
    #[source]
    source: opener::Error,
  },
}

impl Error {
  /// Whether reading may simply be tried again.
  pub fn is_passing(&self) -> bool {
    match self {
      Self::Log(LogError::Away(_)) => true,
      Self::Stopped { source, .. } => matches!(source, opener::Error::Keys(_)),
      Self::Log(LogError::Unusable(_)) | Self::Changed(_) => false,
    }
  }
}

/// Reads one partition's decisions.
pub struct Reader {
  log: Arc<dyn EventLog>,
  opener: Arc<Opener>,
  partition: Partition,
  decisions: DecisionReader,
  /// Read but not yet returned: a read that is cancelled or fails loses nothing.
  ready: Vec<Item>,
  identity: Option<Identity>,
  checked: bool,
  batches: Batches,
}

impl Reader {
  /// A reader of `partition` from `state` on ([`FenceState::START`]: from the beginning). The log is checked at the first read.
  pub fn new(log: Arc<dyn EventLog>, opener: Arc<Opener>, partition: Partition, state: FenceState) -> Self {
    let batches = Batches::new(Arc::clone(&log), partition, READ_RECORDS_MAX);
    Self { log, opener, partition, decisions: DecisionReader::new(state), ready: Vec::new(), identity: None, checked: false, batches }
  }

  /// Reads at most `records_max` records at once.
  #[must_use]
  pub fn with_records_max(mut self, records_max: usize) -> Self {
    self.batches.records_max = records_max.max(1);
    self
  }

  /// Waits for the next items and returns all that are there. Cancel-safe.
  ///
  /// # Errors
  /// [`Error`]; after a passing one the reader goes on where it was.
  pub async fn next(&mut self) -> Result<Vec<Item>, Error> {
    loop {
      let items = self.poll().await?;
      if !items.is_empty() {
        return Ok(items);
      }
      self.log.wait(Stream::Events, self.partition, self.position()).await;
    }
  }

  /// Returns the items of the next records that are there now; none: the reader is at the end. Cancel-safe.
  ///
  /// # Errors
  /// As [`Self::next`].
  pub async fn poll(&mut self) -> Result<Vec<Item>, Error> {
    while self.ready.is_empty() {
      if !self.read().await? {
        break;
      }
    }
    Ok(std::mem::take(&mut self.ready))
  }

  /// What to save once the returned items are worked off: the state before an open decision.
  pub fn state(&self) -> FenceState {
    self.decisions.saved()
  }

  /// The position that is read next.
  pub fn position(&self) -> Position {
    self.decisions.fence().next_position
  }

  /// The pure part: the fence as it stands.
  pub fn decisions(&self) -> &DecisionReader {
    &self.decisions
  }

  /// Compares the log with what this reader knows of it.
  ///
  /// # Errors
  /// [`Error::Changed`] when it is another log or another history.
  pub async fn check(&mut self) -> Result<(), Error> {
    let partition = self.partition;
    let identity = self.log.identity().await?;
    if self.identity.get_or_insert_with(|| identity.clone()) != &identity {
      return Err(LogChanged::Identity { partition }.into());
    }
    let next_position = self.position();
    let end = self.log.end(Stream::Events, partition).await?;
    if next_position > end {
      return Err(LogChanged::Cut { partition, next_position, end }.into());
    }
    if next_position > 0 {
      let position = next_position - 1;
      let before = self.log.read(Stream::Events, partition, position, 1).await?;
      let same = before.first().is_some_and(|stored| stored.position == position && stored.digest() == self.decisions.last());
      if !same {
        return Err(LogChanged::History { partition, position }.into());
      }
    }
    self.checked = true;
    Ok(())
  }

  /// Reads one batch; false when there is none.
  async fn read(&mut self) -> Result<bool, Error> {
    let read = self.read_checked().await;
    // After a failure of the log it may be another one.
    self.checked &= !matches!(read, Err(Error::Log(_)));
    match read {
      // What came before a failure is returned first; the failure comes again at the next read.
      Ok(()) | Err(_) if !self.ready.is_empty() => Ok(true),
      Ok(()) => Ok(false),
      Err(error) => Err(error),
    }
  }

  async fn read_checked(&mut self) -> Result<(), Error> {
    if !self.checked {
      self.check().await?;
    }
    // A batch may end inside a decision: then there is nothing to return yet although there may be more to read.
    loop {
      let batch = self.batches.read(self.position()).await?;
      for stored in batch.iter() {
        self.take(stored).await?;
      }
      if batch.is_empty() || !self.ready.is_empty() {
        return Ok(());
      }
    }
  }

  async fn take(&mut self, stored: &Arc<Stored>) -> Result<(), Error> {
    let partition = self.partition;
    let stopped = |source| Error::Stopped { partition, position: stored.position, source };
    if stored.position < self.position() {
      return Err(LogError::Unusable(format!("partition {partition} gives position {} again", stored.position)).into());
    }
    let judged = self.decisions.judge(stored).map_err(|error: meta::Error| stopped(error.into()))?;
    let item = match judged {
      Judged::Part(_) => None,
      Judged::Void(_, reason) => Some(Item::Void(Void::of(stored, reason))),
      Judged::Announced { before, .. } => {
        let announced = self.opener.announcement(stored).map_err(stopped)?;
        self.ready.extend(self.decisions.parts().iter().filter(|_| judged.voids_open()).map(|part| Item::Void(Void::of(part, VoidReason::OpenAtAnnouncement))));
        Some(Item::Announced(Announced::of(stored, &announced, before)))
      }
      Judged::Complete(..) => Some(self.open(stored, &judged).await.map_err(stopped)?),
    };
    self.decisions.accept(judged, stored);
    self.ready.extend(item);
    Ok(())
  }

  async fn open(&self, stored: &Arc<Stored>, judged: &Judged) -> Result<Item, opener::Error> {
    let parts = || self.decisions.parts().iter().chain([stored]);
    let head = self.decisions.head(stored, judged)?;
    let unopened = || Unopened::new(head, Arc::clone(stored));
    let mut events = Vec::with_capacity(self.decisions.parts().len() + 1);
    for part in parts() {
      match self.opener.event(part).await? {
        Opened::Event(recorded) => events.push(recorded),
        Opened::Erased => return Ok(Item::Erased(unopened())),
        Opened::Unreadable(reason) => return Ok(Item::Unreadable { head: unopened(), position: part.position, reason }),
        Opened::Input(_) => return Ok(Item::Unreadable { head: unopened(), position: part.position, reason: "an input among events".into() }),
      }
    }
    Ok(Item::Decision(Arc::new(Decision::new(head, events, Arc::clone(stored)))))
  }
}

impl Stored {
  /// The hash of the whole record, computed once.
  pub fn digest(&self) -> [u8; 32] {
    *self.digest.get_or_init(|| digest(&self.record))
  }
}

#[cfg(test)]
mod tests;
