//! One partition's task: to the end, then on from there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, watch};
use uuid::Uuid;

use super::Status;
use super::skip::to_end;
use super::waiters::Waiters;
use crate::fence::FenceState;
use crate::guards::{self, Guard};
use crate::opener::{Opened, Opener};
use crate::port::EventLog;
use crate::reader::{Decision, DecisionHead, Error, Item, READ_RECORDS_MAX, Reader, Recorded};
use crate::record::{Partition, Position, Stored, Stream};

/// The first pause after a failure; it doubles up to [`AWAY_PAUSE_MAX`].
const AWAY_PAUSE: Duration = Duration::from_millis(100);
/// An outage that is over should be noticed within about this time.
const AWAY_PAUSE_MAX: Duration = Duration::from_secs(2);
/// What a person has to mend is looked at again so rarely that it does not fill the log file.
const STOPPED_PAUSE: Duration = Duration::from_secs(15);

/// What a partition's task works with.
pub(super) struct Follower {
  pub(super) log: Arc<dyn EventLog>,
  pub(super) opener: Arc<Opener>,
  pub(super) partition: Partition,
  pub(super) waiters: Arc<Waiters>,
  pub(super) decisions: broadcast::Sender<Arc<Decision>>,
  pub(super) status: watch::Sender<Status>,
}

/// How far a partition's task has come.
struct Way {
  state: FenceState,
  /// The end was reached once: whatever came since is handed on, also what came during an outage.
  at_end: bool,
  pause: Duration,
}

impl Follower {
  /// Reads on for ever.
  pub(super) async fn follow(&self, state: FenceState) {
    let mut way = Way { state, at_end: false, pause: AWAY_PAUSE };
    self.voids().increment(0);
    loop {
      let error = match self.read_on(&mut way).await {
        Ok(never) => match never {},
        Err(error) => error,
      };
      tokio::time::sleep(self.say(&error, &mut way)).await;
      way.pause = (way.pause * 2).min(AWAY_PAUSE_MAX);
    }
  }

  /// Says what is wrong, and how long to wait.
  fn say(&self, error: &Error, way: &mut Way) -> Duration {
    let partition = self.partition;
    let source = error as &dyn std::error::Error;
    if let Error::Changed(changed) = error {
      tracing::warn!(log.partition = partition, error = changed as &dyn std::error::Error, "the log's tail is read anew");
      *way = Way { state: FenceState::START, at_end: false, pause: way.pause };
      self.status.send_replace(Status::Starting);
      way.pause
    } else if error.is_passing() {
      tracing::debug!(log.partition = partition, error = source, "the log's tail can't be read now");
      self.status.send_replace(Status::Away);
      way.pause
    } else {
      tracing::error!(log.partition = partition, error = source, "the log's tail is stopped");
      self.status.send_replace(Status::Stopped(error.to_string()));
      STOPPED_PAUSE
    }
  }

  async fn read_on(&self, way: &mut Way) -> Result<std::convert::Infallible, Error> {
    Reader::new(Arc::clone(&self.log), Arc::clone(&self.opener), self.partition, way.state).check().await?;
    if !way.at_end {
      way.state = to_end(&self.log, self.partition, way.state, |input| self.waiters.waits(input)).await?;
      way.at_end = true;
    }
    self.status.send_replace(Status::Following);
    if !guards::on(Guard::AnswerOnAppend) {
      return self.unfenced(way.state.next_position).await;
    }
    let mut reader = Reader::new(Arc::clone(&self.log), Arc::clone(&self.opener), self.partition, way.state);
    loop {
      let items = reader.next().await?;
      way.pause = AWAY_PAUSE;
      for item in items {
        self.hand_on(item);
      }
      way.state = reader.state();
    }
  }

  /// Void records that came by since the start.
  fn voids(&self) -> metrics::Counter {
    metrics::counter!("pa_log_void_records_total", "partition" => self.partition.to_string())
  }

  fn hand_on(&self, item: Item) {
    match item {
      Item::Decision(decision) => self.tell(decision),
      Item::Erased(head) | Item::Unreadable { head, .. } => self.waiters.give_up(head.cause),
      // Counted here, where each record of a partition comes by once in a process.
      Item::Void(_) => self.voids().increment(1),
      Item::Announced(_) => {}
    }
  }

  fn tell(&self, decision: Arc<Decision>) {
    self.waiters.tell(&decision);
    // Nobody following is no failure.
    drop(self.decisions.send(decision));
  }

  /// With the guard off, for the simulator alone: whatever was appended is handed on, without the fence.
  async fn unfenced(&self, mut position: Position) -> Result<std::convert::Infallible, Error> {
    let mut open: HashMap<(Uuid, i64), Vec<Arc<Recorded>>> = HashMap::new();
    loop {
      let batch = self.log.read(Stream::Events, self.partition, position, READ_RECORDS_MAX).await?;
      if batch.is_empty() {
        self.log.wait(Stream::Events, self.partition, position).await;
      }
      for stored in batch.iter() {
        position = stored.position + 1;
        let stopped = |source| Error::Stopped { partition: self.partition, position: stored.position, source };
        if let Opened::Event(recorded) = self.opener.event(stored).await.map_err(stopped)?
          && !recorded.meta.is_about_partition()
        {
          let place = recorded.meta.place;
          let parts = open.entry((recorded.core().cause, place.epoch)).or_default();
          parts.push(recorded);
          if place.part == place.parts {
            let parts = std::mem::take(parts);
            self.tell(Arc::new(as_appended(parts, stored)));
          }
        }
      }
    }
  }
}

fn as_appended(events: Vec<Arc<Recorded>>, last: &Arc<Stored>) -> Decision {
  let first = &events[0];
  let (core, place) = (first.core(), first.meta.place);
  let head = DecisionHead {
    agent: core.agent,
    input: place.input,
    held: place.held,
    cause: core.cause,
    at: core.at,
    epoch: place.epoch,
    seq: place.seq,
    ordinal: core.ordinal,
    parts: place.parts,
    first: first.position,
    last: last.position,
  };
  Decision::new(head, events, Arc::clone(last))
}
