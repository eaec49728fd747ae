//! How a task begins.

use uuid::Uuid;

use super::orders::declined;
use super::state::{Moves, turns};
use super::{OrderRepeated, TaskStartAsked, TaskStarted};
use crate::codes::reason;
use crate::conversation::{ConversationKind, ConversationOpened, FileRef, kept_file};
use crate::event::Event;
use crate::ids::{TaskId, conversation_of, named};
use crate::limits::{ATTACHMENTS_MAX, MESSAGE_TEXT_BYTES_MAX, TASKS_OPEN_MAX, TITLE_CHARS_MAX};
use crate::meta::{Meta, Origin};
use crate::settle::{no_change, refused};
use crate::state::{Root, Thing};
use crate::text;

pub(super) fn start(root: &Root, thing: &Thing, meta: &Meta, asked: &TaskStartAsked) -> Vec<Event> {
  if !meta.origin.administers() {
    return vec![refused(reason::NOT_ALLOWED)];
  }
  let order = asked.order.as_ref();
  let (title, goal) = (titled(&asked.title, &asked.goal), text::clean(&asked.goal));
  if let Some(task) = thing.task() {
    return if task.started_with != content_of(asked.task, &title, &goal, &asked.attachments) {
      declined(asked.task, order, reason::REQUEST_KEY_CONFLICT)
    } else if let Some(&order) = order {
      vec![OrderRepeated { task: asked.task, order }.into()]
    } else {
      vec![no_change(reason::ALREADY_DONE)]
    };
  }
  if let Some(reason) = unfit(&goal, &asked.attachments).or((root.tasks.len() >= TASKS_OPEN_MAX).then_some(reason::QUEUE_FULL)) {
    return declined(asked.task, order, reason);
  }
  let Some(asked_in) = root.conversations.contains_key(&asked.conversation).then_some(asked.conversation).or(root.main) else {
    return declined(asked.task, order, reason::NOT_FOUND);
  };
  let by = if order.is_some() { Origin::Agent } else { meta.origin };
  let conversation = conversation_of(asked.task);
  let attachments = asked.attachments.iter().map(kept_file).collect();
  let opened = ConversationOpened { conversation, kind: ConversationKind::Task, title: title.clone(), connection: String::new() };
  let started = TaskStarted { task: asked.task, conversation, asked_in, author: asked.author, title, goal, attachments, by, order: asked.order };
  let mut events = vec![opened.into(), started.into()];
  events.extend(turns(root, Moves::joins(asked.task)));
  events
}

/// Why a goal or an instruction can't be taken.
pub(super) fn unfit(text: &str, attachments: &[FileRef]) -> Option<&'static str> {
  if text.trim().is_empty() && attachments.is_empty() {
    Some(reason::TEXT_EMPTY)
  } else if text.len() > MESSAGE_TEXT_BYTES_MAX {
    Some(reason::TEXT_TOO_LONG)
  } else if attachments.len() > ATTACHMENTS_MAX {
    Some(reason::VALUE_INVALID)
  } else {
    None
  }
}

/// The title, or the beginning of the goal if there is none.
fn titled(title: &str, goal: &str) -> String {
  let given = title.split_whitespace().collect::<Vec<_>>().join(" ");
  let first_line = || goal.trim().lines().next().unwrap_or_default().to_owned();
  text::first_chars(&if given.is_empty() { first_line() } else { given }, TITLE_CHARS_MAX)
}

/// What a task was started with, to tell a repetition from another use of its request key.
pub(super) fn content_of(task: TaskId, title: &str, goal: &str, attachments: &[FileRef]) -> Uuid {
  let files = attachments.iter().map(|file| file.id.as_str()).collect::<Vec<_>>().join("/");
  named(task.0, &format!("{}:{title}{}:{goal}{files}", title.len(), goal.len()))
}
