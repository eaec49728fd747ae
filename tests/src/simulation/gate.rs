//! Where a simulated process meets its machine: at every call of log or database it may be found stopped or dead.
//!
//! A dead process's calls never return, so nothing of it goes on; a stopped one (SIGSTOP, a machine that sleeps) goes on when it is woken, with all of its timers run
//! out. What it had sent before lands all the same, as the log's plan says.

use std::sync::Arc;

use async_trait::async_trait;
use pa_eventlog::sim::{Fate, SimLog};
use pa_eventlog::{AppendError, EventLog, Identity, LogError, Partition, Position, Record, Stored, Stream};
use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Uuid;

use super::traps::{Moment, Traps};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
  Running,
  Stopped,
  Dead,
}

/// One process's gate.
#[derive(Clone)]
pub(super) struct Gate {
  standing: Arc<watch::Sender<Standing>>,
}

impl Gate {
  pub(super) fn open() -> Self {
    Self { standing: Arc::new(watch::Sender::new(Standing::Running)) }
  }

  /// Returns when the process runs; never, if it is dead.
  pub(super) async fn pass(&self) {
    let mut standing = self.standing.subscribe();
    loop {
      let now = *standing.borrow_and_update();
      match now {
        Standing::Running => return,
        Standing::Dead => std::future::pending().await,
        // The sender lives in `self`.
        Standing::Stopped => drop(standing.changed().await),
      }
    }
  }

  pub(super) fn stop(&self) {
    self.standing.send_if_modified(|standing| *standing == Standing::Running && std::mem::replace(standing, Standing::Stopped) == Standing::Running);
  }

  pub(super) fn wake(&self) {
    self.standing.send_if_modified(|standing| *standing == Standing::Stopped && std::mem::replace(standing, Standing::Running) == Standing::Stopped);
  }

  pub(super) fn kill(&self) {
    self.standing.send_replace(Standing::Dead);
  }

  pub(super) fn is_dead(&self) -> bool {
    *self.standing.borrow() == Standing::Dead
  }

  pub(super) fn is_stopped(&self) -> bool {
    *self.standing.borrow() == Standing::Stopped
  }
}

/// The log as one process reaches it.
#[derive(Clone)]
pub(super) struct GatedLog {
  pub(super) log: SimLog,
  gate: Gate,
  traps: Traps,
  /// Inputs on which a decider dies before its decision is sent.
  deadly: Arc<Mutex<Vec<Uuid>>>,
}

impl GatedLog {
  pub(super) fn new(log: SimLog, gate: Gate, traps: Traps, deadly: Arc<Mutex<Vec<Uuid>>>) -> Self {
    Self { log, gate, traps, deadly }
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
    answer
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
