//! Tools that are the log's own: what a conversation's turn asks of tasks, and what a task says of itself.
//!
//! An order (`pa_task_start` and the like) needs no worker: its permit carries it to the task, whose decision is the call's outcome. A checkpoint and a delivery are
//! asks to the log by their started call. The others only read the record. `pa_finish` is no call at all: the worker makes it the ask to finish.
//!
//! Next: `tasks.rs`, `recall.rs`, `keep.rs`.

mod keep;
mod recall;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use pa_domain::CallId;
use pa_domain::call::{Class, ResultPart};
use pa_eventlog::reader::Decision;
use pa_model::Tool;
use pa_tools::Error;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::Worker;
use super::progress::Progress;
use super::turn::Execution;

/// How long one of these may take: it reads what the read model and the log have.
pub(super) const LIMIT: Duration = Duration::from_secs(30);
/// The tool that ends a task.
pub(super) const FINISH: &str = "pa_finish";

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inner {
  /// The task decides, and says so by the call's outcome.
  Order,
  Read,
  List,
  /// A task's own earlier steps.
  Recall,
  Checkpoint,
  Deliver,
  Finish,
}

/// A permitted call.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
  pub(super) worker: &'a Worker,
  pub(super) is: Execution,
  pub(super) call: CallId,
  /// Takes what the log decided on it before its outcome.
  pub(super) decided: &'a Mutex<Vec<Arc<Decision>>>,
}

/// To whom tools are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
  /// The owner's message.
  Owner,
  /// A message of somebody else (D35).
  Person,
  /// A result that is to be told (D30).
  Result,
  Task,
}

struct Row {
  name: &'static str,
  inner: Inner,
  offered: &'static [Audience],
  description: &'static str,
  parameters: fn() -> Value,
}

const ROWS: &[Row] = &[
  Row {
    name: "pa_task_start",
    inner: Inner::Order,
    offered: &[Audience::Owner, Audience::Person],
    description: "Starts a background task, for work with several steps or that takes longer: research, a report, code, reading attachments, using the computer, sending email. \
      Write the goal as one complete instruction: the task does not see this conversation. Its result will be told here when it is there.",
    parameters: start,
  },
  Row {
    name: "pa_task_instruct",
    inner: Inner::Order,
    offered: &[Audience::Owner],
    description: "Adds an instruction to a task, also to one that has ended: then it goes on with its history and files. Read the task first with pa_task_read. Give each task only \
      its own part of what the owner said.",
    parameters: instruct,
  },
  Row {
    name: "pa_task_pause",
    inner: Inner::Order,
    offered: &[Audience::Owner],
    description: "Pauses a task. Read it first with pa_task_read.",
    parameters: one_task,
  },
  Row {
    name: "pa_task_resume",
    inner: Inner::Order,
    offered: &[Audience::Owner],
    description: "Lets a task go on that is paused, stopped or failed, or that waits after too many interruptions. It approves nothing: approvals are given on cards only. Read \
      the task first with pa_task_read.",
    parameters: one_task,
  },
  Row {
    name: "pa_task_stop",
    inner: Inner::Order,
    offered: &[Audience::Owner],
    description: "Stops a task for good; what runs of it ends. Read it first with pa_task_read.",
    parameters: one_task,
  },
  Row {
    name: "pa_task_read",
    inner: Inner::Read,
    offered: &[Audience::Owner, Audience::Result],
    description: "Reads a task: its goal, what was added, how far it is, its result. Needed before a task may be changed, and to answer questions about it.",
    parameters: one_task,
  },
  Row {
    name: "pa_task_list",
    inner: Inner::List,
    offered: &[Audience::Owner],
    description: "Lists tasks with their ids and states: active ones, then those that ended recently.",
    parameters: nothing,
  },
  Row {
    name: "pa_history",
    inner: Inner::Recall,
    offered: &[Audience::Task],
    description: "Shows an earlier step of this task again, also one that is no longer in front of you: what you wrote, the calls and their results. `offset` goes on in a \
      long result.",
    parameters: recall,
  },
  Row {
    name: "pa_checkpoint",
    inner: Inner::Checkpoint,
    offered: &[Audience::Task],
    description: "Keeps notes for yourself about how far you are and what is still to be done. The newest notes are always in front of you, also when earlier steps no longer \
      are. Each call replaces the notes before.",
    parameters: checkpoint,
  },
  Row {
    name: "pa_deliver",
    inner: Inner::Deliver,
    offered: &[Audience::Task],
    description: "Hands one file of the workspace over: it appears in the owner's conversation at once. The same request_key again gives the first receipt; changed content needs \
      a new one.",
    parameters: deliver,
  },
  Row {
    name: FINISH,
    inner: Inner::Finish,
    offered: &[Audience::Task],
    description: "Ends the task with its result. Call it alone, once everything is done. The result is what the owner will read: complete, without narration or internal ids. \
      Files that were delivered need not be repeated.",
    parameters: finish,
  },
];

impl Inner {
  /// The tool of a name, if it is one of these and offered here.
  pub(super) fn of(name: &str, audience: Audience) -> Option<Self> {
    ROWS.iter().find(|row| row.name == name && row.offered.contains(&audience)).map(|row| row.inner)
  }

  /// What may be done about a call of unknown outcome. A delivery is no read: it begins when everything before it is settled (BB-10).
  pub(super) fn class(self) -> Class {
    match self {
      Self::Order | Self::Read | Self::List | Self::Recall | Self::Checkpoint | Self::Finish => Class::Repeatable,
      Self::Deliver => Class::Contained,
    }
  }

  /// Does what a permitted call asks for. Orders and the end of a task are decided elsewhere.
  pub(super) async fn call(self, at: At<'_>, progress: &Progress, arguments: &Map<String, Value>) -> Result<Vec<ResultPart>, Error> {
    match self {
      Self::Read => tasks::read(at, arguments).await,
      Self::List => tasks::list(at, arguments).await,
      Self::Recall => recall::recall(at, progress, arguments).await,
      Self::Checkpoint => keep::checkpoint(at, arguments).await,
      Self::Deliver => keep::deliver(at, arguments).await,
      Self::Order | Self::Finish => Err(Error::Failed { code: "NOT_A_CALL", reason: "this is decided by the log".to_owned() }),
    }
  }
}

/// What is offered.
pub(super) fn offered(audience: Audience) -> impl Iterator<Item = Tool> {
  ROWS.iter().filter(move |row| row.offered.contains(&audience)).map(|row| Tool {
    name: row.name.to_owned(),
    description: row.description.to_owned(),
    parameters: Arc::new((row.parameters)()),
  })
}

/// The result in the arguments of `pa_finish`, or what is wrong with them.
pub(super) fn result_of(arguments: &str) -> Result<String, String> {
  let arguments: Value = serde_json::from_str(arguments).map_err(|error| format!("The arguments are no JSON: {error}."))?;
  match arguments.get("result").and_then(Value::as_str) {
    Some(result) if !result.trim().is_empty() => Ok(result.to_owned()),
    Some(_) | None => Err("`result` must be the result, as text.".to_owned()),
  }
}

fn object(properties: &Value, required: &[&str]) -> Value {
  json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn attachments() -> Value {
  json!({ "type": "array", "items": { "type": "string" }, "description": "Ids of the message's files that go along; all of them when left out." })
}

fn task() -> Value {
  json!({ "type": "string", "description": "The task's id." })
}

fn start() -> Value {
  object(
    &json!({
      "request_key": { "type": "string", "description": "A short name for this task of your own making. The same key again starts nothing new." },
      "title": { "type": "string", "description": "A few words, as the owner would call it." },
      "goal": { "type": "string", "description": "The whole instruction, with everything that the task has to know." },
      "attachments": attachments(),
    }),
    &["request_key", "title", "goal"],
  )
}

fn instruct() -> Value {
  let instruction = json!({ "type": "string", "description": "What is to be done differently or in addition." });
  object(&json!({ "task": task(), "instruction": instruction, "attachments": attachments() }), &["task", "instruction"])
}

fn one_task() -> Value {
  object(&json!({ "task": task() }), &["task"])
}

fn nothing() -> Value {
  object(&json!({}), &[])
}

fn recall() -> Value {
  object(
    &json!({
      "step": { "type": "integer", "minimum": 1, "description": "The number of the step." },
      "call": { "type": "integer", "minimum": 0, "description": "Only the result of this call of the step, counted from 0." },
      "offset": { "type": "integer", "minimum": 0, "description": "From this character of the result on." },
    }),
    &["step"],
  )
}

fn checkpoint() -> Value {
  object(&json!({ "notes": { "type": "string", "description": "The notes, whole." } }), &["notes"])
}

fn deliver() -> Value {
  object(
    &json!({
      "request_key": { "type": "string", "description": "A short name of your own making for this delivery." },
      "path": { "type": "string", "description": "The file, such as /workspace/work/report.xlsx." },
      "filename": { "type": "string", "description": "The name that the owner sees; the file's own when left out." },
      "caption": { "type": "string", "description": "A line about it." },
    }),
    &["request_key", "path"],
  )
}

fn finish() -> Value {
  object(&json!({ "result": { "type": "string", "description": "The result, whole, in the language of the task's goal." } }), &["result"])
}
