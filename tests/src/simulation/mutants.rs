//! The simulator's own proof: with a guard of the protocol switched off, some seed must fail. A guard whose hole is too narrow for random seeds has a directed trace
//! in `cases`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pa_eventlog::guards::{Guard, switch_off};

use super::run::run;

/// Seeds that may be tried; a guard that is not missed by then is not proven.
const TRIES: u64 = 400;

/// Fails unless a seed fails while the guard is off.
fn noticed(guard: Guard) {
  let off = switch_off(guard);
  for seed in 0..TRIES {
    // What a mutant breaks may also be seen as a panic of ours: that is a failure like any other.
    let problem = match catch_unwind(AssertUnwindSafe(|| run(seed))) {
      Ok(Ok(_)) => continue,
      Ok(Err(problem)) => problem,
      Err(_) => "a panic".to_owned(),
    };
    println!("{guard:?} is missed at seed {seed}: {problem}");
    drop(off);
    return;
  }
  panic!("nothing went wrong in {TRIES} seeds although {guard:?} was off");
}

macro_rules! noticed {
  ($($name:ident: $guard:ident),+ $(,)?) => {$(
    #[test]
    fn $name() {
      noticed(Guard::$guard);
    }
  )+};
}

noticed! {
  the_simulator_notices_when_epoch_is_off: Epoch,
  the_simulator_notices_when_repeated_seq_is_off: RepeatedSeq,
  the_simulator_notices_when_gap_is_off: Gap,
  the_simulator_notices_when_decision_boundary_is_off: DecisionBoundary,
  the_simulator_notices_when_open_decision_void_at_announcement_is_off: OpenDecisionVoidAtAnnouncement,
  the_simulator_notices_when_equal_epoch_again_is_off: EqualEpochAgain,
  the_simulator_notices_when_wait_for_own_announcement_is_off: WaitForOwnAnnouncement,
  the_simulator_notices_when_answer_on_append_is_off: AnswerOnAppend,
  the_simulator_notices_when_effect_before_permit_is_off: EffectBeforePermit,
  the_simulator_notices_when_checkpoint_from_unread_is_off: CheckpointFromUnread,
  the_simulator_notices_when_checkpoint_guard_is_off: CheckpointGuard,
  the_simulator_notices_when_permit_window_is_off: PermitWindow,
  the_simulator_notices_when_unannounced_epoch_is_off: UnannouncedEpoch,
  the_simulator_notices_when_cursor_is_off: Cursor,
  the_simulator_notices_when_repeat_window_is_off: RepeatWindow,
}
