//! Time and ids of a simulated process: tokio's paused clock with the process's own error, and ids from its own seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use pa_domain::Timestamp;
use pa_store::clock::{Clock, Ids};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::Instant;
use uuid::Uuid;

/// How wrong a machine's wall clock is, in milliseconds; it may be set at any time.
pub(super) type Skew = Arc<AtomicI64>;

/// What the clocks show when a simulation begins.
const BEGIN: i64 = 1_767_225_600_000;

/// A wall clock that may be wrong, and may jump.
pub(super) struct SimClock {
  begin: Instant,
  skew: Skew,
}

impl SimClock {
  pub(super) fn new(begin: Instant, skew: Skew) -> Self {
    Self { begin, skew }
  }
}

impl Clock for SimClock {
  fn now(&self) -> Timestamp {
    let passed = i64::try_from(self.begin.elapsed().as_millis()).unwrap_or(i64::MAX);
    Timestamp(BEGIN + passed + self.skew.load(Ordering::Relaxed))
  }
}

/// Fresh ids that a seed repeats.
pub(super) struct SimIds(Mutex<StdRng>);

impl SimIds {
  pub(super) fn new(seed: u64) -> Self {
    Self(Mutex::new(StdRng::seed_from_u64(seed)))
  }
}

impl Ids for SimIds {
  fn new_id(&self) -> Uuid {
    uuid::Builder::from_random_bytes(self.0.lock().random()).into_uuid()
  }
}
