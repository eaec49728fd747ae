//! Walks over a partition's accepted decisions, whole and unopened, up to a position.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use crate::fence::next_input::AGREEING_INPUTS;
use crate::fence::{Agreement, FenceState, NextInput};
use crate::opener::{self, Opener};
use crate::port::EventLog;
use crate::reader::{Announced, DecisionReader, Judged};
use crate::record::{Partition, Position, Stored, Stream};

use super::Error;

/// Records of one read: with records of the largest size it is still some hundred megabytes.
const READ_RECORDS: usize = 500;
/// Causes that are kept to compare the inputs with: some more than have to agree, since a cut input log goes a step back.
const CAUSES_KEPT: usize = 4 * AGREEING_INPUTS as usize;

/// A decision as it is stored.
pub type Parts = Vec<Arc<Stored>>;

/// A walk over one partition.
pub struct Walk<'a> {
  log: &'a dyn EventLog,
  opener: &'a Opener,
  partition: Partition,
  until: Position,
  decisions: DecisionReader,
  next_input: NextInput,
  /// The cause of the latest unmarked decision of the last positions.
  causes: BTreeMap<Position, Uuid>,
}

impl<'a> Walk<'a> {
  /// Over everything before `until`.
  pub fn new(log: &'a dyn EventLog, opener: &'a Opener, partition: Partition, until: Position) -> Self {
    Self::from_saved(log, opener, partition, until, (FenceState::START, NextInput::START))
  }

  /// From a saved state, and the next input there, on. What was decided before it is not known to this walk.
  pub fn from_saved(log: &'a dyn EventLog, opener: &'a Opener, partition: Partition, until: Position, (state, next_input): (FenceState, NextInput)) -> Self {
    Self { log, opener, partition, until, decisions: DecisionReader::new(state), next_input, causes: BTreeMap::new() }
  }

  /// The decisions that the next records complete; `None` at the end.
  ///
  /// # Errors
  /// The log can't be read, or a record's headers can't.
  pub async fn next(&mut self) -> Result<Option<Vec<Parts>>, Error> {
    let from = self.decisions.fence().next_position;
    if from >= self.until {
      return Ok(None);
    }
    let batch = self.log.read(Stream::Events, self.partition, from, READ_RECORDS).await?;
    let (mut whole, until) = (Vec::new(), self.until);
    for stored in batch.iter().take_while(|stored| stored.position < until) {
      whole.extend(self.take(stored).map_err(|source| Error::Record {
        stream: Stream::Events.name(),
        partition: self.partition,
        position: stored.position,
        source,
      })?);
    }
    // Behind the last record lie at most marks of the engine's own.
    let ended = batch.is_empty() || self.decisions.fence().next_position <= from;
    Ok(if ended { None } else { Some(whole) })
  }

  fn take(&mut self, stored: &Arc<Stored>) -> Result<Option<Parts>, opener::Error> {
    let judged = self.decisions.judge(stored)?;
    let whole = match judged {
      Judged::Complete(_, open) => {
        let mut parts = self.decisions.parts().to_vec();
        parts.push(Arc::clone(stored));
        self.next_input = self.next_input.decided(open.input, open.held);
        if !open.held {
          self.causes.insert(open.input, open.cause);
          if self.causes.len() > CAUSES_KEPT {
            self.causes.pop_first();
          }
        }
        Some(parts)
      }
      Judged::Announced { before, .. } => {
        let announced = Announced::of(stored, &self.opener.announcement(stored)?, before);
        self.next_input = self.next_input.announced(announced.counts, announced.inputs_from);
        None
      }
      Judged::Part(_) | Judged::Void(..) => None,
    };
    self.decisions.accept(judged, stored);
    Ok(whole)
  }

  /// The fence as it stands.
  pub fn decisions(&self) -> &DecisionReader {
    &self.decisions
  }

  /// The next input as the decisions say it.
  pub fn next_input(&self) -> NextInput {
    self.next_input
  }

  /// From where on inputs are still to be decided, also when the input log was cut and grew again. For who has walked from the beginning to the end.
  ///
  /// # Errors
  /// The log can't be read.
  pub async fn inputs_from(&self) -> Result<Position, Error> {
    let first = self.log.read(Stream::Inputs, self.partition, 0, 1).await?.first().map_or(0, |stored| stored.position);
    let next = self.next_input.0;
    let low = (next - Position::from(AGREEING_INPUTS)).max(0);
    let mut present = BTreeMap::new();
    let mut from = low;
    while from < next {
      let batch = self.log.read(Stream::Inputs, self.partition, from, READ_RECORDS).await?;
      let Some(last) = batch.last() else { break };
      from = last.position + 1;
      present.extend(batch.iter().filter(|stored| stored.position < next).map(|stored| (stored.position, stored.record.id)));
    }
    let mut agreement = Agreement::new(self.next_input, first);
    // Whatever lies further down than a thousand that agree has been decided; whatever does not agree is found here.
    agreement.compare(low, &self.causes, &present);
    Ok(agreement.inputs_from())
  }
}
