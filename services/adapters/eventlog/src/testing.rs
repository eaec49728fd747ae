//! Makes logs for tests: announcements, inputs and decisions with real records, chained and sealed.

use std::collections::HashMap;
use std::sync::Arc;

use pa_domain::conversation::{Event as ConversationEvent, MessageGiven};
use pa_domain::log::{EpochAnnounced, Event as LogEvent, InputSettled, Settlement};
use pa_domain::meta::Kind;
use pa_domain::{AgentId, Event, Input, Meta, Origin, Timestamp};
use pa_store::keys::{AgentKeys, KeyRing};
use uuid::Uuid;

use crate::compose::{Composed, Composer, Draft};
use crate::fence::Base;
use crate::meta::{NO_HASH, PaMeta, Place};
use crate::opener::Opener;
use crate::record::{Position, Record};
use crate::seal::{KeyState, Keys};

/// Metadata with little in it.
pub fn meta_of_kind(kind: Kind) -> PaMeta {
  PaMeta::new(core(kind, Uuid::from_u128(1), AgentId(Uuid::from_u128(2))), NO_HASH, Place::of_input(0))
}

fn core(kind: Kind, id: Uuid, agent: AgentId) -> Meta {
  Meta {
    id,
    kind,
    agent,
    ordinal: i64::from(kind == Kind::Event),
    at: Timestamp(1_767_225_600_000),
    cause: Uuid::nil(),
    correlation: id,
    actor: "owner".to_owned(),
    origin: Origin::Owner,
    producer: String::new(),
    key: Vec::new(),
    input: 0,
    held: false,
    part: 0,
  }
}

/// Writes the records that inputs and a decider would write, without deciding anything.
pub struct Script {
  pub keys: KeyRing,
  composer: Composer,
  sealed: bool,
  chains: HashMap<AgentId, (i64, [u8; 32])>,
  made: u128,
}

impl Script {
  /// A script for a log whose values are `sealed` or not.
  pub fn new(sealed: bool) -> Self {
    Self { keys: KeyRing::fixed(), composer: Composer::new(sealed, "pa/test"), sealed, chains: HashMap::new(), made: 0 }
  }

  /// The agent with number `n`.
  pub fn agent(n: u128) -> AgentId {
    AgentId(Uuid::from_u128(0xa000 + n))
  }

  /// The id of the input with number `n`.
  pub fn input_id(n: Position) -> Uuid {
    Uuid::from_u128(0xb000 + u128::from(n.unsigned_abs()))
  }

  /// An opener with this script's keys.
  pub fn opener(&self) -> Arc<Opener> {
    Arc::new(Opener::new(Arc::new(self.keys.clone()), self.sealed))
  }

  /// An announcement with a fresh id.
  pub fn announcement(&mut self, epoch: i64, base: Base, inputs_from: Position) -> Record {
    self.made += 1;
    let announced = EpochAnnounced { inputs_from, base_epoch: base.epoch, base_seq: base.seq, holder: Uuid::from_u128(7).into() };
    self.composer.announcement(Uuid::from_u128(0xe000 + self.made), epoch, Timestamp(0), announced).expect("a small record")
  }

  /// The input with number `n`, of agent `agent`.
  pub async fn input(&self, agent: u128, n: Position, text: &str) -> Record {
    let agent = Self::agent(agent);
    let input = Input::from(pa_domain::conversation::Input::from(MessageGiven { conversation: None, text: text.to_owned(), attachments: Vec::new() }));
    self.composer.input(&*self.agent_keys(agent).await, core(Kind::Input, Self::input_id(n), agent), &input, None).expect("a small record")
  }

  /// The decision of `agent` on the input with number and position `input`, of `parts` events, chained to the agent's last.
  pub async fn decision(&mut self, agent: u128, (epoch, seq): (i64, i64), input: Position, parts: usize) -> Vec<Record> {
    let events = vec![settled("NOTHING"); parts];
    let agent = Self::agent(agent);
    let (ordinal, chain) = self.chains.get(&agent).copied().unwrap_or((0, NO_HASH));
    let composed = self.compose(agent, (epoch, seq), input, (ordinal, chain), &events).await;
    self.chains.insert(agent, (ordinal + i64::try_from(parts).expect("few"), composed.chain));
    composed.records
  }

  /// A decision with events of your own, chained to nothing.
  pub async fn decision_of(&self, agent: u128, (epoch, seq): (i64, i64), input: Position, events: &[Event]) -> Composed {
    self.compose(Self::agent(agent), (epoch, seq), input, (0, NO_HASH), events).await
  }

  async fn compose(&self, agent: AgentId, (epoch, seq): (i64, i64), input: Position, (ordinal, chain): (i64, [u8; 32]), events: &[Event]) -> Composed {
    let meta = core(Kind::Input, Self::input_id(input), agent);
    let draft =
      Draft { input: &meta, position: input, held: false, at: Timestamp(1_767_225_600_000 + input), epoch, seq, ordinal, chain, first_index: 0, events };
    self.composer.decision(Some(&*self.agent_keys(agent).await), &draft, None).expect("small records")
  }

  async fn agent_keys(&self, agent: AgentId) -> Arc<AgentKeys> {
    match Keys::keys(&self.keys, agent).await {
      Ok(KeyState::Ready(keys)) => keys,
      other => panic!("agent {agent} has no keys: {other:?}"),
    }
  }
}

/// An event that says little.
pub fn settled(reason: &str) -> Event {
  Event::Log(LogEvent::InputSettled(InputSettled { outcome: Settlement::NoChange, reason: reason.to_owned(), of: None }))
}

/// An event with text.
pub fn posted(text: &str) -> Event {
  let id = Uuid::from_u128(5);
  Event::Conversation(ConversationEvent::ReplyPosted(pa_domain::conversation::ReplyPosted {
    job: id.into(),
    conversation: id.into(),
    reply: id.into(),
    text: text.to_owned(),
    incomplete: false,
  }))
}
