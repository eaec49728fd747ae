//! Slows down whoever guesses credentials. Bounded memory: some thousand addresses, the oldest is forgotten first.
//!
//! A credential that was right lately is looked up however many wrong ones come from the same address: guessing behind a shared address locks nobody out.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use pa_domain::Timestamp;
use parking_lot::Mutex;

use crate::limits::{RIGHT_HASHES_MAX, WRONG_ADDRESSES_MAX, WRONG_TRIES_MAX, WRONG_TRY_EVERY};

/// Counts wrong credentials by address.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<State>);

#[derive(Debug, Default)]
struct State {
  wrong: HashMap<IpAddr, Bucket>,
  order: VecDeque<IpAddr>,
  right: HashSet<[u8; 32]>,
  right_order: VecDeque<[u8; 32]>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
  left: u32,
  filled: Timestamp,
}

impl Bucket {
  fn refill(&mut self, now: Timestamp) {
    let step = i64::try_from(WRONG_TRY_EVERY.as_millis()).unwrap_or(i64::MAX);
    let gained = (now.0 - self.filled.0).max(0) / step;
    self.left = self.left.saturating_add(u32::try_from(gained).unwrap_or(u32::MAX)).min(WRONG_TRIES_MAX);
    self.filled = Timestamp(self.filled.0 + gained * step);
  }
}

impl Throttle {
  /// How long the address must wait before this credential is looked at; `None`: not at all.
  pub(crate) fn wait(&self, address: IpAddr, hash: &[u8; 32], now: Timestamp) -> Option<Duration> {
    let mut state = self.0.lock();
    if state.right.contains(hash) {
      return None;
    }
    let bucket = state.wrong.get_mut(&of_network(address))?;
    bucket.refill(now);
    (bucket.left == 0).then_some(WRONG_TRY_EVERY)
  }

  /// The address sent a wrong credential.
  pub(crate) fn wrong(&self, address: IpAddr, now: Timestamp) {
    let address = of_network(address);
    let mut state = self.0.lock();
    if let Some(bucket) = state.wrong.get_mut(&address) {
      bucket.refill(now);
      bucket.left = bucket.left.saturating_sub(1);
      return;
    }
    if state.order.len() >= WRONG_ADDRESSES_MAX
      && let Some(oldest) = state.order.pop_front()
    {
      state.wrong.remove(&oldest);
    }
    state.order.push_back(address);
    state.wrong.insert(address, Bucket { left: WRONG_TRIES_MAX - 1, filled: now });
  }

  /// The credential was right.
  pub(crate) fn right(&self, hash: [u8; 32]) {
    let mut state = self.0.lock();
    if !state.right.insert(hash) {
      return;
    }
    state.right_order.push_back(hash);
    if state.right_order.len() > RIGHT_HASHES_MAX
      && let Some(oldest) = state.right_order.pop_front()
    {
      state.right.remove(&oldest);
    }
  }
}

/// One subscriber has a whole /64 of IPv6 addresses.
fn of_network(address: IpAddr) -> IpAddr {
  match address {
    IpAddr::V4(_) => address,
    IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or_else(|| IpAddr::V6((u128::from(v6) & !u128::from(u64::MAX)).into()), IpAddr::V4),
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  const HASH: [u8; 32] = [7; 32];

  fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
  }

  #[test]
  fn whoever_guesses_must_wait_and_nobody_else() {
    let throttle = Throttle::default();
    for _ in 0..WRONG_TRIES_MAX {
      assert_eq!(throttle.wait(address(1), &HASH, Timestamp(0)), None);
      throttle.wrong(address(1), Timestamp(0));
    }
    assert_eq!(throttle.wait(address(1), &HASH, Timestamp(0)), Some(WRONG_TRY_EVERY));
    assert_eq!(throttle.wait(address(2), &HASH, Timestamp(0)), None);
    assert_eq!(throttle.wait(address(1), &HASH, Timestamp(2_000)), None);
  }

  #[test]
  fn a_credential_that_was_right_is_let_in_while_others_guess() {
    let throttle = Throttle::default();
    throttle.right(HASH);
    for _ in 0..WRONG_TRIES_MAX {
      throttle.wrong(address(1), Timestamp(0));
    }
    assert_eq!(throttle.wait(address(1), &HASH, Timestamp(0)), None);
    assert!(throttle.wait(address(1), &[8; 32], Timestamp(0)).is_some());
  }

  #[test]
  fn memory_stays_bounded() {
    let throttle = Throttle::default();
    for n in 0..u32::try_from(WRONG_ADDRESSES_MAX).unwrap() + 100 {
      throttle.wrong(IpAddr::from(n.to_be_bytes()), Timestamp(0));
    }
    for n in 0..u32::try_from(RIGHT_HASHES_MAX).unwrap() + 100 {
      let mut hash = [0; 32];
      hash[..4].copy_from_slice(&n.to_be_bytes());
      throttle.right(hash);
    }
    let state = throttle.0.lock();
    assert_eq!((state.wrong.len(), state.order.len()), (WRONG_ADDRESSES_MAX, WRONG_ADDRESSES_MAX));
    assert_eq!((state.right.len(), state.right_order.len()), (RIGHT_HASHES_MAX, RIGHT_HASHES_MAX));
  }

  #[test]
  fn a_whole_network_counts_as_one_address() {
    let throttle = Throttle::default();
    for n in 0..WRONG_TRIES_MAX {
      throttle.wrong(format!("2001:db8::{n:x}").parse().unwrap(), Timestamp(0));
    }
    assert!(throttle.wait("2001:db8::ffff".parse().unwrap(), &HASH, Timestamp(0)).is_some());
  }
}
