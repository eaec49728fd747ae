//! Records and logs to measure with: sealed, chained and fenced as the product writes them.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use pa_domain::conversation::{Event as ConversationEvent, ReplyPosted};
use pa_domain::log::EpochAnnounced;
use pa_domain::meta::Kind;
use pa_domain::{AgentId, Event, Meta, Origin, Timestamp};
use pa_eventlog::compose::{Composer, Draft};
use pa_eventlog::meta::{NO_HASH, partition_of};
use pa_eventlog::opener::Opener;
use pa_eventlog::{EventLog, Partition, Record, Stream};
use pa_projections::testing::{Decision, Story};
use pa_store::keys::{AgentKeys, KeyRing, Lookup};
use uuid::Uuid;

pub(super) const PARTITIONS: Partition = 8;
/// Header and value bytes of a record, as the targets count them.
pub(super) const RECORD_BYTES: usize = 1_024;
/// Records of one append while a log is filled.
const FILL_RECORDS: usize = 512;
const AT: Timestamp = Timestamp(1_767_225_600_000);

/// The agent with a number.
pub(super) fn agent(number: u128) -> AgentId {
  AgentId(Uuid::from_u128(0x0192_f0c1_7b2e_7c3a_9d4e_0000_0000_0000 + number))
}

/// Keys of an agent, without a database.
pub(super) async fn keys_of(ring: &KeyRing, agent: AgentId) -> Result<Arc<AgentKeys>> {
  match ring.get(agent).await.context("the keys of an agent")? {
    Lookup::Key(keys) => Ok(keys),
    Lookup::Erased(_) | Lookup::Missing => bail!("agent {agent} has no keys"),
  }
}

/// An opener for what is made here.
pub(super) fn opener() -> Arc<Opener> {
  Arc::new(Opener::new(Arc::new(KeyRing::fixed()), true))
}

/// The metadata of an input.
pub(super) fn input_meta(id: Uuid, agent: AgentId) -> Meta {
  Meta {
    id,
    kind: Kind::Input,
    agent,
    ordinal: 0,
    at: AT,
    cause: Uuid::nil(),
    correlation: id,
    actor: "owner".to_owned(),
    origin: Origin::Owner,
    producer: "account".to_owned(),
    key: vec![7; 32],
    input: 0,
    held: false,
    part: 0,
  }
}

/// One agent's author of decisions whose records are [`RECORD_BYTES`] long.
pub(super) struct Author {
  pub(super) partition: Partition,
  composer: Composer,
  keys: Arc<AgentKeys>,
  agent: AgentId,
  events: Vec<Event>,
  ordinal: i64,
  chain: [u8; 32],
}

impl Author {
  pub(super) async fn new(number: u128, events: usize) -> Result<Self> {
    let agent = agent(number);
    let keys = keys_of(&KeyRing::fixed(), agent).await?;
    let mut author = Self {
      partition: partition_of(agent, PARTITIONS),
      composer: Composer::new(true, "pa/decider"),
      keys,
      agent,
      events: vec![posted(0)],
      ordinal: 0,
      chain: NO_HASH,
    };
    let bare = author.compose()?[0].size_bytes();
    author.events = vec![posted(RECORD_BYTES - bare); events];
    Ok(author)
  }

  /// The next decision's records.
  pub(super) fn compose(&mut self) -> Result<Vec<Record>> {
    let id = Uuid::from_u128(self.agent.0.as_u128() ^ (u128::from(self.ordinal.unsigned_abs()) << 20));
    let (input, events) = (input_meta(id, self.agent), &self.events);
    let draft = Draft {
      input: &input,
      position: self.ordinal,
      held: false,
      at: AT,
      epoch: 1,
      seq: self.ordinal + 1,
      ordinal: self.ordinal,
      chain: self.chain,
      first_index: 0,
      events,
    };
    let composed = self.composer.decision(Some(&self.keys), &draft, None).context("compose a decision")?;
    self.ordinal += i64::try_from(events.len()).context("few events")?;
    self.chain = composed.chain;
    Ok(composed.records)
  }
}

fn posted(text_bytes: usize) -> Event {
  let id = Uuid::from_u128(5);
  let text = "what was said in this reply ".chars().cycle().take(text_bytes).collect();
  Event::Conversation(ConversationEvent::ReplyPosted(ReplyPosted { job: id.into(), conversation: id.into(), reply: id.into(), text, incomplete: false }))
}

/// Turns of several agents: three decisions and eight events each, with texts of `text_bytes`.
pub(super) fn turns(agents: u128, each: usize, text_bytes: usize) -> Story {
  let mut story = Story::default();
  let text: String = "a question and its answer ".chars().cycle().take(text_bytes).collect();
  (0..agents).for_each(|number| story.create(agent(number)));
  for _ in 0..each {
    for number in 0..agents {
      story.turn(agent(number), &text, &text);
    }
  }
  story
}

/// Writes a story into `pa.events` as the first term of each partition; the number of events.
pub(super) async fn fill(log: &Arc<dyn EventLog>, partitions: Partition, story: &Story) -> Result<u64> {
  let mut filler = Filler::begin(log, KeyRing::fixed(), partitions)?;
  filler.add(&story.decisions).await?;
  filler.end().await
}

/// Fills a log with a story that comes in pieces, however long it is.
pub(super) struct Filler {
  log: Arc<dyn EventLog>,
  ring: KeyRing,
  composer: Composer,
  chains: HashMap<AgentId, (i64, [u8; 32])>,
  parts: Vec<Part>,
  filled: u64,
}

/// A partition that is filled.
struct Part {
  waiting: Vec<Record>,
  seq: i64,
  input: i64,
}

impl Filler {
  /// The first term of each partition of an empty log, sealed under the keys of `ring`.
  pub(super) fn begin(log: &Arc<dyn EventLog>, ring: KeyRing, partitions: Partition) -> Result<Self> {
    let composer = Composer::new(true, "pa/decider");
    let mut parts = Vec::new();
    for partition in 0..partitions {
      let announced = EpochAnnounced { inputs_from: 0, base_epoch: 0, base_seq: 0, holder: Uuid::from_u128(7).into() };
      let announcement = composer.announcement(Uuid::from_u128(0xe000 + u128::from(partition)), 1, AT, announced).context("compose an announcement")?;
      parts.push(Part { waiting: vec![announcement], seq: 1, input: 0 });
    }
    Ok(Self { log: Arc::clone(log), ring, composer, chains: HashMap::new(), parts, filled: 0 })
  }

  /// Goes on with these decisions.
  pub(super) async fn add(&mut self, decisions: &[Decision]) -> Result<()> {
    for decision in decisions {
      let (meta, _) = decision.facts.first().context("a decision has events")?;
      let partition = partition_of(meta.agent, Partition::try_from(self.parts.len()).context("few partitions")?);
      let (agent, events) = (meta.agent, decision.facts.iter().map(|(_, event)| event.clone()).collect::<Vec<Event>>());
      let keys = self.ring.get_or_create(agent).await.context("the keys of an agent")?;
      let part = &mut self.parts[usize::from(partition)];
      let (ordinal, chain) = self.chains.get(&agent).copied().unwrap_or((0, NO_HASH));
      let input = input_meta(meta.cause, agent);
      let draft = Draft { input: &input, position: part.input, held: false, at: AT, epoch: 1, seq: part.seq, ordinal, chain, first_index: 0, events: &events };
      let composed = self.composer.decision(Some(&*keys), &draft, None).context("compose a decision")?;
      let count = i64::try_from(events.len()).context("few events")?;
      (part.seq, part.input) = (part.seq + count, part.input + 1);
      part.waiting.extend(composed.records);
      self.chains.insert(agent, (ordinal + count, composed.chain));
      self.filled += events.len() as u64;
      if self.parts[usize::from(partition)].waiting.len() >= FILL_RECORDS {
        self.write(partition).await?;
      }
    }
    Ok(())
  }

  async fn write(&mut self, partition: Partition) -> Result<()> {
    let records = std::mem::take(&mut self.parts[usize::from(partition)].waiting);
    if !records.is_empty() {
      self.log.append(Stream::Events, partition, records).await.context("fill the log")?;
    }
    Ok(())
  }

  /// Writes what waits; the number of events so far.
  pub(super) async fn flush(&mut self) -> Result<u64> {
    for partition in (0..).take(self.parts.len()) {
      self.write(partition).await?;
    }
    Ok(self.filled)
  }

  /// Writes the rest; the number of events.
  pub(super) async fn end(mut self) -> Result<u64> {
    self.flush().await
  }
}
