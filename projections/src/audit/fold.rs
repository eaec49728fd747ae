//! From a fact to its line in the audit. Pure.

use pa_domain::{Origin, ThingId, Timestamp};
use uuid::Uuid;

use crate::commit::Fact;

/// A fact without its body.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRow {
  pub ordinal: i64,
  pub partition: u16,
  pub position: i64,
  pub id: Uuid,
  pub type_name: &'static str,
  pub at: Timestamp,
  pub actor: String,
  pub origin: Origin,
  pub cause: Uuid,
  pub correlation: Uuid,
  pub input_position: i64,
  pub thing: Option<ThingId>,
}

/// The line of a fact.
pub(super) fn fold(fact: &Fact<'_>) -> AuditRow {
  let meta = fact.meta;
  AuditRow {
    ordinal: meta.ordinal,
    partition: fact.partition,
    position: fact.position,
    id: meta.id,
    type_name: fact.event.versioned_type(),
    at: meta.at,
    actor: meta.actor.clone(),
    origin: meta.origin,
    cause: meta.cause,
    correlation: meta.correlation,
    input_position: meta.input,
    thing: fact.event.thing(),
  }
}
