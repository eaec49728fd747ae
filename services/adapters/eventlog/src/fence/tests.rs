//! The fence's rules and the cases of the protocol that it alone closes.

use std::collections::BTreeMap;

use pa_domain::AgentId;
use uuid::Uuid;

use super::*;
use crate::meta::Place;

fn announcement_of(epoch: i64) -> Head {
  Head { announcement: true, agent: AgentId(Uuid::nil()), cause: Uuid::nil(), place: Place::of_announcement(epoch) }
}

/// Part `part` of `parts` of a decision on input `input`.
fn record(epoch: i64, seq: i64, input: Position, (part, parts): (i32, i32)) -> Head {
  Head {
    announcement: false,
    agent: AgentId(Uuid::from_u128(1)),
    cause: Uuid::from_u128(1_000 + u128::from(input.unsigned_abs())),
    place: Place { input, held: false, part, parts, epoch, seq, keyid: 1 },
  }
}

fn one(epoch: i64, seq: i64, input: Position) -> Head {
  record(epoch, seq, input, (1, 1))
}

const START: Fence = Fence { next_position: 0, epoch: 0, seq: 0, open: None };

fn read_from(mut at: Fence, heads: &[Head]) -> (Fence, Vec<Verdict>) {
  let mut verdicts = Vec::new();
  for head in heads {
    let (next, verdict) = fence(at, at.next_position, head);
    assert_eq!(next.next_position, at.next_position + 1, "every record moves the position");
    at = next;
    verdicts.push(verdict);
  }
  (at, verdicts)
}

fn read(heads: &[Head]) -> (Fence, Vec<Verdict>) {
  read_from(START, heads)
}

/// The inputs of the decisions that count, in order.
fn decided(verdicts: &[Verdict]) -> Vec<Position> {
  verdicts
    .iter()
    .filter_map(|verdict| match verdict {
      Verdict::Complete(open) => Some(open.input),
      Verdict::Part | Verdict::Announced { .. } | Verdict::Void(_) => None,
    })
    .collect()
}

fn voids(verdicts: &[Verdict]) -> Vec<VoidReason> {
  verdicts
    .iter()
    .filter_map(|verdict| match verdict {
      Verdict::Void(reason) => Some(*reason),
      Verdict::Part | Verdict::Announced { .. } | Verdict::Complete(_) => None,
    })
    .collect()
}

#[test]
fn records_of_the_announced_epoch_count_in_their_order() {
  let (fence, verdicts) = read(&[announcement_of(1), one(1, 1, 0), record(1, 2, 1, (1, 2)), record(1, 3, 1, (2, 2)), one(1, 4, 2)]);
  assert_eq!(decided(&verdicts), [0, 1, 2]);
  assert_eq!(voids(&verdicts), [] as [VoidReason; 0]);
  assert_eq!((fence.epoch, fence.seq, fence.open), (1, 4, None));
}

#[test]
fn a_decision_is_whole_at_its_last_part() {
  let (fence, verdicts) = read(&[announcement_of(1), record(1, 1, 0, (1, 3)), record(1, 2, 0, (2, 3))]);
  assert_eq!(&verdicts[1..], [Verdict::Part, Verdict::Part]);
  assert_eq!(fence.open.map(|open| (open.first, open.part, open.parts)), Some((1, 2, 3)));
}

#[test]
fn a_stale_deciders_records_are_void() {
  let (fence, verdicts) = read(&[announcement_of(1), one(1, 1, 0), announcement_of(2), one(1, 2, 1), one(2, 1, 1)]);
  assert_eq!(voids(&verdicts), [VoidReason::OldEpoch]);
  assert_eq!(decided(&verdicts), [0, 1]);
  assert_eq!((fence.epoch, fence.seq), (2, 1));
}

#[test]
fn only_an_announcement_above_the_epoch_raises_it() {
  let mut with_seq = announcement_of(9);
  with_seq.place.seq = 1;
  let (fence, verdicts) = read(&[announcement_of(2), announcement_of(2), announcement_of(1), with_seq, one(2, 1, 0)]);
  assert_eq!(voids(&verdicts), [VoidReason::StaleAnnouncement; 3]);
  assert_eq!((fence.epoch, fence.seq), (2, 1));
}

#[test]
fn a_part_that_does_not_follow_is_void_whatever_differs() {
  let open = [announcement_of(1), record(1, 1, 0, (1, 3))];
  let second = record(1, 2, 0, (2, 3));
  let other = |change: fn(&mut Head)| {
    let mut head = second;
    change(&mut head);
    head
  };
  let strays = [
    other(|head| head.place.part = 3),
    other(|head| head.place.part = 1),
    other(|head| head.place.parts = 2),
    other(|head| head.place.input = 7),
    other(|head| head.place.held = true),
    other(|head| head.agent = AgentId(Uuid::from_u128(2))),
    other(|head| head.cause = Uuid::from_u128(2)),
  ];
  for stray in strays {
    let (fence, verdicts) = read(&[open[0], open[1], stray, second, record(1, 3, 0, (3, 3))]);
    assert_eq!(voids(&verdicts), [VoidReason::DoesNotFollow], "{stray:?}");
    assert_eq!(decided(&verdicts), [0], "the decision goes on where it was");
    assert_eq!(fence.seq, 3);
  }
  let (_, verdicts) = read(&[announcement_of(1), record(1, 1, 0, (2, 2))]);
  assert_eq!(voids(&verdicts), [VoidReason::DoesNotFollow], "nothing is open");
}

#[test]
fn an_announcement_voids_the_open_decision() {
  let (fence, verdicts) = read(&[announcement_of(1), record(1, 1, 0, (1, 2)), announcement_of(2), record(1, 2, 0, (2, 2)), one(2, 1, 0)]);
  let Verdict::Announced { before, voided } = verdicts[2] else { panic!("{verdicts:?}") };
  assert_eq!(before, Base { epoch: 1, seq: 1 });
  assert_eq!(voided.map(|open| (open.first, open.input)), Some((1, 0)));
  assert_eq!(voids(&verdicts), [VoidReason::OldEpoch]);
  assert_eq!(decided(&verdicts), [0]);
  assert_eq!(fence.open, None);
}

/// Case PR-03, at the fence: other bytes under a used seq never join what was written before.
#[test]
fn pr_03_a_used_seq_is_void_and_nothing_is_torn() {
  let mut again = record(1, 1, 0, (1, 2));
  again.cause = Uuid::from_u128(77);
  let mut rest = record(1, 2, 0, (2, 2));
  rest.cause = Uuid::from_u128(77);
  let (_, verdicts) = read(&[announcement_of(1), record(1, 1, 0, (1, 2)), again, rest]);
  assert_eq!(voids(&verdicts), [VoidReason::RepeatedSeq, VoidReason::DoesNotFollow]);
  assert_eq!(decided(&verdicts), [] as [Position; 0]);
}

/// Case PR-05: after a gap everything of that term is void, and a new term goes on.
#[test]
fn pr_05_a_gap_voids_the_rest_of_the_term_until_a_new_one() {
  let (_, verdicts) = read(&[announcement_of(1), one(1, 1, 0), one(1, 3, 2), one(1, 4, 3), announcement_of(2), one(2, 1, 1), one(2, 2, 2)]);
  assert_eq!(voids(&verdicts), [VoidReason::Gap, VoidReason::Gap]);
  assert_eq!(decided(&verdicts), [0, 1, 2]);
}

/// Case PR-06, at the fence: the same epoch announced twice is accepted once, so records never run under two announcements.
#[test]
fn pr_06_an_epoch_is_accepted_once() {
  let (fence, verdicts) = read(&[announcement_of(3), one(3, 1, 0), announcement_of(3), one(3, 2, 1)]);
  assert_eq!(voids(&verdicts), [VoidReason::StaleAnnouncement]);
  assert_eq!(decided(&verdicts), [0, 1]);
  assert_eq!((fence.epoch, fence.seq), (3, 2));
}

/// Case PR-07: a void record of a higher epoch raises nothing, for a reader from the start and for one from any saved state.
#[test]
fn pr_07_void_records_raise_nothing() {
  let log = [announcement_of(1), one(1, 1, 0), one(5, 1, 1), one(5, 2, 2), one(1, 2, 1), announcement_of(4), one(1, 3, 2), one(4, 1, 2)];
  let (whole, verdicts) = read(&log);
  assert_eq!(decided(&verdicts), [0, 1, 2]);
  for cut in 0..=log.len() {
    let (at, before) = read(&log[..cut]);
    let saved = FenceState { next_position: at.next_position, epoch: at.epoch, seq: at.seq, last: crate::meta::NO_HASH };
    let (resumed, after) = read_from(Fence::from_saved(&saved), &log[cut..]);
    assert_eq!(resumed, whole, "saved at {cut}");
    assert_eq!([before, after].concat(), verdicts, "saved at {cut}");
  }
}

/// Case PR-12: an epoch whose announcement was cut away is void, and so are all its records.
#[test]
fn pr_12_an_unannounced_epoch_is_void() {
  let (fence, verdicts) = read(&[announcement_of(1), one(1, 1, 0), one(2, 1, 1), record(2, 2, 2, (1, 2)), record(2, 3, 2, (2, 2))]);
  assert_eq!(voids(&verdicts), [VoidReason::UnannouncedEpoch; 3]);
  assert_eq!((fence.epoch, fence.seq), (1, 1));
}

/// Case PR-13b: an announcement that was computed before the last decision landed only raises the epoch.
#[test]
fn pr_13b_a_stale_announcement_only_raises_the_epoch() {
  let computed_on = read(&[announcement_of(1)]).0.base();
  let (fence, verdicts) = read(&[announcement_of(1), one(1, 1, 0), announcement_of(2)]);
  let Verdict::Announced { before, .. } = verdicts[2] else { panic!("{verdicts:?}") };
  assert!(!computed_on.counts(before));
  assert_eq!(fence.epoch, 2);
  let next = NextInput::START.announced(true, 0).decided(0, false).announced(computed_on.counts(before), 0);
  assert_eq!(next, NextInput(1), "input 0 is not decided again");
  assert!(before.counts(before));
}

/// Case PR-09, at the fold: after announcements alone the next input is known.
#[test]
fn pr_09_announcements_without_decisions_keep_the_next_input() {
  let checkpoint = NextInput(4_711);
  let announced = [(true, 4_711), (false, 12), (true, 4_711)];
  assert_eq!(announced.iter().fold(checkpoint, |next, (counts, from)| next.announced(*counts, *from)), NextInput(4_711));
}

/// Case PR-13d, at the fold: a held input's decision moves nothing.
#[test]
fn pr_13d_a_held_inputs_decision_does_not_move_the_next_input() {
  let next = NextInput::START.decided(0, false).decided(1, false).announced(true, 0).decided(0, false);
  assert_eq!(next.decided(1, true), NextInput(1), "the new input at 1 is decided");
}

fn ids(of: impl IntoIterator<Item = (Position, u128)>) -> BTreeMap<Position, Uuid> {
  of.into_iter().map(|(position, id)| (position, Uuid::from_u128(id))).collect()
}

/// Positions whose ids are their own numbers.
fn own(positions: impl IntoIterator<Item = Position>) -> BTreeMap<Position, Uuid> {
  ids(positions.into_iter().map(|position| (position, u128::from(position.unsigned_abs()))))
}

/// Searches with pages of `page` positions, and counts them.
fn search(next: Position, log_start: Position, page: i64, decided: &BTreeMap<Position, Uuid>, present: &BTreeMap<Position, Uuid>) -> (Position, usize) {
  let mut agreement = Agreement::new(NextInput(next), log_start);
  let (mut below, mut pages) = (next, 0);
  loop {
    pages += 1;
    match agreement.compare(below - page, decided, present) {
      Progress::Below(position) => below = position,
      Progress::Done => return (agreement.inputs_from(), pages),
    }
  }
}

/// Case PR-13: decided inputs that were cut away, with new ones in their place, are decided anew.
#[test]
fn pr_13_the_next_input_steps_back_to_where_the_log_was_cut() {
  let decided = own(0..110);
  let mut present = own(0..100);
  assert_eq!(search(110, 0, 7, &decided, &present).0, 100, "cut");
  present.extend(ids([(100, 5_000), (101, 5_001)]));
  assert_eq!(search(110, 0, 7, &decided, &present).0, 100, "cut and grown again");
  present.extend(own(100..110));
  assert_eq!(search(110, 0, 7, &decided, &present).0, 110, "nothing is cut");
}

/// Case PR-13c: one that agrees is not enough; the search goes on until 1,000 in a row agree.
#[test]
fn pr_13c_the_search_goes_down_until_a_thousand_in_a_row_agree() {
  let decided = ids([(0, 10), (1, 11)]);
  let present = ids([(0, 12), (1, 11)]);
  assert_eq!(search(2, 0, 1, &decided, &present).0, 0, "C at 0 is decided although B at 1 agrees");

  let decided = own(0..5_000);
  let mut present = decided.clone();
  present.insert(3_999, Uuid::from_u128(1));
  assert_eq!(search(5_000, 0, 100, &decided, &present), (5_000, 10), "a thousand agree above it, so it is not looked at");
  present.insert(4_000, Uuid::from_u128(1));
  assert_eq!(search(5_000, 0, 100, &decided, &present).0, 3_999, "999 agree above: it is looked at, and the one below it as well");
}

#[test]
fn gaps_and_expired_inputs_are_no_differences() {
  let decided = own((0..200).filter(|position| position % 3 != 0));
  let present: BTreeMap<_, _> = decided.range(100..).map(|(position, id)| (*position, *id)).collect();
  assert_eq!(search(200, 100, 13, &decided, &present).0, 200);
  let mut grown = present.clone();
  grown.insert(150, Uuid::from_u128(9));
  assert_eq!(search(200, 100, 13, &decided, &grown).0, 150, "a record where none was decided differs");
  assert_eq!(search(200, 0, 13, &decided, &BTreeMap::new()).0, 1, "an empty log is cut, not expired");
}

#[test]
fn an_announcement_is_told_by_kind_and_type() {
  let meta = crate::testing::meta_of_kind(pa_domain::meta::Kind::Partition);
  assert!(Head::of("pa.log.EpochAnnounced.v1", &meta).announcement);
  assert!(Head::of("pa.log.EpochAnnounced.v2", &meta).announcement);
  assert!(!Head::of("pa.log.EpochAnnouncedOtherwise.v1", &meta).announcement);
  let event = crate::testing::meta_of_kind(pa_domain::meta::Kind::Event);
  assert!(!Head::of("pa.log.EpochAnnounced.v1", &event).announcement, "an agent's event can't raise an epoch");
}

/// Each guard of the fence, switched off, lets through what it is there to void.
#[cfg(feature = "mutants")]
#[test]
fn without_its_guard_each_void_record_counts() {
  use crate::guards::switch_off;
  let two = |epoch, seq, input| [record(epoch, seq, input, (1, 2)), record(epoch, seq + 1, input, (2, 2))];
  let cases: [(Guard, Vec<Head>); 7] = [
    (Guard::Epoch, vec![announcement_of(1), announcement_of(2), one(1, 1, 0)]),
    (Guard::RepeatedSeq, vec![announcement_of(1), one(1, 1, 0), one(1, 1, 0)]),
    (Guard::Gap, vec![announcement_of(1), one(1, 2, 0)]),
    (Guard::DecisionBoundary, vec![announcement_of(1), two(1, 1, 0)[0]]),
    (Guard::OpenDecisionVoidAtAnnouncement, vec![announcement_of(1), two(1, 1, 0)[0], announcement_of(2), record(2, 1, 0, (2, 2))]),
    (Guard::EqualEpochAgain, vec![announcement_of(1), one(1, 1, 0), announcement_of(1), one(1, 1, 0)]),
    (Guard::UnannouncedEpoch, vec![announcement_of(1), one(2, 1, 0)]),
  ];
  for (guard, log) in cases {
    let guarded = decided(&read(&log).1);
    let off = switch_off(guard);
    assert_ne!(decided(&read(&log).1), guarded, "{guard:?}");
    drop(off);
    assert_eq!(decided(&read(&log).1), guarded, "{guard:?} is on again");
  }
}
