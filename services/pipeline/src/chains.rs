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

/// A record that does not count although it goes on from its agent's last event, and nothing has taken its place: what it says of its place was changed, or its decider
/// ended before its input was decided again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unheard {
  pub agent: AgentId,
  pub ordinal: i64,
  pub partition: Partition,
  pub position: Position,
}

/// What is wrong with the chains of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
  pub broken: Vec<Broken>,
  pub unheard: Vec<Unheard>,
}

/// Checks every accepted event of a partition before the position `upto`. Nothing is opened: the chain is over what is stored.
///
/// # Errors
/// The log can't be read, or a record's headers can't.
pub async fn check(log: &dyn EventLog, partition: Partition, upto: Position) -> Result<Vec<Broken>, Error> {
  Ok(examine(log, partition, upto).await?.broken)
}

/// The same, and which void records nothing has taken the place of.
///
/// # Errors
/// As [`check`].
pub async fn examine(log: &dyn EventLog, partition: Partition, upto: Position) -> Result<Examined, Error> {
  let mut decisions = DecisionReader::new(FenceState::START);
  let mut chains = Chains::default();
  loop {
    let from = decisions.fence().next_position;
    let records = log.read(Stream::Events, partition, from, READ_RECORDS).await?;
    for stored in records.iter().take_while(|stored| stored.position < upto) {
      let judged = decisions.judge(stored).map_err(|error| stopped(partition, stored, error.into()))?;
      chains.judged(partition, &decisions, &judged, stored)?;
      decisions.accept(judged, stored);
    }
    if records.last().is_none_or(|last| last.position + 1 >= upto) {
      return chains.ended(partition, &decisions);
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
  unheard: BTreeMap<AgentId, Unheard>,
  /// A void record stands behind the first part of the open decision: its end will not come any more.
  cut_off: bool,
}

impl Chains {
  fn judged(&mut self, partition: Partition, decisions: &DecisionReader, judged: &Judged, stored: &Arc<Stored>) -> Result<(), Error> {
    match judged {
      Judged::Part(_) => {}
      Judged::Complete(..) => {
        for part in decisions.parts().iter().chain([stored]) {
          self.follow(partition, part).map_err(|error| stopped(partition, part, error))?;
        }
        self.cut_off = false;
      }
      Judged::Announced { .. } => {
        if judged.voids_open() {
          self.pass_all(partition, decisions.parts())?;
        }
        self.cut_off = false;
      }
      Judged::Void(..) => {
        self.cut_off |= !decisions.parts().is_empty();
        self.pass_all(partition, std::slice::from_ref(stored))?;
      }
    }
    Ok(())
  }

  fn ended(mut self, partition: Partition, decisions: &DecisionReader) -> Result<Examined, Error> {
    // Without that it may be on its way at this moment.
    if self.cut_off {
      self.pass_all(partition, decisions.parts())?;
    }
    Ok(Examined { broken: self.broken.into_values().collect(), unheard: self.unheard.into_values().collect() })
  }

  fn follow(&mut self, partition: Partition, stored: &Arc<Stored>) -> Result<(), opener::Error> {
    let meta = stored.meta()?;
    let (agent, ordinal) = (meta.core.agent, meta.core.ordinal);
    let (before, hash) = self.last(agent);
    if ordinal != before + 1 || meta.prevhash != hash {
      self.broken.entry(agent).or_insert(Broken { agent, ordinal: ordinal.min(before + 1), partition, position: stored.position });
    }
    self.unheard.remove(&agent);
    self.last.insert(agent, (ordinal, chain(meta, &stored.record.type_name, &stored.record.value)));
    Ok(())
  }

  fn pass_all(&mut self, partition: Partition, void: &[Arc<Stored>]) -> Result<(), Error> {
    for stored in void {
      let meta = stored.meta().map_err(|error| stopped(partition, stored, error.into()))?;
      let (agent, ordinal) = (meta.core.agent, meta.core.ordinal);
      let (before, hash) = self.last(agent);
      // Announcements have no ordinal. What was decided again before stands behind another event, or has its ordinal.
      if ordinal > 0 && ordinal == before + 1 && meta.prevhash == hash {
        self.unheard.entry(agent).or_insert(Unheard { agent, ordinal, partition, position: stored.position });
      }
    }
    Ok(())
  }

  fn last(&self, agent: AgentId) -> (i64, [u8; 32]) {
    self.last.get(&agent).copied().unwrap_or((0, NO_HASH))
  }
}
