//! Changes that the owner asks for.

use async_graphql::{Context, ID, InputObject, Object, Result, SimpleObject};
use pa_domain::conversation::{Event as ConversationEvent, MessageGiven, MessageRetryAsked, ReplyStopAsked};
use pa_domain::limits::MESSAGE_TEXT_BYTES_MAX;
use pa_domain::settings::SettingsGiven;
use pa_domain::{Event, MessageId, conversation, settings};
use pa_projections::conversation as read;
use serde_json::json;
use uuid::Uuid;

use tokio::time::Instant;

use super::env::{Env, unconfirmed};
use super::steering::{self, ActionPayload, DecideActionInput, InstructTaskInput, ReconcileActionInput, TaskPayload, TaskVerbInput, Verb};
use super::types::message::Message;
use super::types::scalars::Position;
use super::types::settings::{Settings, UpdateSettingsInput};
use crate::limits::DECISION_WITHIN;
use crate::requests::refusal::{UserError, UserErrorCode};
use crate::requests::submit::{Asked, Outcome, submit};
use crate::requests::{attach, repeat, syntax};

/// The root of all changes.
pub(crate) struct Mutation;

#[derive(InputObject)]
pub(crate) struct SendMessageInput {
  /// Names this request; sending it again has no second effect.
  request_key: String,
  /// At most 262,144 bytes.
  text: String,
  /// Ids of uploads, in the order in which they are shown.
  attachment_ids: Option<Vec<ID>>,
  /// Without it: the main conversation.
  conversation_id: Option<ID>,
}

/// Names a message to act on.
#[derive(InputObject)]
pub(crate) struct MessageVerbInput {
  /// Names this request; sending it again has no second effect.
  request_key: String,
  message_id: ID,
}

/// The answer to a mutation about a message.
#[derive(Default, SimpleObject)]
pub(crate) struct MessagePayload {
  /// The message; null when refused or not decided yet.
  message: Option<Message>,
  /// Where the decision stands in the log; null when refused or not decided yet.
  position: Option<Position>,
  /// False when the request was accepted but its decision was not read back in time; the same request key gets it later.
  decided: bool,
  user_errors: Vec<UserError>,
}

/// The answer to a change of the settings.
#[derive(Default, SimpleObject)]
pub(crate) struct SettingsPayload {
  /// The settings; null when refused or not decided yet.
  settings: Option<Settings>,
  /// Where the decision stands in the log; null when refused or not decided yet.
  position: Option<Position>,
  /// False when the request was accepted but its decision was not read back in time; the same request key gets it later.
  decided: bool,
  user_errors: Vec<UserError>,
}

/// All changes. An error with the code `UNCONFIRMED` says that nobody knows yet whether the request was accepted: sent again with the same request key, it can not be doubled, and its decision is told.
#[Object]
impl Mutation {
  /// Puts a message into a conversation (without an id: the main one). The text may be empty when there are attachments.
  async fn send_message(&self, context: &Context<'_>, input: SendMessageInput) -> Result<MessagePayload> {
    let env = Env::of(context);
    match given(env, input).await? {
      Ok((key, given)) => sent(env, &key, given).await,
      Err(error) => Ok(MessagePayload::refused(error)),
    }
  }

  /// Stops the reply to a message; the message may also still be waiting.
  async fn stop_reply(&self, context: &Context<'_>, input: MessageVerbInput) -> Result<MessagePayload> {
    let env = Env::of(context);
    let (key, message) = match verb(input) {
      Ok(checked) => checked,
      Err(error) => return Ok(MessagePayload::refused(error)),
    };
    let shown = shown(env, message).await?;
    // What was shown is ours, not the client's: asking again a moment later is the same request.
    let input = conversation::Input::from(ReplyStopAsked { message, shown });
    changed(env, Asked::new(&key, "stopReply", &json!(message), input.into()), message).await
  }

  /// Asks for the reply to a failed or stopped message again.
  async fn retry_message(&self, context: &Context<'_>, input: MessageVerbInput) -> Result<MessagePayload> {
    let env = Env::of(context);
    let (key, message) = match verb(input) {
      Ok(checked) => checked,
      Err(error) => return Ok(MessagePayload::refused(error)),
    };
    let input = conversation::Input::from(MessageRetryAsked { message });
    changed(env, Asked::new(&key, "retryMessage", &json!(message), input.into()), message).await
  }

  /// Adds an instruction to a task, also to one that has ended: it goes on in itself. What was begun before it is not published.
  async fn instruct_task(&self, context: &Context<'_>, input: InstructTaskInput) -> Result<TaskPayload> {
    steering::instruct(Env::of(context), input).await
  }

  /// Ends a task. What has begun outside is not undone.
  async fn stop_task(&self, context: &Context<'_>, input: TaskVerbInput) -> Result<TaskPayload> {
    steering::steer(Env::of(context), Verb::Stop, input).await
  }

  /// Lets nothing new of a task begin; a tool that runs finishes.
  async fn pause_task(&self, context: &Context<'_>, input: TaskVerbInput) -> Result<TaskPayload> {
    steering::steer(Env::of(context), Verb::Pause, input).await
  }

  /// Lets a task go on that is paused, stopped or failed, or that waits after too many interruptions. What it waited for it still waits for.
  async fn resume_task(&self, context: &Context<'_>, input: TaskVerbInput) -> Result<TaskPayload> {
    steering::steer(Env::of(context), Verb::Resume, input).await
  }

  /// Decides on an action that waits. It counts once: whoever comes second is told `STATE_CHANGED`.
  async fn decide_action(&self, context: &Context<'_>, input: DecideActionInput) -> Result<ActionPayload> {
    steering::decide(Env::of(context), input).await
  }

  /// Says what became of an action whose outcome nobody knows.
  async fn reconcile_action(&self, context: &Context<'_>, input: ReconcileActionInput) -> Result<ActionPayload> {
    steering::reconcile(Env::of(context), input).await
  }

  /// Changes the settings whose version is the given one.
  async fn update_settings(&self, context: &Context<'_>, input: UpdateSettingsInput) -> Result<SettingsPayload> {
    let env = Env::of(context);
    match settings_given(env, input).await? {
      Ok((key, given)) => set(env, &key, given).await,
      Err(error) => Ok(SettingsPayload::refused(error)),
    }
  }
}

impl MessagePayload {
  fn refused(error: UserError) -> Self {
    Self { decided: true, user_errors: vec![error], ..Self::default() }
  }

  fn answered(message: Option<Message>, ordinal: i64) -> Self {
    Self { message, position: Some(Position::of(ordinal)), decided: true, user_errors: Vec::new() }
  }
}

impl SettingsPayload {
  fn refused(error: UserError) -> Self {
    Self { decided: true, user_errors: vec![error], ..Self::default() }
  }
}

/// What the rules refused. A reason that is none of the outside's is a mistake of ours.
fn refusal(env: &Env, reason: &str) -> Result<UserError> {
  UserError::decided(reason).ok_or_else(|| env.failed(UnknownReason(reason.to_owned())))
}

#[derive(Debug, thiserror::Error)]
#[error("a request was refused for a reason without a code: {0}")]
struct UnknownReason(String);

impl super::env::Failure for UnknownReason {
  fn passes(&self) -> bool {
    false
  }
}

type Checked<T> = std::result::Result<(String, T), UserError>;

fn verb(input: MessageVerbInput) -> Checked<MessageId> {
  Ok((syntax::request_key(input.request_key)?, syntax::message(&input.message_id)?))
}

// --- Messages ---

async fn given(env: &Env, input: SendMessageInput) -> Result<Checked<MessageGiven>> {
  let ids = input.attachment_ids.unwrap_or_default();
  let checked = (|| {
    let key = syntax::request_key(input.request_key)?;
    let text = syntax::message_text(input.text, ids.len())?;
    let conversation = input.conversation_id.map(|id| syntax::conversation(&id)).transpose()?;
    Ok((key, text, conversation))
  })();
  let (key, text, conversation) = match checked {
    Ok(checked) => checked,
    Err(error) => return Ok(Err(error)),
  };
  let Some(attachments) = attach::attached(&env.edge, &env.viewer, &ids).await.map_err(|error| env.failed(error))? else {
    return Ok(Err(UserError::new(UserErrorCode::NotFound).at("attachmentIds")));
  };
  Ok(Ok((key, MessageGiven { conversation, text, attachments })))
}

async fn sent(env: &Env, key: &str, given: MessageGiven) -> Result<MessagePayload> {
  let deadline = Instant::now() + DECISION_WITHIN;
  let files: Vec<&str> = given.attachments.iter().map(|file| file.id.as_str()).collect();
  let fields = json!({ "conversation": given.conversation, "text": given.text, "files": files });
  let asked = Asked::new(key, "sendMessage", &fields, conversation::Input::from(given).into());
  let outcome = submit(&env.edge, &env.viewer, asked, deadline).await.map_err(|error| env.failed(error))?;
  match outcome {
    Outcome::Decided(decision) => {
      let message = decision.events.iter().find_map(|recorded| match &recorded.event {
        Event::Conversation(ConversationEvent::MessageAdmitted(admitted)) => Some(Message::admitted(recorded.core(), admitted)),
        _ => None,
      });
      Ok(MessagePayload::answered(message, decision.ordinal))
    }
    Outcome::Repeated { of, ordinal } => {
      if !env.reached(ordinal, deadline).await? {
        return Ok(MessagePayload::default());
      }
      let entry = read::by_input(&env.edge.reads, env.viewer.account, of).await.map_err(|error| env.failed(error))?;
      match entry {
        Some(entry) => Ok(MessagePayload::answered(Some(entry.clone().into()), entry.place)),
        None => Ok(match refused_before(env, of).await? {
          Some(error) => MessagePayload::refused(error),
          None => MessagePayload::answered(None, ordinal),
        }),
      }
    }
    Outcome::Unchanged { ordinal } => Ok(MessagePayload::answered(None, ordinal)),
    Outcome::Refused { reason } => Ok(MessagePayload::refused(refusal(env, &reason)?)),
    Outcome::Undecided => Ok(MessagePayload::default()),
    Outcome::Unconfirmed => Err(unconfirmed()),
  }
}

async fn changed(env: &Env, asked: Asked<'_>, message: MessageId) -> Result<MessagePayload> {
  let message = match concluded(env, asked).await? {
    Concluded::At { ordinal, reached: true } => {
      let entry = read::entry(&env.edge.reads, env.viewer.account, message).await.map_err(|error| env.failed(error))?;
      MessagePayload::answered(entry.map(Message::from), ordinal)
    }
    Concluded::At { ordinal, reached: false } => MessagePayload::answered(None, ordinal),
    Concluded::Refused(error) => MessagePayload::refused(error),
    Concluded::Undecided => MessagePayload::default(),
  };
  Ok(message)
}

/// What of the reply the page has shown so far, as this process kept it.
async fn shown(env: &Env, message: MessageId) -> Result<String> {
  let entry = read::entry(&env.edge.reads, env.viewer.account, message).await.map_err(|error| env.failed(error))?;
  let Some(reply) = entry.and_then(|entry| entry.reply) else { return Ok(String::new()) };
  let text = env.edge.pieces.text_so_far(env.viewer.account, reply).unwrap_or_default();
  Ok(cut(&text, MESSAGE_TEXT_BYTES_MAX).to_owned())
}

/// The longest beginning of at most `bytes_max` bytes that ends between two characters.
fn cut(text: &str, bytes_max: usize) -> &str {
  &text[..text.floor_char_boundary(bytes_max)]
}

// --- Settings ---

async fn settings_given(env: &Env, input: UpdateSettingsInput) -> Result<Checked<SettingsGiven>> {
  let key = match syntax::request_key(input.request_key) {
    Ok(key) => key,
    Err(error) => return Ok(Err(error)),
  };
  let given = SettingsGiven {
    version: input.version,
    time_zone: input.time_zone.map(syntax::storable),
    language: input.language.map(syntax::storable),
    concurrency: input.concurrency,
    model: input.model.map(syntax::storable),
    effort: input.effort.map(Into::into),
    name: input.name.map(syntax::storable),
    avatar: input.avatar.map(syntax::storable),
  };
  let current = if given.model.is_some() || given.effort.is_some() { env.settings().await?.model } else { String::new() };
  Ok(syntax::settings(&given, &env.edge.models, &current).map(|()| (key, given)))
}

async fn set(env: &Env, key: &str, given: SettingsGiven) -> Result<SettingsPayload> {
  let asked = Asked::new(key, "updateSettings", &json!(given), settings::Input::from(given).into());
  let (ordinal, reached) = match concluded(env, asked).await? {
    Concluded::At { ordinal, reached } => (ordinal, reached),
    Concluded::Refused(error) => return Ok(SettingsPayload::refused(error)),
    Concluded::Undecided => return Ok(SettingsPayload::default()),
  };
  let settings = if reached { pa_projections::settings::of(&env.edge.reads, env.viewer.account).await.map_err(|error| env.failed(error))? } else { None };
  Ok(SettingsPayload { settings: settings.map(Settings), position: Some(Position::of(ordinal)), decided: true, user_errors: Vec::new() })
}

// --- Decisions ---

/// What became of a request whose answer is a row of the read model.
pub(super) enum Concluded {
  /// Decided at this ordinal, and whether the read model has come as far; one that has not says so by `stale`.
  At {
    ordinal: i64,
    reached: bool,
  },
  Refused(UserError),
  Undecided,
}

pub(super) async fn concluded(env: &Env, asked: Asked<'_>) -> Result<Concluded> {
  let deadline = Instant::now() + DECISION_WITHIN;
  let outcome = submit(&env.edge, &env.viewer, asked, deadline).await.map_err(|error| env.failed(error))?;
  let (ordinal, repeated) = match outcome {
    Outcome::Decided(decision) => (decision.ordinal, None),
    Outcome::Unchanged { ordinal } => (ordinal, None),
    Outcome::Repeated { of, ordinal } => (ordinal, Some(of)),
    Outcome::Refused { reason } => return Ok(Concluded::Refused(refusal(env, &reason)?)),
    Outcome::Undecided => return Ok(Concluded::Undecided),
    Outcome::Unconfirmed => return Err(unconfirmed()),
  };
  let reached = env.reached(ordinal, deadline).await?;
  let Some(of) = repeated else { return Ok(Concluded::At { ordinal, reached }) };
  if !reached {
    // What the first decision said is looked up in the read model.
    return Ok(Concluded::Undecided);
  }
  Ok(match refused_before(env, of).await? {
    Some(error) => Concluded::Refused(error),
    None => Concluded::At { ordinal, reached },
  })
}

async fn refused_before(env: &Env, of: Uuid) -> Result<Option<UserError>> {
  let reason = repeat::refusal_of(&env.edge, &env.viewer, of).await.map_err(|error| env.failed(error))?;
  reason.map(|reason| refusal(env, &reason)).transpose()
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn what_was_shown_is_cut_between_two_characters() {
    assert_eq!(cut("héllo", 2), "h");
    assert_eq!(cut("héllo", 3), "hé");
    assert_eq!(cut("hé", 10), "hé");
  }
}
