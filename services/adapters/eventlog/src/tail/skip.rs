//! The way to the end of a partition at start: by headers alone, nothing is opened.

use std::sync::Arc;

use uuid::Uuid;

use crate::fence::FenceState;
use crate::opener;
use crate::port::EventLog;
use crate::reader::{DecisionReader, Error, READ_RECORDS_MAX};
use crate::record::{Partition, Stream};

/// Moves a state to the end of its partition, or to the decision whose input somebody waits for already.
pub(super) async fn to_end(log: &Arc<dyn EventLog>, partition: Partition, from: FenceState, waits: impl Fn(Uuid) -> bool) -> Result<FenceState, Error> {
  let end = log.end(Stream::Events, partition).await?;
  let mut decisions = DecisionReader::new(from);
  while decisions.fence().next_position < end {
    let batch = log.read(Stream::Events, partition, decisions.fence().next_position, READ_RECORDS_MAX).await?;
    if batch.is_empty() {
      break;
    }
    for stored in batch.iter() {
      let stopped = |source: crate::meta::Error| Error::Stopped { partition, position: stored.position, source: opener::Error::Meta(source) };
      if waits(stored.meta().map_err(stopped)?.core.cause) {
        return Ok(decisions.saved());
      }
      let judged = decisions.judge(stored).map_err(stopped)?;
      decisions.accept(judged, stored);
    }
  }
  Ok(decisions.saved())
}
