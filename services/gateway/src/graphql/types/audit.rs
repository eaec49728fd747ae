//! The agent's own log as its owner may read it.

use std::sync::Arc;

use async_graphql::{ComplexObject, Context, ID, InputObject, Result, SimpleObject};
use pa_domain::{Origin, ThingId};
use pa_projections::audit::{Filter, Page, Row};
use uuid::Uuid;

use super::PageInfo;
use super::scalars::{DateTime, Json};
use crate::graphql::bodies::Bodies;
use crate::graphql::env::{Env, invalid};

/// Types in one filter: there are some fifty in all.
const TYPES_MAX: usize = 100;

/// Which events to show; every given condition holds.
#[derive(Clone, Debug, Default, InputObject)]
pub(crate) struct AuditFilter {
  /// Only these event types.
  pub types: Option<Vec<String>>,
  /// Only events about this thing.
  pub thing_id: Option<ID>,
  /// Only events at or after this time.
  pub since: Option<DateTime>,
  /// Only events before this time.
  pub until: Option<DateTime>,
}

/// A page of the agent's log, oldest first.
#[derive(SimpleObject)]
pub(crate) struct AuditConnection {
  pub page_info: PageInfo,
  pub edges: Vec<AuditEdge>,
  pub nodes: Vec<AuditEvent>,
}

/// One event with its cursor.
#[derive(SimpleObject)]
pub(crate) struct AuditEdge {
  pub node: AuditEvent,
  pub cursor: String,
}

/// One recorded fact.
#[derive(Clone, SimpleObject)]
#[graphql(complex)]
pub(crate) struct AuditEvent {
  /// The event's number in this agent's log: 1, 2, 3 …
  pub ordinal: i64,
  pub id: ID,
  /// The event's full type name, with its version.
  #[graphql(name = "type")]
  pub type_name: String,
  /// When it was decided.
  pub at: DateTime,
  /// Who caused it.
  pub actor: String,
  /// Where its content came from: owner, agent, tool, third party or platform.
  pub origin: String,
  /// The input or event that led to it.
  pub cause_id: Option<ID>,
  /// What joins everything that one request led to.
  pub correlation_id: Option<ID>,
  /// Offset in the input log of the input that was decided; for resuming readers only.
  pub input_position: Option<i64>,
  #[graphql(skip)]
  bodies: Arc<Bodies>,
}

#[ComplexObject]
impl AuditEvent {
  /// The fact itself.
  async fn body(&self, context: &Context<'_>) -> Result<Json> {
    let env = Env::of(context);
    self.bodies.of(&env.edge, self.ordinal).await.map(Json).map_err(|error| env.failed(error))
  }
}

impl AuditFilter {
  pub(crate) fn checked(self) -> Result<Filter> {
    let types = self.types.unwrap_or_default();
    if types.len() > TYPES_MAX {
      return Err(invalid(format!("a filter names at most {TYPES_MAX} types")));
    }
    let thing = match self.thing_id {
      Some(id) => Some(ThingId(Uuid::parse_str(&id).map_err(|_| invalid("thingId is not an id".to_owned()))?)),
      None => None,
    };
    Ok(Filter { types, thing, since: self.since.map(|at| at.0), until: self.until.map(|at| at.0) })
  }
}

impl AuditConnection {
  /// A page that was read; `older` says that it begins after a cursor.
  pub(crate) fn of(page: Page, older: bool) -> Self {
    let bodies = Arc::new(Bodies::of_rows(&page.rows));
    let nodes: Vec<AuditEvent> = page.rows.into_iter().map(|row| AuditEvent::of(row, &bodies)).collect();
    let edges: Vec<AuditEdge> = nodes.iter().map(|node| AuditEdge { cursor: node.ordinal.to_string(), node: node.clone() }).collect();
    let page_info = PageInfo {
      has_previous_page: older,
      has_next_page: page.has_next,
      start_cursor: edges.first().map(|edge| edge.cursor.clone()),
      end_cursor: edges.last().map(|edge| edge.cursor.clone()),
    };
    Self { page_info, edges, nodes }
  }
}

impl AuditEvent {
  fn of(row: Row, bodies: &Arc<Bodies>) -> Self {
    let known = |id: Uuid| (!id.is_nil()).then(|| ID::from(id));
    Self {
      ordinal: row.ordinal,
      id: ID::from(row.id),
      type_name: row.type_name,
      at: DateTime(row.at),
      actor: row.actor,
      origin: origin(row.origin).to_owned(),
      cause_id: known(row.cause),
      correlation_id: known(row.correlation),
      input_position: Some(row.input_position).filter(|position| *position >= 0),
      bodies: Arc::clone(bodies),
    }
  }
}

fn origin(origin: Origin) -> &'static str {
  match origin {
    Origin::Owner => "OWNER",
    Origin::Agent => "AGENT",
    Origin::Tool => "TOOL",
    Origin::ThirdParty => "THIRD_PARTY",
    Origin::Platform => "PLATFORM",
  }
}
