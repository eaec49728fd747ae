//! Random sequences of commands and reports, fresh and stale ones, against the oracle; replay, storage and repetition are checked at every step.

use proptest::prelude::*;

use super::oracle::Oracle;
use crate::call::{Call, CallStatus, Class, Outcome};
use crate::conversation::{Reply, ReplyStatus};
use crate::event::Input;
use crate::execution::{ExecutionLossReported, FinishAsked, LossReason};
use crate::ids::{self, CallId, JobId};
use crate::log::Settlement;
use crate::state::{Root, Thing};
use crate::testing::{TestAgent, inputs};

/// What happens next; the numbers pick among what there is by then.
#[derive(Clone, Copy, Debug)]
enum Happening {
  Message,
  ChannelMessage(u8),
  MessageInChannel(u8),
  Ask(u8),
  Loss(u8, Age),
  TimeLimit(u8, Age),
  Yield(u8, Age),
  Failure(u8, Age),
  Step(u8, Age, u8),
  Finish(u8, Age, bool),
  Call(u8, Age, u8),
  Outcome(u8, u8, Age, Outcome),
  Reconcile(u8, u8, bool),
  Stop(u8),
  Retry(u8),
  Fire(u8),
  Pass(u16),
}

/// Whether a worker is the running one or one of before.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Age {
  Current,
  Older,
}

fn age() -> impl Strategy<Value = Age> {
  prop_oneof![6 => Just(Age::Current), 1 => Just(Age::Older)]
}

fn outcome() -> impl Strategy<Value = Outcome> {
  prop_oneof![2 => Just(Outcome::Returned), 1 => Just(Outcome::Failed), 2 => Just(Outcome::Unknown)]
}

fn happening() -> impl Strategy<Value = Happening> {
  use Happening::{Ask, ChannelMessage, Failure, Finish, Fire, Loss, Message, MessageInChannel, Pass, Reconcile, Retry, Step, Stop, TimeLimit, Yield};
  prop_oneof![
    2 => Just(Message),
    3 => (0..7_u8).prop_map(ChannelMessage),
    1 => (0..7_u8).prop_map(MessageInChannel),
    8 => any::<u8>().prop_map(Ask),
    1 => (any::<u8>(), age()).prop_map(|(job, age)| Loss(job, age)),
    1 => (any::<u8>(), age()).prop_map(|(job, age)| TimeLimit(job, age)),
    1 => (any::<u8>(), age()).prop_map(|(job, age)| Yield(job, age)),
    1 => (any::<u8>(), age()).prop_map(|(job, age)| Failure(job, age)),
    5 => (any::<u8>(), age(), 0..5_u8).prop_map(|(job, age, calls)| Step(job, age, calls)),
    3 => (any::<u8>(), age(), any::<bool>()).prop_map(|(job, age, has_text)| Finish(job, age, has_text)),
    14 => (any::<u8>(), age(), any::<u8>()).prop_map(|(job, age, call)| Happening::Call(job, age, call)),
    12 => (any::<u8>(), any::<u8>(), age(), outcome()).prop_map(|(job, call, age, outcome)| Happening::Outcome(job, call, age, outcome)),
    6 => (any::<u8>(), any::<u8>(), any::<bool>()).prop_map(|(job, call, executed)| Reconcile(job, call, executed)),
    1 => any::<u8>().prop_map(Stop),
    2 => any::<u8>().prop_map(Retry),
    1 => any::<u8>().prop_map(Fire),
    1 => any::<u16>().prop_map(Pass),
  ]
}

/// The tools of a step with `count` calls, of all classes.
fn tools(count: u8) -> Vec<&'static str> {
  ["read", "look", "write", "send"].iter().cycle().skip(usize::from(count) % 3).take(usize::from(count)).copied().collect()
}

fn class_of(tool: &str) -> Class {
  match tool {
    "write" => Class::Contained,
    "send" => Class::External,
    _ => Class::Repeatable,
  }
}

/// Whether nothing more can be learnt about the call.
fn is_settled(call: &Call) -> bool {
  matches!(call.status, CallStatus::Skipped | CallStatus::Settled(Outcome::Returned | Outcome::Failed) | CallStatus::ReconciledByReport | CallStatus::Noted)
}

/// An agent under test, with what its workers could know.
struct Run {
  agent: TestAgent,
  jobs: Vec<JobId>,
  oracle: Oracle,
}

impl Run {
  fn new() -> Self {
    let agent = TestAgent::alive();
    let mut oracle = Oracle::default();
    oracle.decision(&agent.log.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>());
    Self { agent, jobs: Vec::new(), oracle }
  }

  /// Mostly a job that `wanted` is true of, at times any.
  fn pick(&self, number: u8, wanted: impl Fn(&Reply) -> bool) -> Option<JobId> {
    let fitting: Vec<JobId> = self.jobs.iter().copied().filter(|&job| wanted(&self.agent.reply(job))).collect();
    let from = if number.is_multiple_of(8) || fitting.is_empty() { &self.jobs } else { &fitting };
    from.get(usize::from(number) % from.len().max(1)).copied()
  }

  /// A job that a worker reports about.
  fn at_work(&self, number: u8) -> Option<JobId> {
    self.pick(number, |reply| reply.work.running.is_some())
  }

  fn execution(&self, job: JobId, age: Age) -> i32 {
    self.agent.reply(job).work.executions - i32::from(age == Age::Older)
  }

  /// Mostly the next call that the job's steps ask for, at times any.
  fn recorded_call(&self, job: JobId, number: u8) -> Option<(i32, i32, String)> {
    let steps = self.agent.reply(job).work.steps;
    let all: Vec<_> = steps.iter().flat_map(|(&step, recorded)| (0_i32..).zip(&recorded.tools).map(move |(index, tool)| (step, index, tool.clone()))).collect();
    let is_unasked = |&&(step, index, _): &&(i32, i32, String)| !self.agent.reply(job).work.calls.contains_key(&ids::call(job, step, index));
    let next = all.iter().find(is_unasked).filter(|_| !number.is_multiple_of(4));
    next.or_else(|| all.get(usize::from(number) % all.len().max(1))).cloned()
  }

  /// Mostly a call about which something may still be learnt, at times any.
  fn known_call(&self, job: JobId, number: u8) -> Option<CallId> {
    let calls = self.agent.reply(job).work.calls;
    let unsettled: Vec<CallId> = calls.iter().filter(|(_, call)| !is_settled(call)).map(|(&id, _)| id).collect();
    let from = if number.is_multiple_of(4) || unsettled.is_empty() { calls.keys().copied().collect() } else { unsettled };
    from.get(usize::from(number) % from.len().max(1)).copied()
  }

  fn input(&self, happening: Happening) -> Option<Input> {
    match happening {
      Happening::Message => Some(inputs::message("hello")),
      Happening::ChannelMessage(number) => Some(inputs::received(inputs::channel(number.into()), "hello").into()),
      Happening::MessageInChannel(number) => Some(inputs::message_in(inputs::channel(number.into()), "hello")),
      Happening::Ask(job) => self.pick(job, |reply| reply.status == ReplyStatus::Pending && reply.work.running.is_none()).map(inputs::ask),
      Happening::Loss(job, age) => self.at_work(job).map(|job| inputs::loss(job, self.execution(job, age))),
      Happening::TimeLimit(job, age) => {
        self.at_work(job).map(|job| ExecutionLossReported { job, execution: self.execution(job, age), reason: LossReason::TimeLimit }.into())
      }
      Happening::Yield(job, age) => self.at_work(job).map(|job| inputs::give_back(job, self.execution(job, age))),
      Happening::Failure(job, age) => self.at_work(job).map(|job| inputs::failure(job, self.execution(job, age), "MODEL_REFUSED")),
      Happening::Step(job, age, calls) => self.at_work(job).map(|job| {
        let step = self.agent.reply(job).work.last_step() + 1 - i32::from(calls == 0);
        inputs::step(job, self.execution(job, age), step, &tools(calls))
      }),
      Happening::Finish(job, age, has_text) => self.at_work(job).map(|job| self.finish(job, age, has_text).into()),
      Happening::Call(job, age, call) => {
        let job = self.at_work(job)?;
        let (step, index, tool) = self.recorded_call(job, call)?;
        Some(inputs::call(job, self.execution(job, age), (step, index), &tool, class_of(&tool)).into())
      }
      Happening::Outcome(job, call, age, outcome) => {
        let job = self.pick(job, |reply| reply.work.calls.values().any(|call| !is_settled(call)))?;
        let call = self.known_call(job, call)?;
        let starts = &self.agent.reply(job).work.calls[&call].started_by;
        let execution = if age == Age::Current { starts.last() } else { starts.first() };
        Some(inputs::outcome(job, execution.copied().unwrap_or_default(), call, outcome).into())
      }
      Happening::Reconcile(job, call, executed) => {
        let job = self.pick(job, |reply| reply.work.waits_for_call())?;
        Some(inputs::reconcile(job, self.known_call(job, call).unwrap_or(ids::call(job, 9, 9)), executed))
      }
      Happening::Stop(job) => self.pick(job, |reply| reply.status == ReplyStatus::Pending).map(|job| inputs::stop(job, "half")),
      Happening::Retry(job) => self.pick(job, |reply| matches!(reply.status, ReplyStatus::Stopped | ReplyStatus::Failed)).map(inputs::retry),
      Happening::Fire(number) => {
        let timers: Vec<_> = self.agent.root.timers.values().collect();
        let set = timers.get(usize::from(number) % timers.len().max(1))?;
        Some(inputs::fire(set.timer, JobId(set.thing?.0)))
      }
      Happening::Pass(_) => None,
    }
  }

  fn finish(&self, job: JobId, age: Age, has_text: bool) -> FinishAsked {
    let step = self.agent.reply(job).work.last_step() + 1;
    inputs::finish(job, self.execution(job, age), step, self.agent.ordinal(), if has_text { "answer" } else { "" })
  }

  fn happen(&mut self, happening: Happening) {
    if let Happening::Pass(millis) = happening {
      self.agent.now = self.agent.now.plus_millis(i64::from(millis) - 10_000);
    }
    let Some(input) = self.input(happening) else { return };
    let before = self.agent.clone();
    let decided = self.agent.when(input.clone());
    let again = before.clone().when(input.clone());
    assert_eq!(decided, again, "decided twice");
    if decided.has("MessageAdmitted") {
      self.jobs.push(decided.message());
    }
    if let [crate::event::Event::Log(_)] = decided.events[..] {
      assert_eq!((&before.root, &before.things), (&self.agent.root, &self.agent.things), "settled without a fact, and yet something changed");
    }
    assert!(!(input.is_report() && decided.settled().is_some_and(|(outcome, _)| outcome == Settlement::Refused)), "a report was refused");
    self.oracle.decision(&decided.events);
    self.store();
  }

  /// The state is stored and loaded between any two decisions.
  fn store(&mut self) {
    let json = serde_json::to_vec(&self.agent.root).unwrap();
    assert_eq!(serde_json::from_slice::<Root>(&json).unwrap(), self.agent.root);
    let bytes = postcard::to_stdvec(&self.agent.root).unwrap();
    let root: Root = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(root, self.agent.root);
    self.agent.root = root;
    for thing in self.agent.things.values_mut() {
      let json = serde_json::to_vec(thing).unwrap();
      assert_eq!(serde_json::from_slice::<Thing>(&json).unwrap(), *thing);
      let bytes = postcard::to_stdvec(thing).unwrap();
      *thing = postcard::from_bytes(&bytes).unwrap();
    }
  }
}

proptest! {
  #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

  /// Proves the rules' side of REP-32, REP-35, RUN-16, D3, D4, D13 and D33 for any order of what may happen.
  #[test]
  fn whatever_happens_in_any_order_the_invariants_hold(happenings in prop::collection::vec(happening(), 1..160)) {
    let mut run = Run::new();
    for happening in happenings {
      run.happen(happening);
    }
    run.oracle.end();
    let replayed = run.agent.replayed();
    prop_assert_eq!(&replayed.root, &run.agent.root);
    prop_assert_eq!(&replayed.things, &run.agent.things);
  }
}

/// The random runs reach what they are about; otherwise they would prove nothing.
#[test]
fn random_runs_reach_every_kind_of_event() {
  use proptest::strategy::ValueTree;
  use proptest::test_runner::TestRunner;
  let mut runner = TestRunner::deterministic();
  let mut seen = std::collections::BTreeSet::new();
  for _ in 0..200 {
    let happenings = prop::collection::vec(happening(), 100..160).new_tree(&mut runner).unwrap().current();
    let mut run = Run::new();
    for happening in happenings {
      run.happen(happening);
    }
    seen.extend(run.agent.log.iter().map(|(_, event)| event.type_name()));
  }
  let out_of_reach = |name: &str| {
    let of_tasks = ["pa.call.CallHeld", "pa.execution.ExecutionSuspended", "pa.conversation.ReportAdmitted", "pa.conversation.ReportSuperseded"];
    let elsewhere = ["pa.account.", "pa.log.", "pa.task."].iter().any(|context| name.starts_with(context));
    elsewhere || name == "pa.agent.AgentErased" || of_tasks.contains(&name)
  };
  let missing: Vec<_> = crate::Event::types().map(|(name, _)| *name).filter(|name| !seen.contains(name) && !out_of_reach(name)).collect();
  assert!(missing.is_empty(), "never reached: {missing:?}");
}
