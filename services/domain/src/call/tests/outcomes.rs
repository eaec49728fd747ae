//! How a call is settled.

use super::{ask, with_started};
use crate::call::{CallOutcomeNoted, CallOutcomeReported, CallReconciled, CallReturned, CallUnknown, Class, Outcome, ResultPart};
use crate::codes::{notice, reason};
use crate::conversation::{NoticeParam, NoticePosted};
use crate::event::Event;
use crate::ids::{CallId, MessageId, derived};
use crate::limits::{RESULT_PARTS_MAX, RESULT_TEXT_BYTES_MAX};
use crate::meta::Origin;
use crate::testing::{input_id, inputs};

#[test]
fn the_first_outcome_counts() {
  let (mut agent, job, call) = with_started(Class::Repeatable);
  let reported = inputs::outcome(job, 1, call, Outcome::Returned);
  agent.when(reported.clone()).then(&[CallReturned { job, execution: 1, call, parts: reported.parts.clone() }.into()]);
  for outcome in [Outcome::Returned, Outcome::Failed, Outcome::Unknown] {
    agent.when(inputs::outcome(job, 1, call, outcome)).then_unchanged(reason::CALL_SETTLED);
  }
}

#[test]
fn an_outcome_of_what_never_started_changes_nothing() {
  let (mut agent, job, call) = with_started(Class::Repeatable);
  agent.when(inputs::outcome(job, 1, CallId(input_id(99)), Outcome::Returned)).then_unchanged(reason::NO_SUCH_CALL);
  agent.when(inputs::outcome(job, 2, call, Outcome::Returned)).then_unchanged(reason::STALE_EXECUTION);
}

/// The one exception of design.md 5: an outcome counts after its execution has ended in any way.
#[test]
fn an_outcome_counts_after_its_execution_ended() {
  for ending in [inputs::loss, inputs::give_back] {
    let (mut agent, job, call) = with_started(Class::Contained);
    agent.when(ending(job, 1));
    agent.when(inputs::outcome(job, 1, call, Outcome::Returned)).then_types(&["CallReturned"]);
  }
  let (mut agent, job, call) = with_started(Class::Contained);
  agent.when(inputs::stop(job, ""));
  agent.when(inputs::outcome(job, 1, call, Outcome::Failed)).then_types(&["CallFailed"]);
}

/// Proves RUN-18 for a reply: the owner hears of an external call that nobody knows the outcome of.
#[test]
fn an_unknown_external_call_is_told_to_the_owner() {
  let (mut agent, job, call) = with_started(Class::External);
  let decided = agent.when(inputs::outcome(job, 1, call, Outcome::Unknown));
  let posted = NoticePosted {
    notice: MessageId(derived(decided.input, 1)),
    conversation: agent.root.main.unwrap(),
    reply_to: Some(job.into()),
    code: notice::CALL_UNKNOWN.to_owned(),
    params: vec![NoticeParam::new("tool", "tool"), NoticeParam::new("call", call.to_string())],
  };
  decided.then(&[CallUnknown { job, execution: 1, call }.into(), posted.into()]);
  let (mut agent, job, call) = with_started(Class::Contained);
  agent.when(inputs::outcome(job, 1, call, Outcome::Unknown)).then(&[CallUnknown { job, execution: 1, call }.into()]);
}

/// Proves PR-25: a late outcome reconciles what was unknown.
#[test]
fn pr_25_an_outcome_after_unknown_reconciles() {
  for (outcome, executed) in [(Outcome::Returned, true), (Outcome::Failed, false)] {
    for class in [Class::Contained, Class::External] {
      let (mut agent, job, call) = with_started(class);
      agent.when(inputs::outcome(job, 1, call, Outcome::Unknown));
      let late = inputs::outcome(job, 1, call, outcome);
      agent.when(late.clone()).then(&[CallReconciled { job, call, executed, by_owner: false, parts: late.parts.clone() }.into()]);
      agent.when(late).then_unchanged(reason::CALL_SETTLED);
      agent.when(inputs::reconcile(job, call, false)).then_refused(reason::STATE_CHANGED);
    }
  }
}

/// Proves PR-25: after the owner's word a late outcome is only noted, once.
#[test]
fn pr_25_an_outcome_after_the_owners_word_is_only_noted() {
  let (mut agent, job, call) = with_started(Class::External);
  agent.when(inputs::outcome(job, 1, call, Outcome::Unknown));
  agent.when(inputs::reconcile(job, call, false)).then(&[CallReconciled { job, call, executed: false, by_owner: true, parts: Vec::new() }.into()]);
  let late = inputs::outcome(job, 1, call, Outcome::Returned);
  agent.when(late.clone()).then(&[CallOutcomeNoted { job, execution: 1, call, outcome: Outcome::Returned, parts: late.parts.clone() }.into()]);
  agent.when(late).then_unchanged(reason::CALL_SETTLED);
  agent.when(inputs::reconcile(job, call, true)).then_refused(reason::STATE_CHANGED);
}

#[test]
fn the_owner_decides_only_on_unknown_external_calls() {
  let (mut agent, job, call) = with_started(Class::Contained);
  agent.when(inputs::outcome(job, 1, call, Outcome::Unknown));
  agent.when(inputs::reconcile(job, call, true)).then_refused(reason::STATE_CHANGED);
  agent.when(inputs::reconcile(job, CallId(input_id(99)), true)).then_refused(reason::NOT_FOUND);
  let (mut agent, job, call) = with_started(Class::External);
  agent.when(inputs::outcome(job, 1, call, Outcome::Unknown));
  for origin in [Origin::Agent, Origin::Tool, Origin::ThirdParty, Origin::Platform] {
    agent.when_from(origin, inputs::reconcile(job, call, true)).then_refused(reason::NOT_ALLOWED);
  }
}

#[test]
fn an_unknown_report_of_an_earlier_start_does_not_settle_a_repeated_call() {
  let (mut agent, job, call) = with_started(Class::Repeatable);
  agent.when(inputs::loss(job, 1));
  agent.when(inputs::ask(job));
  ask(&mut agent, job, 2, Class::Repeatable).then_types(&["CallStarted"]);
  agent.when(inputs::outcome(job, 1, call, Outcome::Unknown)).then_unchanged(reason::STALE_EXECUTION);
  agent.when(inputs::outcome(job, 1, call, Outcome::Returned)).then_types(&["CallReturned"]);
  agent.when(inputs::outcome(job, 2, call, Outcome::Failed)).then_unchanged(reason::CALL_SETTLED);
}

/// Proves the rules' side of BB-06 for a tool's result, and the limit of a result in a record.
#[test]
fn a_results_text_is_cleaned_and_bounded_over_all_parts() {
  let (mut agent, job, call) = with_started(Class::Repeatable);
  let part = |text: String| ResultPart { origin: Origin::Tool, text, blob: Some("b1".to_owned()) };
  let parts = vec![part("A\0B".to_owned()), part("é".repeat(RESULT_TEXT_BYTES_MAX)), part("more".to_owned())];
  let decided = agent.when(CallOutcomeReported { parts, ..inputs::outcome(job, 1, call, Outcome::Returned) });
  let Event::Call(crate::call::Event::CallReturned(returned)) = &decided.events[0] else { panic!("not returned: {decided:?}") };
  assert_eq!(returned.parts[0].text, "A\u{FFFD}B");
  assert_eq!(returned.parts[1].text.len(), RESULT_TEXT_BYTES_MAX - 6);
  assert_eq!(returned.parts[2].text, "m");
  assert!(returned.parts.iter().all(|part| part.blob.is_some()));
  let (mut agent, job, call) = with_started(Class::Repeatable);
  let decided = agent.when(CallOutcomeReported { parts: vec![part(String::new()); 1_000], ..inputs::outcome(job, 1, call, Outcome::Failed) });
  let Event::Call(crate::call::Event::CallFailed(failed)) = &decided.events[0] else { panic!("not failed: {decided:?}") };
  assert_eq!(failed.parts.len(), RESULT_PARTS_MAX);
}
