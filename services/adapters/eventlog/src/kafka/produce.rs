//! Appending: one idempotent producer for the process, and what became of each record.
//!
//! Invariants
//! - The library repeats only what idempotence covers. Nothing is sent a second time by us: what timed out may stand in the log, now or later, and is said to be unknown.
//! - A refusal is certain: no record of the append was handed over, or the broker itself refused every one for its size.
//! - After a fatal error, which leaves the order of the producer's records unprovable, a new producer takes over; what the old one still held is unknown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext, PurgeConfig};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::config::UNACKNOWLEDGED_KIB_MAX;
use super::context::say;
use super::message;
use super::ring::Part;
use crate::port::AppendError;
use crate::record::{Position, Record};

/// How long the thread that hears of deliveries sleeps at the most; a delivery wakes it.
const LISTEN_FOR: Duration = Duration::from_millis(100);

/// The producer of a process.
pub(super) struct Producer {
  settings: ClientConfig,
  live: RwLock<Arc<Live>>,
  budget: Arc<Semaphore>,
}

/// One producer of the library with the thread that hears of its deliveries.
struct Live {
  producer: Arc<BaseProducer<Deliveries>>,
  state: Arc<State>,
}

#[derive(Default)]
struct State {
  /// The library gave this producer up.
  fatal: AtomicBool,
  closing: AtomicBool,
}

/// Hears of deliveries.
struct Deliveries(Arc<State>);

/// What the caller of an append is told.
type Answer = Result<Vec<Position>, AppendError>;

/// One append on its way.
struct Batch {
  part: Arc<Part>,
  waiting: AtomicUsize,
  fates: Mutex<Vec<Fate>>,
  reply: Mutex<Option<oneshot::Sender<Answer>>>,
  _budget: OwnedSemaphorePermit,
}

/// What became of one record.
#[derive(Clone, Debug)]
enum Fate {
  /// Nothing is known yet.
  Waiting,
  At(Position),
  /// Certainly not in the log.
  Refused(KafkaError),
  /// In the log or not.
  Unknown(Option<KafkaError>),
}

/// Which record of which append a delivery is about.
struct Ticket {
  batch: Arc<Batch>,
  index: usize,
}

impl ClientContext for Deliveries {
  fn log(&self, level: RDKafkaLogLevel, fac: &str, log_message: &str) {
    say(level, fac, log_message);
  }

  fn error(&self, error: KafkaError, reason: &str) {
    if error.rdkafka_error_code() == Some(RDKafkaErrorCode::Fatal) {
      tracing::error!(error = &error as &dyn std::error::Error, reason, "the kafka producer ended; a new one takes over");
      self.0.fatal.store(true, Ordering::Release);
    } else {
      tracing::debug!(error = &error as &dyn std::error::Error, reason, "kafka producer");
    }
  }
}

impl ProducerContext for Deliveries {
  type DeliveryOpaque = Box<Ticket>;

  fn delivery(&self, result: &DeliveryResult<'_>, ticket: Box<Ticket>) {
    let fate = match result {
      Ok(message) if message.offset() >= 0 => Fate::At(message.offset()),
      // The broker had it already and does not say where.
      Ok(_) => Fate::Unknown(None),
      Err((error, _)) if error.rdkafka_error_code() == Some(RDKafkaErrorCode::MessageSizeTooLarge) => Fate::Refused(error.clone()),
      Err((error, _)) => Fate::Unknown(Some(error.clone())),
    };
    ticket.batch.settle(ticket.index, fate);
  }
}

impl Producer {
  /// Starts the producer; the broker need not be there yet.
  pub(super) fn start(settings: ClientConfig) -> Result<Self, KafkaError> {
    let live = RwLock::new(Arc::new(Live::start(&settings)?));
    Ok(Self { settings, live, budget: Arc::new(Semaphore::new(UNACKNOWLEDGED_KIB_MAX as usize)) })
  }

  /// Appends the records together; returns when the fate of each is known, or known to be unknown.
  pub(super) async fn append(&self, part: &Arc<Part>, records: Vec<Record>) -> Answer {
    // The semaphore is fair, and free of waiting while there is room: calls keep their order.
    let cost = records.iter().map(cost_kib).sum::<u32>().min(UNACKNOWLEDGED_KIB_MAX);
    let budget = Arc::clone(&self.budget).acquire_many_owned(cost).await.map_err(|_| closed(part))?;
    let live = self.live().ok_or_else(|| closed(part))?;
    let (reply, answer) = oneshot::channel();
    let batch = Arc::new(Batch {
      part: Arc::clone(part),
      waiting: AtomicUsize::new(records.len()),
      fates: Mutex::new(vec![Fate::Waiting; records.len()]),
      reply: Mutex::new(Some(reply)),
      _budget: budget,
    });
    live.hand_over(&batch, &records);
    drop(batch);
    let unknown = || AppendError::Unknown { stream: part.stream.name(), partition: part.partition, source: None };
    answer.await.map_err(|_| unknown())?
  }

  /// The producer that works; a new one if the last has ended.
  fn live(&self) -> Option<Arc<Live>> {
    let live = Arc::clone(&self.live.read());
    if !live.state.fatal.load(Ordering::Acquire) {
      return Some(live);
    }
    let mut current = self.live.write();
    if current.state.fatal.load(Ordering::Acquire) {
      match Live::start(&self.settings) {
        Ok(new) => *current = Arc::new(new),
        Err(error) => {
          tracing::error!(error = &error as &dyn std::error::Error, "no new kafka producer could be started");
          return None;
        }
      }
    }
    Some(Arc::clone(&current))
  }
}

/// Every record costs at least one, so that the number of records is bounded, too.
fn cost_kib(record: &Record) -> u32 {
  u32::try_from(record.size_bytes() / 1024).unwrap_or(UNACKNOWLEDGED_KIB_MAX).saturating_add(1)
}

fn closed(part: &Part) -> AppendError {
  AppendError::Refused { stream: part.stream.name(), partition: part.partition, reason: "the log is closed".to_owned() }
}

impl Live {
  fn start(settings: &ClientConfig) -> Result<Self, KafkaError> {
    let state = Arc::new(State::default());
    let producer: Arc<BaseProducer<Deliveries>> = Arc::new(settings.create_with_context(Deliveries(Arc::clone(&state)))?);
    let (listening, heard) = (Arc::clone(&producer), Arc::clone(&state));
    let spawned = std::thread::Builder::new().name("pa-kafka-append".to_owned()).spawn(move || {
      while !heard.closing.load(Ordering::Acquire) {
        listening.poll(LISTEN_FOR);
      }
      // What it still holds is answered as unknown.
      listening.purge(PurgeConfig::default().queue().inflight());
      while listening.in_flight_count() > 0 {
        listening.poll(LISTEN_FOR);
      }
    });
    spawned.map_err(|error| KafkaError::ClientCreation(error.to_string()))?;
    Ok(Self { producer, state })
  }

  /// Hands the records to the library, together and in order.
  fn hand_over(&self, batch: &Arc<Batch>, records: &[Record]) {
    let part = &batch.part;
    let _together = part.handing_over.lock();
    for (index, record) in records.iter().enumerate() {
      let (headers, agent) = message::headers(record);
      let key = agent.map(|agent| agent.to_string());
      let mut message = BaseRecord::<str, [u8], Box<Ticket>>::with_opaque_to(&part.topic, Box::new(Ticket { batch: Arc::clone(batch), index }))
        .partition(i32::from(part.partition))
        .payload(&record.value)
        .headers(headers);
      message.key = key.as_deref();
      if let Err((error, _)) = self.producer.send(message) {
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::Fatal) {
          self.state.fatal.store(true, Ordering::Release);
        }
        // It was not taken, and what follows it must not overtake it.
        (index..records.len()).for_each(|index| batch.settle(index, Fate::Refused(error.clone())));
        return;
      }
    }
  }
}

impl Drop for Live {
  fn drop(&mut self) {
    self.state.closing.store(true, Ordering::Release);
  }
}

impl Batch {
  fn settle(&self, index: usize, fate: Fate) {
    self.fates.lock()[index] = fate;
    if self.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
      let answer = self.judge();
      let caller = self.reply.lock().take();
      if caller.is_some_and(|caller| caller.send(answer).is_err()) {
        tracing::debug!("the caller of an append went away");
      }
    }
  }

  /// All at their places, none in the log, or unknown.
  fn judge(&self) -> Answer {
    let fates = self.fates.lock();
    let (stream, partition) = (self.part.stream.name(), self.part.partition);
    let positions: Vec<Position> = fates.iter().filter_map(|fate| if let Fate::At(position) = fate { Some(*position) } else { None }).collect();
    if let Some(last) = positions.iter().max() {
      self.part.reaches(last + 1);
    }
    if positions.len() == fates.len() {
      metrics::counter!("pa_log_records_total", "stream" => stream).increment(positions.len() as u64);
      return Ok(positions);
    }
    metrics::counter!("pa_log_append_failures_total", "stream" => stream).increment(1);
    let refused: Vec<&KafkaError> = fates.iter().filter_map(|fate| if let Fate::Refused(error) = fate { Some(error) } else { None }).collect();
    if let Some(error) = refused.first().filter(|_| refused.len() == fates.len()) {
      tracing::warn!(stream, log.partition = partition, error = *error as &dyn std::error::Error, "append refused");
      return Err(AppendError::Refused { stream, partition, reason: error.to_string() });
    }
    let source = fates.iter().find_map(|fate| match fate {
      Fate::Refused(error) | Fate::Unknown(Some(error)) => Some(error.clone()),
      Fate::Waiting | Fate::At(_) | Fate::Unknown(None) => None,
    });
    tracing::warn!(stream, log.partition = partition, error = ?source, "the fate of an append is unknown");
    Err(AppendError::Unknown { stream, partition, source: source.map(|error| Box::new(error) as _) })
  }
}
