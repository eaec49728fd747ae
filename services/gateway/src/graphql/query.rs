//! Reads of the viewer's own agent.

use async_graphql::{Context, ID, Object, Result};
use pa_domain::ConversationId;
use pa_projections::{audit, conversation, indicator};

use super::env::Env;
use super::types::audit::{AuditConnection, AuditFilter};
use super::types::conversation::{Conversation, cursor_of, page_size};
use super::types::indicator::Indicator;
use super::types::scalars::Position;
use super::types::settings::Settings;
use super::types::system::System;
use super::types::viewer::{Agent, Viewer};
use crate::limits::PAGE_DEFAULT;

/// The root of all reads.
pub(crate) struct Query;

#[Object]
impl Query {
  /// Who is signed in.
  async fn viewer(&self) -> Viewer {
    Viewer
  }

  /// The viewer's agent.
  async fn agent(&self) -> Agent {
    Agent
  }

  async fn settings(&self, context: &Context<'_>) -> Result<Settings> {
    Env::of(context).settings().await.map(Settings)
  }

  /// All conversations, the main one first.
  #[graphql(complexity = "50 * child_complexity")]
  async fn conversations(&self, context: &Context<'_>) -> Result<Vec<Conversation>> {
    let env = Env::of(context);
    let rows = conversation::conversations(&env.edge.reads, env.viewer.account).await.map_err(|error| env.failed(error))?;
    Ok(rows.into_iter().map(Conversation).collect())
  }

  /// One conversation; without an id the main one.
  async fn conversation(&self, context: &Context<'_>, id: Option<ID>, at_least: Option<Position>) -> Result<Option<Conversation>> {
    let env = Env::of(context);
    let id = match id {
      // What is no id of ours names nothing.
      Some(id) => match id.parse::<ConversationId>() {
        Ok(id) => Some(id),
        Err(_) => return Ok(None),
      },
      None => None,
    };
    env.at_least(at_least).await?;
    let row = conversation::one(&env.edge.reads, env.viewer.account, id).await.map_err(|error| env.failed(error))?;
    Ok(row.map(Conversation))
  }

  async fn indicator(&self, context: &Context<'_>) -> Result<Indicator> {
    let env = Env::of(context);
    indicator::of(&env.edge.reads, env.viewer.account).await.map(Indicator::from).map_err(|error| env.failed(error))
  }

  /// The agent's own log, oldest first. At most 200 events a page.
  #[graphql(complexity = "usize::try_from(first.unwrap_or(PAGE_DEFAULT)).unwrap_or(0).max(1) * child_complexity")]
  async fn audit_log(&self, context: &Context<'_>, filter: Option<AuditFilter>, first: Option<i32>, after: Option<String>) -> Result<AuditConnection> {
    let env = Env::of(context);
    let first = page_size("first", first)?;
    let after = after.map(|cursor| cursor_of(&cursor)).transpose()?;
    let filter = filter.unwrap_or_default().checked()?;
    let page = audit::page(&env.edge.reads, env.viewer.account, &filter, first, after).await.map_err(|error| env.failed(error))?;
    Ok(AuditConnection::of(page, after.is_some()))
  }

  /// The state of the installation.
  async fn system(&self) -> System {
    System
  }
}
