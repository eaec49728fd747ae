//! From a fact to an output. Pure.

use pa_domain::{ConversationId, Event, Meta, OutputId, TaskId, Timestamp, task};

/// A file that was handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputRow {
  pub id: OutputId,
  pub task: TaskId,
  pub conversation: ConversationId,
  pub place: i64,
  pub caption: String,
  pub source: String,
  pub created: Timestamp,
}

/// What a fact changes here.
pub(super) fn fold(meta: &Meta, event: &Event) -> Option<OutputRow> {
  let Event::Task(task::Event::OutputDelivered(delivered)) = event else { return None };
  Some(OutputRow {
    id: delivered.output,
    task: delivered.task,
    conversation: delivered.conversation,
    place: meta.ordinal,
    caption: delivered.caption.clone(),
    source: delivered.source.clone(),
    created: meta.at,
  })
}
