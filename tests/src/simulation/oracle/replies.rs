//! Turns and ends: whose turn it is, who works, and that every message has exactly one answer or notice.

use std::collections::{BTreeMap, HashMap};

use pa_domain::conversation::{ConversationKind, Event as ConversationEvent};
use pa_domain::execution::Event as ExecutionEvent;
use pa_domain::limits::CHANNEL_REPLIES_MAX;
use pa_domain::{AgentId, ConversationId, Event, JobId};
use pa_eventlog::reader::{Decision, Recorded};
use uuid::Uuid;

use super::{Accepted, ensure};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
  Open,
  Answered,
  Stopped,
  Failed,
}

#[derive(Default)]
struct Agent {
  kinds: HashMap<ConversationId, ConversationKind>,
  jobs: BTreeMap<JobId, (ConversationId, Standing)>,
  /// Open messages by conversation, in the order in which they are to be answered.
  waiting: HashMap<ConversationId, Vec<JobId>>,
  turns: BTreeMap<ConversationId, JobId>,
  running: BTreeMap<JobId, i32>,
  /// The chain of causes of each job's message.
  chains: HashMap<JobId, Uuid>,
}

pub(in super::super) fn check(accepted: &Accepted) -> Result<(), String> {
  let mut agents: HashMap<AgentId, Agent> = HashMap::new();
  for decision in accepted.decisions() {
    let agent = agents.entry(decision.agent).or_default();
    let notices = decision.events.iter().filter(|recorded| matches!(recorded.event, Event::Conversation(ConversationEvent::NoticePosted(_)))).count();
    let failures = decision.events.iter().filter(|recorded| matches!(recorded.event, Event::Conversation(ConversationEvent::ReplyFailed(_)))).count();
    ensure!(failures == 0 || notices == failures, "a reply failed at {} with {notices} notices", decision.first);
    agent.take(decision).map_err(|problem| format!("agent {} at {}: {problem}", decision.agent, decision.first))?;
    agent.bounded().map_err(|problem| format!("agent {} after {}: {problem}", decision.agent, decision.last))?;
  }
  for (id, agent) in &agents {
    let open = agent.jobs.iter().find(|(_, (_, standing))| *standing == Standing::Open);
    ensure!(open.is_none(), "agent {id} never answered {open:?}");
    ensure!(agent.running.is_empty(), "agent {id} still works on {:?}", agent.running);
  }
  Ok(())
}

impl Agent {
  fn take(&mut self, decision: &Decision) -> Result<(), String> {
    for recorded in decision.events.iter() {
      self.chained(recorded)?;
      match &recorded.event {
        Event::Conversation(event) => self.conversation(event)?,
        Event::Execution(event) => self.execution(event)?,
        Event::Account(_) | Event::Agent(_) | Event::Call(_) | Event::Log(_) | Event::Settings(_) | Event::Task(_) | Event::Timer(_) => {}
      }
    }
    Ok(())
  }

  /// The work on a message, by whomever, belongs to the message's chain of causes.
  fn chained(&mut self, recorded: &Recorded) -> Result<(), String> {
    let core = recorded.core();
    match &recorded.event {
      Event::Conversation(ConversationEvent::MessageAdmitted(admitted)) => drop(self.chains.insert(admitted.message.into(), core.correlation)),
      // The owner's own stop begins another chain.
      Event::Execution(event) if !matches!(event, ExecutionEvent::ExecutionStopped(_)) => {
        let message = self.chains.get(&event.job());
        ensure!(
          message == Some(&core.correlation),
          "{} of {} belongs to {} and its message to {message:?}",
          recorded.event.type_name(),
          event.job(),
          core.correlation
        );
      }
      Event::Account(_)
      | Event::Agent(_)
      | Event::Call(_)
      | Event::Conversation(_)
      | Event::Execution(_)
      | Event::Log(_)
      | Event::Settings(_)
      | Event::Task(_)
      | Event::Timer(_) => {}
    }
    Ok(())
  }

  fn conversation(&mut self, event: &ConversationEvent) -> Result<(), String> {
    match event {
      ConversationEvent::ConversationOpened(opened) => drop(self.kinds.insert(opened.conversation, opened.kind)),
      ConversationEvent::MessageAdmitted(admitted) => {
        let before = self.jobs.insert(admitted.message.into(), (admitted.conversation, Standing::Open));
        ensure!(before.is_none(), "message {} is admitted again", admitted.message);
        self.waiting.entry(admitted.conversation).or_default().push(admitted.message.into());
      }
      ConversationEvent::ReportAdmitted(admitted) => {
        let before = self.jobs.insert(admitted.message.into(), (admitted.conversation, Standing::Open));
        ensure!(before.is_none(), "report {} is admitted again", admitted.message);
        self.waiting.entry(admitted.conversation).or_default().push(admitted.message.into());
      }
      ConversationEvent::ReportSuperseded(superseded) => self.end(superseded.job, Standing::Answered)?,
      ConversationEvent::MessageRetried(retried) => {
        let job = JobId::from(retried.message);
        let standing = self.jobs.insert(job, (retried.conversation, Standing::Open)).map(|(_, standing)| standing);
        ensure!(matches!(standing, Some(Standing::Stopped | Standing::Failed)), "job {job} is retried although it is {standing:?}");
        self.waiting.entry(retried.conversation).or_default().push(job);
      }
      ConversationEvent::ReplyRequested(requested) => {
        let first = self.waiting.get(&requested.conversation).and_then(|waiting| waiting.first());
        ensure!(first == Some(&requested.job), "{} has its turn before {first:?}", requested.job);
        let other = self.turns.insert(requested.conversation, requested.job);
        ensure!(other.is_none(), "{} has its turn while {other:?} has it", requested.job);
      }
      ConversationEvent::ReplyPosted(posted) => self.end(posted.job, Standing::Answered)?,
      ConversationEvent::ReplyStopped(stopped) => self.end(stopped.job, Standing::Stopped)?,
      ConversationEvent::ReplyFailed(failed) => self.end(failed.job, Standing::Failed)?,
      ConversationEvent::NoticePosted(_) => {}
    }
    Ok(())
  }

  fn end(&mut self, job: JobId, end: Standing) -> Result<(), String> {
    let Some((conversation, standing)) = self.jobs.get_mut(&job) else { return Err(format!("{job} ends and was never there")) };
    ensure!(*standing == Standing::Open, "{job} is {standing:?} and becomes {end:?}");
    *standing = end;
    self.waiting.entry(*conversation).or_default().retain(|other| *other != job);
    if self.turns.get(conversation) == Some(&job) {
      self.turns.remove(conversation);
    }
    ensure!(!self.running.contains_key(&job), "{job} ends while it is worked on");
    Ok(())
  }

  fn execution(&mut self, event: &ExecutionEvent) -> Result<(), String> {
    let job = event.job();
    match event {
      ExecutionEvent::ExecutionStarted(started) => {
        let other = self.running.insert(job, started.execution);
        ensure!(other.is_none(), "{job} is worked on twice");
        ensure!(self.turns.values().any(|turn| *turn == job), "{job} is worked on before its turn");
      }
      ExecutionEvent::StepRecorded(_) => {}
      ExecutionEvent::ExecutionLost(_)
      | ExecutionEvent::ExecutionYielded(_)
      | ExecutionEvent::ExecutionFailed(_)
      | ExecutionEvent::ExecutionStopped(_)
      | ExecutionEvent::ExecutionSuspended(_)
      | ExecutionEvent::ExecutionFinished(_) => {
        ensure!(self.running.remove(&job).is_some(), "an execution of {job} ends that does not run");
      }
    }
    Ok(())
  }

  /// One turn in the main conversation, and four in channels, at the most (D33).
  fn bounded(&self) -> Result<(), String> {
    let is_channel = |conversation: &ConversationId| self.kinds.get(conversation) == Some(&ConversationKind::Channel);
    let channels = self.turns.keys().filter(|conversation| is_channel(conversation)).count();
    ensure!(channels <= CHANNEL_REPLIES_MAX && self.turns.len() <= CHANNEL_REPLIES_MAX + 1, "{} have a turn, {channels} of them channels", self.turns.len());
    ensure!(self.running.len() <= CHANNEL_REPLIES_MAX + 1, "{} are worked on", self.running.len());
    Ok(())
  }
}
