//! PR-21 to PR-29: executions and calls whose workers stop, die, or come too late.

use std::time::Duration;

use pa_domain::call::{self, Class};
use pa_domain::conversation::Event as ConversationEvent;
use pa_domain::event::message_of;
use pa_domain::testing::inputs;
use pa_domain::{CallId, Event, JobId, Timestamp, execution};
use pa_eventlog::sim::Fate;
use tokio::time::sleep;

use super::super::oracle;
use super::super::process::Roles;
use super::super::run::in_paused_time;
use super::super::traps::Moment;
use super::{CALM, Stage};

/// Node 1 decides and projects, 2 and 3 work.
const NODES: [Roles; 3] = [Roles::KEEPER, Roles::WORKER, Roles::WORKER];
/// The least time after a permit at which its call may be given up: the permit's and the tool's own.
const GIVEN_UP_AFTER_MILLIS: i64 = 35_000;

impl Stage {
  /// A stage with a job: only node 2 works so far, and the message wants a tool.
  async fn with_job(text: &str, prepare: impl FnOnce(&Self)) -> (Self, JobId) {
    let mut stage = Self::led_by_the_first(&NODES).await;
    stage.world.start(2).await;
    prepare(&stage);
    let said = stage.say(text).await;
    let job = message_of(said.input).into();
    (stage, job)
  }

  fn open_call(&self) -> Option<(CallId, bool)> {
    self.world.shared.model.store().calls().first().map(|(_, row)| (row.id, row.unknown))
  }

  /// Waits until nothing is left to do, and hears the whole oracle.
  async fn finish(&self) -> Result<Vec<(Timestamp, Event)>, String> {
    self.world.settle(Duration::from_mins(10)).await?;
    self.nothing_is_set()?;
    oracle::judge(&self.world, CALM).await?;
    let accepted = self.accepted().await?;
    let events = accepted.decisions().flat_map(|decision| decision.events.iter());
    Ok(events.map(|recorded| (recorded.core().at, recorded.event.clone())).collect())
  }

  fn effects(&self) -> usize {
    self.world.shared.ledger.effects().len()
  }

  /// Waits until the only call is of unknown outcome.
  async fn given_up(&self) -> CallId {
    self.until("the call is given up", || self.open_call().is_some_and(|(_, unknown)| unknown)).await;
    self.open_call().expect("it is open").0
  }

  async fn owner_says(&self, job: JobId, call: CallId, executed: bool) {
    self.world.record.reconciled(call, executed);
    self.ask(&format!("word/{call}"), inputs::reconcile(job, call, executed)).await;
  }
}

fn count(events: &[(Timestamp, Event)], is: impl Fn(&Event) -> bool) -> usize {
  events.iter().filter(|(_, event)| is(event)).count()
}

fn at(events: &[(Timestamp, Event)], is: impl Fn(&Event) -> bool) -> Timestamp {
  events.iter().find(|(_, event)| is(event)).expect("it happened").0
}

fn is_started(event: &Event) -> bool {
  matches!(event, Event::Call(call::Event::CallStarted(_)))
}

fn is_unknown(event: &Event) -> bool {
  matches!(event, Event::Call(call::Event::CallUnknown(_)))
}

fn is_posted(event: &Event) -> bool {
  matches!(event, Event::Conversation(ConversationEvent::ReplyPosted(_)))
}

fn is_lost(event: &Event) -> bool {
  matches!(event, Event::Execution(execution::Event::ExecutionLost(_)))
}

#[test]
fn pr_21_only_the_worker_whose_ask_was_granted_works_and_not_once_it_is_lost() {
  in_paused_time(async {
    let stop_after_asking = |stage: &Stage| {
      let gate = stage.process(2).gate.clone();
      stage.process(2).traps.set(Moment::After, "inputs/pa.execution.ExecutionAsked", move || gate.stop());
    };
    let (stage, _) = Stage::with_job("pa_email", stop_after_asking).await;
    let first = stage.process(2);
    stage.until("the first worker is stopped", || first.gate.is_stopped()).await;
    stage.world.start(3).await;
    stage.until("the second one has had the effect", || stage.effects() == 1).await;
    first.gate.wake();
    let events = stage.finish().await.unwrap();
    assert_eq!((count(&events, is_lost), count(&events, is_posted), stage.effects()), (1, 1, 1));
  });
}

/// A worker is stopped after it sent an ask for an external call; its execution is lost, the call is given up, the owner says that nothing happened; it wakes.
pub(in super::super) async fn pr_22() -> Result<(), String> {
  let stop_after_asking = |stage: &Stage| {
    let gate = stage.process(2).gate.clone();
    stage.process(2).traps.set(Moment::After, "inputs/pa.call.CallAsked", move || gate.stop());
  };
  let (stage, job) = Stage::with_job("pa_email", stop_after_asking).await;
  let first = stage.process(2);
  stage.until("the first worker is stopped", || first.gate.is_stopped()).await;
  stage.world.start(3).await;
  let call = stage.given_up().await;
  stage.owner_says(job, call, false).await;
  // It wakes without its database: nothing but the permit's time tells it that it must not act.
  first.store.set_trouble(|trouble| trouble.away = true);
  first.gate.wake();
  let events = stage.finish().await?;
  let waited = at(&events, is_unknown).0 - at(&events, is_started).0;
  if waited < GIVEN_UP_AFTER_MILLIS {
    return Err(format!("the call was given up {waited} ms after its permit"));
  }
  Ok(())
}

#[test]
fn pr_22_a_permit_counts_from_the_sending_of_its_ask_and_no_longer() {
  in_paused_time(pr_22()).unwrap();
}

#[test]
fn pr_23_a_yield_leaves_a_started_call_to_its_class_and_the_job_is_finished() {
  for (tool, unknown) in [("pa_email", 0), ("pa_shell", 1), ("pa_read", 0)] {
    in_paused_time(async {
      let (stage, _) = Stage::with_job(tool, |_| {}).await;
      stage.until("the call has begun", || stage.effects() == 1).await;
      stage.process(2).stop.cancel();
      stage.world.start(3).await;
      let events = stage.finish().await.unwrap();
      let yielded = count(&events, |event| matches!(event, Event::Execution(execution::Event::ExecutionYielded(_))));
      assert_eq!((yielded, count(&events, is_posted), count(&events, is_unknown)), (1, 1, unknown), "{tool}");
    });
  }
}

#[test]
fn pr_24_the_next_execution_asks_for_the_same_call_and_is_no_repeat() {
  in_paused_time(async {
    let die_before_asking = |stage: &Stage| {
      let (gate, log) = (stage.process(2).gate.clone(), stage.process(2).log.clone());
      stage.process(2).traps.set(Moment::Before, "inputs/pa.call.CallAsked", move || {
        log.crash(Fate::Land);
        gate.kill();
      });
    };
    let (stage, _) = Stage::with_job("pa_email", die_before_asking).await;
    let first = stage.process(2);
    stage.until("the first worker dies", || first.gate.is_dead()).await;
    stage.world.start(3).await;
    let events = stage.finish().await.unwrap();
    assert_eq!((count(&events, is_started), count(&events, is_posted), stage.effects()), (1, 1, 1));
  });
}

#[test]
fn pr_24_a_repeatable_call_is_repeated_by_its_own_ask() {
  in_paused_time(async {
    let (stage, _) = Stage::with_job("pa_read", |_| {}).await;
    stage.until("the call has begun", || stage.effects() == 1).await;
    stage.world.crash(2, Fate::Land);
    stage.world.start(3).await;
    let events = stage.finish().await.unwrap();
    assert_eq!((count(&events, is_started), count(&events, is_posted), stage.effects()), (2, 1, 2));
  });
}

#[test]
fn pr_25_a_late_outcome_reconciles_and_after_the_owners_word_it_is_only_noted() {
  for word in [false, true] {
    in_paused_time(async {
      let stop_before_reporting = |stage: &Stage| {
        let gate = stage.process(2).gate.clone();
        stage.process(2).traps.set(Moment::Before, "inputs/pa.call.CallOutcomeReported", move || gate.stop());
      };
      let (stage, job) = Stage::with_job("pa_email", stop_before_reporting).await;
      let first = stage.process(2);
      stage.until("the first worker is stopped", || first.gate.is_stopped()).await;
      stage.world.start(3).await;
      let call = stage.given_up().await;
      if word {
        stage.owner_says(job, call, true).await;
      }
      first.gate.wake();
      let events = stage.finish().await.unwrap();
      let by_owner = count(&events, |event| matches!(event, Event::Call(call::Event::CallReconciled(reconciled)) if reconciled.by_owner));
      let by_report = count(&events, |event| matches!(event, Event::Call(call::Event::CallReconciled(reconciled)) if !reconciled.by_owner));
      let noted = count(&events, |event| matches!(event, Event::Call(call::Event::CallOutcomeNoted(_))));
      assert_eq!((by_owner, by_report, noted), if word { (1, 0, 1) } else { (0, 1, 0) });
      assert_eq!((count(&events, is_posted), stage.effects()), (1, 1));
    });
  }
}

#[test]
fn pr_28_a_restart_at_once_gives_a_call_up_only_when_nothing_of_it_can_land() {
  in_paused_time(async {
    let (stage, job) = Stage::with_job("pa_email", |_| {}).await;
    stage.until("the call has begun", || stage.effects() == 1).await;
    stage.world.crash(2, Fate::Land);
    stage.world.start(2).await;
    let call = stage.given_up().await;
    stage.owner_says(job, call, true).await;
    let events = stage.finish().await.unwrap();
    let restarted =
      |event: &Event| matches!(event, Event::Execution(execution::Event::ExecutionLost(lost)) if lost.reason == execution::LossReason::NodeRestarted);
    let (started, lost, unknown) = (at(&events, is_started), at(&events, restarted), at(&events, is_unknown));
    assert!(lost.0 - started.0 < 5_000, "a node that starts reports its own losses at once");
    assert!(unknown.0 - started.0 >= GIVEN_UP_AFTER_MILLIS, "after {} ms", unknown.0 - started.0);
    assert_eq!((count(&events, is_posted), stage.effects()), (1, 1));
  });
}

#[test]
fn pr_29_a_call_that_was_running_at_a_stop_does_not_block_the_answer_after_a_retry() {
  for (tool, class) in [("pa_email", Class::External), ("pa_shell", Class::Contained)] {
    in_paused_time(async {
      let (stage, job) = Stage::with_job(tool, |_| {}).await;
      stage.until("the call has begun", || stage.effects() == 1).await;
      stage.world.crash(2, Fate::Land);
      stage.ask("stop", inputs::stop(job, "")).await;
      stage.world.start(3).await;
      stage.ask("retry", inputs::retry(job)).await;
      if class == Class::External {
        let call = stage.given_up().await;
        stage.owner_says(job, call, true).await;
      }
      let events = stage.finish().await.unwrap();
      assert_eq!((count(&events, is_unknown), count(&events, is_posted), stage.effects()), (1, 1, 1), "{tool}");
    });
  }
}

#[test]
fn a_message_is_given_up_with_one_notice_after_two_losses() {
  in_paused_time(async {
    let (stage, _) = Stage::with_job("talk", |_| {}).await;
    for node in [2, 3] {
      stage.until("an execution runs", || stage.running()).await;
      stage.world.crash(node, Fate::Land);
      stage.until("it is lost", || !stage.running() || stage.world.process(3).is_none()).await;
      if node == 2 {
        stage.world.start(3).await;
        stage.until("it is lost", || !stage.running()).await;
      }
    }
    stage.world.start(2).await;
    sleep(Duration::from_secs(1)).await;
    let events = stage.finish().await.unwrap();
    let notices = count(&events, |event| matches!(event, Event::Conversation(ConversationEvent::NoticePosted(_))));
    assert_eq!((count(&events, is_lost), notices, count(&events, is_posted)), (2, 1, 0));
  });
}

impl Stage {
  fn running(&self) -> bool {
    self.world.shared.model.store().jobs().iter().any(|(_, row)| row.state == pa_projections::queue::JobState::Running)
  }
}
