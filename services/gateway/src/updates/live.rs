//! One subscription: backlog, then changes, pieces and steps as they come.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_graphql::ID;
use pa_eventlog::pieces::{Heard, Subscription as Pieces};
use pa_projections::live::Watch;
use pa_projections::updates::Update;
use tokio::time::sleep;

use super::feed::{Batch, Feed, Step};
use crate::edge::Edge;
use crate::graphql::subscription::{
  ActionUpserted, Change, ConversationUpserted, IndicatorChanged, MessageUpserted, OutputUpserted, ReplyPiece, Resync, SettingsUpserted, StepNamed,
  TaskEntryUpserted, TaskUpserted, UpdateEnvelope,
};
use crate::graphql::types::conversation::Conversation;
use crate::graphql::types::scalars::Position;
use crate::graphql::types::settings::Settings;
use crate::graphql::types::task::Task;
use crate::limits::{DECISION_WITHIN, FEED_LOOKS_EVERY};

/// Between two tries while the read model can't be reached.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How many subscriptions are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
  /// Subscriptions that are open now.
  pub(crate) fn open(&self) -> usize {
    self.0.load(Ordering::Relaxed)
  }

  fn one_more(&self) -> Counted {
    self.0.fetch_add(1, Ordering::Relaxed);
    metrics::gauge!("pa_subscriptions").increment(1.0);
    Counted(self.clone())
  }
}

/// Counts a subscription as long as it lives, however it ends.
struct Counted(Count);

impl Drop for Counted {
  fn drop(&mut self) {
    self.0.0.fetch_sub(1, Ordering::Relaxed);
    metrics::gauge!("pa_subscriptions").decrement(1.0);
  }
}

/// A subscription's state.
pub(crate) struct Live {
  edge: Edge,
  feed: Arc<Feed>,
  watch: Watch,
  pieces: Pieces,
  /// Everything up to here was sent.
  ordinal: i64,
  caught_up: bool,
  /// The next read is a look: what others have read already says nothing about a hint that was lost.
  looking: bool,
  ready: VecDeque<UpdateEnvelope>,
  _counted: Counted,
}

enum Heeded {
  Committed,
  Piece(Heard),
  /// Nothing was heard for a while: a hint can get lost between processes.
  Looking,
}

impl Live {
  /// Attaches a subscription after a position; `None`: from now on.
  pub(crate) async fn attach(edge: &Edge, agent: pa_domain::AgentId, after: Option<Position>) -> Result<Self, pa_projections::Error> {
    let watch = edge.live.watch(agent);
    let pieces = edge.pieces.subscribe(agent);
    let now = pa_projections::system::progress(&edge.reads, agent).await?;
    let mut live = Self {
      feed: edge.feeds.of(agent),
      edge: edge.clone(),
      watch,
      pieces,
      ordinal: now,
      caught_up: after.is_none(),
      looking: false,
      ready: VecDeque::new(),
      _counted: edge.subscriptions.one_more(),
    };
    if let Some(after) = after {
      let foreign = after.schema.as_deref().is_some_and(|schema| schema != edge.schema_mark() && schema != edge.read_schema);
      if foreign {
        live.resync("the read model was built anew");
      } else if after.ordinal <= now || edge.live.wait_for(&edge.reads, agent, after.ordinal, DECISION_WITHIN).await? {
        // A client that heard of its own decision before the read model has it is ahead of it for a moment.
        live.ordinal = after.ordinal;
      } else {
        // Nothing of this history will ever come after such a cursor: it was read from one that was taken back.
        live.ordinal = pa_projections::system::progress(&edge.reads, agent).await?;
        live.resync("ahead of the history");
      }
    }
    Ok(live)
  }

  /// The next change. `None` when the process stops.
  pub(crate) async fn next(&mut self) -> Option<UpdateEnvelope> {
    loop {
      if let Some(envelope) = self.ready.pop_front() {
        return Some(envelope);
      }
      if !self.caught_up {
        self.catch_up().await;
        continue;
      }
      match self.heed().await? {
        Heeded::Committed => self.caught_up = false,
        Heeded::Looking => (self.caught_up, self.looking) = (false, true),
        Heeded::Piece(heard) => self.heard(heard),
      }
    }
  }

  async fn heed(&mut self) -> Option<Heeded> {
    tokio::select! {
        () = self.edge.shutdown.cancelled() => None,
        _ = self.watch.changed() => Some(Heeded::Committed),
        heard = self.pieces.next() => Some(Heeded::Piece(heard?)),
        () = sleep(FEED_LOOKS_EVERY) => Some(Heeded::Looking),
    }
  }

  async fn catch_up(&mut self) {
    let known = if self.looking { self.watch.ordinal().max(self.ordinal + 1) } else { self.watch.ordinal() };
    match self.feed.after(&self.edge.reads, self.ordinal, known).await {
      Ok(Step::Changes(batch)) => {
        self.take(&batch);
        (self.caught_up, self.looking) = (true, false);
      }
      Ok(Step::Resync { ordinal }) => {
        self.ordinal = ordinal;
        self.resync("too far behind");
        (self.caught_up, self.looking) = (true, false);
      }
      Err(error) => {
        tracing::warn!(error = &error as &dyn std::error::Error, "a subscription can't read on now");
        sleep(AGAIN_AFTER).await;
      }
    }
  }

  fn take(&mut self, batch: &Batch) {
    let mut changes = batch.changes.iter().filter(|(ordinal, _)| *ordinal > self.ordinal).peekable();
    let mut covered = self.ordinal;
    while let Some((ordinal, update)) = changes.next() {
      // Whoever resumes after a cursor must get the rest of the changes that one event made.
      if changes.peek().is_none_or(|(next, _)| next > ordinal) {
        covered = *ordinal;
      }
      let cursor = Some(self.position(covered));
      self.ready.push_back(UpdateEnvelope { cursor, change: change(update) });
    }
    self.ordinal = self.ordinal.max(batch.ordinal);
  }

  fn resync(&mut self, reason: &str) {
    let cursor = Some(self.position(self.ordinal));
    self.ready.push_back(UpdateEnvelope { cursor, change: Change::Resync(Resync { reason: reason.to_owned() }) });
  }

  fn heard(&mut self, heard: Heard) {
    let change = match heard {
      Heard::Piece(piece) => {
        Change::ReplyPiece(ReplyPiece { message_id: ID::from(piece.message), attempt: piece.attempt, offset: piece.offset_utf16, text: piece.text.to_string() })
      }
      Heard::Step(step) => Change::StepNamed(StepNamed { conversation_id: ID::from(step.conversation), step: step.step.map(|step| step.to_string()) }),
    };
    self.ready.push_back(UpdateEnvelope { cursor: None, change });
  }

  fn position(&self, ordinal: i64) -> Position {
    Position { ordinal, schema: Some(self.edge.schema_mark().to_owned()) }
  }
}

fn change(update: &Update) -> Change {
  match update.clone() {
    Update::Entry(entry) => Change::MessageUpserted(MessageUpserted { message: (*entry).into() }),
    Update::Conversation(conversation) => Change::ConversationUpserted(ConversationUpserted { conversation: Conversation::now(conversation) }),
    Update::Settings(settings) => Change::SettingsUpserted(SettingsUpserted { settings: Settings(settings) }),
    Update::Indicator(indicator) => Change::IndicatorChanged(IndicatorChanged { indicator: indicator.into() }),
    Update::Task(task) => Change::TaskUpserted(TaskUpserted { task: Task(*task) }),
    Update::TaskEntry(entry) => Change::TaskEntryUpserted(TaskEntryUpserted { entry: (*entry).into() }),
    Update::Action(action) => Change::ActionUpserted(ActionUpserted { action: (*action).into() }),
    Update::Output(output) => Change::OutputUpserted(OutputUpserted { output: (*output).into() }),
  }
}
