//! What people were told: it stands in the log, once, in their order.

use std::collections::{HashMap, HashSet};

use pa_domain::conversation::{Event as ConversationEvent, MessageAdmitted};
use pa_domain::{AgentId, Event};
use uuid::Uuid;

use super::super::record::Told;
use super::super::watcher::Look;
use super::super::world::World;
use super::{Accepted, ensure};

/// A message as it stands in the log.
struct Admitted {
  agent: AgentId,
  ordinal: i64,
  cause: Uuid,
}

/// Whatever was shown was the beginning of what stands in the end.
pub(in super::super) fn looks(world: &World) -> Result<(), String> {
  let store = world.shared.model.store();
  for look in world.record.all_looks() {
    let end = Look::at(&store, look.agent);
    ensure!(look.begins(&end), "{} was shown {:?} at {}, and in the end there stands {:?}", look.agent, look.entries, look.upto, end.entries);
  }
  Ok(())
}

pub(in super::super) fn check(all: &[Accepted], world: &World) -> Result<(), String> {
  let decisions: HashSet<Told> = all.iter().flat_map(|accepted| &accepted.items).filter_map(|item| item.decided()).map(Told::of).collect();
  for told in world.record.all_told() {
    ensure!(decisions.contains(&told), "somebody was told of a decision that is not in the log: {told:?}");
  }
  let mut admitted: HashMap<&str, Vec<Admitted>> = HashMap::new();
  for recorded in all.iter().flat_map(Accepted::decisions).flat_map(|decision| decision.events.iter()) {
    if let Event::Conversation(ConversationEvent::MessageAdmitted(MessageAdmitted { text, .. })) = &recorded.event {
      let core = recorded.core();
      admitted.entry(text).or_default().push(Admitted { agent: core.agent, ordinal: core.ordinal, cause: core.cause });
    }
  }
  for (text, times) in &admitted {
    ensure!(times.len() == 1, "{text:?} stands {} times in the log", times.len());
  }
  let mut last: HashMap<String, (u64, i64)> = HashMap::new();
  for message in world.record.all_acknowledged() {
    let Some([stands]) = admitted.get(message.text.as_str()).map(Vec::as_slice) else {
      return Err(format!("{:?} was acknowledged and is not in the log", message.text));
    };
    ensure!(stands.agent == message.agent, "{:?} went to another agent", message.text);
    ensure!(message.input.is_none_or(|input| input == stands.cause), "{:?} stands for another input than its sender was told", message.text);
    if let Some((number, ordinal)) = last.insert(message.source.clone(), (message.number, stands.ordinal)) {
      ensure!(number < message.number && ordinal < stands.ordinal, "{:?} stands before what was sent before it", message.text);
    }
  }
  Ok(())
}
