//! What changed for one agent after a position: what a subscription sends.
//!
//! One statement tells how far the agent is, brings what moves with every turn (entries and indicator), and says whether the other tables moved; only then they are
//! read. Rows that change meanwhile come with the next read: nothing beyond `upto` is in an answer, so that `upto` is a position to go on from.

use pa_domain::AgentId;
use sqlx::postgres::PgRow;
use sqlx::{FromRow as _, PgPool, Row as _};
use uuid::Uuid;

use crate::Error;
use crate::conversation::{self, Conversation, Entry, EntryRow};
use crate::error::reading;
use crate::indicator::{Indicator, IndicatorRow};
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

/// The rows of one snapshot: the agent's own columns on each, beside an entry or none.
const MOVED: &str = "SELECT coalesce((SELECT ordinal FROM agent_progress WHERE agent = $1), 0) AS ordinal, \
  coalesce((SELECT changed FROM conversations WHERE agent = $1 ORDER BY changed DESC LIMIT 1), 0) AS conversations, \
  coalesce((SELECT changed FROM settings WHERE agent = $1), 0) AS settings, \
  i.changed AS indicator, i.running, i.failed_message, i.failed_ordinal, i.failed_code, \
  EXISTS (SELECT 1 FROM open_calls c WHERE c.agent = $1 AND c.unknown AND c.class = 'EXTERNAL') AS needs_input, \
  e.id, e.conversation, e.place, e.changed, e.kind, e.role, e.author, e.body, e.status, e.created_ms, e.reply_to, e.reply, e.incomplete, e.attempt, e.code, e.params, \
  e.attachments, e.origin, e.removed \
  FROM (SELECT 1) one LEFT JOIN indicator i ON i.agent = $1 \
  LEFT JOIN LATERAL (SELECT * FROM entries WHERE agent = $1 AND changed > $2 AND shown ORDER BY changed LIMIT $3) e ON true";

/// What one statement shows.
struct Moved {
  ordinal: i64,
  conversations: i64,
  settings: i64,
  indicator: Option<Indicator>,
  entries: Vec<EntryRow>,
}

/// The rows that changed after an ordinal, at most `limit` of them.
pub async fn after(pool: &PgPool, agent: AgentId, after: i64, limit: u32) -> Result<Updates, Error> {
  let limit = limit.min(ROWS_MAX);
  let rows = i64::from(limit) + 1;
  let moved = moved(pool, agent, after, rows).await?;
  let upto = moved.ordinal.max(after);
  let entries = conversation::take_entries(pool, agent, moved.entries).await?;
  let mut changes: Vec<(i64, Update)> = entries.into_iter().map(|entry| (entry.changed, Update::Entry(Box::new(entry)))).collect();
  if moved.conversations > after {
    let conversations = conversation::conversations_changed(pool, agent, after, upto, rows).await?;
    changes.extend(conversations.into_iter().map(|conversation| (conversation.changed, Update::Conversation(conversation))));
  }
  if moved.settings > after
    && let Some(settings) = settings::of(pool, agent).await?.filter(|settings| settings.changed <= upto)
  {
    changes.push((settings.changed, Update::Settings(settings)));
  }
  if let Some(indicator) = moved.indicator.filter(|indicator| indicator.changed > after) {
    changes.push((indicator.changed, Update::Indicator(indicator)));
  }
  changes.sort_by_key(|(changed, _)| *changed);
  let more = changes.len() > limit as usize;
  changes.truncate(limit as usize);
  Ok(Updates { changes, upto, more })
}

async fn moved(pool: &PgPool, agent: AgentId, after: i64, rows: i64) -> Result<Moved, Error> {
  let failed = || reading("read what changed of an agent");
  let rows: Vec<PgRow> = sqlx::query(MOVED).bind(agent.0).bind(after).bind(rows).fetch_all(pool).await.map_err(failed())?;
  let taken = || -> Result<Option<Moved>, sqlx::Error> {
    let Some(row) = rows.first() else { return Ok(None) };
    let has_worked = row.try_get::<Option<i64>, _>("indicator")?.is_some();
    let mut entries = Vec::with_capacity(rows.len());
    for row in &rows {
      if row.try_get::<Option<Uuid>, _>("id")?.is_some() {
        entries.push(EntryRow::from_row(row)?);
      }
    }
    Ok(Some(Moved {
      ordinal: row.try_get("ordinal")?,
      conversations: row.try_get("conversations")?,
      settings: row.try_get("settings")?,
      indicator: if has_worked { Some(IndicatorRow::from_row(row)?.take()) } else { None },
      entries,
    }))
  };
  taken().map_err(failed())?.ok_or_else(|| failed()(sqlx::Error::RowNotFound))
}
