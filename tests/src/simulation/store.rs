//! The decider's rows in memory, with the meaning of the Postgres statements: each call is one transaction, time is the database's own, and what was committed
//! survives every process.
//!
//! A call may meet the database away, may commit and lose its answer, and the whole database may be set back to an earlier copy, as a restored backup does.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pa_domain::AgentId;
use pa_eventlog::guards::{self, Guard};
use pa_pipeline::decider::store::{DeciderStore, Note, Take, Term, Write};
use pa_store::Error;
use pa_store::checkpoint::{InputKey, Loaded, Mark, Outcome, ThingState};
use pa_store::lease::{Holder, LEASE};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::gate::Gate;
use super::ports::WorkRows;
use super::traps::{Moment, Traps};

/// A partition's lease row.
#[derive(Clone, Debug, Default)]
pub(super) struct LeaseRow {
  pub(super) epoch: i64,
  pub(super) holder: Option<Holder>,
  pub(super) expires_at: Option<Instant>,
  unclean: bool,
  note: Option<(Uuid, i32)>,
  note_process: Option<Uuid>,
  note_deaths: i32,
  note_dead: Option<Uuid>,
}

impl LeaseRow {
  fn runs(&self) -> bool {
    self.expires_at.is_some_and(|at| at > Instant::now())
  }

  fn is_of(&self, process: Uuid) -> bool {
    self.holder.is_some_and(|holder| holder.process == process)
  }

  fn extend(&mut self) {
    self.expires_at = Some(Instant::now() + LEASE);
  }

  fn forget_note(&mut self) {
    self.note = None;
    self.note_process = None;
    self.note_deaths = 0;
    self.note_dead = None;
  }
}

type Key = (i16, AgentId, String, [u8; 32]);

/// All rows.
#[derive(Clone, Default)]
pub(super) struct Rows {
  pub(super) leases: HashMap<i16, LeaseRow>,
  pub(super) marks: HashMap<i16, Mark>,
  pub(super) things: BTreeMap<(i16, AgentId, Uuid), Vec<u8>>,
  pub(super) keys: BTreeMap<Key, InputKey>,
  pub(super) causes: BTreeMap<(i16, i64), Uuid>,
  pub(super) work: WorkRows,
}

/// The database of a simulation.
#[derive(Clone, Default)]
pub(super) struct SimDatabase(pub(super) Arc<Mutex<Rows>>);

impl SimDatabase {
  /// A backup of everything.
  pub(super) fn copy(&self) -> Rows {
    self.0.lock().clone()
  }

  /// Restores a backup.
  pub(super) fn restore(&self, rows: Rows) {
    *self.0.lock() = rows;
  }

  /// Lets a partition's lease run out at once, as a database clock that jumps does.
  pub(super) fn expire(&self, part: i16) {
    if let Some(row) = self.0.lock().leases.get_mut(&part) {
      row.expires_at = None;
    }
  }

  pub(super) fn lease(&self, part: i16) -> LeaseRow {
    self.0.lock().leases.get(&part).cloned().unwrap_or_default()
  }

  /// How many processes died under the note that stands.
  pub(super) fn deaths(&self, part: i16) -> Option<(Uuid, i32)> {
    let row = self.lease(part);
    row.note.map(|(input, _)| (input, row.note_deaths))
  }
}

/// What a process's calls meet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trouble {
  /// Nothing gets through.
  pub(super) away: bool,
  /// In a thousand writes: so many commit and lose their answer.
  pub(super) lost_answers: u32,
  /// A call takes up to this long, each way.
  pub(super) delay: Duration,
}

/// The database as one process reaches it.
#[derive(Clone)]
pub(super) struct SimStore {
  database: SimDatabase,
  holder: Holder,
  gate: Gate,
  traps: Traps,
  trouble: Arc<Mutex<Trouble>>,
  random: Arc<Mutex<StdRng>>,
}

impl SimStore {
  pub(super) fn new(database: SimDatabase, holder: Holder, gate: Gate, traps: Traps, seed: u64) -> Self {
    Self { database, holder, gate, traps, trouble: Arc::default(), random: Arc::new(Mutex::new(StdRng::seed_from_u64(seed))) }
  }

  pub(super) fn set_trouble(&self, change: impl FnOnce(&mut Trouble)) {
    change(&mut self.trouble.lock());
  }

  pub(super) fn holder(&self) -> Holder {
    self.holder
  }

  /// Returns when the process runs.
  pub(super) async fn reach(&self) {
    self.gate.pass().await;
  }

  async fn delay(&self) {
    let most = u64::try_from(self.trouble.lock().delay.as_millis()).unwrap_or(0);
    let millis = if most == 0 { 0 } else { self.random.lock().random_range(0..=most) };
    if millis > 0 {
      sleep(Duration::from_millis(millis)).await;
    }
    self.gate.pass().await;
  }

  /// A read: one transaction that changes nothing.
  pub(super) async fn read<T>(&self, doing: &'static str, read: impl FnOnce(&Rows) -> T + Send) -> Result<T, Error> {
    self.gate.pass().await;
    self.delay().await;
    if self.trouble.lock().away {
      return Err(pa_store::error::reading(doing)(sqlx::Error::PoolTimedOut));
    }
    let answer = read(&self.database.0.lock());
    self.gate.pass().await;
    Ok(answer)
  }

  /// A write: one transaction; its answer may be lost after the commit.
  pub(super) async fn write_rows<T>(&self, doing: &'static str, write: impl FnOnce(&mut Rows) -> T + Send) -> Result<T, Error> {
    self.gate.pass().await;
    self.delay().await;
    self.traps.spring(Moment::Before, doing);
    self.gate.pass().await;
    let trouble = *self.trouble.lock();
    if trouble.away {
      return Err(pa_store::error::writing(doing)(sqlx::Error::PoolTimedOut));
    }
    let answer = write(&mut self.database.0.lock());
    self.traps.spring(Moment::After, doing);
    self.delay().await;
    if self.random.lock().random_range(0..1_000) < trouble.lost_answers {
      return Err(pa_store::error::writing(doing)(sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into())));
    }
    Ok(answer)
  }
}

#[async_trait]
impl DeciderStore for SimStore {
  async fn take(&self, part: i16, starting: bool) -> Result<Take, Error> {
    let holder = self.holder;
    self
      .write_rows("take a partition's lease", move |rows| {
        let row = rows.leases.entry(part).or_default();
        if let Some(by) = row.holder
          && by.process != holder.process
          && row.runs()
          && !(starting && by.node == holder.node)
        {
          let left = row.expires_at.map_or(0, |at| i64::try_from(at.duration_since(Instant::now()).as_millis()).unwrap_or(i64::MAX));
          return Take::Held { by, expires_in_ms: left };
        }
        let before = row.holder.map(|holder| holder.process);
        let clean = !row.unclean;
        if row.unclean && row.note.is_some() && before != Some(holder.process) && before.is_some() && row.note_process == before {
          row.note_deaths += 1;
          row.note_dead = before;
        }
        row.epoch += 1;
        row.holder = Some(holder);
        row.unclean = true;
        row.extend();
        let note = row.note.map(|(input, quarantined_before)| Note { input, quarantined_before, deaths: row.note_deaths });
        Take::Taken(Term { epoch: row.epoch, clean, note })
      })
      .await
  }

  async fn new_term(&self, part: i16, above: i64) -> Result<Option<i64>, Error> {
    let process = self.holder.process;
    self
      .write_rows("open a new term", move |rows| {
        let row = rows.leases.get_mut(&part).filter(|row| row.is_of(process))?;
        row.epoch = row.epoch.max(above) + 1;
        row.extend();
        Some(row.epoch)
      })
      .await
  }

  async fn renew(&self, part: i16) -> Result<bool, Error> {
    let process = self.holder.process;
    self
      .write_rows("renew partition leases", move |rows| match rows.leases.get_mut(&part).filter(|row| row.is_of(process)) {
        Some(row) => {
          row.extend();
          true
        }
        None => false,
      })
      .await
  }

  async fn give_back(&self, part: i16, epoch: i64) -> Result<bool, Error> {
    let process = self.holder.process;
    self
      .write_rows("give a partition back", move |rows| match rows.leases.get_mut(&part).filter(|row| row.is_of(process) && row.epoch == epoch) {
        Some(row) => {
          row.forget_note();
          row.holder = None;
          row.unclean = false;
          row.expires_at = None;
          true
        }
        None => false,
      })
      .await
  }

  async fn lost_alive(&self, part: i16) -> Result<(), Error> {
    let process = self.holder.process;
    self
      .write_rows("take back a counted death", move |rows| {
        if let Some(row) = rows.leases.get_mut(&part).filter(|row| row.note_dead == Some(process)) {
          row.note_deaths = (row.note_deaths - 1).max(0);
          row.note_dead = None;
        }
      })
      .await
  }

  async fn note(&self, part: i16, epoch: i64, input: Uuid, quarantined_before: i32) -> Result<bool, Error> {
    let process = self.holder.process;
    self
      .write_rows("note an input", move |rows| match rows.leases.get_mut(&part).filter(|row| row.is_of(process) && row.epoch == epoch) {
        Some(row) => {
          if row.note != Some((input, quarantined_before)) {
            row.forget_note();
          }
          row.note = Some((input, quarantined_before));
          row.note_process = Some(process);
          true
        }
        None => false,
      })
      .await
  }

  async fn clear_note(&self, part: i16, epoch: i64) -> Result<bool, Error> {
    let process = self.holder.process;
    self
      .write_rows("clear a note", move |rows| match rows.leases.get_mut(&part).filter(|row| row.is_of(process) && row.epoch == epoch) {
        Some(row) => {
          row.forget_note();
          true
        }
        None => false,
      })
      .await
  }

  async fn mark(&self, part: i16) -> Result<Option<Mark>, Error> {
    self.read("load a checkpoint", move |rows| rows.marks.get(&part).copied()).await
  }

  async fn things(&self, part: i16, wanted: &[(AgentId, Uuid)]) -> Result<Loaded, Error> {
    let wanted = wanted.to_vec();
    self
      .read("load things", move |rows| {
        let next_position = rows.marks.get(&part).map(|mark| mark.next_position);
        let state = |&(agent, thing): &(AgentId, Uuid)| rows.things.get(&(part, agent, thing)).map(|state| ThingState { agent, thing, state: state.clone() });
        Loaded { next_position, things: wanted.iter().filter(|_| next_position.is_some()).filter_map(state).collect() }
      })
      .await
  }

  async fn keys(&self, part: i16, wanted: &[(AgentId, &str, [u8; 32])]) -> Result<Vec<InputKey>, Error> {
    let wanted: Vec<Key> = wanted.iter().map(|(agent, producer, key)| (part, *agent, (*producer).to_owned(), *key)).collect();
    self.read("look up input keys", move |rows| wanted.iter().filter_map(|key| rows.keys.get(key).cloned()).collect()).await
  }

  async fn keys_of(&self, part: i16, agents: &[AgentId], max: i64) -> Result<Vec<(AgentId, [u8; 8])>, Error> {
    let (agents, max) = (agents.to_vec(), usize::try_from(max).unwrap_or(usize::MAX));
    self
      .read("read an agent's input keys", move |rows| {
        let of = |agent: AgentId| rows.keys.keys().filter(move |key| (key.0, key.1) == (part, agent)).take(max);
        agents.iter().flat_map(|agent| of(*agent)).filter_map(|key| Some((key.1, *key.3.first_chunk()?))).collect()
      })
      .await
  }

  async fn causes_below(&self, part: i16, position: i64, limit: i64) -> Result<Vec<(i64, Uuid)>, Error> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    self
      .read("read the causes of decided inputs", move |rows| {
        rows.causes.range((part, i64::MIN)..(part, position)).rev().take(limit).map(|((_, position), cause)| (*position, *cause)).collect()
      })
      .await
  }

  async fn write(&self, write: Write) -> Result<Outcome, Error> {
    self.write_rows("write a checkpoint", move |rows| checkpoint(rows, write)).await
  }

  async fn drop_checkpoint(&self, part: i16) -> Result<(), Error> {
    self
      .write_rows("drop a checkpoint", move |rows| {
        rows.marks.remove(&part);
        rows.things.retain(|(of, _, _), _| *of != part);
        rows.keys.retain(|(of, _, _, _), _| *of != part);
        rows.causes.retain(|(of, _), _| *of != part);
      })
      .await
  }

  async fn forget_agent(&self, part: i16, agent: AgentId) -> Result<(), Error> {
    self
      .write_rows("forget an erased agent's states", move |rows| {
        rows.things.retain(|(of, owner, thing), _| (*of, *owner) != (part, agent) || thing.is_nil());
        rows.keys.retain(|(of, owner, _, _), _| (*of, *owner) != (part, agent));
      })
      .await
  }

  fn process(&self) -> Uuid {
    self.holder.process
  }

  fn fold_version(&self) -> i32 {
    pa_domain::state::FOLD_VERSION
  }
}

/// The guarded transaction that writes a checkpoint.
fn checkpoint(rows: &mut Rows, write: Write) -> Outcome {
  let part = write.scope.part;
  if guards::on(Guard::CheckpointGuard) {
    let held = rows.leases.get(&part).is_some_and(|row| row.is_of(write.process) && row.epoch == write.lease_epoch);
    if !held {
      return Outcome::LeaseLost;
    }
    if rows.marks.get(&part).map(|mark| mark.next_position) != write.expected {
      return Outcome::Moved;
    }
  }
  rows.marks.insert(part, write.mark);
  for ThingState { agent, thing, state } in write.things {
    if state.is_empty() {
      rows.things.remove(&(part, agent, thing));
    } else {
      rows.things.insert((part, agent, thing), state);
    }
  }
  rows.keys.retain(|(of, _, _, _), key| *of != part || key.at_ms >= write.keys_expire_before_ms);
  for key in write.keys {
    rows.keys.insert((part, key.agent, key.producer.clone(), key.key), key);
  }
  rows.causes.extend(write.causes.into_iter().map(|(position, cause)| ((part, position), cause)));
  Outcome::Written
}
