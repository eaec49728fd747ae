//! Where time and fresh ids enter: nothing else in the product reads the clock or makes ids, so tests and the simulator own both.

use std::time::{SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use pa_domain::Timestamp;
use uuid::Uuid;

/// The wall clock.
pub trait Clock: Send + Sync {
  /// The present instant.
  fn now(&self) -> Timestamp;
}

/// The source of ids for inputs, asks and processes.
pub trait Ids: Send + Sync {
  /// A fresh id, of version 7.
  fn new_id(&self) -> Uuid;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
  #[expect(clippy::disallowed_methods, reason = "this is the one place where the clock is read")]
  fn now(&self) -> Timestamp {
    // A clock before 1970 reads as 0: `at` never goes back by itself, since the decider takes the later of this and the agent's last instant.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
  }
}

/// Ids of version 7 from the machine's clock and random source.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
  #[expect(clippy::disallowed_methods, reason = "this is the one place where ids are made")]
  fn new_id(&self) -> Uuid {
    Uuid::now_v7()
  }
}

/// Milliseconds since the machine started, counting the time it was suspended: permits run by this clock, so a machine that slept does not wake with one still
/// good.
pub fn boot_millis() -> i64 {
  let time = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("CLOCK_BOOTTIME exists on every Linux that runs Rust's std");
  time.tv_sec() * 1_000 + time.tv_nsec() / 1_000_000
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn ids_of_one_process_rise() {
    let ids: Vec<Uuid> = (0..1_000).map(|_| SystemIds.new_id()).collect();
    assert!(ids.is_sorted());
    assert!(ids.iter().all(|id| id.get_version_num() == 7));
  }

  #[test]
  fn the_boot_clock_moves_forward() {
    let before = boot_millis();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let passed = boot_millis() - before;
    assert!((20..5_000).contains(&passed), "{passed} ms");
  }
}
