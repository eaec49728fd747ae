//! The fence: the one function that says which records of `pa.events` count.
//!
//! Every reader uses it, on headers, before anything is opened, skipped or refused, so all readers of a log accept the same records whatever stale deciders append.
//! Only an announcement (`pa.log.EpochAnnounced`, seq 0) above the epoch raises it. Void is: any other epoch; a seq that is not the last accepted + 1; a part that
//! does not follow its open decision; an open decision when an announcement is accepted. A void record moves the position and nothing else. See [`next_input`] for
//! what follows from accepted records for the inputs.

pub mod next_input;

use pa_domain::AgentId;
use pa_domain::meta::Kind;
use uuid::Uuid;

use crate::guards::{self, Guard};
use crate::meta::{PaMeta, Place};
use crate::record::Position;

pub use next_input::{Agreement, NextInput, Progress};

/// The type of announcements, without its version.
pub const ANNOUNCEMENT: &str = "pa.log.EpochAnnounced";

/// What a reader saves: always the state before the first part of an open decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FenceState {
  /// Reading goes on here.
  pub next_position: Position,
  pub epoch: i64,
  /// The last accepted seq of the epoch.
  pub seq: i64,
  /// The hash of the whole record before `next_position`, whether it counted or not; [`crate::meta::NO_HASH`] at the start.
  pub last: [u8; 32],
}

impl FenceState {
  /// The state of a reader that has read nothing.
  pub const START: Self = Self { next_position: 0, epoch: 0, seq: 0, last: crate::meta::NO_HASH };
}

/// The fence between two records, as a reader holds it while it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
  pub next_position: Position,
  pub epoch: i64,
  pub seq: i64,
  /// The decision that has begun and is not whole yet.
  pub open: Option<Open>,
}

/// A decision of which parts 1 to `part` were accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
  /// The position of its first part.
  pub first: Position,
  pub agent: AgentId,
  /// The id of the input that it decides.
  pub cause: Uuid,
  pub input: Position,
  pub held: bool,
  pub epoch: i64,
  /// The seq of its first part.
  pub seq: i64,
  pub part: i32,
  pub parts: i32,
}

/// The state that an announcement is computed on: epoch and seq of the last accepted record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
  pub epoch: i64,
  pub seq: i64,
}

impl Base {
  /// Whether an announcement computed on `self` counts when `before` is the state right before it; otherwise it only raises the epoch.
  pub fn counts(self, before: Base) -> bool {
    self == before
  }
}

/// What the fence looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
  pub announcement: bool,
  pub agent: AgentId,
  pub cause: Uuid,
  pub place: Place,
}

impl Head {
  /// The head of a record of type `type_name` with metadata `meta`.
  pub fn of(type_name: &str, meta: &PaMeta) -> Self {
    let announcement = meta.core.kind == Kind::Partition && type_name.strip_prefix(ANNOUNCEMENT).is_some_and(|rest| rest.starts_with(".v"));
    Self { announcement, agent: meta.core.agent, cause: meta.core.cause, place: meta.place }
  }
}

/// Why a record does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoidReason {
  /// An epoch that is over.
  OldEpoch,
  /// An epoch that was never announced.
  UnannouncedEpoch,
  /// A seq that was accepted before.
  RepeatedSeq,
  /// A seq that leaves out one.
  Gap,
  /// A part that does not follow its open decision.
  DoesNotFollow,
  /// An announcement that is not above the epoch, or has a seq.
  StaleAnnouncement,
  /// A part of the decision that was open when an announcement was accepted.
  OpenAtAnnouncement,
}

/// What the fence says about one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
  /// Accepted; its decision is not whole yet.
  Part,
  /// Accepted, and its decision is whole now.
  Complete(Open),
  /// An announcement that raises the epoch; `before` is the state right before it, `voided` the decision that was open.
  Announced {
    before: Base,
    voided: Option<Open>,
  },
  Void(VoidReason),
}

impl Fence {
  /// Goes on from a saved state.
  pub fn from_saved(state: &FenceState) -> Self {
    Self { next_position: state.next_position, epoch: state.epoch, seq: state.seq, open: None }
  }

  /// Epoch and seq of the last accepted record.
  pub fn base(&self) -> Base {
    Base { epoch: self.epoch, seq: self.seq }
  }
}

/// Judges the record at `position`: the fence after it, and what it is.
pub fn fence(at: Fence, position: Position, head: &Head) -> (Fence, Verdict) {
  let mut next = Fence { next_position: position + 1, ..at };
  let verdict = if head.announcement { announcement(&mut next, head) } else { part(&mut next, position, head) };
  (next, verdict)
}

fn announcement(fence: &mut Fence, head: &Head) -> Verdict {
  let place = &head.place;
  let again = place.epoch == fence.epoch && !guards::on(Guard::EqualEpochAgain);
  if place.seq != 0 || (place.epoch <= fence.epoch && !again) {
    return Verdict::Void(VoidReason::StaleAnnouncement);
  }
  let before = fence.base();
  let voided = if guards::on(Guard::OpenDecisionVoidAtAnnouncement) { fence.open.take() } else { None };
  fence.epoch = place.epoch;
  fence.seq = 0;
  Verdict::Announced { before, voided }
}

fn part(fence: &mut Fence, position: Position, head: &Head) -> Verdict {
  if let Some(reason) = void(fence, head) {
    return Verdict::Void(reason);
  }
  let place = &head.place;
  fence.epoch = fence.epoch.max(place.epoch);
  fence.seq = place.seq;
  let open = match fence.open {
    Some(open) if place.part > 1 => Open { part: place.part, ..open },
    _ => Open {
      first: position,
      agent: head.agent,
      cause: head.cause,
      input: place.input,
      held: place.held,
      epoch: place.epoch,
      seq: place.seq,
      part: place.part,
      parts: place.parts,
    },
  };
  if place.part >= place.parts || !guards::on(Guard::DecisionBoundary) {
    fence.open = None;
    Verdict::Complete(open)
  } else {
    fence.open = Some(open);
    Verdict::Part
  }
}

fn void(fence: &Fence, head: &Head) -> Option<VoidReason> {
  let place = &head.place;
  if place.epoch < fence.epoch && guards::on(Guard::Epoch) {
    return Some(VoidReason::OldEpoch);
  }
  let mut last = fence.seq;
  if place.epoch > fence.epoch {
    if guards::on(Guard::UnannouncedEpoch) {
      return Some(VoidReason::UnannouncedEpoch);
    }
    last = 0;
  }
  if place.seq <= last && guards::on(Guard::RepeatedSeq) {
    return Some(VoidReason::RepeatedSeq);
  }
  if place.seq > last + 1 && guards::on(Guard::Gap) {
    return Some(VoidReason::Gap);
  }
  (guards::on(Guard::DecisionBoundary) && !follows(fence.open.as_ref(), head)).then_some(VoidReason::DoesNotFollow)
}

fn follows(open: Option<&Open>, head: &Head) -> bool {
  let place = &head.place;
  match open {
    None => place.part == 1,
    Some(open) => {
      place.part == open.part + 1
        && place.parts == open.parts
        && place.input == open.input
        && place.held == open.held
        && head.agent == open.agent
        && head.cause == open.cause
    }
  }
}

#[cfg(test)]
mod tests;
