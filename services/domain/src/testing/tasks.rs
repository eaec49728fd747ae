//! Inputs about tasks as tests send them, with what doesn't matter filled in.

use uuid::Uuid;

use super::inputs;
use crate::call::{CallAsked, Class, Gate, GateKind};
use crate::conversation::Author;
use crate::event::Input;
use crate::execution::{ExecutionAsked, JobKind};
use crate::ids::{ActionId, CallId, ConversationId, JobId, TaskId};
use crate::task::{
  ActionDecisionGiven, CheckpointAsked, Decision, DeliveryAsked, DesktopBusyReported, DesktopFreedReported, InstructionGiven, OutputLoopReported,
  TaskPauseAsked, TaskResumeAsked, TaskStartAsked, TaskStopAsked,
};

/// A test's task.
pub fn task(number: u64) -> TaskId {
  TaskId(Uuid::from_u128((0x7a5c_u128 << 112) | u128::from(number)))
}

/// Starts a task whose result is told in the main conversation.
pub fn start(task: TaskId, goal: &str) -> TaskStartAsked {
  TaskStartAsked {
    task,
    conversation: ConversationId(Uuid::nil()),
    author: Author::Owner,
    title: "Report".to_owned(),
    goal: goal.to_owned(),
    attachments: Vec::new(),
    order: None,
  }
}

/// The owner instructs a task on its page.
pub fn instruct(task: TaskId, text: &str) -> InstructionGiven {
  InstructionGiven { task, text: text.to_owned(), attachments: Vec::new(), order: None }
}

/// The owner pauses a task.
pub fn pause(task: TaskId) -> Input {
  TaskPauseAsked { task, order: None }.into()
}

/// The owner lets a task go on.
pub fn resume(task: TaskId) -> Input {
  TaskResumeAsked { task, order: None }.into()
}

/// The owner stops a task.
pub fn stop(task: TaskId) -> Input {
  TaskStopAsked { task, order: None }.into()
}

/// A worker asks for a task.
pub fn ask(task: TaskId) -> Input {
  ExecutionAsked { job: task.into(), kind: JobKind::Task }.into()
}

/// The owner decides on a card.
pub fn decide(task: TaskId, card: ActionId, decision: Decision) -> Input {
  ActionDecisionGiven { task, card, decision }.into()
}

/// The card of an email to these recipients with this subject.
pub fn email(target: &str) -> Gate {
  Gate { kind: GateKind::Email, target: target.to_owned(), scope: None, valid_until_ms: None }
}

/// The card of an action in an application of a computer.
pub fn computer(scope: &str) -> Gate {
  Gate { kind: GateKind::Computer, target: format!("{scope}/window 1"), scope: Some(scope.to_owned()), valid_until_ms: None }
}

/// A worker asks for the permit of an external call; it has read everything.
pub fn external(task: TaskId, execution: i32, at: (i32, i32), action: &str, gate: Gate) -> CallAsked {
  let asked = inputs::call(JobId::from(task), execution, at, "send", Class::External);
  CallAsked { action: action.to_owned(), gate: Some(gate), ..asked }
}

/// A started call keeps the model's notes.
pub fn checkpoint(task: TaskId, execution: i32, call: CallId, text: &str) -> CheckpointAsked {
  CheckpointAsked { task, execution, call, text: text.to_owned() }
}

/// A started call hands a file over.
pub fn deliver(task: TaskId, execution: i32, call: CallId, request_key: &str) -> DeliveryAsked {
  let file = inputs::file("report.xlsx");
  let source = "/workspace/work/report.xlsx".to_owned();
  DeliveryAsked { task, execution, call, request_key: request_key.to_owned(), file, source, caption: "The report is ready.".to_owned() }
}

/// A model repeats itself.
pub fn looped(task: TaskId, execution: i32) -> Input {
  OutputLoopReported { task, execution, detail: "the same line 40 times".to_owned() }.into()
}

/// The desktop is used by someone else.
pub fn desktop_busy(task: TaskId, execution: i32) -> Input {
  DesktopBusyReported { task, execution }.into()
}

/// The desktop is free.
pub fn desktop_free(task: TaskId) -> Input {
  DesktopFreedReported { task }.into()
}
