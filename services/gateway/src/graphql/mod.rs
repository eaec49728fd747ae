//! The read model and the owner's commands over GraphQL.
//!
//! Invariants
//! - A refusal is data (`userErrors`); everything else that goes wrong is `internal error` with a trace id, or says that it passes.
//! - The schema served is the committed `schemas/read_model.graphql`; a test compares them.
//! - No document runs before it was found to be within limits.
//!
//! Read next: `endpoint.rs`, then `query.rs`, `mutation.rs`, `subscription.rs`.

pub(crate) mod bodies;
pub(crate) mod document;
pub(crate) mod endpoint;
pub(crate) mod env;
mod mutation;
pub(crate) mod past;
mod query;
mod steering;
pub(crate) mod subscription;
#[cfg(test)]
mod tests;
pub(crate) mod types;

use async_graphql::SDLExportOptions;

use crate::limits::{COMPLEXITY_MAX, DEPTH_MAX, DIRECTIVES_MAX, NESTING_MAX};

/// The schema with its resolvers.
pub(crate) type Schema = async_graphql::Schema<query::Query, mutation::Mutation, subscription::Updates>;

/// Builds the schema, with its limits.
pub(crate) fn schema() -> Schema {
  Schema::build(query::Query, mutation::Mutation, subscription::Updates)
    .limit_depth(DEPTH_MAX)
    .limit_complexity(COMPLEXITY_MAX)
    .limit_recursive_depth(NESTING_MAX)
    .limit_directives(DIRECTIVES_MAX)
    .finish()
}

/// The schema in GraphQL's own language.
pub(crate) fn sdl() -> String {
  schema().sdl_with_options(SDLExportOptions::new().include_specified_by())
}
