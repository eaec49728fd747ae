//! What changed for one agent after a position: what a subscription sends.
//!
//! One statement tells which tables moved, and only those are read. Rows that change while this reads come with the next read: nothing beyond `upto` is in an answer,
//! so that `upto` is a position to go on from.

use pa_domain::AgentId;
use sqlx::PgPool;

use crate::Error;
use crate::conversation::{self, Conversation, Entry};
use crate::error::reading;
use crate::indicator::{self, Indicator};
use crate::settings::{self, Settings};

/// Rows of one answer at most; whoever is further behind reads everything afresh (contract.md 4).
pub const ROWS_MAX: u32 = 500;

/// A row as it is now.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
  Entry(Box<Entry>),
  Conversation(Conversation),
  Settings(Settings),
  Indicator(Indicator),
}

/// Everything that changed in a stretch of an agent's log.
#[derive(Clone, Debug, PartialEq)]
pub struct Updates {
  /// Rows with the ordinal of their last change, in that order.
  pub changes: Vec<(i64, Update)>,
  /// The position to go on from.
  pub upto: i64,
  /// There were more than the limit: the answer is not whole.
  pub more: bool,
}

/// How far an agent is, and where each table last moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Heads {
  pub ordinal: i64,
  pub entries: i64,
  pub conversations: i64,
  pub settings: i64,
  pub indicator: i64,
}

/// Where each table last moved.
pub async fn heads(pool: &PgPool, agent: AgentId) -> Result<Heads, Error> {
  sqlx::query_as(
    "SELECT coalesce((SELECT ordinal FROM agent_progress WHERE agent = $1), 0) AS ordinal, \
     coalesce((SELECT changed FROM entries WHERE agent = $1 AND shown ORDER BY changed DESC LIMIT 1), 0) AS entries, \
     coalesce((SELECT changed FROM conversations WHERE agent = $1 ORDER BY changed DESC LIMIT 1), 0) AS conversations, \
     coalesce((SELECT changed FROM settings WHERE agent = $1), 0) AS settings, \
     coalesce((SELECT changed FROM indicator WHERE agent = $1), 0) AS indicator",
  )
  .bind(agent.0)
  .fetch_one(pool)
  .await
  .map_err(reading("read where an agent's tables moved"))
}

/// The rows that changed after an ordinal, at most `limit` of them.
pub async fn after(pool: &PgPool, agent: AgentId, after: i64, limit: u32) -> Result<Updates, Error> {
  let limit = limit.min(ROWS_MAX);
  let heads = heads(pool, agent).await?;
  let upto = heads.ordinal.max(after);
  let rows = i64::from(limit) + 1;
  let mut changes = Vec::new();
  if heads.entries > after {
    let entries = conversation::changed(pool, agent, after, upto, rows).await?;
    changes.extend(entries.into_iter().map(|entry| (entry.changed, Update::Entry(Box::new(entry)))));
  }
  if heads.conversations > after {
    let conversations = conversation::conversations_changed(pool, agent, after, upto, rows).await?;
    changes.extend(conversations.into_iter().map(|conversation| (conversation.changed, Update::Conversation(conversation))));
  }
  if heads.settings > after
    && let Some(settings) = settings::of(pool, agent).await?.filter(|settings| settings.changed <= upto)
  {
    changes.push((settings.changed, Update::Settings(settings)));
  }
  if heads.indicator > after {
    let indicator = indicator::of(pool, agent).await?;
    if indicator.changed <= upto {
      changes.push((indicator.changed, Update::Indicator(indicator)));
    }
  }
  changes.sort_by_key(|(changed, _)| *changed);
  let more = changes.len() > limit as usize;
  changes.truncate(limit as usize);
  Ok(Updates { changes, upto, more })
}
