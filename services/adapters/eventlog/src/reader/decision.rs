//! Whole decisions from single records: pure, one record at a time.

use std::ops::Deref;
use std::sync::Arc;

use pa_domain::log::EpochAnnounced;
use pa_domain::{AgentId, NodeId, Timestamp};
use uuid::Uuid;

use crate::fence::{Base, Fence, FenceState, Head, Open, Verdict, VoidReason, fence};
use crate::meta::{self, chain};
use crate::opener::Recorded;
use crate::record::{Position, Stored};

/// What a decision's headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionHead {
  pub agent: AgentId,
  /// The position of the input that it decides.
  pub input: Position,
  /// The input had been held behind a quarantine: the decision does not move the next input.
  pub held: bool,
  /// The id of the input that it decides.
  pub cause: Uuid,
  pub at: Timestamp,
  pub epoch: i64,
  /// The seq of its first record.
  pub seq: i64,
  /// The ordinal of its first event.
  pub ordinal: i64,
  /// How many events it has.
  pub parts: i32,
  /// The position of its first record.
  pub first: Position,
  /// The position of its last record; records of other kinds may stand between.
  pub last: Position,
}

/// A whole decision, opened. Its head's fields are its own.
#[derive(Debug)]
pub struct Decision {
  head: DecisionHead,
  pub events: Arc<[Arc<Recorded>]>,
  tail: Arc<Stored>,
}

impl Decision {
  pub(crate) fn new(head: DecisionHead, events: Vec<Arc<Recorded>>, tail: Arc<Stored>) -> Self {
    Self { head, events: events.into(), tail }
  }

  /// The ordinal of its last event.
  pub fn last_ordinal(&self) -> i64 {
    self.head.ordinal + i64::from(self.head.parts) - 1
  }

  /// The chain's hash after its last event: the `prevhash` of the agent's next one.
  pub fn chain(&self) -> [u8; 32] {
    let last = self.events.last().expect("a decision has at least one event");
    chain(&last.meta, &self.tail.record.type_name, &self.tail.record.value)
  }
}

impl Deref for Decision {
  type Target = DecisionHead;

  fn deref(&self) -> &DecisionHead {
    &self.head
  }
}

/// A whole decision that can't be opened, or is not to be. Its head's fields are its own.
#[derive(Clone, Debug)]
pub struct Unopened {
  head: DecisionHead,
  tail: Arc<Stored>,
}

impl Unopened {
  pub(crate) fn new(head: DecisionHead, tail: Arc<Stored>) -> Self {
    Self { head, tail }
  }

  /// The record of its last event, as it is stored.
  pub fn last_stored(&self) -> &Stored {
    &self.tail
  }

  /// The chain's hash after its last event, which is over what is stored: nothing has to be opened for it.
  pub fn chain(&self) -> [u8; 32] {
    let meta = self.tail.meta().expect("the headers were read when the record was judged");
    chain(meta, &self.tail.record.type_name, &self.tail.record.value)
  }
}

impl Deref for Unopened {
  type Target = DecisionHead;

  fn deref(&self) -> &DecisionHead {
    &self.head
  }
}

/// An accepted announcement: the epoch is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
  pub position: Position,
  pub id: Uuid,
  pub epoch: i64,
  pub inputs_from: Position,
  /// It was computed on the state right before it; otherwise it only raises the epoch, and its decider must open a new term.
  pub counts: bool,
  pub holder: NodeId,
}

impl Announced {
  pub(crate) fn of(stored: &Stored, announced: &EpochAnnounced, before: Base) -> Self {
    let base = Base { epoch: announced.base_epoch, seq: announced.base_seq };
    let epoch = stored.meta().map_or(before.epoch, |meta| meta.place.epoch);
    Self {
      position: stored.position,
      id: stored.record.id,
      epoch,
      inputs_from: announced.inputs_from,
      counts: base.counts(before),
      holder: NodeId(announced.holder.0),
    }
  }
}

/// A record that does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Void {
  pub position: Position,
  pub id: Uuid,
  pub agent: AgentId,
  pub cause: Uuid,
  pub epoch: i64,
  pub seq: i64,
  pub reason: VoidReason,
}

impl Void {
  pub(super) fn of(stored: &Stored, reason: VoidReason) -> Self {
    let (agent, cause, epoch, seq) =
      stored.meta().map_or((AgentId(Uuid::nil()), Uuid::nil(), 0, 0), |meta| (meta.core.agent, meta.core.cause, meta.place.epoch, meta.place.seq));
    Self { position: stored.position, id: stored.record.id, agent, cause, epoch, seq, reason }
  }
}

/// What a reader hands on.
#[derive(Clone, Debug)]
pub enum Item {
  Decision(Arc<Decision>),
  /// A decision of an agent that was erased: skip it. It moves the next input like any other.
  Erased(Unopened),
  /// A decision with a record that can't be opened or decoded: its agent is parked, others go on. It moves the next input like any other.
  Unreadable {
    head: Unopened,
    position: Position,
    reason: Arc<str>,
  },
  Announced(Announced),
  Void(Void),
}

impl Item {
  /// What its headers say, if it is a decision of any kind.
  pub fn decided(&self) -> Option<&DecisionHead> {
    match self {
      Self::Decision(decision) => Some(decision),
      Self::Erased(unopened) | Self::Unreadable { head: unopened, .. } => Some(unopened),
      Self::Announced(_) | Self::Void(_) => None,
    }
  }
}

/// What the fence said about a record, and the fence after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
  Part(Fence),
  Complete(Fence, Open),
  Announced { after: Fence, before: Base, voided: Option<Open> },
  Void(Fence, VoidReason),
}

impl Judged {
  /// Whether the record voids the open decision.
  pub fn voids_open(&self) -> bool {
    matches!(self, Self::Announced { voided: Some(_), .. })
  }
}

/// The whole record before the next one.
#[derive(Clone, Debug)]
enum Last {
  Saved([u8; 32]),
  /// Hashed only when a state is saved.
  Read(Arc<Stored>),
}

impl Last {
  fn hash(&self) -> [u8; 32] {
    match self {
      Self::Saved(hash) => *hash,
      Self::Read(stored) => stored.digest(),
    }
  }
}

/// Assembles decisions. [`Self::judge`] looks at a record, [`Self::accept`] moves past it.
#[derive(Debug)]
pub struct DecisionReader {
  fence: Fence,
  last: Last,
  /// Fence and last record before the open decision's first part.
  before_open: Option<(Fence, Last)>,
  parts: Vec<Arc<Stored>>,
}

impl DecisionReader {
  /// Goes on from a saved state.
  pub fn new(state: FenceState) -> Self {
    Self { fence: Fence::from_saved(&state), last: Last::Saved(state.last), before_open: None, parts: Vec::new() }
  }

  /// The fence as it stands.
  pub fn fence(&self) -> &Fence {
    &self.fence
  }

  /// The parts of the open decision.
  pub fn parts(&self) -> &[Arc<Stored>] {
    &self.parts
  }

  /// The hash of the whole record before the next one.
  pub fn last(&self) -> [u8; 32] {
    self.last.hash()
  }

  /// The state to save: the one before an open decision.
  pub fn saved(&self) -> FenceState {
    let (fence, last) = self.before_open.as_ref().map_or((&self.fence, &self.last), |(fence, last)| (fence, last));
    FenceState { next_position: fence.next_position, epoch: fence.epoch, seq: fence.seq, last: last.hash() }
  }

  /// Judges the next record by its headers.
  ///
  /// # Errors
  /// The headers can't be read, which stops the reader.
  pub fn judge(&self, stored: &Stored) -> Result<Judged, meta::Error> {
    let head = Head::of(&stored.record.type_name, stored.meta()?);
    Ok(match fence(self.fence, stored.position, &head) {
      (after, Verdict::Part) => Judged::Part(after),
      (after, Verdict::Complete(open)) => Judged::Complete(after, open),
      (after, Verdict::Announced { before, voided }) => Judged::Announced { after, before, voided },
      (after, Verdict::Void(reason)) => Judged::Void(after, reason),
    })
  }

  /// The head of the decision that `stored` completes.
  pub(super) fn head(&self, stored: &Stored, judged: &Judged) -> Result<DecisionHead, meta::Error> {
    let first = self.parts.first().map_or(stored, |first| first);
    let core = &first.meta()?.core;
    let place = &first.meta()?.place;
    let parts = match judged {
      Judged::Complete(_, open) => open.parts,
      Judged::Part(_) | Judged::Announced { .. } | Judged::Void(..) => place.parts,
    };
    Ok(DecisionHead {
      agent: core.agent,
      input: place.input,
      held: place.held,
      cause: core.cause,
      at: core.at,
      epoch: place.epoch,
      seq: place.seq,
      ordinal: core.ordinal,
      parts,
      first: first.position,
      last: stored.position,
    })
  }

  /// Moves past a record that was judged.
  pub fn accept(&mut self, judged: Judged, stored: &Arc<Stored>) {
    let after = match judged {
      Judged::Part(after) => {
        if self.parts.is_empty() {
          self.before_open = Some((self.fence, self.last.clone()));
        }
        self.parts.push(Arc::clone(stored));
        after
      }
      Judged::Complete(after, _) => {
        self.close();
        after
      }
      Judged::Announced { after, .. } => {
        if judged.voids_open() {
          self.close();
        }
        after
      }
      Judged::Void(after, _) => after,
    };
    self.fence = after;
    self.last = Last::Read(Arc::clone(stored));
  }

  fn close(&mut self) {
    self.parts.clear();
    self.before_open = None;
  }
}
