//! The simulator's own proof: with a guard of the protocol switched off, some seed must fail. A guard whose hole is too narrow for random seeds has a directed trace
//! in `cases`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pa_eventlog::guards::{Guard, switch_off};

use super::cases::cuts::pr_12;
use super::cases::decider::{pr_01, pr_02, pr_05};
use super::cases::told::{stale_commit, void_decision};
use super::cases::work::pr_22;
use super::run::{in_paused_time, run};

/// Seeds that may be tried; a guard that is not missed by then is not proven.
const TRIES: u64 = 400;

/// What goes wrong, if anything does; what a mutant breaks may also be seen as a panic of ours.
fn problem<T>(attempt: impl FnOnce() -> Result<T, String>) -> Option<String> {
  match catch_unwind(AssertUnwindSafe(attempt)) {
    Ok(Ok(_)) => None,
    Ok(Err(problem)) => Some(problem),
    Err(_) => Some("a panic".to_owned()),
  }
}

/// Fails unless a seed fails while the guard is off. `known` is one that did: the search begins with it.
fn noticed(guard: Guard, known: u64) {
  let _off = switch_off(guard);
  let found = std::iter::once(known).chain(0..TRIES).find_map(|seed| Some((seed, problem(|| run(seed))?)));
  let (seed, problem) = found.unwrap_or_else(|| panic!("nothing went wrong in {TRIES} seeds although {guard:?} was off"));
  println!("{guard:?} is missed at seed {seed}: {problem}");
}

/// Fails unless a trace that is right with the guard on is wrong with it off.
fn noticed_in<F: Future<Output = Result<(), String>>>(guard: Guard, trace: impl Fn() -> F) {
  in_paused_time(trace()).expect("the trace is right with every guard on");
  let _off = switch_off(guard);
  let problem = problem(|| in_paused_time(trace())).unwrap_or_else(|| panic!("nothing went wrong although {guard:?} was off"));
  println!("{guard:?} is missed: {problem}");
}

/// Every guard is missed by random seeds or in a directed trace: a new one does not compile until somebody says which, and has no proof until it stands below.
#[test]
fn every_guard_is_proven() {
  let by_seeds = |guard: Guard| match guard {
    Guard::Epoch
    | Guard::RepeatedSeq
    | Guard::DecisionBoundary
    | Guard::OpenDecisionVoidAtAnnouncement
    | Guard::EqualEpochAgain
    | Guard::EffectBeforePermit
    | Guard::CheckpointFromUnread
    | Guard::RepeatWindow
    | Guard::Cursor => true,
    Guard::Gap | Guard::WaitForOwnAnnouncement | Guard::AnswerOnAppend | Guard::CheckpointGuard | Guard::PermitWindow | Guard::UnannouncedEpoch => false,
  };
  let wrong: Vec<Guard> = Guard::ALL.into_iter().filter(|guard| by_seeds(*guard) != BY_SEEDS.contains(guard)).collect();
  assert!(wrong.is_empty(), "these have another proof than is said here: {wrong:?}");
}

macro_rules! noticed {
  ($($name:ident: $guard:ident, $known:literal);+ $(;)?) => {
    /// Guards that random seeds miss.
    const BY_SEEDS: &[Guard] = &[$(Guard::$guard),+];
    $(
    #[test]
    fn $name() {
      noticed(Guard::$guard, $known);
    }
    )+
  };
}

noticed! {
  the_simulator_notices_when_epoch_is_off: Epoch, 23;
  the_simulator_notices_when_repeated_seq_is_off: RepeatedSeq, 3;
  the_simulator_notices_when_decision_boundary_is_off: DecisionBoundary, 0;
  the_simulator_notices_when_open_decision_void_at_announcement_is_off: OpenDecisionVoidAtAnnouncement, 2;
  the_simulator_notices_when_equal_epoch_again_is_off: EqualEpochAgain, 7;
  the_simulator_notices_when_effect_before_permit_is_off: EffectBeforePermit, 0;
  the_simulator_notices_when_checkpoint_from_unread_is_off: CheckpointFromUnread, 38;
  the_simulator_notices_when_repeat_window_is_off: RepeatWindow, 0;
  the_simulator_notices_when_cursor_is_off: Cursor, 0;
}

#[test]
fn the_simulator_notices_when_gap_is_off() {
  noticed_in(Guard::Gap, pr_05);
}

#[test]
fn the_simulator_notices_when_wait_for_own_announcement_is_off() {
  noticed_in(Guard::WaitForOwnAnnouncement, pr_02);
}

#[test]
fn the_simulator_notices_when_checkpoint_guard_is_off() {
  noticed_in(Guard::CheckpointGuard, pr_01);
}

#[test]
fn the_simulator_notices_when_permit_window_is_off() {
  noticed_in(Guard::PermitWindow, pr_22);
}

#[test]
fn the_simulator_notices_when_unannounced_epoch_is_off() {
  noticed_in(Guard::UnannouncedEpoch, pr_12);
}

#[test]
fn the_simulator_notices_when_answer_on_append_is_off() {
  noticed_in(Guard::AnswerOnAppend, void_decision);
}

#[test]
fn the_trace_of_a_stale_commit_notices_when_cursor_is_off() {
  noticed_in(Guard::Cursor, stale_commit);
}
