//! What a conversation's turn asks of tasks: as calls of its tools, each an order that `route` carries to the task, whose decision is the call's outcome.
//!
//! Only the owner's turns change tasks that exist, and only after they have read them (REP-3); anyone's turn may start one (D35).

use serde::Deserialize;
use uuid::Uuid;

use super::{InstructionGiven, Order, OrderKind, OrderRefused, TaskLookedUp, TaskOrdered, TaskPauseAsked, TaskResumeAsked, TaskStartAsked, TaskStopAsked};
use crate::call::{CallAsked, CallOutcomeReported, Class, Outcome, ResultPart};
use crate::codes::reason;
use crate::conversation::{Author, FileRef, Reply};
use crate::event::{Event, Input};
use crate::ids::{self, TaskId};
use crate::limits::{ATTACHMENTS_MAX, KEY_CHARS_MAX};
use crate::meta::Origin;
use crate::settle::refused;
use crate::task;

/// The tools of a turn that are about tasks. `pa_task_list` names none, so it is a read like any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Orders {
  Order(OrderKind),
  Read,
}

impl Orders {
  /// What the tool asks for, if it is one of these.
  pub(crate) fn of(tool: &str) -> Option<Self> {
    Some(match tool {
      "pa_task_start" => Self::Order(OrderKind::Start),
      "pa_task_instruct" => Self::Order(OrderKind::Instruct),
      "pa_task_pause" => Self::Order(OrderKind::Pause),
      "pa_task_resume" => Self::Order(OrderKind::Resume),
      "pa_task_stop" => Self::Order(OrderKind::Stop),
      "pa_task_read" => Self::Read,
      _ => return None,
    })
  }

  /// The fact beside the permit of a turn's call, or why the call can't be made.
  pub(crate) fn of_call(self, reply: &Reply, asked: &CallAsked) -> Result<Event, &'static str> {
    // A result is material of tools and others: the turn that tells it asks for nothing (D30).
    let may = match (reply.report.is_some(), reply.author) {
      (true, Author::Owner) => self == Self::Read,
      (true, Author::Person) => false,
      (false, Author::Owner) => true,
      (false, Author::Person) => self == Self::Order(OrderKind::Start),
    };
    if !may {
      return Err(reason::NOT_ALLOWED);
    }
    if asked.class != Class::Repeatable {
      return Err(reason::VALUE_INVALID);
    }
    match self {
      Self::Read => {
        let Named { task } = arguments(&asked.action)?;
        Ok(TaskLookedUp { job: asked.job, call: asked.call, task: TaskId(task) }.into())
      }
      Self::Order(OrderKind::Start) => start(reply, asked),
      Self::Order(OrderKind::Instruct) => {
        let Instruct { task, instruction, attachments } = arguments(&asked.action)?;
        let files = chosen(&reply.attachments, attachments.as_deref())?;
        change(reply, asked, OrderKind::Instruct, (TaskId(task), instruction, files))
      }
      Self::Order(kind @ (OrderKind::Pause | OrderKind::Resume | OrderKind::Stop)) => {
        let Named { task } = arguments(&asked.action)?;
        change(reply, asked, kind, (TaskId(task), String::new(), Vec::new()))
      }
    }
  }
}

/// The arguments of `pa_task_start`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
  request_key: String,
  #[serde(default)]
  title: String,
  goal: String,
  /// Ids of the message's files; all of them when left out.
  #[serde(default)]
  attachments: Option<Vec<String>>,
}

/// The arguments of `pa_task_instruct`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Instruct {
  task: Uuid,
  instruction: String,
  #[serde(default)]
  attachments: Option<Vec<String>>,
}

/// The arguments of the others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
  task: Uuid,
}

fn arguments<'a, T: Deserialize<'a>>(action: &'a str) -> Result<T, &'static str> {
  serde_json::from_str(action).map_err(|_| reason::VALUE_INVALID)
}

fn start(reply: &Reply, asked: &CallAsked) -> Result<Event, &'static str> {
  let Start { request_key, title, goal, attachments } = arguments(&asked.action)?;
  if request_key.trim().is_empty() || request_key.chars().count() > KEY_CHARS_MAX {
    return Err(reason::VALUE_INVALID);
  }
  let files = chosen(&reply.attachments, attachments.as_deref())?;
  if let Some(reason) = task::start::unfit(&goal, &files) {
    return Err(reason);
  }
  let task = ids::task(asked.job, &request_key);
  Ok(ordered(reply, asked, OrderKind::Start, (task, title, goal, files), 0))
}

/// A task that exists is changed only by a turn that has read it.
fn change(reply: &Reply, asked: &CallAsked, kind: OrderKind, what: (TaskId, String, Vec<FileRef>)) -> Result<Event, &'static str> {
  let (task, text, files) = what;
  let read = *reply.read.get(&task).ok_or(reason::TASK_NOT_READ)?;
  if kind == OrderKind::Instruct
    && let Some(reason) = task::start::unfit(&text, &files)
  {
    return Err(reason);
  }
  Ok(ordered(reply, asked, kind, (task, String::new(), text, files), read))
}

fn ordered(reply: &Reply, asked: &CallAsked, kind: OrderKind, what: (TaskId, String, String, Vec<FileRef>), read: i64) -> Event {
  let (task, title, text, attachments) = what;
  let order = Order { job: asked.job, execution: asked.execution, call: asked.call, read };
  let (title, text) = (crate::text::clean(&title), crate::text::clean(&text));
  TaskOrdered { order, conversation: reply.conversation, author: reply.author, kind, task, title, text, attachments }.into()
}

/// The files of the message that go along: those that are named, or all.
fn chosen(files: &[FileRef], named: Option<&[String]>) -> Result<Vec<FileRef>, &'static str> {
  let Some(named) = named else { return Ok(files.to_vec()) };
  if named.len() > ATTACHMENTS_MAX {
    return Err(reason::VALUE_INVALID);
  }
  named.iter().map(|id| files.iter().find(|file| file.id == *id).cloned().ok_or(reason::NOT_FOUND)).collect()
}

/// A command about a task that isn't carried out: the turn that asked learns it by its call, anyone else by the refusal.
pub(super) fn declined(task: TaskId, order: Option<&Order>, reason: &str) -> Vec<Event> {
  vec![match order {
    Some(&order) => OrderRefused { task, order, reason: reason.to_owned() }.into(),
    None => refused(reason),
  }]
}

/// The input that carries an order to its task.
pub(crate) fn to_task(ordered: &TaskOrdered) -> Input {
  let (task, order) = (ordered.task, Some(ordered.order));
  match ordered.kind {
    OrderKind::Start => TaskStartAsked {
      task,
      conversation: ordered.conversation,
      author: ordered.author,
      title: ordered.title.clone(),
      goal: ordered.text.clone(),
      attachments: ordered.attachments.clone(),
      order,
    }
    .into(),
    OrderKind::Instruct => InstructionGiven { task, text: ordered.text.clone(), attachments: ordered.attachments.clone(), order }.into(),
    OrderKind::Pause => TaskPauseAsked { task, order }.into(),
    OrderKind::Resume => TaskResumeAsked { task, order }.into(),
    OrderKind::Stop => TaskStopAsked { task, order }.into(),
  }
}

/// The outcome of the call that an order came from: the task's decision.
pub(crate) fn outcome_of(task: TaskId, order: Order, result: Result<&str, &str>) -> Input {
  let (outcome, code, text) = match result {
    Ok(done) => (Outcome::Returned, String::new(), format!("{{\"result\":\"{done}\",\"task\":\"{task}\"}}")),
    Err(reason) => (Outcome::Failed, reason.to_owned(), format!("{{\"refused\":\"{reason}\",\"task\":\"{task}\"}}")),
  };
  let parts = vec![ResultPart { origin: Origin::Platform, text, blob: None }];
  CallOutcomeReported { job: order.job, execution: order.execution, call: order.call, outcome, code, parts }.into()
}
