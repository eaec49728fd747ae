//! A request that was decided before: what its first decision said, so that asking again under the same key gets the same answer.

use pa_domain::log::Settlement;
use pa_domain::{Event, log};
use pa_projections::audit;
use uuid::Uuid;

use crate::auth::Viewer;
use crate::edge::Edge;
use crate::graphql::bodies::{self, Bodies};

/// A first decision that can't be looked up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
  #[error(transparent)]
  Reads(#[from] pa_projections::Error),
  #[error(transparent)]
  Body(#[from] bodies::Error),
}

impl crate::graphql::env::Failure for Error {
  fn passes(&self) -> bool {
    match self {
      Self::Reads(error) => error.passes(),
      Self::Body(error) => error.passes(),
    }
  }
}

/// The reason for which the input with this id was refused, if it was. The read model must have come as far as the repeat.
pub(crate) async fn refusal_of(edge: &Edge, viewer: &Viewer, input: Uuid) -> Result<Option<String>, Error> {
  let Some(row) = audit::settlement_of(&edge.reads, viewer.account, input).await? else { return Ok(None) };
  let Some(recorded) = Bodies::one(edge, &row).await? else { return Ok(None) };
  Ok(match &recorded.event {
    Event::Log(log::Event::InputSettled(settled)) if settled.outcome == Settlement::Refused => Some(settled.reason.clone()),
    _ => None,
  })
}
