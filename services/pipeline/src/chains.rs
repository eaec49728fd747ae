//! The chain of an agent's events: each names the hash of the one before, so nothing can be changed, left out or put in between without being noticed.

use std::collections::BTreeMap;
use std::sync::Arc;

use pa_domain::AgentId;
use pa_eventlog::fence::FenceState;
use pa_eventlog::meta::{NO_HASH, chain};
use pa_eventlog::opener;
use pa_eventlog::reader::{DecisionReader, Error, Judged};
use pa_eventlog::{EventLog, LogError, Partition, Position, Stored, Stream};

/// Records read at once: nobody waits for a single one.
const READ_RECORDS: usize = 2_000;

/// Where an agent's events stop following each other: the first ordinal that is missing or has another one's hash, and where what stands in its place was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
  pub agent: AgentId,
  pub ordinal: i64,
  pub partition: Partition,
  pub position: Position,
}

/// Checks every accepted event of a partition before the position `upto`. Nothing is opened: the chain is over what is stored.
///
/// # Errors
/// The log can't be read, or a record's headers can't.
pub async fn check(log: &dyn EventLog, partition: Partition, upto: Position) -> Result<Vec<Broken>, Error> {
  let mut decisions = DecisionReader::new(FenceState::START);
  let mut chains = Chains::default();
  loop {
    let from = decisions.fence().next_position;
    let records = log.read(Stream::Events, partition, from, READ_RECORDS).await?;
    for stored in records.iter().take_while(|stored| stored.position < upto) {
      let judged = decisions.judge(stored).map_err(|error| stopped(partition, stored, error.into()))?;
      if matches!(judged, Judged::Complete(..)) {
        for part in decisions.parts().iter().chain([stored]) {
          chains.follow(partition, part).map_err(|error| stopped(partition, part, error))?;
        }
      }
      decisions.accept(judged, stored);
    }
    if records.last().is_none_or(|last| last.position + 1 >= upto) {
      return Ok(chains.broken.into_values().collect());
    }
    if decisions.fence().next_position <= from {
      return Err(LogError::Unusable(format!("partition {partition} gives position {from} again")).into());
    }
  }
}

fn stopped(partition: Partition, stored: &Stored, source: opener::Error) -> Error {
  Error::Stopped { partition, position: stored.position, source }
}

#[derive(Default)]
struct Chains {
  /// Each agent's last ordinal and the hash after it.
  last: BTreeMap<AgentId, (i64, [u8; 32])>,
  broken: BTreeMap<AgentId, Broken>,
}

impl Chains {
  fn follow(&mut self, partition: Partition, stored: &Arc<Stored>) -> Result<(), opener::Error> {
    let meta = stored.meta()?;
    let (agent, ordinal) = (meta.core.agent, meta.core.ordinal);
    let (before, hash) = self.last.get(&agent).copied().unwrap_or((0, NO_HASH));
    if ordinal != before + 1 || meta.prevhash != hash {
      self.broken.entry(agent).or_insert(Broken { agent, ordinal: ordinal.min(before + 1), partition, position: stored.position });
    }
    self.last.insert(agent, (ordinal, chain(meta, &stored.record.type_name, &stored.record.value)));
    Ok(())
  }
}
