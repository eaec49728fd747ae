//! Prints what the product's own work costs for each record of about 1 KB, on one core and without any engine: composing and sealing an event, and opening, decoding
//! and fencing it. `cargo run --release -p pa-eventlog --features testing --example measure`

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pa_eventlog::fence::{Base, FenceState};
use pa_eventlog::meta::digest;
use pa_eventlog::reader::{Item, Reader};
use pa_eventlog::sim::{Plan, SimLog};
use pa_eventlog::testing::{Script, posted};
use pa_eventlog::{Record, Stored, Stream};

/// Records in one round; every round makes and opens new ones.
const RECORDS: usize = 50_000;
const ROUNDS: usize = 5;
/// Records in one decision.
const PARTS: usize = 5;

#[expect(clippy::print_stdout, reason = "a measurement is for people to read")]
fn main() {
  let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
  for sealed in [true, false] {
    let mut rounds: Vec<[f64; 3]> = (0..ROUNDS).map(|_| runtime.block_on(round(sealed))).collect();
    for (at, what) in ["compose", "read", "digest"].into_iter().enumerate() {
      rounds.sort_by(|left, right| left[at].total_cmp(&right[at]));
      println!("{{\"name\":\"{what}\",\"sealed\":{sealed},\"us_per_record\":{:.2}}}", rounds[ROUNDS / 2][at]);
    }
  }
}

/// Microseconds a record: composing, reading, and hashing a whole record.
async fn round(sealed: bool) -> [f64; 3] {
  let mut script = Script::new(sealed);
  let log = SimLog::new(1, sealed, Plan::none());
  log.put(Stream::Events, 0, vec![script.announcement(1, Base { epoch: 0, seq: 0 }, 0)]);
  let events = vec![posted(&"a text of some length ".repeat(40)); PARTS];
  let started = Instant::now();
  let mut records: Vec<Record> = Vec::with_capacity(RECORDS);
  for (input, seq) in (0..).zip((1..).step_by(PARTS)).take(RECORDS / PARTS) {
    records.extend(script.decision_of(1, (1, seq), input, &events).await.records);
  }
  let composed = started.elapsed();
  let stored: Vec<Stored> = records.iter().map(|record| Stored::new(0, record.clone())).collect();
  log.put(Stream::Events, 0, records);

  let mut reader = Reader::new(Arc::new(log), script.opener(), 0, FenceState::START);
  let started = Instant::now();
  let mut decisions = 0;
  while decisions < RECORDS / PARTS {
    let items = reader.poll().await.expect("a whole log");
    decisions += items.iter().filter(|item| matches!(item, Item::Decision(_))).count();
  }
  let read = started.elapsed();
  let started = Instant::now();
  for stored in &stored {
    black_box(digest(&stored.record));
  }
  [composed, read, started.elapsed()].map(|time: Duration| time.as_secs_f64() * 1e6 / f64::from(u32::try_from(RECORDS).expect("few")))
}
