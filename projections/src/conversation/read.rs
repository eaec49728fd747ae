//! What the page, the prompt and the file route read of conversations.

use std::collections::HashMap;

use pa_domain::conversation::{ConversationKind, NoticeParam};
use pa_domain::event::message_of;
use pa_domain::{AgentId, ConversationId, MessageId, Origin, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use super::{EntryKind, Role, Status};
use crate::Error;
use crate::code::Code as _;
use crate::error::reading;

/// Entries of one page at most: what a reader scrolls through before the next page is there (contract.md 4).
pub const PAGE_MAX: u32 = 200;
/// Conversations that are listed: one main conversation and a person's contacts and groups.
const CONVERSATIONS_MAX: i64 = 1_000;
/// Turns that one read of the history takes: most prompts are filled by one.
const HISTORY_TURNS: i64 = 32;

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
  pub id: ConversationId,
  pub kind: ConversationKind,
  /// Empty for the main one.
  pub title: String,
  /// The channel's connection; empty for the main one.
  pub connection: String,
  pub opened: Timestamp,
  pub changed: i64,
}

/// An entry of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
  pub id: MessageId,
  pub conversation: ConversationId,
  /// Its place in the conversation's order, and its cursor.
  pub place: i64,
  pub changed: i64,
  pub kind: EntryKind,
  pub role: Role,
  /// Who wrote it, where the role alone does not tell.
  pub author: String,
  /// Empty for a notice and for a reply that is being written; a file's caption.
  pub text: String,
  pub status: Status,
  pub created: Timestamp,
  /// The message that this reply answers.
  pub reply_to: Option<MessageId>,
  /// The id that the reply to this message has or will have.
  pub reply: Option<MessageId>,
  pub incomplete: bool,
  /// The execution that writes this reply; 0 for anything else.
  pub attempt: i32,
  /// A notice's code.
  pub code: String,
  pub params: Vec<NoticeParam>,
  pub attachments: Vec<Attachment>,
  pub origin: Origin,
  /// The entry is no longer in the conversation.
  pub removed: bool,
}

/// A file on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
  /// The upload's id.
  pub id: String,
  pub name: String,
  pub media_type: String,
  pub size_bytes: i64,
  /// Lower-case hex.
  pub sha256: String,
  /// The blob's name in the agent's folder.
  pub blob: String,
  pub origin: Origin,
}

/// A page of a conversation, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
  pub entries: Vec<Entry>,
  /// There are older ones.
  pub has_previous: bool,
}

/// A message and the reply to it, as they follow each other in a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
  pub message: Entry,
  /// None before the first attempt, and when the reply failed.
  pub reply: Option<Entry>,
}

/// The main conversation and those of channels, the main one first. A task's own is reached by its task (RUN-6).
pub async fn conversations(pool: &PgPool, agent: AgentId) -> Result<Vec<Conversation>, Error> {
  let rows: Vec<ConversationRow> = sqlx::query_as(
    "SELECT id, kind, title, connection, opened_ms, changed FROM conversations WHERE agent = $1 AND kind <> 'TASK' ORDER BY (kind = 'MAIN') DESC, opened_ms, id LIMIT $2",
  )
  .bind(agent.0)
  .bind(CONVERSATIONS_MAX)
  .fetch_all(pool)
  .await
  .map_err(reading("read the conversations"))?;
  rows.into_iter().map(ConversationRow::take).collect()
}

/// One conversation; without an id the main one.
pub async fn one(pool: &PgPool, agent: AgentId, id: Option<ConversationId>) -> Result<Option<Conversation>, Error> {
  let row: Option<ConversationRow> = sqlx::query_as(
    "SELECT id, kind, title, connection, opened_ms, changed FROM conversations WHERE agent = $1 AND (id = $2 OR ($2 IS NULL AND kind = 'MAIN')) LIMIT 1",
  )
  .bind(agent.0)
  .bind(id.map(|id| id.0))
  .fetch_optional(pool)
  .await
  .map_err(reading("read a conversation"))?;
  row.map(ConversationRow::take).transpose()
}

/// The newest `last` entries before the place `before`, oldest first.
pub async fn page(pool: &PgPool, agent: AgentId, conversation: ConversationId, last: u32, before: Option<i64>) -> Result<Page, Error> {
  let last = last.min(PAGE_MAX);
  let mut rows: Vec<EntryRow> = sqlx::query_as(
    "SELECT id, conversation, place, changed, kind, role, author, body, status, created_ms, reply_to, reply, incomplete, attempt, code, params, attachments, origin, removed \
     FROM entries WHERE agent = $1 AND conversation = $2 AND place < $3 AND shown AND NOT removed ORDER BY place DESC LIMIT $4",
  )
  .bind(agent.0)
  .bind(conversation.0)
  .bind(before.unwrap_or(i64::MAX))
  .bind(i64::from(last) + 1)
  .fetch_all(pool)
  .await
  .map_err(reading("read a page of a conversation"))?;
  let has_previous = rows.len() > last as usize;
  rows.truncate(last as usize);
  rows.reverse();
  Ok(Page { entries: take_entries(pool, agent, rows).await?, has_previous })
}

/// One entry, also one that is not shown or was removed.
pub async fn entry(pool: &PgPool, agent: AgentId, id: MessageId) -> Result<Option<Entry>, Error> {
  Ok(entries(pool, agent, &[id]).await?.pop())
}

/// The message that the input with this id became.
pub async fn by_input(pool: &PgPool, agent: AgentId, input: Uuid) -> Result<Option<Entry>, Error> {
  entry(pool, agent, message_of(input)).await
}

/// These entries, in the order of their places.
pub async fn entries(pool: &PgPool, agent: AgentId, ids: &[MessageId]) -> Result<Vec<Entry>, Error> {
  let ids: Vec<Uuid> = ids.iter().take(PAGE_MAX as usize).map(|id| id.0).collect();
  let rows: Vec<EntryRow> = sqlx::query_as(
    "SELECT id, conversation, place, changed, kind, role, author, body, status, created_ms, reply_to, reply, incomplete, attempt, code, params, attachments, origin, removed \
     FROM entries WHERE agent = $1 AND id = ANY($2) ORDER BY place",
  )
  .bind(agent.0)
  .bind(ids)
  .fetch_all(pool)
  .await
  .map_err(reading("read entries"))?;
  take_entries(pool, agent, rows).await
}

/// A file that came with a message.
pub async fn attachment(pool: &PgPool, agent: AgentId, file: &str) -> Result<Option<Attachment>, Error> {
  let row: Option<AttachmentRow> =
    sqlx::query_as("SELECT entry, id, name, media_type, size_bytes, sha256, blob, origin FROM attachments WHERE agent = $1 AND id = $2 LIMIT 1")
      .bind(agent.0)
      .bind(file)
      .fetch_optional(pool)
      .await
      .map_err(reading("read an attachment"))?;
  row.map(|row| row.take().map(|(_, attachment)| attachment)).transpose()
}

/// What was said up to the message that is being answered, newest turn first: that message, then each earlier one with its reply. Reads on as long as `keep` takes
/// a turn; the first that it does not take ends the history and is not in it.
pub async fn history(pool: &PgPool, agent: AgentId, upto: MessageId, mut keep: impl FnMut(&Turn) -> bool + Send) -> Result<Vec<Turn>, Error> {
  let mut turns: Vec<Turn> = Vec::new();
  let mut from = upto;
  loop {
    let mut older = turns_from(pool, agent, from).await?;
    let is_last = i64::try_from(older.len()).is_ok_and(|count| count < HISTORY_TURNS);
    if turns.is_empty() {
      // Whatever stands behind the message is not said before its answer.
      if let Some(answered) = older.first_mut() {
        answered.reply = None;
      }
    } else if !older.is_empty() {
      older.remove(0);
    }
    for turn in older {
      if !keep(&turn) {
        return Ok(turns);
      }
      turns.push(turn);
    }
    match turns.last() {
      Some(oldest) if !is_last => from = oldest.message.id,
      Some(_) | None => return Ok(turns),
    }
  }
}

/// Up to [`HISTORY_TURNS`] turns of a message's conversation, newest first: that message's and those before it. A reply can stand after a later message, so it is found
/// by its message.
async fn turns_from(pool: &PgPool, agent: AgentId, message: MessageId) -> Result<Vec<Turn>, Error> {
  let rows: Vec<EntryRow> = sqlx::query_as(
    "WITH newest AS MATERIALIZED (SELECT conversation, place FROM entries WHERE agent = $1 AND id = $2), \
     heads AS (SELECT * FROM entries WHERE agent = $1 AND conversation = (SELECT conversation FROM newest) AND place <= (SELECT place FROM newest) \
     AND (shown OR kind = 'REPORT') AND NOT removed AND reply_to IS NULL AND kind NOT IN ('NOTICE', 'FILE') ORDER BY place DESC LIMIT $3) \
     SELECT id, conversation, place, changed, kind, role, author, body, status, created_ms, reply_to, reply, incomplete, attempt, code, params, attachments, origin, removed \
     FROM heads UNION ALL \
     SELECT r.id, r.conversation, r.place, r.changed, r.kind, r.role, r.author, r.body, r.status, r.created_ms, r.reply_to, r.reply, r.incomplete, r.attempt, r.code, \
     r.params, r.attachments, r.origin, r.removed FROM heads h JOIN entries r ON r.agent = $1 AND r.id = h.reply WHERE r.shown AND NOT r.removed",
  )
  .bind(agent.0)
  .bind(message.0)
  .bind(HISTORY_TURNS)
  .fetch_all(pool)
  .await
  .map_err(reading("read the history of a conversation"))?;
  let (replies, mut messages): (Vec<Entry>, Vec<Entry>) = take_entries(pool, agent, rows).await?.into_iter().partition(|entry| entry.reply_to.is_some());
  let mut replies: HashMap<MessageId, Entry> = replies.into_iter().map(|reply| (reply.id, reply)).collect();
  messages.sort_by_key(|message| -message.place);
  Ok(messages.into_iter().map(|message| Turn { reply: message.reply.and_then(|id| replies.remove(&id)), message }).collect())
}

/// Conversations whose last change lies in `(after, upto]`, in the order of change.
pub(crate) async fn conversations_changed(pool: &PgPool, agent: AgentId, after: i64, upto: i64, limit: i64) -> Result<Vec<Conversation>, Error> {
  let rows: Vec<ConversationRow> = sqlx::query_as(
    "SELECT id, kind, title, connection, opened_ms, changed FROM conversations WHERE agent = $1 AND changed > $2 AND changed <= $3 ORDER BY changed LIMIT $4",
  )
  .bind(agent.0)
  .bind(after)
  .bind(upto)
  .bind(limit)
  .fetch_all(pool)
  .await
  .map_err(reading("read changed conversations"))?;
  rows.into_iter().map(ConversationRow::take).collect()
}

/// Reads the attachments of those rows that have some, in one statement or none.
pub(crate) async fn take_entries(pool: &PgPool, agent: AgentId, rows: Vec<EntryRow>) -> Result<Vec<Entry>, Error> {
  let with_files: Vec<Uuid> = rows.iter().filter(|row| row.attachments > 0).map(|row| row.id).collect();
  let mut files = attachments_of(pool, agent, with_files).await?;
  rows
    .into_iter()
    .map(|row| {
      let attachments = files.remove(&row.id).unwrap_or_default();
      row.take(attachments)
    })
    .collect()
}

/// A notice's parameters as a row holds them.
pub(super) fn params_of(text: &str) -> Result<Vec<NoticeParam>, Error> {
  if text.is_empty() {
    return Ok(Vec::new());
  }
  serde_json::from_str(text).map_err(|_| Error::Corrupt { expected: "a notice's parameters", value: text.to_owned() })
}

/// Where these entries stand.
pub(crate) async fn places_of(pool: &PgPool, agent: AgentId, ids: &[MessageId]) -> Result<HashMap<Uuid, i64>, Error> {
  if ids.is_empty() {
    return Ok(HashMap::new());
  }
  let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
  let rows: Vec<(Uuid, i64)> = sqlx::query_as("SELECT id, place FROM entries WHERE agent = $1 AND id = ANY($2)")
    .bind(agent.0)
    .bind(ids)
    .fetch_all(pool)
    .await
    .map_err(reading("read where entries stand"))?;
  Ok(rows.into_iter().collect())
}

/// The files of these entries, in order, in one statement or none.
pub(crate) async fn attachments_of(pool: &PgPool, agent: AgentId, entries: Vec<Uuid>) -> Result<HashMap<Uuid, Vec<Attachment>>, Error> {
  let mut files: HashMap<Uuid, Vec<Attachment>> = HashMap::new();
  if entries.is_empty() {
    return Ok(files);
  }
  let found: Vec<AttachmentRow> = sqlx::query_as(
    "SELECT entry, id, name, media_type, size_bytes, sha256, blob, origin FROM attachments WHERE agent = $1 AND entry = ANY($2) ORDER BY entry, idx",
  )
  .bind(agent.0)
  .bind(entries)
  .fetch_all(pool)
  .await
  .map_err(reading("read attachments"))?;
  for row in found {
    let (entry, attachment) = row.take()?;
    files.entry(entry).or_default().push(attachment);
  }
  Ok(files)
}

#[derive(sqlx::FromRow)]
struct ConversationRow {
  id: Uuid,
  kind: String,
  title: String,
  connection: String,
  opened_ms: i64,
  changed: i64,
}

impl ConversationRow {
  fn take(self) -> Result<Conversation, Error> {
    Ok(Conversation {
      id: ConversationId(self.id),
      kind: ConversationKind::parse(&self.kind)?,
      title: self.title,
      connection: self.connection,
      opened: Timestamp(self.opened_ms),
      changed: self.changed,
    })
  }
}

#[derive(sqlx::FromRow)]
pub(crate) struct EntryRow {
  id: Uuid,
  conversation: Uuid,
  place: i64,
  changed: i64,
  kind: String,
  role: String,
  author: String,
  body: String,
  status: String,
  created_ms: i64,
  reply_to: Option<Uuid>,
  reply: Option<Uuid>,
  incomplete: bool,
  attempt: i32,
  code: String,
  params: String,
  attachments: i32,
  origin: String,
  removed: bool,
}

impl EntryRow {
  fn take(self, attachments: Vec<Attachment>) -> Result<Entry, Error> {
    let params = params_of(&self.params)?;
    Ok(Entry {
      id: MessageId(self.id),
      conversation: ConversationId(self.conversation),
      place: self.place,
      changed: self.changed,
      kind: EntryKind::parse(&self.kind)?,
      role: Role::parse(&self.role)?,
      author: self.author,
      text: self.body,
      status: Status::parse(&self.status)?,
      created: Timestamp(self.created_ms),
      reply_to: self.reply_to.map(MessageId),
      reply: self.reply.map(MessageId),
      incomplete: self.incomplete,
      attempt: self.attempt,
      code: self.code,
      params,
      attachments,
      origin: Origin::parse(&self.origin)?,
      removed: self.removed,
    })
  }
}

#[derive(sqlx::FromRow)]
struct AttachmentRow {
  entry: Uuid,
  id: String,
  name: String,
  media_type: String,
  size_bytes: i64,
  sha256: String,
  blob: String,
  origin: String,
}

impl AttachmentRow {
  fn take(self) -> Result<(Uuid, Attachment), Error> {
    let attachment = Attachment {
      id: self.id,
      name: self.name,
      media_type: self.media_type,
      size_bytes: self.size_bytes,
      sha256: self.sha256,
      blob: self.blob,
      origin: Origin::parse(&self.origin)?,
    };
    Ok((self.entry, attachment))
  }
}
