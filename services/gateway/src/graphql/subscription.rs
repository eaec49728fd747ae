//! What changes, as it changes.

use async_graphql::{Context, ID, Result, SimpleObject, Subscription, Union};
use futures::stream::{self, Stream};

use super::env::Env;
use super::types::action::Action;
use super::types::conversation::Conversation;
use super::types::indicator::Indicator;
use super::types::message::Message;
use super::types::output::Output;
use super::types::scalars::Position;
use super::types::settings::Settings;
use super::types::task::{Task, TaskEntry};
use crate::updates::Live;

/// The root of all subscriptions.
pub(crate) struct Updates;

/// One change, with the position to resume after.
#[derive(SimpleObject)]
pub(crate) struct UpdateEnvelope {
  /// The position to resume after; null on reply pieces and step names.
  pub cursor: Option<Position>,
  pub change: Change,
}

/// What changed.
#[derive(Union)]
pub(crate) enum Change {
  MessageUpserted(MessageUpserted),
  ConversationUpserted(ConversationUpserted),
  SettingsUpserted(SettingsUpserted),
  IndicatorChanged(IndicatorChanged),
  TaskUpserted(TaskUpserted),
  TaskEntryUpserted(TaskEntryUpserted),
  ActionUpserted(ActionUpserted),
  OutputUpserted(OutputUpserted),
  ReplyPiece(ReplyPiece),
  StepNamed(StepNamed),
  Resync(Resync),
}

/// A message appeared or changed.
#[derive(SimpleObject)]
pub(crate) struct MessageUpserted {
  pub message: Message,
}

/// A conversation appeared or changed.
#[derive(SimpleObject)]
pub(crate) struct ConversationUpserted {
  pub conversation: Conversation,
}

/// The settings changed.
#[derive(SimpleObject)]
pub(crate) struct SettingsUpserted {
  pub settings: Settings,
}

/// The facts behind the indicator changed.
#[derive(SimpleObject)]
pub(crate) struct IndicatorChanged {
  pub indicator: Indicator,
}

/// A task appeared or changed.
#[derive(SimpleObject)]
pub(crate) struct TaskUpserted {
  pub task: Task,
}

/// An entry of a task appeared or changed.
#[derive(SimpleObject)]
pub(crate) struct TaskEntryUpserted {
  pub entry: TaskEntry,
}

/// An action appeared or changed; one that no longer waits says so by its state.
#[derive(SimpleObject)]
pub(crate) struct ActionUpserted {
  pub action: Action,
}

/// A file was handed over.
#[derive(SimpleObject)]
pub(crate) struct OutputUpserted {
  pub output: Output,
}

/// A piece of a reply that is being written. Pieces of a lower attempt, and of a message that is posted, are void.
#[derive(SimpleObject)]
pub(crate) struct ReplyPiece {
  pub message_id: ID,
  /// Rises with every try; a new attempt begins with an empty text.
  pub attempt: i32,
  /// Where the piece belongs, in UTF-16 units from the beginning of the text.
  pub offset: i64,
  pub text: String,
}

/// What the agent does now in a conversation.
#[derive(SimpleObject)]
pub(crate) struct StepNamed {
  pub conversation_id: ID,
  /// A code that the page renders in the reader's language; null when no step is under way.
  pub step: Option<String>,
}

/// The subscriber must read everything afresh, and drop what is no longer there: its cursor is of another read schema, lies more than 500 rows behind, or lies ahead of
/// the agent's history, as after a restore of an older backup.
#[derive(SimpleObject)]
pub(crate) struct Resync {
  /// Words for a log: "the read model was built anew", "too far behind", or "ahead of the history".
  pub reason: String,
}

#[Subscription(name = "Subscription")]
impl Updates {
  /// Every change after the position, then every change as it happens.
  async fn updates(&self, context: &Context<'_>, after: Option<Position>) -> Result<impl Stream<Item = UpdateEnvelope>> {
    let env = Env::of(context);
    let live = Live::attach(&env.edge, env.viewer.account, after).await.map_err(|error| env.failed(error))?;
    Ok(stream::unfold(live, |mut live| async move { live.next().await.map(|envelope| (envelope, live)) }))
  }
}
