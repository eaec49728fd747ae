//! The log in memory, for simulations: deterministic, with faults by an explicit plan.
//!
//! Every process of a simulation has its own view ([`SimLog::fork`]) of one log. Requests are in flight until they land, and a lost answer, a late landing, a torn
//! append, a crash or a cut tail happen when the [`Plan`] or the simulation says so; time is tokio's, so that a paused clock makes a run repeatable. Nothing else is
//! random: the same seed and the same calls give the same log.

mod flight;
mod plan;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use crate::port::{AppendError, EventLog, Identity, LogError, check_append};
use crate::record::{Partition, Position, Record, Stored, Stream};
use flight::{InFlight, Request, When};
pub use plan::{Delays, Fault, Odds, Plan};

/// What `wait` waits at the most, as on the other engines.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// What becomes of a crashed process's requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
  /// They are gone.
  Dropped,
  /// They land when they would have landed.
  Land,
}

/// One process's view of a log in memory; cloning keeps the process.
#[derive(Clone)]
pub struct SimLog {
  shared: Arc<Shared>,
  process: u32,
}

struct Shared {
  state: Mutex<State>,
}

struct State {
  identity: Identity,
  lanes: HashMap<(Stream, Partition), Lane>,
  flight: InFlight,
  plan: Plan,
  away: HashSet<u32>,
  away_for_all: bool,
  dead: HashSet<u32>,
  processes: u32,
}

#[derive(Default)]
struct Lane {
  records: Vec<Arc<Stored>>,
  end: Position,
  /// Told of everything that lands here, in the order of waiting, so that a seed repeats.
  landed: Arc<Notify>,
}

impl Lane {
  fn push(&mut self, record: Record) -> Position {
    let position = self.end;
    self.records.push(Arc::new(Stored::new(position, record)));
    self.end += 1;
    self.landed.notify_waiters();
    position
  }
}

impl SimLog {
  /// An empty log; the answer is the first process's view.
  pub fn new(partitions: Partition, sealed: bool, plan: Plan) -> Self {
    let identity = Identity { kind: "sim".to_owned(), id: Uuid::from_u128(1), partitions, sealed };
    let state = State {
      identity,
      lanes: HashMap::new(),
      flight: InFlight::default(),
      plan,
      away: HashSet::new(),
      away_for_all: false,
      dead: HashSet::new(),
      processes: 1,
    };
    Self { shared: Arc::new(Shared { state: Mutex::new(state) }), process: 0 }
  }

  /// Another process's view of the same log.
  #[must_use]
  pub fn fork(&self) -> Self {
    let mut state = self.shared.state.lock();
    let process = state.processes;
    state.processes += 1;
    Self { shared: Arc::clone(&self.shared), process }
  }

  /// Ends this view's process: its calls never return from here on, and its requests in flight meet `fate`.
  pub fn crash(&self, fate: Fate) {
    let mut state = self.shared.state.lock();
    state.dead.insert(self.process);
    if fate == Fate::Dropped {
      state.flight.drop_of(self.process);
    }
  }

  /// Makes the log unreachable for this view's process, or reachable again.
  pub fn set_away(&self, away: bool) {
    let mut state = self.shared.state.lock();
    if away {
      state.away.insert(self.process)
    } else {
      state.away.remove(&self.process)
    };
  }

  /// Makes the log unreachable for every process, also those to come, or reachable again.
  pub fn set_away_for_all(&self, away: bool) {
    self.shared.state.lock().away_for_all = away;
  }

  /// The next append of any process to `stream` meets `fault`; several are met in order, before the plan is asked.
  pub fn inject(&self, stream: Stream, fault: Fault) {
    self.shared.state.lock().plan.inject(stream, fault);
  }

  /// Draws faults by other odds from here on; the end of all faults is `Odds::default()`.
  pub fn set_odds(&self, odds: Odds) {
    self.shared.state.lock().plan.set_odds(odds);
  }

  /// Cuts a partition's tail off, as a power loss or a restored backup does: everything from `end` on is gone, and positions are given again.
  pub fn cut(&self, stream: Stream, partition: Partition, end: Position) {
    let mut state = self.shared.state.lock();
    let lane = state.lanes.entry((stream, partition)).or_default();
    lane.records.retain(|stored| stored.position < end);
    lane.end = lane.end.min(end);
  }

  /// Changes the last byte of a stored value, as a disk or a stranger does; a second time it is as it was.
  pub fn damage(&self, stream: Stream, partition: Partition, position: Position) {
    let mut state = self.shared.state.lock();
    let lane = state.lanes.entry((stream, partition)).or_default();
    for stored in lane.records.iter_mut().filter(|stored| stored.position == position) {
      let mut record = stored.record.clone();
      let mut value = record.value.to_vec();
      if let Some(last) = value.last_mut() {
        *last ^= 1;
      }
      record.value = value.into();
      *stored = Arc::new(Stored::new(position, record));
    }
  }

  /// Puts another log in the place of this one: the same name, another identity, nothing in it.
  pub fn replace(&self) {
    let mut state = self.shared.state.lock();
    state.identity.id = Uuid::from_u128(state.identity.id.as_u128() + 1);
    for lane in state.lanes.values_mut() {
      lane.records.clear();
      lane.end = 0;
    }
  }

  /// Appends as if from outside every process: at once and without faults.
  pub fn put(&self, stream: Stream, partition: Partition, records: Vec<Record>) -> Vec<Position> {
    let mut state = self.shared.state.lock();
    let lane = state.lanes.entry((stream, partition)).or_default();
    records.into_iter().map(|record| lane.push(record)).collect()
  }

  /// Lets the oldest request that waits to be told ([`Fault::Held`]) land; false when there is none.
  pub fn land_held(&self) -> bool {
    let mut state = self.shared.state.lock();
    match state.flight.take_held() {
      Some(request) => {
        state.land(request);
        true
      }
      None => false,
    }
  }

  /// Everything that a partition holds now.
  pub fn records(&self, stream: Stream, partition: Partition) -> Vec<Arc<Stored>> {
    self.land_due();
    self.shared.state.lock().lanes.get(&(stream, partition)).map_or_else(Vec::new, |lane| lane.records.clone())
  }

  fn land_due(&self) {
    let mut state = self.shared.state.lock();
    for request in state.flight.take_due(Instant::now()) {
      state.land(request);
    }
  }

  /// What a process meets before each call: a dead one never goes on.
  async fn reach(&self) -> bool {
    let (dead, away) = {
      let state = self.shared.state.lock();
      (state.dead.contains(&self.process), state.away_for_all || state.away.contains(&self.process))
    };
    if dead {
      std::future::pending::<()>().await;
    }
    self.land_due();
    !away
  }

  fn has(&self, partition: Partition) -> bool {
    partition < self.shared.state.lock().identity.partitions
  }

  async fn reach_to_read(&self, partition: Partition) -> Result<(), LogError> {
    let delay = self.shared.state.lock().plan.read_delay();
    if !delay.is_zero() {
      tokio::time::sleep(delay).await;
    }
    if !self.reach().await {
      return Err(LogError::Away("the simulation says so".into()));
    }
    if self.has(partition) { Ok(()) } else { Err(LogError::Unusable(format!("there is no partition {partition}"))) }
  }
}

impl State {
  fn land(&mut self, request: Request) {
    let lane = self.lanes.entry((request.stream, request.partition)).or_default();
    lane.end += request.gap;
    let mut first = None;
    for _ in 0..request.times {
      let positions: Vec<Position> = request.records.iter().map(|record| lane.push(record.clone())).collect();
      first.get_or_insert(positions);
    }
    // Whoever asked may be gone, or was told before that the fate is unknown.
    if let (Some(reply), Some(positions)) = (request.reply, first) {
      drop(reply.send(positions));
    }
  }
}

#[async_trait]
impl EventLog for SimLog {
  async fn append(&self, stream: Stream, partition: Partition, records: Vec<Record>) -> Result<Vec<Position>, AppendError> {
    check_append(stream, partition, &records)?;
    let refused = |reason: &str| AppendError::Refused { stream: stream.name(), partition, reason: reason.to_owned() };
    let unknown = || AppendError::Unknown { stream: stream.name(), partition, source: None };
    if !self.reach().await {
      return Err(refused("the simulation says that the log is away"));
    }
    if !self.has(partition) {
      return Err(refused("there is no such partition"));
    }
    let answered = {
      let mut state = self.shared.state.lock();
      let fault = state.plan.next(stream, records.len());
      if fault == Fault::Refused {
        return Err(refused("the simulation says so"));
      }
      let delay = state.plan.append_delay();
      let request = Request::new(self.process, stream, partition, records, fault, When::At(Instant::now() + delay));
      let (at, reply) = state.flight.send(request, fault);
      (at, reply, state.plan.append_delay())
    };
    let (lands_at, reply, back) = answered;
    if lands_at > Instant::now() {
      tokio::time::sleep_until(lands_at).await;
    }
    self.reach().await;
    if !back.is_zero() {
      tokio::time::sleep(back).await;
      self.reach().await;
    }
    match reply {
      Some(mut reply) => reply.try_recv().map_err(|_| unknown()),
      None => Err(unknown()),
    }
  }

  async fn read(&self, stream: Stream, partition: Partition, from: Position, max: usize) -> Result<Arc<[Arc<Stored>]>, LogError> {
    self.reach_to_read(partition).await?;
    let state = self.shared.state.lock();
    let records = state.lanes.get(&(stream, partition)).map_or(&[][..], |lane| &lane.records);
    let first = records.partition_point(|stored| stored.position < from);
    Ok(records[first..].iter().take(max).cloned().collect())
  }

  async fn wait(&self, stream: Stream, partition: Partition, from: Position) {
    let until = Instant::now() + WAIT_MAX;
    let notify = Arc::clone(&self.shared.state.lock().lanes.entry((stream, partition)).or_default().landed);
    loop {
      self.reach().await;
      let mut landed = std::pin::pin!(notify.notified());
      landed.as_mut().enable();
      let next_due = {
        let state = self.shared.state.lock();
        if state.lanes.get(&(stream, partition)).is_some_and(|lane| lane.end > from) {
          return;
        }
        state.flight.next_due(stream, partition).unwrap_or(until)
      };
      if Instant::now() >= until {
        return;
      }
      tokio::select! {
        biased;
        () = landed => {}
        () = tokio::time::sleep_until(next_due.min(until)) => {}
      }
    }
  }

  async fn end(&self, stream: Stream, partition: Partition) -> Result<Position, LogError> {
    self.reach_to_read(partition).await?;
    Ok(self.shared.state.lock().lanes.get(&(stream, partition)).map_or(0, |lane| lane.end))
  }

  async fn identity(&self) -> Result<Identity, LogError> {
    self.reach_to_read(0).await?;
    Ok(self.shared.state.lock().identity.clone())
  }
}

#[cfg(test)]
mod tests;
