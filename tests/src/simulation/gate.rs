//! Where a simulated process meets its machine: at every call of log or database it may be found stopped or dead.
//!
//! A dead process's calls never return, so nothing of it goes on; a stopped one (SIGSTOP, a machine that sleeps) goes on when it is woken, with all of its timers run
//! out. What it had sent before lands all the same, as the log's plan says.

use std::sync::Arc;

use async_trait::async_trait;
use pa_domain::AgentId;
use pa_eventlog::sim::{Fate, SimLog};
use pa_eventlog::{AppendError, EventLog, Identity, LogError, Partition, Position, Record, Stored, Stream};
use parking_lot::Mutex;
use tokio::sync::Notify;
use uuid::Uuid;

use super::traps::{Moment, Traps};
use super::world::Shared;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
  Running,
  Stopped,
  Dead,
}

/// One process's gate.
#[derive(Clone)]
pub(super) struct Gate {
  standing: Arc<Mutex<Standing>>,
  /// Told of every change, in the order of waiting, so that a seed repeats.
  changed: Arc<Notify>,
}

impl Gate {
  pub(super) fn open() -> Self {
    Self { standing: Arc::new(Mutex::new(Standing::Running)), changed: Arc::default() }
  }

  /// Returns when the process runs; never, if it is dead.
  pub(super) async fn pass(&self) {
    loop {
      let changed = self.changed.notified();
      let now = *self.standing.lock();
      match now {
        Standing::Running => return,
        Standing::Dead => std::future::pending().await,
        Standing::Stopped => changed.await,
      }
    }
  }

  pub(super) fn stop(&self) {
    self.turn(Standing::Running, Standing::Stopped);
  }

  pub(super) fn wake(&self) {
    self.turn(Standing::Stopped, Standing::Running);
  }

  pub(super) fn kill(&self) {
    *self.standing.lock() = Standing::Dead;
    self.changed.notify_waiters();
  }

  fn turn(&self, from: Standing, to: Standing) {
    let mut standing = self.standing.lock();
    if *standing == from {
      *standing = to;
      self.changed.notify_waiters();
    }
  }

  pub(super) fn is_dead(&self) -> bool {
    *self.standing.lock() == Standing::Dead
  }

  pub(super) fn is_stopped(&self) -> bool {
    *self.standing.lock() == Standing::Stopped
  }
}

/// The log as one process reaches it.
#[derive(Clone)]
pub(super) struct GatedLog {
  pub(super) log: SimLog,
  gate: Gate,
  traps: Traps,
  /// Agents whose keys are gone.
  erased: Arc<Mutex<Vec<AgentId>>>,
  /// Inputs on which a decider dies before its decision is sent.
  deadly: Arc<Mutex<Vec<Uuid>>>,
}

impl GatedLog {
  pub(super) fn new(shared: &Shared, log: SimLog, gate: Gate, traps: Traps) -> Self {
    Self { log, gate, traps, erased: Arc::clone(&shared.erased), deadly: Arc::clone(&shared.deadly) }
  }

  /// The log as whoever judges reads it.
  pub(super) fn of_the_judge(shared: &Shared) -> Self {
    Self::new(shared, shared.log.clone(), Gate::open(), Traps::default())
  }

  /// Records are opened once for all processes of a simulation; what was opened before its agent was erased is closed again.
  fn closed(&self, records: Arc<[Arc<Stored>]>) -> Arc<[Arc<Stored>]> {
    let erased = self.erased.lock();
    if erased.is_empty() {
      return records;
    }
    let is_erased = |stored: &Stored| stored.meta().is_ok_and(|meta| erased.contains(&meta.core.agent));
    records.iter().map(|stored| if is_erased(stored) { Arc::new(Stored::new(stored.position, stored.record.clone())) } else { Arc::clone(stored) }).collect()
  }

  fn dies_on(&self, stream: Stream, records: &[Record]) -> bool {
    let deadly = self.deadly.lock();
    let decides = |record: &Record| pa_eventlog::meta::decode(record.id, &record.meta).is_ok_and(|meta| deadly.contains(&meta.core.cause));
    stream == Stream::Events && !deadly.is_empty() && records.iter().any(|record| decides(record) && !record.type_name.starts_with("pa.log.InputQuarantined"))
  }
}

#[async_trait]
impl EventLog for GatedLog {
  async fn append(&self, stream: Stream, partition: Partition, records: Vec<Record>) -> Result<Vec<Position>, AppendError> {
    self.gate.pass().await;
    if self.dies_on(stream, &records) {
      self.log.crash(Fate::Land);
      self.gate.kill();
      self.gate.pass().await;
    }
    let name = records.first().map_or_else(String::new, |record| format!("{}/{}", stream.name(), record.type_name));
    self.traps.spring(Moment::Before, &name);
    self.gate.pass().await;
    let answer = self.log.append(stream, partition, records).await;
    self.traps.spring(Moment::After, &name);
    self.gate.pass().await;
    answer
  }

  async fn read(&self, stream: Stream, partition: Partition, from: Position, max: usize) -> Result<Arc<[Arc<Stored>]>, LogError> {
    self.gate.pass().await;
    let answer = self.log.read(stream, partition, from, max).await;
    self.gate.pass().await;
    answer.map(|records| self.closed(records))
  }

  async fn wait(&self, stream: Stream, partition: Partition, from: Position) {
    self.gate.pass().await;
    self.log.wait(stream, partition, from).await;
    self.gate.pass().await;
  }

  async fn end(&self, stream: Stream, partition: Partition) -> Result<Position, LogError> {
    self.gate.pass().await;
    let answer = self.log.end(stream, partition).await;
    self.gate.pass().await;
    answer
  }

  async fn identity(&self) -> Result<Identity, LogError> {
    self.gate.pass().await;
    self.log.identity().await
  }
}
