//! The guards of the log protocol by name, so that the simulator can switch one off and must then see a failure.
//!
//! In a normal build every guard is on and [`on`] is a constant. Only the feature `mutants` (never in a release build) compiles the switches: one set for the
//! process, for real processes under test, and one for each thread, for simulations that run side by side.

/// A guard of the protocol; each closes a hole that the model check found (`cases/protocol.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Guard {
  /// A record of an older epoch is void.
  Epoch,
  /// A seq that was accepted before is void.
  RepeatedSeq,
  /// A seq that skips one is void.
  Gap,
  /// A decision is applied when its last part is read, and a part that does not follow is void.
  DecisionBoundary,
  /// An announcement voids the open decision.
  OpenDecisionVoidAtAnnouncement,
  /// The same epoch announced again is void.
  EqualEpochAgain,
  /// A decider decides only after it has read its own announcement.
  WaitForOwnAnnouncement,
  /// A mutation is answered when its decision was read back, not when it was appended.
  AnswerOnAppend,
  /// An effect happens only after its permit was read.
  EffectBeforePermit,
  /// A checkpoint holds only what was read back.
  CheckpointFromUnread,
  /// A checkpoint is written only by the holder of the lease, at the position that it expects.
  CheckpointGuard,
  /// A permit ends 30 s after its ask was sent.
  PermitWindow,
  /// A record of a higher epoch that was never announced is void.
  UnannouncedEpoch,
  /// Rows and position of a projection move together.
  Cursor,
  /// A key that was decided within the window is a repeat.
  RepeatWindow,
}

impl Guard {
  /// Every guard.
  pub const ALL: [Self; 15] = [
    Self::Epoch,
    Self::RepeatedSeq,
    Self::Gap,
    Self::DecisionBoundary,
    Self::OpenDecisionVoidAtAnnouncement,
    Self::EqualEpochAgain,
    Self::WaitForOwnAnnouncement,
    Self::AnswerOnAppend,
    Self::EffectBeforePermit,
    Self::CheckpointFromUnread,
    Self::CheckpointGuard,
    Self::PermitWindow,
    Self::UnannouncedEpoch,
    Self::Cursor,
    Self::RepeatWindow,
  ];
}

/// Whether a guard is on.
#[cfg(not(feature = "mutants"))]
#[inline]
pub const fn on(_guard: Guard) -> bool {
  true
}

#[cfg(feature = "mutants")]
pub use switches::{on, switch_off, switch_off_for_process};

#[cfg(feature = "mutants")]
mod switches {
  use std::cell::Cell;
  use std::sync::atomic::{AtomicU32, Ordering};

  use super::Guard;

  static PROCESS: AtomicU32 = AtomicU32::new(0);
  thread_local! { static THREAD: Cell<u32> = const { Cell::new(0) }; }

  fn bit(guard: Guard) -> u32 {
    1 << guard as u8
  }

  /// Whether a guard is on.
  pub fn on(guard: Guard) -> bool {
    (PROCESS.load(Ordering::Relaxed) | THREAD.with(Cell::get)) & bit(guard) == 0
  }

  /// Switches a guard off for this thread until the answer is dropped.
  #[must_use]
  pub fn switch_off(guard: Guard) -> Off {
    THREAD.with(|off| off.set(off.get() | bit(guard)));
    Off(guard)
  }

  /// Switches a guard off for the whole process, for ever.
  pub fn switch_off_for_process(guard: Guard) {
    PROCESS.fetch_or(bit(guard), Ordering::Relaxed);
  }

  /// A guard that is off on this thread; on again when this is dropped.
  #[derive(Debug)]
  pub struct Off(Guard);

  impl Drop for Off {
    fn drop(&mut self) {
      THREAD.with(|off| off.set(off.get() & !bit(self.0)));
    }
  }
}
