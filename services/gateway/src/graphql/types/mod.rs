//! The types of the read model's schema, by their nouns. A type says how a row looks outside; it reads nothing by itself unless its field must.

pub(crate) mod action;
pub(crate) mod audit;
pub(crate) mod conversation;
pub(crate) mod indicator;
pub(crate) mod message;
pub(crate) mod output;
pub(crate) mod scalars;
pub(crate) mod settings;
pub(crate) mod system;
pub(crate) mod task;
pub(crate) mod usage;
pub(crate) mod viewer;

use async_graphql::SimpleObject;

/// Where a page stands among all pages.
#[derive(Clone, Debug, Default, SimpleObject)]
pub(crate) struct PageInfo {
  pub has_previous_page: bool,
  pub has_next_page: bool,
  pub start_cursor: Option<String>,
  pub end_cursor: Option<String>,
}
