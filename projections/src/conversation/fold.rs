//! From a fact to changes of conversations and entries. Pure; no rules: each event says what happened.

use pa_domain::call;
use pa_domain::conversation::{self, Author, ConversationKind, FileRef, MessageAdmitted, NoticePosted};
use pa_domain::execution::{self, ExecutionStarted};
use pa_domain::{CallId, ConversationId, Event, JobId, MessageId, Meta, Origin, Timestamp};
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
  /// None for a tool card, which knows its job only: the conversation is that of the message with the job's id.
  pub conversation: Option<ConversationId>,
  /// The job of a tool card.
  pub job: Option<JobId>,
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
    Event::Call(event) => of_call(meta, event).into_iter().collect(),
    // A task's goal, instructions, checkpoints and outputs are entries of its own conversation: the projection of task entries shows them.
    Event::Task(_) | Event::Account(_) | Event::Agent(_) | Event::Log(_) | Event::Settings(_) | Event::Timer(_) => Vec::new(),
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
    // A result is shown by the reply that tells it, and on its task.
    E::ReplyRequested(_) | E::ReportAdmitted(_) => Vec::new(),
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
    // What of the reply was being written is taken away.
    E::ReportSuperseded(superseded) => vec![Change::Patched(Patch {
      id: superseded.reply.0,
      changed: meta.ordinal,
      status: Status::Stopped,
      text: Some(String::new()),
      incomplete: Some(true),
      removed: Some(true),
    })],
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

fn of_call(meta: &Meta, event: &call::Event) -> Option<Change> {
  use call::Event as E;
  Some(match event {
    E::CallStarted(started) => tool_card(meta, started.job, started.call, &started.tool, Status::Started),
    E::CallSkipped(skipped) => tool_card(meta, skipped.job, skipped.call, &skipped.tool, Status::Skipped),
    E::CallReturned(returned) => status(meta, returned.call.0, Status::Returned),
    E::CallFailed(failed) => status(meta, failed.call.0, Status::Failed),
    E::CallUnknown(unknown) => status(meta, unknown.call.0, Status::Unknown),
    E::CallReconciled(reconciled) => status(meta, reconciled.call.0, Status::Reconciled),
    // The card of a held call is shown by the projection of pending actions.
    E::CallHeld(_) | E::CallOutcomeNoted(_) => return None,
  })
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

fn tool_card(meta: &Meta, job: JobId, call: CallId, tool: &str, status: Status) -> Change {
  Change::Entered(Box::new(NewEntry { job: Some(job), code: tool.to_owned(), shown: false, ..row(meta, call.0, EntryKind::Tool, Role::Agent, status) }))
}

/// A row with nothing in it but what every row has.
fn row(meta: &Meta, id: Uuid, kind: EntryKind, role: Role, status: Status) -> NewEntry {
  NewEntry {
    id,
    conversation: None,
    job: None,
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
