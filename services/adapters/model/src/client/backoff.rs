//! How long to wait before a request is tried again.

use std::time::Duration;

use rand::Rng;

use crate::RetryLimits;

/// The wait after attempt `attempt` (from 1). A wait that the server asked for is kept and a little spread, so that those who were
/// turned away together don't come back together; else it is any time up to a limit that doubles.
pub(super) fn wait(limits: RetryLimits, attempt: u32, asked: Option<Duration>, rng: &mut impl Rng) -> Duration {
  if let Some(asked) = asked {
    return asked + jitter(limits.first_wait_ms.min(limits.wait_max_ms), rng);
  }
  let doubled = limits.first_wait_ms.saturating_mul(1 << attempt.saturating_sub(1).min(32));
  jitter(doubled.min(limits.wait_max_ms), rng)
}

fn jitter(most_ms: u64, rng: &mut impl Rng) -> Duration {
  Duration::from_millis(rng.random_range(0..=most_ms))
}

#[cfg(test)]
mod tests {
  use super::*;
  use rand::SeedableRng as _;
  use rand::rngs::StdRng;

  #[test]
  fn the_wait_is_spread_below_a_doubling_limit() {
    let limits = RetryLimits { first_wait_ms: 100, wait_max_ms: 1_000, ..RetryLimits::default() };
    let mut rng = StdRng::seed_from_u64(7);
    for (attempt, most) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1_000), (60, 1_000)] {
      let waits: Vec<u128> = (0..200).map(|_| wait(limits, attempt, None, &mut rng).as_millis()).collect();
      assert!(waits.iter().all(|&wait| wait <= most), "attempt {attempt}");
      assert!(waits.iter().any(|&wait| wait > most / 2), "attempt {attempt}");
      assert!(waits.iter().any(|&wait| wait < most / 2), "attempt {attempt}");
    }
  }

  #[test]
  fn a_wait_that_the_server_asked_for_is_never_shortened() {
    let asked = Duration::from_secs(3);
    let mut rng = StdRng::seed_from_u64(7);
    let waits: Vec<Duration> = (0..50).map(|_| wait(RetryLimits::default(), 1, Some(asked), &mut rng)).collect();
    assert!(waits.iter().all(|&wait| wait >= asked && wait <= asked + Duration::from_millis(500)));
    assert!(waits.iter().any(|&wait| wait != waits[0]));
  }
}
