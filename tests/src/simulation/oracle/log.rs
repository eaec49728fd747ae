//! The log's own order: epochs, seqs, inputs, ordinals, chains.

use std::collections::HashMap;

use pa_domain::{AgentId, Timestamp};
use pa_eventlog::meta::{NO_HASH, chain};
use pa_eventlog::reader::{Decision, DecisionHead, Item};
use pa_eventlog::{Position, Stored};

use super::super::chaos::Kinds;
use super::{Accepted, ensure};

/// A used (epoch, seq) never has other bytes, and no epoch is announced twice.
pub(in super::super) fn never_other_bytes(accepted: &Accepted) -> Result<(), String> {
  let mut used: HashMap<(i64, i64), [u8; 32]> = HashMap::new();
  for stored in accepted.events.values() {
    let place = stored.meta().map_err(|error| error.to_string())?.place;
    let other = used.insert((place.epoch, place.seq), stored.digest());
    ensure!(other.is_none_or(|other| other == stored.digest()), "epoch {} seq {} has other bytes at {}", place.epoch, place.seq, stored.position);
  }
  Ok(())
}

/// Every input has exactly one decision, in order; epochs and seqs only go up; each agent's events are chained without a gap.
pub(in super::super) fn check(accepted: &Accepted, kinds: Kinds) -> Result<(), String> {
  let mut order = Order { accepted, cuts: kinds.cuts, next: 0, epoch: 0, seq: 0, decided: HashMap::new() };
  let mut chains = HashMap::new();
  for item in &accepted.items {
    match item {
      Item::Announced(announced) => {
        ensure!(announced.epoch > order.epoch, "epoch {} is announced after {}", announced.epoch, order.epoch);
        (order.epoch, order.seq) = (announced.epoch, 0);
        if announced.counts {
          let same = order.input_from(announced.inputs_from) == order.input_from(order.next);
          ensure!(kinds.cuts || same, "epoch {} begins at input {}, not at {}", order.epoch, announced.inputs_from, order.next);
          order.next = announced.inputs_from;
        }
      }
      Item::Void(_) => {}
      Item::Decision(decision) => {
        order.decided(decision)?;
        chained(accepted, &mut chains, decision)?;
      }
      Item::Erased(head) => order.decided(head)?,
      Item::Unreadable { position, reason, .. } => return Err(format!("the record at {position} can't be opened: {reason}")),
    }
  }
  order.complete()
}

struct Order<'a> {
  accepted: &'a Accepted,
  cuts: bool,
  next: Position,
  epoch: i64,
  seq: i64,
  /// The cause of the latest decision on each position that is not marked held.
  decided: HashMap<Position, uuid::Uuid>,
}

impl Order<'_> {
  /// The first input at or after a position.
  fn input_from(&self, position: Position) -> Option<Position> {
    self.accepted.inputs.range(position..).next().map(|(position, _)| *position)
  }

  fn decided(&mut self, head: &DecisionHead) -> Result<(), String> {
    ensure!(head.epoch == self.epoch, "a decision of epoch {} is accepted in epoch {}", head.epoch, self.epoch);
    ensure!(head.seq == self.seq + 1, "seq {} follows {} in epoch {}", head.seq, self.seq, self.epoch);
    self.seq += i64::from(head.parts);
    if head.held {
      return Ok(());
    }
    if self.cuts {
      ensure!(head.input >= self.next, "input {} is decided after {}", head.input, self.next - 1);
    } else {
      ensure!(self.input_from(self.next) == Some(head.input), "input {} is decided when {:?} is next", head.input, self.input_from(self.next));
      let id = self.accepted.inputs.get(&head.input).map(|stored| stored.record.id);
      ensure!(id == Some(head.cause), "the decision on input {} is about {} and not {id:?}", head.input, head.cause);
    }
    self.next = head.input + 1;
    self.decided.insert(head.input, head.cause);
    Ok(())
  }

  fn complete(&self) -> Result<(), String> {
    if let Some((position, stored)) = self.accepted.inputs.range(self.next..).next() {
      return Err(format!("input {position} of partition {}, {}, is not decided", self.accepted.partition, stored.record.type_name));
    }
    for (position, stored) in &self.accepted.inputs {
      let decided = self.decided.get(position);
      ensure!(decided == Some(&stored.record.id), "at input {position} stands {} and was decided {decided:?}", stored.record.id);
    }
    Ok(())
  }
}

type Chain = (i64, [u8; 32], Timestamp);

fn chained(accepted: &Accepted, chains: &mut HashMap<AgentId, Chain>, decision: &Decision) -> Result<(), String> {
  let agent = decision.agent;
  let (mut ordinal, mut hash, mut at) = chains.get(&agent).copied().unwrap_or((0, NO_HASH, Timestamp(0)));
  ensure!(decision.events.len() == usize::try_from(decision.parts).unwrap_or(0), "a decision at {} is not whole", decision.first);
  for (part, recorded) in (1..).zip(decision.events.iter()) {
    let core = recorded.core();
    ensure!(core.part == part && core.cause == decision.cause, "the parts of the decision at {} are mixed up", decision.first);
    ensure!(core.ordinal == ordinal + 1, "ordinal {} of {agent} follows {ordinal} at {}", core.ordinal, recorded.position);
    ensure!(recorded.meta.prevhash == hash, "the chain of {agent} breaks at ordinal {}", core.ordinal);
    ensure!(core.at >= at, "the time of {agent} goes back at ordinal {}", core.ordinal);
    let stored: &Stored = accepted.events.get(&recorded.position).ok_or("an event was read that is not there")?;
    (ordinal, hash, at) = (core.ordinal, chain(&recorded.meta, &stored.record.type_name, &stored.record.value), core.at);
  }
  chains.insert(agent, (ordinal, hash, at));
  Ok(())
}
