//! Conversations as the outside sees them.

use async_graphql::{Context, Enum, ID, Object, Result};
use pa_domain::conversation::ConversationKind as Kind;
use pa_projections::conversation as read;

use super::message::MessageConnection;
use crate::graphql::env::Env;
use crate::graphql::past::{self, Upto};
use crate::limits::{PAGE_DEFAULT, PAGE_MAX};

/// A conversation, as it is or as it was.
#[derive(Clone, Debug)]
pub(crate) struct Conversation(pub read::Conversation, Option<Upto>);

impl Conversation {
  /// A conversation as the read model has it.
  pub(crate) fn now(row: read::Conversation) -> Self {
    Self(row, None)
  }

  /// A conversation as of an event.
  pub(crate) fn past(row: read::Conversation, upto: Upto) -> Self {
    Self(row, Some(upto))
  }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum ConversationKind {
  /// The owner's one conversation with the agent.
  Main,
  /// A conversation on a connected platform.
  Channel,
  /// The conversation of a task.
  Task,
}

/// A conversation with its entries in the order in which they were admitted.
#[Object]
impl Conversation {
  async fn id(&self) -> ID {
    ID::from(self.0.id)
  }

  async fn kind(&self) -> ConversationKind {
    match self.0.kind {
      Kind::Main => ConversationKind::Main,
      Kind::Channel => ConversationKind::Channel,
      Kind::Task => ConversationKind::Task,
    }
  }

  /// The title; empty for the main conversation.
  async fn title(&self) -> &str {
    &self.0.title
  }

  /// The newest `last` messages before the cursor `before`, newest last. At most 200.
  #[graphql(complexity = "usize::try_from(last.unwrap_or(PAGE_DEFAULT)).unwrap_or(0).max(1) * child_complexity")]
  async fn messages(
    &self,
    context: &Context<'_>,
    #[graphql(default_with = "Some(PAGE_DEFAULT)")] last: Option<i32>,
    before: Option<String>,
  ) -> Result<MessageConnection> {
    let env = Env::of(context);
    let last = page_size("last", last)?;
    let before = before.map(|cursor| cursor_of(&cursor)).transpose()?;
    let page = match self.1 {
      Some(upto) => past::page(env, self.0.id, upto, last, before).await?,
      None => read::page(&env.edge.reads, env.viewer.account, self.0.id, last, before).await.map_err(|error| env.failed(error))?,
    };
    Ok(MessageConnection::of(page, before.is_some()))
  }
}

/// The wanted size of a page.
pub(crate) fn page_size(argument: &'static str, wanted: Option<i32>) -> Result<u32> {
  let wanted = wanted.unwrap_or(PAGE_DEFAULT);
  u32::try_from(wanted).ok().filter(|_| wanted <= PAGE_MAX).ok_or_else(|| crate::graphql::env::invalid(format!("{argument} is a number from 0 to {PAGE_MAX}")))
}

/// The place or ordinal in a cursor.
pub(crate) fn cursor_of(cursor: &str) -> Result<i64> {
  cursor.parse().map_err(|_| crate::graphql::env::invalid("not a cursor of this connection".to_owned()))
}
