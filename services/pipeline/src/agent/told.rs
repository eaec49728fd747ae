//! What a task was told, and what it keeps, in the order of the log. Pure.
//!
//! The owner's words stand here as they were given: prompts leave out steps, never an instruction.

use pa_domain::Origin;
use pa_domain::conversation::{Author, FileRef};
use pa_domain::task::{self, Event};

/// Something that stands in a task's conversation beside the steps of its model.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Note {
  /// The goal, or a later instruction.
  Instruction { text: String, files: Vec<FileRef>, by: Origin },
  /// The result of an earlier run.
  Result(String),
  /// An earlier run ended without a result.
  Ended(&'static str),
}

/// A task as its record tells it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
  pub(super) title: String,
  pub(super) author: Author,
  /// Each with its ordinal.
  pub(super) notes: Vec<(i64, Note)>,
  /// What the model keeps for itself.
  pub(super) checkpoint: Option<String>,
  /// What was handed over, by name.
  pub(super) delivered: Vec<String>,
  /// The ordinal of the last instruction (D2).
  pub(super) revision: i64,
  /// The ordinal since which the task goes on: an instruction or a resume.
  pub(super) since: i64,
  pub(super) status: Status,
}

/// How far a task is, for those who read about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
  AtWork,
  Waiting(task::WaitReason),
  Paused,
  Completed,
  Failed,
  Stopped,
}

impl Status {
  /// As a model reads it.
  pub(super) fn said(self) -> &'static str {
    match self {
      Self::AtWork => "active",
      Self::Waiting(task::WaitReason::Approval) => "waiting for the owner's approval",
      Self::Waiting(task::WaitReason::UnknownEffect) => "waiting: it is not known whether an action had its effect",
      Self::Waiting(task::WaitReason::Desktop) => "waiting for a desktop",
      Self::Waiting(task::WaitReason::Notice) => "waiting: it was interrupted too often",
      Self::Paused => "paused",
      Self::Completed => "completed",
      Self::Failed => "failed",
      Self::Stopped => "stopped",
    }
  }
}

impl Told {
  /// A task that begins.
  pub(super) fn started(ordinal: i64, started: &task::TaskStarted) -> Self {
    let goal = Note::Instruction { text: started.goal.clone(), files: started.attachments.clone(), by: started.by };
    Self {
      title: started.title.clone(),
      author: started.author,
      notes: vec![(ordinal, goal)],
      checkpoint: None,
      delivered: Vec::new(),
      revision: ordinal,
      since: ordinal,
      status: Status::AtWork,
    }
  }

  pub(super) fn fold(&mut self, ordinal: i64, event: &Event) {
    match event {
      Event::TaskInstructed(instructed) => {
        let note = Note::Instruction { text: instructed.text.clone(), files: instructed.attachments.clone(), by: instructed.by };
        self.notes.push((ordinal, note));
        (self.revision, self.since) = (ordinal, ordinal);
        self.delivered.clear();
      }
      Event::TaskResumed(_) => self.since = ordinal,
      Event::TaskQueued(_) => self.status = Status::AtWork,
      Event::TaskWaiting(waiting) => self.status = Status::Waiting(waiting.reason),
      Event::TaskPaused(_) => self.status = Status::Paused,
      Event::TaskCompleted(completed) => self.ended(ordinal, Status::Completed, Note::Result(completed.text.clone())),
      Event::TaskFailed(_) => self.ended(ordinal, Status::Failed, Note::Ended("failed")),
      Event::TaskStopped(_) => self.ended(ordinal, Status::Stopped, Note::Ended("was stopped by the owner")),
      Event::CheckpointRecorded(recorded) => self.checkpoint = Some(recorded.text.clone()),
      Event::OutputDelivered(delivered) => self.delivered.push(delivered.file.name.clone()),
      Event::TaskStarted(_)
      | Event::TaskRunRequested(_)
      | Event::TaskOrdered(_)
      | Event::TaskLookedUp(_)
      | Event::OrderRefused(_)
      | Event::OrderRepeated(_)
      | Event::ActionApproved(_)
      | Event::ActionRejected(_)
      | Event::ActionWithdrawn(_) => {}
    }
  }

  fn ended(&mut self, ordinal: i64, status: Status, note: Note) {
    self.status = status;
    self.notes.push((ordinal, note));
  }

  /// All files that came with its instructions.
  pub(super) fn files(&self) -> impl Iterator<Item = &FileRef> {
    self.notes.iter().flat_map(|(_, note)| match note {
      Note::Instruction { files, .. } => files.as_slice(),
      Note::Result(_) | Note::Ended(_) => &[],
    })
  }
}
