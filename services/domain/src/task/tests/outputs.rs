//! What a running task hands over and keeps.

use super::{ask, call, report, with_step};
use crate::call::{Class, Outcome};
use crate::codes::reason;
use crate::ids;
use crate::limits::CHECKPOINT_BYTES_MAX;
use crate::task::{CheckpointRecorded, DeliveryAsked, OutputDelivered};
use crate::testing::{TestAgent, inputs, tasks};

/// A task whose `pa_deliver` call has started.
fn delivering() -> (TestAgent, crate::ids::TaskId) {
  let (mut agent, task) = with_step(&["pa_deliver", "pa_deliver"]);
  ask(&mut agent, task, 0, Class::Repeatable).then_types(&["CallStarted"]);
  (agent, task)
}

/// Proves the rules' side of DEL-1, DEL-14 and RUN-32: the receipt says that the file stands in the conversation, while the task goes on.
#[test]
fn a_delivery_is_a_receipt_while_the_task_goes_on() {
  let (mut agent, task) = delivering();
  let asked = tasks::deliver(task, 1, call(task, 0), " report-1 ");
  let revision = agent.task(task).revision();
  let (conversation, file) = (agent.root.main.unwrap(), asked.file.clone());
  let DeliveryAsked { source, caption, .. } = asked.clone();
  let output = ids::output(task, revision, "report-1");
  let call = call(task, 0);
  let receipt = OutputDelivered { output, task, conversation, execution: 1, call, revision, request_key: "report-1".to_owned(), file, source, caption };
  agent.when(asked).then(&[receipt.into()]);
  assert!(agent.task(task).work.running.is_some());
}

/// Proves DEL-11, DEL-12 and DEL-13: the same again is the first receipt; anything else under the key is refused.
#[test]
fn a_request_key_stands_for_one_delivery_within_a_revision() {
  let (mut agent, task) = delivering();
  let asked = tasks::deliver(task, 1, call(task, 0), "report-1");
  agent.when(asked.clone()).then_types(&["OutputDelivered"]);
  agent.when(asked.clone()).then_unchanged(reason::ALREADY_DONE);
  agent.when(inputs::loss(task.into(), 1));
  agent.when(tasks::ask(task));
  ask(&mut agent, task, 0, Class::Repeatable).then_types(&["CallStarted"]);
  let again = DeliveryAsked { execution: 2, ..asked.clone() };
  agent.when(again.clone()).then_unchanged(reason::ALREADY_DONE);
  let mut changed = again.clone();
  changed.file.sha256 = "11".repeat(32);
  for other in [changed, DeliveryAsked { caption: "Another".to_owned(), ..again.clone() }, DeliveryAsked { source: "/else".to_owned(), ..again.clone() }] {
    agent.when(other).then_refused(reason::REQUEST_KEY_CONFLICT);
  }
  agent.when(DeliveryAsked { request_key: "report-2".to_owned(), ..again }).then_types(&["OutputDelivered"]);
}

/// Proves DEL-18: an execution that is lost or stopped, or an instruction since the call began, keeps it from publishing.
#[test]
fn an_old_execution_publishes_nothing() {
  let (mut agent, task) = delivering();
  agent.when(tasks::instruct(task, "not yet"));
  agent.when(tasks::deliver(task, 1, call(task, 0), "report-1")).then_refused(reason::STEERED);
  let (mut agent, task) = delivering();
  agent.when(tasks::stop(task));
  agent.when(tasks::deliver(task, 1, call(task, 0), "report-1")).then_refused(reason::STALE_EXECUTION);
  let (mut agent, task) = delivering();
  agent.when(inputs::loss(task.into(), 1));
  agent.when(tasks::ask(task));
  agent.when(tasks::deliver(task, 1, call(task, 0), "report-1")).then_refused(reason::STALE_EXECUTION);
  agent.when(tasks::deliver(task, 2, call(task, 0), "report-1")).then_refused(reason::STALE_EXECUTION);
}

#[test]
fn a_delivery_belongs_to_a_started_call() {
  let (mut agent, task) = delivering();
  agent.when(tasks::deliver(task, 1, call(task, 1), "report-1")).then_refused(reason::NO_SUCH_CALL);
  agent.when(tasks::deliver(task, 1, call(task, 0), " ")).then_refused(reason::VALUE_INVALID);
  report(&mut agent, task, 0, Outcome::Returned);
  agent.when(tasks::deliver(task, 1, call(task, 0), "report-1")).then_refused(reason::CALL_SETTLED);
  agent.when(tasks::deliver(tasks::task(9), 1, call(task, 0), "report-1")).then_refused(reason::NOT_FOUND);
}

#[test]
fn a_request_key_is_free_again_after_an_instruction() {
  let (mut agent, task) = delivering();
  agent.when(tasks::deliver(task, 1, call(task, 0), "report-1")).then_types(&["OutputDelivered"]);
  report(&mut agent, task, 0, Outcome::Returned);
  agent.when(tasks::instruct(task, "again, in colour"));
  agent.when(inputs::step(task.into(), 1, 2, &["pa_deliver"]));
  agent.when(inputs::call(task.into(), 1, (2, 0), "pa_deliver", Class::Repeatable));
  let mut asked = tasks::deliver(task, 1, ids::call(task.into(), 2, 0), "report-1");
  asked.file.sha256 = "22".repeat(32);
  agent.when(asked).then_types(&["OutputDelivered"]);
}

/// Proves the rules' side of CAP-2 for checkpoints: a started call keeps the model's notes, whole.
#[test]
fn a_checkpoint_is_kept_whole() {
  let (mut agent, task) = with_step(&["pa_checkpoint"]);
  agent.when(tasks::checkpoint(task, 1, call(task, 0), "half")).then_refused(reason::NO_SUCH_CALL);
  ask(&mut agent, task, 0, Class::Repeatable);
  let recorded = CheckpointRecorded { task, execution: 1, call: call(task, 0), text: "half of it is done\u{FFFD}".to_owned() };
  agent.when(tasks::checkpoint(task, 1, call(task, 0), "half of it is done\0")).then(&[recorded.into()]);
  agent.when(tasks::checkpoint(task, 1, call(task, 0), "")).then_refused(reason::TEXT_EMPTY);
  agent.when(tasks::checkpoint(task, 1, call(task, 0), &"x".repeat(CHECKPOINT_BYTES_MAX + 1))).then_refused(reason::TEXT_TOO_LONG);
  agent.when(tasks::checkpoint(task, 2, call(task, 0), "half")).then_refused(reason::STALE_EXECUTION);
}
