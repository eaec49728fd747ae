//! Lives of calls, timers and interruptions: each goes its own way and no other, and none is left in the middle.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pa_domain::call::{Class, Event as CallEvent};
use pa_domain::conversation::Event as ConversationEvent;
use pa_domain::execution::Event as ExecutionEvent;
use pa_domain::limits::REPLY_LOSSES_MAX;
use pa_domain::timer::Event as TimerEvent;
use pa_domain::{AgentId, CallId, Event, JobId, TimerId};
use pa_eventlog::reader::Decision;

use super::super::world::World;
use super::{Accepted, ensure};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
  Started,
  Skipped,
  Returned,
  /// Certainly not done; it may not even have begun.
  Failed,
  Unknown,
  /// `true`: by the owner's word, after which a late outcome may be noted.
  Reconciled(bool),
}

#[derive(Clone, Copy, Debug)]
struct Call {
  class: Class,
  standing: Standing,
}

#[derive(Default)]
struct Lives {
  /// A call that was skipped before it started has no class yet.
  calls: BTreeMap<CallId, Call>,
  timers: BTreeMap<TimerId, bool>,
  losses: HashMap<JobId, i32>,
}

/// Checks every life that the log tells. With `outside`, also that the ledger of what happened agrees.
pub(in super::super) fn check(all: &[Accepted], world: &World, outside: bool) -> Result<(), String> {
  let mut agents: BTreeMap<AgentId, Lives> = BTreeMap::new();
  for decision in all.iter().flat_map(Accepted::decisions) {
    let lives = agents.entry(decision.agent).or_default();
    lives.decision(decision).map_err(|problem| format!("agent {} at {}: {problem}", decision.agent, decision.first))?;
  }
  let happened: BTreeSet<CallId> = world.shared.ledger.effects().iter().map(|effect| effect.call).collect();
  for (agent, lives) in &agents {
    for (id, call) in &lives.calls {
      let open = call.standing == Standing::Started && call.class != Class::Repeatable;
      let unsaid = call.standing == Standing::Unknown && call.class == Class::External;
      ensure!(!open && !unsaid, "call {id} of {agent} is left {:?}", call.standing);
      if outside && call.standing == Standing::Returned {
        ensure!(happened.contains(id), "call {id} of {agent} returned and never happened");
      }
      if outside && call.standing == Standing::Skipped && call.class != Class::Repeatable {
        ensure!(!happened.contains(id), "call {id} of {agent} was skipped and happened");
      }
    }
    let running: Vec<&TimerId> = lives.timers.iter().filter(|(_, runs)| **runs).map(|(id, _)| id).collect();
    ensure!(running.is_empty(), "timers of {agent} still run: {running:?}");
  }
  Ok(())
}

impl Lives {
  fn decision(&mut self, decision: &Decision) -> Result<(), String> {
    let fails = decision.events.iter().any(|recorded| matches!(recorded.event, Event::Conversation(ConversationEvent::ReplyFailed(_))));
    for recorded in decision.events.iter() {
      match &recorded.event {
        Event::Call(event) => self.call(event)?,
        Event::Timer(event) => self.timer(event)?,
        Event::Execution(ExecutionEvent::ExecutionLost(lost)) => {
          let losses = self.losses.entry(lost.job).or_default();
          *losses += 1;
          ensure!(*losses == lost.losses, "the {losses}. loss of {} is counted as {}", lost.job, lost.losses);
          ensure!((lost.losses >= REPLY_LOSSES_MAX) == fails, "after {} losses {} fails: {fails}", lost.losses, lost.job);
        }
        Event::Conversation(ConversationEvent::MessageRetried(retried)) => drop(self.losses.remove(&retried.message.into())),
        Event::Account(_) | Event::Agent(_) | Event::Conversation(_) | Event::Execution(_) | Event::Log(_) | Event::Settings(_) | Event::Task(_) => {}
      }
    }
    Ok(())
  }

  fn call(&mut self, event: &CallEvent) -> Result<(), String> {
    let (id, next) = match event {
      CallEvent::CallStarted(started) => return self.started(started.call, started.class),
      // Conversations have no cards.
      CallEvent::CallHeld(held) => return Err(format!("call {} is held in a conversation", held.call)),
      CallEvent::CallSkipped(skipped) => (skipped.call, Standing::Skipped),
      CallEvent::CallReturned(returned) => (returned.call, Standing::Returned),
      CallEvent::CallFailed(failed) => (failed.call, Standing::Failed),
      CallEvent::CallUnknown(unknown) => (unknown.call, Standing::Unknown),
      CallEvent::CallReconciled(reconciled) => (reconciled.call, Standing::Reconciled(reconciled.by_owner)),
      CallEvent::CallOutcomeNoted(noted) => {
        let standing = self.calls.get(&noted.call).map(|call| call.standing);
        return if standing == Some(Standing::Reconciled(true)) {
          Ok(())
        } else {
          Err(format!("an outcome of {} is noted while it is {standing:?}", noted.call))
        };
      }
    };
    let Some(call) = self.calls.get_mut(&id) else {
      // It was asked for and never began.
      ensure!(next == Standing::Skipped, "call {id} becomes {next:?} and never started");
      self.calls.insert(id, Call { class: Class::External, standing: next });
      return Ok(());
    };
    let may = match next {
      Standing::Started => false,
      // A repeatable one is skipped when its next ask is refused.
      Standing::Skipped => call.standing == Standing::Started && call.class == Class::Repeatable,
      Standing::Returned | Standing::Failed | Standing::Unknown => call.standing == Standing::Started,
      Standing::Reconciled(_) => call.standing == Standing::Unknown,
    };
    ensure!(may, "call {id} is {:?} and becomes {next:?}", call.standing);
    call.standing = next;
    Ok(())
  }

  fn started(&mut self, id: CallId, class: Class) -> Result<(), String> {
    let before = self.calls.insert(id, Call { class, standing: Standing::Started });
    let may = before.is_none_or(|before| class == Class::Repeatable && before.standing == Standing::Started);
    ensure!(may, "call {id} starts after it was {before:?}");
    Ok(())
  }

  fn timer(&mut self, event: &TimerEvent) -> Result<(), String> {
    match event {
      TimerEvent::TimerSet(set) => {
        let before = self.timers.insert(set.timer, true);
        ensure!(before.is_none(), "timer {} is set twice", set.timer);
      }
      TimerEvent::TimerCancelled(pa_domain::timer::TimerCancelled { timer }) | TimerEvent::TimerElapsed(pa_domain::timer::TimerElapsed { timer }) => {
        let before = self.timers.insert(*timer, false);
        ensure!(before == Some(true), "timer {timer} ends and does not run: {before:?}");
      }
    }
    Ok(())
  }
}
