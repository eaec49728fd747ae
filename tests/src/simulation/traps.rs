//! Traps: what a directed test has happen right before or after a call of a process reaches its machine.

use std::sync::Arc;

use parking_lot::Mutex;

/// When a trap springs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
  Before,
  After,
}

struct Trap {
  moment: Moment,
  what: &'static str,
  act: Box<dyn FnOnce() + Send>,
}

/// A process's traps, each for one use.
#[derive(Clone, Default)]
pub(super) struct Traps(Arc<Mutex<Vec<Trap>>>);

impl Traps {
  /// Sets a trap for the next call whose name begins with `what`: `events/<type>` or `inputs/<type>` of an append's first record, or what a statement does.
  pub(super) fn set(&self, moment: Moment, what: &'static str, act: impl FnOnce() + Send + 'static) {
    self.0.lock().push(Trap { moment, what, act: Box::new(act) });
  }

  pub(super) fn spring(&self, moment: Moment, name: &str) {
    let sprung = {
      let mut traps = self.0.lock();
      let found = traps.iter().position(|trap| trap.moment == moment && name.starts_with(trap.what));
      found.map(|at| traps.remove(at))
    };
    if let Some(trap) = sprung {
      (trap.act)();
    }
  }

  pub(super) fn is_empty(&self) -> bool {
    self.0.lock().is_empty()
  }
}
