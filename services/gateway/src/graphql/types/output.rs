//! Files that tasks handed over, as the outside sees them.

use async_graphql::{ID, SimpleObject};
use pa_projections::outputs as read;
use pa_projections::tasks::Page;

use super::PageInfo;
use super::message::Attachment;
use super::scalars::DateTime;

/// A file that a task handed over. It stands in the conversation under the same id, as a message with this one attachment.
#[derive(Clone, Debug, SimpleObject)]
pub(crate) struct Output {
  pub id: ID,
  pub task_id: ID,
  pub task_title: String,
  pub conversation_id: ID,
  /// Its place among all outputs.
  pub place: i64,
  pub caption: String,
  /// The path or reference that it was taken from.
  pub source: String,
  pub file: Attachment,
  pub created_at: DateTime,
}

/// A page of outputs, newest last.
#[derive(SimpleObject)]
pub(crate) struct OutputConnection {
  pub page_info: PageInfo,
  pub edges: Vec<OutputEdge>,
  pub nodes: Vec<Output>,
}

/// One output with its cursor.
#[derive(SimpleObject)]
pub(crate) struct OutputEdge {
  pub node: Output,
  pub cursor: String,
}

impl OutputConnection {
  pub(crate) fn of(page: Page<read::Output>) -> Self {
    let nodes: Vec<Output> = page.rows.into_iter().map(Output::from).collect();
    let edges: Vec<OutputEdge> = nodes.iter().map(|node| OutputEdge { cursor: node.place.to_string(), node: node.clone() }).collect();
    let page_info = PageInfo {
      has_previous_page: page.has_previous,
      has_next_page: page.has_next,
      start_cursor: edges.first().map(|edge| edge.cursor.clone()),
      end_cursor: edges.last().map(|edge| edge.cursor.clone()),
    };
    Self { page_info, edges, nodes }
  }
}

impl From<read::Output> for Output {
  fn from(row: read::Output) -> Self {
    Self {
      id: ID::from(row.id),
      task_id: ID::from(row.task),
      task_title: row.title,
      conversation_id: ID::from(row.conversation),
      place: row.place,
      caption: row.caption,
      source: row.source,
      file: row.file.into(),
      created_at: DateTime(row.created),
    }
  }
}
