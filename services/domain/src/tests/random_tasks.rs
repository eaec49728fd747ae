//! Random sequences of all that may happen to tasks, fresh and stale, against the oracle; replay, storage and repetition are checked at every step.

use proptest::prelude::*;

use super::oracle::Oracle;
use crate::call::{Call, CallAsked, CallStatus, Class, Gate, Outcome};
use crate::event::Input;
use crate::execution::FinishAsked;
use crate::ids::{self, CallId, JobId, TaskId};
use crate::log::Settlement;
use crate::settings::SettingsGiven;
use crate::state::Thing;
use crate::task::{Decision, Status, Task};
use crate::testing::{Decided, TestAgent, inputs, tasks};

/// How many tasks there are at most: more than have their turn.
const TASKS: u8 = 6;

/// What happens next; the numbers pick among what there is by then.
#[derive(Clone, Copy, Debug)]
enum Happening {
  Start(u8),
  Ask(u8),
  Instruct(u8),
  Pause(u8),
  Resume(u8),
  Stop(u8),
  Step(u8, bool, u8),
  Call(u8, bool, u8),
  Outcome(u8, u8, Outcome),
  Reconcile(u8, u8, bool),
  Decide(u8, u8, u8),
  Finish(u8, bool, u8),
  Loss(u8, bool),
  Yield(u8, bool),
  Failure(u8, bool),
  Deliver(u8, u8, u8),
  Checkpoint(u8, u8),
  Loop(u8, bool),
  Desktop(u8, bool),
  Concurrency(u8),
  Message,
  Turn(u8, u8),
  CarryOn(u8),
}

fn is_late() -> impl Strategy<Value = bool> {
  prop_oneof![7 => Just(false), 1 => Just(true)]
}

fn outcome() -> impl Strategy<Value = Outcome> {
  prop_oneof![4 => Just(Outcome::Returned), 1 => Just(Outcome::Failed), 2 => Just(Outcome::Unknown)]
}

fn happening() -> impl Strategy<Value = Happening> {
  let task = || any::<u8>();
  prop_oneof![
    4 => task().prop_map(Happening::Start),
    14 => task().prop_map(Happening::Ask),
    2 => task().prop_map(Happening::Instruct),
    2 => task().prop_map(Happening::Pause),
    4 => task().prop_map(Happening::Resume),
    1 => task().prop_map(Happening::Stop),
    12 => (task(), is_late(), 0..6_u8).prop_map(|(task, late, calls)| Happening::Step(task, late, calls)),
    30 => (task(), is_late(), any::<u8>()).prop_map(|(task, late, call)| Happening::Call(task, late, call)),
    24 => (task(), any::<u8>(), outcome()).prop_map(|(task, call, outcome)| Happening::Outcome(task, call, outcome)),
    8 => (task(), any::<u8>(), any::<bool>()).prop_map(|(task, call, executed)| Happening::Reconcile(task, call, executed)),
    12 => (task(), any::<u8>(), any::<u8>()).prop_map(|(task, call, decision)| Happening::Decide(task, call, decision)),
    5 => (task(), is_late(), any::<u8>()).prop_map(|(task, late, text)| Happening::Finish(task, late, text)),
    4 => (task(), is_late()).prop_map(|(task, late)| Happening::Loss(task, late)),
    1 => (task(), is_late()).prop_map(|(task, late)| Happening::Yield(task, late)),
    1 => (task(), is_late()).prop_map(|(task, late)| Happening::Failure(task, late)),
    3 => (task(), any::<u8>(), 0..3_u8).prop_map(|(task, call, key)| Happening::Deliver(task, call, key)),
    1 => (task(), any::<u8>()).prop_map(|(task, call)| Happening::Checkpoint(task, call)),
    1 => (task(), is_late()).prop_map(|(task, late)| Happening::Loop(task, late)),
    3 => (task(), any::<bool>()).prop_map(|(task, is_free)| Happening::Desktop(task, is_free)),
    1 => (1..=8_u8).prop_map(Happening::Concurrency),
    1 => Just(Happening::Message),
    16 => (any::<u8>(), any::<u8>()).prop_map(|(what, task)| Happening::Turn(what, task)),
    8 => (1..4_u8).prop_map(Happening::CarryOn),
  ]
}

/// The tools of a step with `count` calls, of all classes.
fn tools(count: u8) -> Vec<&'static str> {
  ["look", "send", "write", "look", "send", "send"].iter().cycle().skip(usize::from(count)).take(usize::from(count)).copied().collect()
}

fn class_of(tool: &str) -> Class {
  match tool {
    "write" => Class::Contained,
    "send" => Class::External,
    _ => Class::Repeatable,
  }
}

/// What an outside call is about: emails, and actions in two applications.
fn gate(number: i32) -> Gate {
  match number.rem_euclid(3) {
    0 => tasks::email("ada@example.org: Report"),
    1 => tasks::computer("mac-1/notes"),
    _ => tasks::computer("mac-1/mail"),
  }
}

fn is_settled(call: &Call) -> bool {
  matches!(call.status, CallStatus::Skipped | CallStatus::Settled(Outcome::Returned | Outcome::Failed) | CallStatus::ReconciledByReport | CallStatus::Noted)
}

struct Run {
  agent: TestAgent,
  started: Vec<TaskId>,
  turns: Vec<JobId>,
  oracle: Oracle,
}

impl Run {
  fn new() -> Self {
    let agent = TestAgent::alive();
    let mut oracle = Oracle::default();
    oracle.decision(&agent.log.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>());
    Self { agent, started: Vec::new(), turns: Vec::new(), oracle }
  }

  /// Mostly a task that `wanted` is true of, at times any.
  fn pick(&self, number: u8, wanted: impl Fn(&Task) -> bool) -> Option<TaskId> {
    let fitting: Vec<TaskId> = self.started.iter().copied().filter(|&task| wanted(&self.agent.task(task))).collect();
    let from = if number.is_multiple_of(8) || fitting.is_empty() { &self.started } else { &fitting };
    from.get(usize::from(number) % from.len().max(1)).copied()
  }

  fn at_work(&self, number: u8) -> Option<TaskId> {
    self.pick(number, |task| task.work.running.is_some())
  }

  fn execution(&self, task: TaskId, is_late: bool) -> i32 {
    self.agent.task(task).work.executions - i32::from(is_late)
  }

  /// Mostly the next call that the last steps ask for or that may be asked again, at times any.
  fn asked_call(&self, task: TaskId, number: u8) -> Option<(i32, i32, String)> {
    let work = self.agent.task(task).work;
    let all: Vec<_> =
      work.steps.iter().flat_map(|(&step, recorded)| (0_i32..).zip(&recorded.tools).map(move |(index, tool)| (step, index, tool.clone()))).collect();
    let wanted = |&&(step, index, _): &&(i32, i32, String)| work.calls.get(&ids::call(task.into(), step, index)).is_none_or(Call::is_carded);
    let next = all.iter().find(wanted).filter(|_| !number.is_multiple_of(5));
    next.or_else(|| all.get(usize::from(number) % all.len().max(1))).cloned()
  }

  fn known_call(&self, task: TaskId, number: u8, wanted: impl Fn(&Call) -> bool) -> Option<CallId> {
    let calls = self.agent.task(task).work.calls;
    let fitting: Vec<CallId> = calls.iter().filter(|(_, call)| wanted(call)).map(|(&id, _)| id).collect();
    let from = if number.is_multiple_of(6) || fitting.is_empty() { calls.keys().copied().collect() } else { fitting };
    from.get(usize::from(number) % from.len().max(1)).copied()
  }

  fn input(&self, happening: Happening) -> Option<Input> {
    match happening {
      Happening::Start(number) => Some(tasks::start(tasks::task(u64::from(number % TASKS)), "go").into()),
      Happening::Ask(number) => self.pick(number, |task| task.status == Status::Active && task.work.running.is_none()).map(tasks::ask),
      Happening::Instruct(number) => self.pick(number, |_| true).map(|task| tasks::instruct(task, "more").into()),
      Happening::Pause(number) => self.pick(number, |task| !task.status.is_ended()).map(tasks::pause),
      Happening::Resume(number) => self.pick(number, |task| matches!(task.status, Status::Paused(_) | Status::Stopped | Status::Failed)).map(tasks::resume),
      Happening::Stop(number) => self.pick(number, |task| !task.status.is_ended()).map(tasks::stop),
      Happening::Loss(number, late) => self.at_work(number).map(|task| inputs::loss(task.into(), self.execution(task, late))),
      Happening::Yield(number, late) => self.at_work(number).map(|task| inputs::give_back(task.into(), self.execution(task, late))),
      Happening::Failure(number, late) => self.at_work(number).map(|task| inputs::failure(task.into(), self.execution(task, late), "MODEL_REFUSED")),
      Happening::Loop(number, late) => self.at_work(number).map(|task| tasks::looped(task, self.execution(task, late))),
      Happening::Desktop(number, true) => self.pick(number, |task| matches!(task.status, Status::Waiting(_))).map(tasks::desktop_free),
      Happening::Desktop(number, false) => self.at_work(number).map(|task| tasks::desktop_busy(task, self.execution(task, false))),
      Happening::Step(..)
      | Happening::Call(..)
      | Happening::Outcome(..)
      | Happening::Reconcile(..)
      | Happening::Decide(..)
      | Happening::Finish(..)
      | Happening::Deliver(..)
      | Happening::Checkpoint(..) => self.at_work_input(happening),
      Happening::Concurrency(concurrency) => {
        let version = self.agent.root.settings.as_ref()?.version;
        Some(SettingsGiven { version, concurrency: Some(i32::from(concurrency)), ..SettingsGiven::default() }.into())
      }
      Happening::Message => Some(inputs::message("please")),
      Happening::Turn(what, number) => self.turn(what, number),
      Happening::CarryOn(_) => None,
    }
  }

  fn at_work_input(&self, happening: Happening) -> Option<Input> {
    match happening {
      Happening::Step(number, late, calls) => self.at_work(number).map(|task| {
        let step = self.agent.task(task).work.last_step() + 1 - i32::from(calls == 0);
        inputs::step(task.into(), self.execution(task, late), step, &tools(calls))
      }),
      Happening::Call(number, late, call) => {
        let task = self.at_work(number)?;
        let (step, index, tool) = self.asked_call(task, call)?;
        let asked = inputs::call(task.into(), self.execution(task, late), (step, index), &tool, class_of(&tool));
        // Now and then what is asked for has changed since it was approved.
        let action = if call.is_multiple_of(7) { r#"{"changed":1}"# } else { "{}" }.to_owned();
        Some(CallAsked { gate: (tool == "send").then(|| gate(index + step)), action, ..asked }.into())
      }
      Happening::Outcome(number, call, outcome) => {
        let task = self.pick(number, |task| task.work.calls.values().any(|call| !is_settled(call) && !call.is_carded()))?;
        let call = self.known_call(task, call, |call| !is_settled(call) && !call.is_carded())?;
        let execution = self.agent.task(task).work.calls[&call].started_by.last().copied().unwrap_or_default();
        Some(inputs::outcome(task.into(), execution, call, outcome).into())
      }
      Happening::Reconcile(number, call, executed) => {
        let task = self.pick(number, |task| task.work.waits_for_call())?;
        let call = self.known_call(task, call, Call::is_unconfirmed)?;
        Some(inputs::reconcile(task.into(), call, executed))
      }
      Happening::Decide(number, call, decision) => {
        let task = self.pick(number, |task| task.work.calls.values().any(|call| call.status == CallStatus::Held))?;
        let call = self.known_call(task, call, |call| call.status == CallStatus::Held)?;
        let card = self.agent.task(task).work.calls.get(&call)?.card.as_ref()?.id;
        let decision = [Decision::ApproveOnce, Decision::ApproveOnce, Decision::AllowForTask, Decision::Reject][usize::from(decision) % 4];
        Some(tasks::decide(task, card, decision))
      }
      Happening::Finish(number, late, text) => {
        let task = self.at_work(number)?;
        let step = self.agent.task(task).work.last_step() + 1;
        let seen = self.agent.ordinal() - if text.is_multiple_of(9) { 20 } else { 0 };
        let long = "x".repeat(crate::limits::RESULT_CHARS_MAX + 1);
        let text = match text % 8 {
          0 => "",
          1 => long.as_str(),
          _ => "result",
        };
        let asked = inputs::finish(task.into(), self.execution(task, late), step, seen, text);
        Some(FinishAsked { incomplete: number.is_multiple_of(7), ..asked }.into())
      }
      Happening::Deliver(number, call, key) => {
        let task = self.at_work(number)?;
        let call = self.known_call(task, call, |call| call.status == CallStatus::Started)?;
        Some(tasks::deliver(task, self.execution(task, false), call, &format!("key-{key}")).into())
      }
      Happening::Checkpoint(number, call) => {
        let task = self.at_work(number)?;
        let call = self.known_call(task, call, |call| call.status == CallStatus::Started)?;
        Some(tasks::checkpoint(task, self.execution(task, false), call, "half").into())
      }
      Happening::Start(_)
      | Happening::Ask(_)
      | Happening::Instruct(_)
      | Happening::Pause(_)
      | Happening::Resume(_)
      | Happening::Stop(_)
      | Happening::Loss(..)
      | Happening::Yield(..)
      | Happening::Failure(..)
      | Happening::Loop(..)
      | Happening::Desktop(..)
      | Happening::Concurrency(_)
      | Happening::Message
      | Happening::Turn(..)
      | Happening::CarryOn(_) => None,
    }
  }

  /// What the worker of a conversation's turn does next: it begins, plans, asks for its calls, reads, and answers.
  fn turn(&self, what: u8, number: u8) -> Option<Input> {
    let open = self.turns.iter().copied().find(|&job| self.agent.reply(job).status == crate::conversation::ReplyStatus::Pending)?;
    let work = self.agent.reply(open).work;
    let Some(running) = &work.running else { return Some(inputs::ask(open)) };
    let execution = running.execution;
    let task = tasks::task(u64::from(number % TASKS));
    let step = work.last_step();
    if what.is_multiple_of(11) {
      return Some(if what.is_multiple_of(2) { inputs::loss(open, execution) } else { inputs::failure(open, execution, "MODEL_REFUSED") });
    }
    if step == 0 || what.is_multiple_of(9) {
      let second = ["pa_task_instruct", "pa_task_pause", "pa_task_resume", "pa_task_stop"][usize::from(number) % 4];
      return Some(inputs::step(open, execution, step + 1, &["pa_task_read", second, "pa_task_start"]));
    }
    let started = work.calls.iter().find(|(_, call)| call.status == CallStatus::Started && call.tool == "pa_task_read");
    if let Some((&call, known)) = started {
      return Some(inputs::outcome(open, known.started_by.last().copied()?, call, Outcome::Returned).into());
    }
    let unasked = (0..3).find(|&index| work.calls.get(&ids::call(open, step, index)).is_none_or(|call| call.status == CallStatus::Started));
    let Some(index) = unasked.filter(|_| !what.is_multiple_of(5)) else {
      return Some(inputs::finish(open, execution, step + 1, self.agent.ordinal(), "answer").into());
    };
    let tool = work.steps[&step].tools.get(usize::try_from(index).ok()?)?;
    let action = match tool.as_str() {
      "pa_task_start" => r#"{"goal":"go","request_key":"r1"}"#.to_owned(),
      "pa_task_instruct" => format!(r#"{{"instruction":"more","task":"{task}"}}"#),
      _ => format!(r#"{{"task":"{task}"}}"#),
    };
    let asked = inputs::call(open, execution, (step, index), tool, Class::Repeatable);
    Some(CallAsked { action, ..asked }.into())
  }

  fn happen(&mut self, happening: Happening) {
    if let Happening::CarryOn(count) = happening {
      for _ in 0..count {
        let Some(decided) = self.agent.carry_on_once() else { return };
        self.heed(&decided);
      }
      return;
    }
    let Some(input) = self.input(happening) else { return };
    let before = self.agent.clone();
    let decided = self.agent.when(input.clone());
    assert_eq!(decided, before.clone().when(input.clone()), "decided twice");
    if let [crate::event::Event::Log(_)] = decided.events[..] {
      assert_eq!((&before.root, &before.things), (&self.agent.root, &self.agent.things), "settled without a fact, and yet something changed");
    }
    assert!(!(input.is_report() && decided.settled().is_some_and(|(outcome, _)| outcome == Settlement::Refused)), "a report was refused");
    self.heed(&decided);
  }

  fn heed(&mut self, decided: &Decided) {
    self.oracle.decision(&decided.events);
    for event in &decided.events {
      if let crate::Event::Task(crate::task::Event::TaskStarted(started)) = event {
        self.started.push(started.task);
      }
    }
    if decided.has("MessageAdmitted") || decided.has("ReportAdmitted") {
      self.turns.push(crate::event::message_of(decided.input).into());
    }
    for thing in self.agent.things.values_mut() {
      let bytes = postcard::to_stdvec(thing).unwrap();
      let stored: Thing = postcard::from_bytes(&bytes).unwrap();
      assert_eq!(stored, *thing);
    }
    assert!(postcard::to_stdvec(&self.agent.root).is_ok());
  }

  /// Everything that the log leads to has happened.
  fn settle(&mut self) {
    while let Some(decided) = self.agent.carry_on_once() {
      self.heed(&decided);
    }
  }
}

proptest! {
  #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

  /// Proves the rules' side of RUN-16, RUN-17, RUN-18, STR-5, DEL-18, D1, D11, D12, D13 and D34 for any order of what may happen.
  #[test]
  fn whatever_happens_to_tasks_in_any_order_the_invariants_hold(happenings in prop::collection::vec(happening(), 1..240)) {
    let mut run = Run::new();
    for happening in happenings {
      run.happen(happening);
    }
    run.settle();
    run.oracle.end();
    let replayed = run.agent.replayed();
    prop_assert_eq!(&replayed.root, &run.agent.root);
    prop_assert_eq!(&replayed.things, &run.agent.things);
  }
}

/// The random runs reach what they are about; otherwise they would prove nothing.
#[test]
fn random_runs_reach_every_kind_of_event_of_tasks() {
  use proptest::strategy::ValueTree;
  use proptest::test_runner::TestRunner;
  let mut runner = TestRunner::deterministic();
  let mut seen = std::collections::BTreeSet::new();
  for _ in 0..150 {
    let happenings = prop::collection::vec(happening(), 200..300).new_tree(&mut runner).unwrap().current();
    let mut run = Run::new();
    for happening in happenings {
      run.happen(happening);
    }
    run.settle();
    seen.extend(run.agent.log.iter().map(|(_, event)| event.type_name()));
  }
  let contexts = ["pa.task.", "pa.call.", "pa.execution."];
  let reports = ["pa.conversation.ReportAdmitted", "pa.conversation.ReportSuperseded"];
  let wanted = |name: &&str| contexts.iter().any(|context| name.starts_with(context)) || reports.contains(name);
  let missing: Vec<_> = crate::Event::types().map(|(name, _)| *name).filter(wanted).filter(|name| !seen.contains(name)).collect();
  assert!(missing.is_empty(), "never reached: {missing:?}");
}
