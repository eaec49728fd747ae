//! Text while it is written, and what the agent does now: heard at once, best effort, never a fact.
//!
//! One [`Pieces`] for each process. It keeps the text so far of every reply that is being written, so that whoever comes later hears the whole of it first. A
//! subscriber has no queue: it looks at what is kept and hears what it does not have yet, so a slow one gets larger pieces and nobody lags. Invariants:
//! - Offsets count UTF-16 units, as the page does.
//! - A piece of a lower attempt than the kept one, or of a reply that has ended, is ignored; a higher attempt begins with an empty text.
//! - What is kept is bounded: text of one reply, replies of one agent, and it goes with the end of the reply.
//!
//! In one process everything goes through memory; between processes [`Link`] carries it in the stream `pa.stream`. Next: `kept.rs`.

mod kept;
mod link;
mod subscription;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pa_domain::{AgentId, ConversationId, Event, MessageId, agent, conversation};
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::reader::Decision;
use kept::{Kept, Source};

pub use link::Link;
pub use subscription::Subscription;

/// Parts of the map with a lock each: agents must not wait for each other.
const SHARDS: usize = 16;

/// A piece of a reply that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
  /// The reply's id.
  pub message: MessageId,
  /// Rises with every try.
  pub attempt: i32,
  /// Where the piece begins.
  pub offset_utf16: i64,
  pub text: Arc<str>,
}

/// What the agent does now in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedStep {
  pub conversation: ConversationId,
  /// A code such as a tool's name; `None`: nothing in particular (any more).
  pub step: Option<Arc<str>>,
}

/// What a subscriber hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
  Piece(Piece),
  Step(NamedStep),
}

/// What is kept of one agent, and who hears of it.
struct Agent {
  kept: Kept,
  changed: watch::Sender<u64>,
}

impl Agent {
  fn new() -> Self {
    Self { kept: Kept::default(), changed: watch::Sender::new(0) }
  }

  fn is_idle(&self) -> bool {
    self.kept.is_empty() && self.changed.receiver_count() == 0
  }
}

/// The pieces of this process.
pub struct Pieces {
  shards: [Mutex<HashMap<AgentId, Agent>>; SHARDS],
  others: watch::Sender<bool>,
  /// Agents with something that other processes have not been told.
  dirty: Mutex<HashSet<AgentId>>,
  told: Notify,
}

impl Default for Pieces {
  fn default() -> Self {
    Self { shards: std::array::from_fn(|_| Mutex::default()), others: watch::Sender::new(false), dirty: Mutex::default(), told: Notify::new() }
  }
}

impl Pieces {
  /// Pieces in memory; [`Self::run`] ties them to the log.
  pub fn new() -> Arc<Self> {
    Arc::new(Self::default())
  }

  /// Hands on a piece.
  pub fn publish(&self, agent: AgentId, piece: &Piece) {
    self.change(agent, Source::Here, |kept| kept.accept(piece, Source::Here, Instant::now()));
  }

  /// Says what the agent does now in a conversation.
  pub fn step(&self, agent: AgentId, conversation: ConversationId, step: Option<&str>) {
    self.change(agent, Source::Here, |kept| kept.name_step(conversation, step, Source::Here));
  }

  /// Ends a reply: its text stands in the log now, or never will.
  pub fn finish(&self, agent: AgentId, message: MessageId) {
    let mut shard = self.shard(agent).lock();
    if let Some(known) = shard.get_mut(&agent) {
      known.kept.finish(message);
      if known.is_idle() {
        shard.remove(&agent);
      }
    }
  }

  /// Subscribes to an agent: first the whole texts so far, then what comes.
  pub fn subscribe(self: &Arc<Self>, agent: AgentId) -> Subscription {
    let changed = self.shard(agent).lock().entry(agent).or_insert_with(Agent::new).changed.subscribe();
    Subscription::new(Arc::clone(self), agent, changed)
  }

  /// The text so far of a reply that is being written.
  pub fn text_so_far(&self, agent: AgentId, message: MessageId) -> Option<String> {
    self.shard(agent).lock().get(&agent)?.kept.text(message).map(str::to_owned)
  }

  /// Says whether other processes are there to be told.
  pub fn set_others(&self, others: bool) {
    self.others.send_if_modified(|known| std::mem::replace(known, others) != others);
  }

  /// Ends replies as the log decides so, and with a [`Link`] exchanges pieces with other processes while there are some. Runs until `stop`.
  pub async fn run(self: Arc<Self>, decisions: broadcast::Receiver<Arc<Decision>>, link: Option<Link>, stop: CancellationToken) {
    let exchanged = async {
      match &link {
        Some(link) => link.run(&self).await,
        None => std::future::pending().await,
      }
    };
    tokio::select! {
      biased;
      () = stop.cancelled() => {}
      () = self.follow(decisions) => {}
      () = exchanged => {}
    }
  }

  async fn follow(&self, mut decisions: broadcast::Receiver<Arc<Decision>>) {
    loop {
      match decisions.recv().await {
        Ok(decision) => self.heed(&decision),
        // What ended unseen is left out by its age.
        Err(broadcast::error::RecvError::Lagged(_)) => self.sweep(Instant::now()),
        Err(broadcast::error::RecvError::Closed) => return,
      }
    }
  }

  /// Takes in what a decision ends.
  pub fn heed(&self, decision: &Decision) {
    for recorded in decision.events.iter() {
      match &recorded.event {
        Event::Conversation(conversation::Event::ReplyPosted(posted)) => self.end(decision.agent, posted.reply, posted.conversation),
        Event::Conversation(conversation::Event::ReplyStopped(stopped)) => self.end(decision.agent, stopped.reply, stopped.conversation),
        Event::Conversation(conversation::Event::ReplyFailed(failed)) => self.end(decision.agent, failed.reply, failed.conversation),
        Event::Conversation(conversation::Event::ReportSuperseded(superseded)) => {
          self.end(decision.agent, superseded.reply, superseded.conversation);
        }
        Event::Agent(agent::Event::AgentErased(_)) => {
          self.shard(decision.agent).lock().remove(&decision.agent);
        }
        Event::Account(_)
        | Event::Agent(_)
        | Event::Call(_)
        | Event::Conversation(_)
        | Event::Execution(_)
        | Event::Log(_)
        | Event::Settings(_)
        | Event::Task(_)
        | Event::Timer(_) => {}
      }
    }
  }

  fn end(&self, agent: AgentId, reply: MessageId, conversation: ConversationId) {
    self.step_if_known(agent, conversation);
    self.finish(agent, reply);
  }

  fn step_if_known(&self, agent: AgentId, conversation: ConversationId) {
    if self.shard(agent).lock().get(&agent).is_some_and(|known| known.kept.has_step(conversation)) {
      self.step(agent, conversation, None);
    }
  }

  /// Lets go of texts that nobody has touched for long: their end was missed.
  fn sweep(&self, now: Instant) {
    for shard in &self.shards {
      shard.lock().retain(|_, agent| {
        agent.kept.sweep(now);
        !agent.is_idle()
      });
    }
  }

  fn change(&self, agent: AgentId, source: Source, change: impl FnOnce(&mut Kept) -> bool) {
    let mut shard = self.shard(agent).lock();
    let known = shard.entry(agent).or_insert_with(Agent::new);
    if change(&mut known.kept) {
      known.changed.send_modify(|n| *n += 1);
    } else if known.is_idle() {
      shard.remove(&agent);
      return;
    } else {
      return;
    }
    drop(shard);
    if source == Source::Here && *self.others.borrow() {
      self.dirty.lock().insert(agent);
      self.told.notify_one();
    }
  }

  fn shard(&self, agent: AgentId) -> &Mutex<HashMap<AgentId, Agent>> {
    &self.shards[usize::from(agent.0.as_bytes()[15]) % SHARDS]
  }
}
