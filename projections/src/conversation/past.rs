//! A conversation as it was: the agent's events up to an ordinal, folded into rows as the projector does it, and read as the tables are read.
//!
//! Events are read backwards from there, as many as the page needs: an entry whose first event was read has all its later changes read too. Invariants:
//! - There is no second fold: rows are made by [`Projection::fold`] and [`Projection::merge`] of this folder. The tables are asked for two things that never change, where
//!   the log has an event and where an entry stands in its conversation.
//! - What is read is bounded by [`EVENTS_MAX`]; a page that would need more is refused, not cut.

use async_trait::async_trait;
use pa_domain::{AgentId, ConversationId, Event, MessageId, Meta};
use sqlx::PgPool;
use uuid::Uuid;

use super::PAGE_MAX;
use super::fold::{Change, NewEntry, Opened};
use super::read::{Attachment, Conversation, Entry, Page, params_of, places_of};
use super::write::{EntryWrite, Rows};
use crate::Error;
use crate::audit::{self, Place};
use crate::commit::statement::storable;
use crate::commit::{Fact, Projection as _};

/// Events that one page of the past reads at the most: some 1,200 turns, a second of work.
pub const EVENTS_MAX: i64 = 10_000;
/// Events of the first read: enough for the turns of a usual page.
const EVENTS_FIRST: i64 = 512;
/// The type of events that open conversations.
const OPENED: &str = "pa.conversation.ConversationOpened";

/// Takes one event after the other.
pub type Each<'a> = dyn FnMut(&Meta, &Event) + Send + 'a;

/// Reads an agent's events from the log.
#[async_trait]
pub trait Events: Send + Sync {
  /// Why an event can't be read.
  type Error: From<Error> + Send;

  /// Reads the events at these places and hands each on, in this order.
  async fn read(&self, places: &[Place], each: &mut Each<'_>) -> Result<(), Self::Error>;
}

/// A page of the past.
#[derive(Clone, Debug, PartialEq)]
pub enum Past {
  Page(Page),
  /// Its entries lie further back than what is read.
  TooFar,
}

/// Which entries are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
  pub conversation: ConversationId,
  /// As of the agent's event with this ordinal.
  pub upto: i64,
  /// The newest so many, at most [`PAGE_MAX`],
  pub last: u32,
  /// before this place.
  pub before: Option<i64>,
}

/// One conversation as of the event `upto`; without an id the main one. `None` when it was not open yet.
pub async fn one<E: Events>(pool: &PgPool, events: &E, agent: AgentId, id: Option<ConversationId>, upto: i64) -> Result<Option<Conversation>, E::Error> {
  let (mut rows, mut after) = (Rows::default(), None);
  loop {
    let filter = audit::Filter { types: vec![OPENED.to_owned()], ..audit::Filter::default() };
    let page = audit::page(pool, agent, &filter, audit::PAGE_MAX, after).await?;
    let places: Vec<Place> = page.rows.iter().filter(|row| row.ordinal <= upto).map(Place::of).collect();
    let past = places.len() < page.rows.len() || !page.has_next;
    after = places.last().map(|place| place.ordinal);
    events.read(&places, &mut |meta, event| changes(meta, event).into_iter().for_each(|change| rows.merge(agent, change))).await?;
    if past {
      break;
    }
  }
  let wanted = |opened: &&Opened| id.map_or(opened.kind == pa_domain::conversation::ConversationKind::Main, |id| opened.id == id);
  Ok(rows.opened.iter().map(|(_, _, opened)| opened).find(wanted).map(conversation_of))
}

/// A page of a conversation as of an event.
pub async fn page<E: Events>(pool: &PgPool, events: &E, agent: AgentId, wanted: Wanted) -> Result<Past, E::Error> {
  page_within(pool, events, agent, wanted, Reach { first: EVENTS_FIRST, most: EVENTS_MAX }).await
}

/// How many events are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
  pub(crate) first: i64,
  pub(crate) most: i64,
}

pub(crate) async fn page_within<E: Events>(pool: &PgPool, events: &E, agent: AgentId, wanted: Wanted, reach: Reach) -> Result<Past, E::Error> {
  let wanted = Wanted { last: wanted.last.min(PAGE_MAX), ..wanted };
  let end = (wanted.upto - reach.most).max(0);
  // Read backwards, folded forwards.
  let mut told: Vec<Vec<Change>> = Vec::new();
  let (mut from, mut more) = (wanted.upto, reach.first);
  loop {
    let after = (from - more).max(end);
    told.push(read(pool, events, agent, after, from).await?);
    (from, more) = (after, more * 2);
    if let Some(page) = whole(pool, agent, &told, from, wanted).await? {
      return Ok(Past::Page(page));
    }
    if from <= end {
      return Ok(Past::TooFar);
    }
  }
}

/// The changes of the events behind `after`, up to `upto`.
async fn read<E: Events>(pool: &PgPool, events: &E, agent: AgentId, after: i64, upto: i64) -> Result<Vec<Change>, E::Error> {
  let mut changes_of = Vec::new();
  if after < upto {
    let places = audit::places(pool, agent, after, upto).await?;
    events.read(&places, &mut |meta, event| changes_of.extend(changes(meta, event))).await?;
  }
  Ok(changes_of)
}

fn changes(meta: &Meta, event: &Event) -> Vec<Change> {
  // A conversation's rows do not tell where the log has their events.
  Rows::fold(&Fact { partition: 0, position: 0, meta, event })
}

/// The page, if what was told goes back far enough for all of it.
async fn whole(pool: &PgPool, agent: AgentId, told: &[Vec<Change>], from: i64, wanted: Wanted) -> Result<Option<Page>, Error> {
  let mut rows = Rows::default();
  told.iter().rev().flatten().for_each(|change| rows.merge(agent, change.clone()));
  let mut found: Vec<&NewEntry> = rows.entries.iter().filter_map(|(_, _, write)| shown(write, wanted)).collect();
  if from > 0 {
    // A reply that is begun again enters again: its place is where it first stood, which may lie before all that was read.
    let again: Vec<MessageId> = found.iter().filter(|row| row.attempt > 1).map(|row| MessageId(row.id)).collect();
    let stand = places_of(pool, agent, &again).await?;
    found.retain(|row| row.attempt <= 1 || stand.get(&row.id) == Some(&row.place));
  }
  found.sort_unstable_by_key(|row| std::cmp::Reverse(row.place));
  let last = wanted.last as usize;
  if from > 0 && found.len() <= last {
    return Ok(None);
  }
  let has_previous = found.len() > last;
  found.truncate(last);
  let entries = found.into_iter().rev().map(|row| entry_of(row, &rows, wanted.conversation)).collect::<Result<_, _>>()?;
  Ok(Some(Page { entries, has_previous }))
}

fn shown(write: &EntryWrite, wanted: Wanted) -> Option<&NewEntry> {
  let EntryWrite::Enter(row) = write else { return None };
  let stands = row.conversation == Some(wanted.conversation) && row.shown && !row.removed && wanted.before.is_none_or(|before| row.place < before);
  stands.then_some(row.as_ref())
}

fn conversation_of(opened: &Opened) -> Conversation {
  let Opened { id, kind, ref title, ref connection, opened, changed } = *opened;
  Conversation { id, kind, title: stored(title), connection: stored(connection), opened, changed }
}

/// A text as it comes back from a column.
fn stored(text: &str) -> String {
  storable(text).into_owned()
}

fn entry_of(row: &NewEntry, rows: &Rows, conversation: ConversationId) -> Result<Entry, Error> {
  Ok(Entry {
    id: MessageId(row.id),
    conversation,
    place: row.place,
    changed: row.changed,
    kind: row.kind,
    role: row.role,
    author: stored(&row.author),
    text: stored(&row.text),
    status: row.status,
    created: row.created,
    reply_to: row.reply_to,
    reply: row.reply,
    incomplete: row.incomplete,
    attempt: row.attempt,
    code: stored(&row.code),
    params: params_of(&stored(&row.params))?,
    attachments: attachments_of(row.id, rows),
    origin: row.origin,
    removed: row.removed,
  })
}

fn attachments_of(entry: Uuid, rows: &Rows) -> Vec<Attachment> {
  // Files are told in their order.
  let of = rows.attachments.iter().filter(|(_, (of, _), _)| *of == entry).map(|(_, _, file)| file);
  of.map(|file| Attachment {
    id: stored(&file.id),
    name: stored(&file.name),
    media_type: stored(&file.media_type),
    size_bytes: file.size_bytes,
    sha256: stored(&file.sha256),
    blob: stored(&file.blob),
    origin: file.origin,
  })
  .collect()
}
