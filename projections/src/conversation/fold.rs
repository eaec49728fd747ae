//! From a fact to changes of conversations and entries. Pure; no rules: each event says what happened.

use pa_domain::conversation::{self, Author, ConversationKind, FileRef, MessageAdmitted, NoticePosted, ReportAdmitted};
use pa_domain::execution::{self, ExecutionStarted};
use pa_domain::task::{self, OutputDelivered};
use pa_domain::{ConversationId, Event, MessageId, Meta, Origin, Timestamp};
use uuid::Uuid;

use super::{EntryKind, Role, Status};

/// A change of a conversation's rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
  Opened(Opened),
  /// A row appears; one that is there already keeps its place and takes the rest.
  Entered(Box<NewEntry>),
  Patched(Patch),
  Attached {
    entry: MessageId,
    index: i32,
    file: Box<FileRef>,
  },
}

/// A conversation that exists from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
  pub id: ConversationId,
  pub kind: ConversationKind,
  pub title: String,
  pub connection: String,
  pub opened: Timestamp,
  pub changed: i64,
}

/// A whole row.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
  pub id: Uuid,
  pub conversation: Option<ConversationId>,
  pub place: i64,
  pub changed: i64,
  pub kind: EntryKind,
  pub role: Role,
  pub author: String,
  pub text: String,
  pub status: Status,
  pub created: Timestamp,
  pub reply_to: Option<MessageId>,
  pub reply: Option<MessageId>,
  pub incomplete: bool,
  pub attempt: i32,
  pub code: String,
  pub params: String,
  pub attachments: i32,
  pub origin: Origin,
  pub shown: bool,
  pub removed: bool,
}

/// What changes in a row that stands already; what is `None` stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
  pub id: Uuid,
  pub changed: i64,
  pub status: Status,
  pub text: Option<String>,
  pub incomplete: Option<bool>,
  pub removed: Option<bool>,
}

/// What a fact changes here.
pub(super) fn fold(meta: &Meta, event: &Event) -> Vec<Change> {
  match event {
    Event::Conversation(event) => of_conversation(meta, event),
    Event::Execution(event) => of_execution(meta, event),
    Event::Task(event) => of_task(meta, event),
    // Tool calls of a conversation's turns are no entries (USE-27); those of a task stand in its own conversation.
    Event::Call(_) | Event::Account(_) | Event::Agent(_) | Event::Log(_) | Event::Settings(_) | Event::Timer(_) => Vec::new(),
  }
}

fn of_conversation(meta: &Meta, event: &conversation::Event) -> Vec<Change> {
  use conversation::Event as E;
  match event {
    E::ConversationOpened(opened) => vec![Change::Opened(Opened {
      id: opened.conversation,
      kind: opened.kind,
      title: opened.title.clone(),
      connection: opened.connection.clone(),
      opened: meta.at,
      changed: meta.ordinal,
    })],
    E::MessageAdmitted(admitted) => message(meta, admitted),
    E::MessageRetried(retried) => vec![status(meta, retried.message.0, Status::Pending)],
    E::ReportAdmitted(admitted) => vec![Change::Entered(Box::new(report(meta, admitted)))],
    E::ReplyRequested(_) => Vec::new(),
    E::ReplyPosted(posted) => vec![
      Change::Patched(Patch {
        id: posted.reply.0,
        changed: meta.ordinal,
        status: Status::Posted,
        text: Some(posted.text.clone()),
        incomplete: Some(posted.incomplete),
        removed: Some(false),
      }),
      status(meta, posted.job.0, Status::Answered),
    ],
    E::ReplyStopped(stopped) => vec![
      // What had been shown stays; a reply of which nothing had been shown is taken away.
      Change::Patched(Patch {
        id: stopped.reply.0,
        changed: meta.ordinal,
        status: Status::Stopped,
        text: Some(stopped.text.clone()),
        incomplete: Some(true),
        removed: Some(stopped.text.is_empty()),
      }),
      status(meta, stopped.job.0, Status::Stopped),
    ],
    E::ReplyFailed(failed) => vec![
      Change::Patched(Patch {
        id: failed.reply.0,
        changed: meta.ordinal,
        status: Status::Failed,
        text: Some(String::new()),
        incomplete: Some(true),
        removed: Some(true),
      }),
      status(meta, failed.job.0, Status::Failed),
    ],
    // What of the reply was being written is taken away, and the result is no part of the conversation.
    E::ReportSuperseded(superseded) => [superseded.reply.0, superseded.job.0].map(|id| taken_away(meta, id)).to_vec(),
    E::NoticePosted(posted) => vec![Change::Entered(Box::new(notice(meta, posted)))],
  }
}

fn of_execution(meta: &Meta, event: &execution::Event) -> Vec<Change> {
  use execution::Event as E;
  match event {
    E::ExecutionStarted(started) => match started.kind {
      execution::JobKind::Reply => vec![Change::Entered(Box::new(reply(meta, started)))],
      // No reply is being written: what a task does is shown in its own conversation.
      execution::JobKind::Task => Vec::new(),
    },
    E::ExecutionLost(_)
    | E::ExecutionYielded(_)
    | E::ExecutionFailed(_)
    | E::ExecutionStopped(_)
    | E::ExecutionSuspended(_)
    | E::ExecutionFinished(_)
    | E::StepRecorded(_) => Vec::new(),
  }
}

/// A delivered file stands in the conversation that asked; the files of a task's own entries are named here, so that they are served like any other.
fn of_task(meta: &Meta, event: &task::Event) -> Vec<Change> {
  use task::Event as E;
  match event {
    E::TaskStarted(event) => files(event.task.0, &event.attachments),
    E::TaskInstructed(event) => files(event.instruction.0, &event.attachments),
    E::OutputDelivered(event) => {
      let mut changes = vec![Change::Entered(Box::new(output(meta, event)))];
      changes.extend(files(event.output.0, std::slice::from_ref(&event.file)));
      changes
    }
    // What else a task does stands in its own conversation.
    E::TaskOrdered(_)
    | E::TaskLookedUp(_)
    | E::TaskQueued(_)
    | E::TaskRunRequested(_)
    | E::TaskWaiting(_)
    | E::TaskPaused(_)
    | E::TaskResumed(_)
    | E::TaskStopped(_)
    | E::TaskCompleted(_)
    | E::TaskFailed(_)
    | E::OrderRefused(_)
    | E::OrderRepeated(_)
    | E::CheckpointRecorded(_)
    | E::ActionApproved(_)
    | E::ActionRejected(_)
    | E::ActionWithdrawn(_) => Vec::new(),
  }
}

fn status(meta: &Meta, id: Uuid, status: Status) -> Change {
  Change::Patched(Patch { id, changed: meta.ordinal, status, text: None, incomplete: None, removed: None })
}

fn message(meta: &Meta, admitted: &MessageAdmitted) -> Vec<Change> {
  let mut changes = Vec::with_capacity(1 + admitted.attachments.len());
  let attachments = i32::try_from(admitted.attachments.len()).unwrap_or(i32::MAX);
  let role = match admitted.author {
    Author::Owner => Role::Owner,
    Author::Person => Role::Person,
  };
  changes.push(Change::Entered(Box::new(NewEntry {
    conversation: Some(admitted.conversation),
    author: admitted.author_name.clone(),
    text: admitted.text.clone(),
    reply: Some(admitted.reply),
    attachments,
    ..row(meta, admitted.message.0, EntryKind::Text, role, Status::Pending)
  })));
  for (index, file) in (0..attachments).zip(&admitted.attachments) {
    changes.push(Change::Attached { entry: admitted.message, index, file: Box::new(file.clone()) });
  }
  changes
}

/// A task's result. It is shown by the reply that tells it, and on its task.
fn report(meta: &Meta, admitted: &ReportAdmitted) -> NewEntry {
  NewEntry {
    conversation: Some(admitted.conversation),
    author: admitted.title.clone(),
    text: admitted.text.clone(),
    reply: Some(admitted.reply),
    shown: false,
    ..row(meta, admitted.message.0, EntryKind::Report, Role::Agent, Status::Pending)
  }
}

fn taken_away(meta: &Meta, id: Uuid) -> Change {
  Change::Patched(Patch { id, changed: meta.ordinal, status: Status::Stopped, text: Some(String::new()), incomplete: Some(true), removed: Some(true) })
}

fn reply(meta: &Meta, started: &ExecutionStarted) -> NewEntry {
  NewEntry {
    conversation: Some(started.conversation),
    reply_to: Some(started.job.into()),
    attempt: started.execution,
    // The event answers a worker's ask; what the row will hold are the agent's words.
    origin: Origin::Agent,
    ..row(meta, started.reply.0, EntryKind::Text, Role::Agent, Status::Writing)
  }
}

fn notice(meta: &Meta, posted: &NoticePosted) -> NewEntry {
  let params = if posted.params.is_empty() { String::new() } else { serde_json::to_string(&posted.params).expect("names and values are plain strings") };
  NewEntry {
    conversation: Some(posted.conversation),
    reply_to: posted.reply_to,
    code: posted.code.clone(),
    params,
    ..row(meta, posted.notice.0, EntryKind::Notice, Role::Notice, Status::Posted)
  }
}

fn output(meta: &Meta, delivered: &OutputDelivered) -> NewEntry {
  NewEntry {
    conversation: Some(delivered.conversation),
    text: delivered.caption.clone(),
    attachments: 1,
    origin: Origin::Agent,
    ..row(meta, delivered.output.0, EntryKind::File, Role::Agent, Status::Posted)
  }
}

fn files(entry: Uuid, files: &[FileRef]) -> Vec<Change> {
  (0..).zip(files).map(|(index, file)| Change::Attached { entry: MessageId(entry), index, file: Box::new(file.clone()) }).collect()
}

/// A row with nothing in it but what every row has.
fn row(meta: &Meta, id: Uuid, kind: EntryKind, role: Role, status: Status) -> NewEntry {
  NewEntry {
    id,
    conversation: None,
    place: meta.ordinal,
    changed: meta.ordinal,
    kind,
    role,
    author: String::new(),
    text: String::new(),
    status,
    created: meta.at,
    reply_to: None,
    reply: None,
    incomplete: false,
    attempt: 0,
    code: String::new(),
    params: String::new(),
    attachments: 0,
    origin: meta.origin,
    shown: true,
    removed: false,
  }
}
