//! What is remembered of conversations and replies.

use std::collections::BTreeMap;

use super::{Author, Conversation, ConversationKind, Event, MessageAdmitted, OpenMessage, OpenReport, Reply, ReplyStatus, Report, ReportAdmitted};
use crate::execution::Work;
use crate::ids::{ConversationId, JobId, MessageId};
use crate::limits::CONVERSATIONS_MAX;
use crate::meta::Meta;
use crate::state::{Root, State, Thing};

pub(crate) fn evolve(state: &mut State, meta: &Meta, event: &Event) {
  let State { root, thing } = state;
  match event {
    Event::ConversationOpened(opened) => open(root, meta, opened.conversation, opened.kind),
    Event::MessageAdmitted(admitted) => {
      *thing = Thing::Reply(Box::new(pending(admitted, meta)));
      wait(root, meta, (admitted.conversation, admitted.message.into(), admitted.reply), None);
    }
    Event::ReportAdmitted(admitted) => {
      let ReportAdmitted { task, revision, .. } = *admitted;
      *thing = Thing::Reply(Box::new(to_tell(admitted, meta)));
      root.result_arrived(task);
      root.supersede(task, revision);
      let report = OpenReport { task, revision, is_superseded: false };
      wait(root, meta, (admitted.conversation, admitted.message.into(), admitted.reply), Some(report));
    }
    Event::ReportSuperseded(superseded) => {
      close(root, superseded.conversation, superseded.job);
      end(thing, ReplyStatus::Superseded);
      if let Some(reply) = thing.reply_mut() {
        told(reply);
      }
    }
    Event::MessageRetried(retried) => {
      if let Some(reply) = thing.reply_mut() {
        reply.status = ReplyStatus::Pending;
        reply.work.instruct(meta.ordinal);
      }
      let report = thing.reply().and_then(|reply| reply.report.as_ref());
      let report = report.map(|report| OpenReport { task: report.task, revision: report.revision, is_superseded: false });
      wait(root, meta, (retried.conversation, retried.message.into(), retried.reply), report);
    }
    Event::ReplyRequested(requested) => {
      let open = root.conversations.get_mut(&requested.conversation).map_or(&mut [][..], |known| &mut known.open);
      for message in open.iter_mut().filter(|message| message.job == requested.job) {
        message.has_turn = true;
      }
    }
    Event::ReplyPosted(posted) => {
      close(root, posted.conversation, posted.job);
      end(thing, ReplyStatus::Answered);
      if let Some(reply) = thing.reply_mut() {
        told(reply);
      }
    }
    Event::ReplyStopped(stopped) => {
      close(root, stopped.conversation, stopped.job);
      end(thing, ReplyStatus::Stopped);
    }
    Event::ReplyFailed(failed) => {
      close(root, failed.conversation, failed.job);
      end(thing, ReplyStatus::Failed);
    }
    Event::NoticePosted(_) => {}
  }
}

/// Remembers a conversation; beyond the limit the longest idle channel one is forgotten.
fn open(root: &mut Root, meta: &Meta, conversation: ConversationId, kind: ConversationKind) {
  match kind {
    ConversationKind::Main => root.main = Some(conversation),
    ConversationKind::Channel => {}
    // No message has its turn in a task's conversation, so nothing about it is counted here.
    ConversationKind::Task => return,
  }
  if root.conversations.len() >= CONVERSATIONS_MAX {
    let idle = |known: &Conversation| known.kind == ConversationKind::Channel && known.open.is_empty();
    let longest = root.conversations.iter().filter(|(_, known)| idle(known)).min_by_key(|(_, known)| known.active).map(|(&id, _)| id);
    if let Some(longest) = longest {
      root.conversations.remove(&longest);
    }
  }
  root.conversations.insert(conversation, Conversation { kind, open: Vec::new(), active: meta.ordinal });
}

fn pending(admitted: &MessageAdmitted, meta: &Meta) -> Reply {
  let author: Author = admitted.author;
  let work = Work { instructed: meta.ordinal, ..Work::default() };
  Reply {
    conversation: admitted.conversation,
    author,
    reply: admitted.reply,
    status: ReplyStatus::Pending,
    correlation: meta.correlation,
    work,
    attachments: admitted.attachments.clone(),
    report: None,
    looking_up: BTreeMap::new(),
    read: BTreeMap::new(),
  }
}

/// The job that tells a task's result.
fn to_tell(admitted: &ReportAdmitted, meta: &Meta) -> Reply {
  let report = Report { task: admitted.task, revision: admitted.revision, text: admitted.text.clone() };
  Reply {
    conversation: admitted.conversation,
    author: admitted.author,
    reply: admitted.reply,
    status: ReplyStatus::Pending,
    correlation: meta.correlation,
    work: Work { instructed: meta.ordinal, ..Work::default() },
    attachments: Vec::new(),
    report: Some(report),
    looking_up: BTreeMap::new(),
    read: BTreeMap::new(),
  }
}

/// Nothing more is asked of it: only what may still be learnt is kept.
fn told(reply: &mut Reply) {
  reply.work.forget_settled();
  reply.attachments = Vec::new();
  reply.report = None;
  reply.looking_up.clear();
  reply.read.clear();
}

fn wait(root: &mut Root, meta: &Meta, what: (ConversationId, JobId, MessageId), report: Option<OpenReport>) {
  let (conversation, job, reply) = what;
  if let Some(known) = root.conversations.get_mut(&conversation) {
    known.active = meta.ordinal;
    known.open.push(OpenMessage { job, reply, since: meta.ordinal, has_turn: false, report });
  }
}

fn close(root: &mut Root, conversation: ConversationId, job: JobId) {
  if let Some(known) = root.conversations.get_mut(&conversation) {
    known.open.retain(|message| message.job != job);
  }
}

fn end(thing: &mut Thing, status: ReplyStatus) {
  if let Some(reply) = thing.reply_mut() {
    reply.status = status;
  }
}
