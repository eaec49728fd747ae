//! How an execution ends that didn't finish, and what becomes of its job.

use super::{ExecutionFailed, ExecutionLost, ExecutionYielded, LossReason, Running};
use crate::codes::notice;
use crate::conversation::{NoticeParam, Reply, ReplyFailed, posted, report, turn_after};
use crate::event::Event;
use crate::ids::{JobId, TimerId};
use crate::limits::{CODE_CHARS_MAX, DETAIL_CHARS_MAX, REPLY_LOSSES_MAX};
use crate::meta::Meta;
use crate::state::{Root, Thing};
use crate::text;
use crate::timer::{TimerCancelled, TimerElapsed};

/// The running execution of a reply job.
pub(super) struct Attempt<'a> {
  pub(super) root: &'a Root,
  pub(super) meta: &'a Meta,
  pub(super) job: JobId,
  pub(super) reply: &'a Reply,
  pub(super) running: &'a Running,
}

/// How an execution ends.
pub(crate) enum Ending<'a> {
  Lost(LossReason),
  Yielded,
  Failed { code: &'a str, detail: &'a str },
}

/// The timer of a reply attempt elapsed: its worker should have reported the loss, and didn't.
pub(crate) fn limit_reached(root: &Root, thing: &Thing, meta: &Meta, job: JobId, timer: TimerId) -> Vec<Event> {
  let running = thing.reply().and_then(|reply| Some((reply, reply.work.running.as_ref()?)));
  match running {
    Some((reply, running)) if running.timer == timer => {
      let attempt = Attempt { root, meta, job, reply, running };
      attempt.end(TimerElapsed { timer }.into(), &Ending::Lost(LossReason::TimeLimit))
    }
    Some(_) | None => vec![TimerElapsed { timer }.into()],
  }
}

impl Attempt<'_> {
  /// Ends the execution because its worker or an observer says so.
  pub(super) fn end_early(&self, ending: &Ending<'_>) -> Vec<Event> {
    self.end(TimerCancelled { timer: self.running.timer }.into(), ending)
  }

  /// Ends the execution and its timer.
  fn end(&self, timer: Event, ending: &Ending<'_>) -> Vec<Event> {
    let (job, execution) = (self.job, self.running.execution);
    match ending {
      Ending::Yielded => vec![ExecutionYielded { job, execution }.into(), timer],
      Ending::Lost(reason) => {
        let losses = self.reply.work.losses + 1;
        let mut events = vec![ExecutionLost { job, execution, reason: *reason, losses }.into(), timer];
        if losses >= REPLY_LOSSES_MAX {
          self.fail(&mut events, notice::REPLY_INTERRUPTED, interruption(losses, *reason));
        }
        events
      }
      Ending::Failed { code, detail } => {
        let code = named(code);
        let detail = text::first_chars(detail, DETAIL_CHARS_MAX);
        let mut events = vec![ExecutionFailed { job, execution, code: code.to_owned(), detail }.into(), timer];
        self.fail(&mut events, code, Vec::new());
        events
      }
    }
  }

  /// The message is not answered: a notice says why, and the next one has its turn. A task's result is posted as it is.
  fn fail(&self, events: &mut Vec<Event>, code: &str, params: Vec<NoticeParam>) {
    let (job, conversation) = (self.job, self.reply.conversation);
    if let Some(posted) = report::unchanged(self.root, (job, self.reply)) {
      // The agent couldn't tell it in its own words (REP-27).
      events.push(posted);
      events.extend(turn_after(self.root, conversation, job).map(Event::from));
      return;
    }
    events.push(ReplyFailed { job, conversation, reply: self.reply.reply, code: code.to_owned() }.into());
    events.push(posted(self.meta, events.len(), (conversation, job.into()), code, params));
    events.extend(turn_after(self.root, conversation, job).map(Event::from));
  }
}

fn interruption(losses: i32, reason: LossReason) -> Vec<NoticeParam> {
  let reason = match reason {
    LossReason::LeaseExpired => "LEASE_EXPIRED",
    LossReason::NodeRestarted => "NODE_RESTARTED",
    LossReason::TimeLimit => "TIME_LIMIT",
  };
  vec![NoticeParam::new("losses", losses.to_string()), NoticeParam::new("reason", reason)]
}

/// The code that a worker names, if it is one.
pub(crate) fn named(code: &str) -> &str {
  let is_code = !code.is_empty() && code.len() <= CODE_CHARS_MAX && code.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
  if is_code { code } else { notice::FAILED }
}
