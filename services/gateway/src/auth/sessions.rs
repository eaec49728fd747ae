//! Rolling sessions: while one is used, its end moves, at most once a day.

use std::collections::{HashMap, VecDeque};

use pa_domain::Timestamp;
use parking_lot::Mutex;

use crate::limits::{RIGHT_HASHES_MAX, SESSION_MOVES_EVERY_MILLIS};

type Hash = [u8; 32];

/// When each session's end was moved last by this process. Bounded: a forgotten session is only moved once more.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
  moved: HashMap<Hash, Timestamp>,
  order: VecDeque<Hash>,
}

impl Sessions {
  /// Says whether the session's end shall be moved now, and notes that it is.
  pub(crate) fn is_due(&self, session: Hash, now: Timestamp) -> bool {
    let mut state = self.0.lock();
    if let Some(moved) = state.moved.get_mut(&session) {
      let due = now.0 - moved.0 >= SESSION_MOVES_EVERY_MILLIS;
      if due {
        *moved = now;
      }
      return due;
    }
    if state.order.len() >= RIGHT_HASHES_MAX
      && let Some(oldest) = state.order.pop_front()
    {
      state.moved.remove(&oldest);
    }
    state.order.push_back(session);
    state.moved.insert(session, now);
    true
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn a_session_that_is_used_is_moved_once_a_day() {
    let sessions = Sessions::default();
    assert!(sessions.is_due([1; 32], Timestamp(0)));
    assert!(!sessions.is_due([1; 32], Timestamp(SESSION_MOVES_EVERY_MILLIS - 1)));
    assert!(sessions.is_due([1; 32], Timestamp(SESSION_MOVES_EVERY_MILLIS)));
    assert!(sessions.is_due([2; 32], Timestamp(0)));
  }
}
