//! Reads of the viewer's own agent.

use async_graphql::{Context, ID, Object, Result};
use pa_domain::{ConversationId, JobId, TaskId};
use pa_projections::tasks::Window;
use pa_projections::usage::Span;
use pa_projections::{audit, conversation, indicator, outputs, pending_actions, task_entries, tasks};
use uuid::Uuid;

use super::env::{Env, invalid, refused};
use super::past::{self, AsOf};
use super::types::action::Action;
use super::types::audit::{AuditConnection, AuditFilter};
use super::types::conversation::{Conversation, cursor_of, page_size};
use super::types::indicator::Indicator;
use super::types::output::OutputConnection;
use super::types::scalars::{DateTime, Position};
use super::types::settings::Settings;
use super::types::system::System;
use super::types::task::{Task, TaskConnection, TaskEntry, TaskFilter};
use super::types::usage::Usage;
use super::types::viewer::{Agent, Viewer};
use crate::limits::{PAGE_DEFAULT, PAST_COMPLEXITY};

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
    Ok(rows.into_iter().map(Conversation::now).collect())
  }

  /// One conversation; without an id the main one. `asOf` shows it as it was, folded from the log again: null before it was open.
  #[graphql(complexity = "(if as_of.is_some() { PAST_COMPLEXITY } else { 1 }) + child_complexity")]
  async fn conversation(&self, context: &Context<'_>, id: Option<ID>, at_least: Option<Position>, as_of: Option<AsOf>) -> Result<Option<Conversation>> {
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
    if let Some(as_of) = as_of {
      let upto = past::upto(env, &as_of).await?;
      return Ok(past::conversation(env, id, upto).await?.map(|row| Conversation::past(row, upto)));
    }
    let row = conversation::one(&env.edge.reads, env.viewer.account, id).await.map_err(|error| env.failed(error))?;
    Ok(row.map(Conversation::now))
  }

  /// Background tasks, newest last: the first ones after a cursor, or the last ones before one; with neither, the newest. At most 200 a page.
  #[graphql(complexity = "usize::try_from(first.or(last).unwrap_or(PAGE_DEFAULT)).unwrap_or(0).max(1) * child_complexity")]
  #[expect(clippy::too_many_arguments, reason = "the arguments of a connection")]
  async fn tasks(
    &self,
    context: &Context<'_>,
    filter: Option<TaskFilter>,
    first: Option<i32>,
    after: Option<String>,
    last: Option<i32>,
    before: Option<String>,
    at_least: Option<Position>,
  ) -> Result<TaskConnection> {
    let env = Env::of(context);
    let window = window((first, after), (last, before))?;
    env.at_least(at_least).await?;
    let states: Vec<_> = filter.and_then(|filter| filter.states).unwrap_or_default().into_iter().map(Into::into).collect();
    let page = tasks::page(&env.edge.reads, env.viewer.account, &states, window).await.map_err(|error| env.failed(error))?;
    Ok(TaskConnection::of(page))
  }

  /// One task, as it is. As it was (`asOf`) is answered with the error code `NOT_YET`: only conversations can be shown as of a time so far; a task's entries and the audit
  /// log tell what happened, and when.
  async fn task(&self, context: &Context<'_>, id: ID, at_least: Option<Position>, as_of: Option<AsOf>) -> Result<Option<Task>> {
    let env = Env::of(context);
    if as_of.is_some() {
      return Err(refused("NOT_YET", "a task can't be shown as of a time yet".to_owned()));
    }
    let Ok(id) = id.parse::<TaskId>() else { return Ok(None) };
    env.at_least(at_least).await?;
    let row = tasks::one(&env.edge.reads, env.viewer.account, id).await.map_err(|error| env.failed(error))?;
    Ok(row.map(Task))
  }

  /// One entry of a task, such as a long result of which only the beginning is shown.
  async fn task_entry(&self, context: &Context<'_>, id: ID) -> Result<Option<TaskEntry>> {
    let env = Env::of(context);
    let Ok(id) = Uuid::parse_str(&id) else { return Ok(None) };
    let row = task_entries::one(&env.edge.reads, env.viewer.account, id).await.map_err(|error| env.failed(error))?;
    Ok(row.map(TaskEntry::from))
  }

  /// What waits for the owner: actions to decide on, and actions whose outcome nobody knows. The longest waiting first.
  #[graphql(complexity = "20 * child_complexity")]
  async fn pending_actions(&self, context: &Context<'_>, at_least: Option<Position>) -> Result<Vec<Action>> {
    let env = Env::of(context);
    env.at_least(at_least).await?;
    let rows = pending_actions::pending(&env.edge.reads, env.viewer.account).await.map_err(|error| env.failed(error))?;
    Ok(rows.into_iter().map(Action::from).collect())
  }

  /// Files that tasks handed over, newest last: of one task or of all. Pages as `tasks`.
  #[graphql(complexity = "usize::try_from(first.or(last).unwrap_or(PAGE_DEFAULT)).unwrap_or(0).max(1) * child_complexity")]
  async fn outputs(
    &self,
    context: &Context<'_>,
    task_id: Option<ID>,
    first: Option<i32>,
    after: Option<String>,
    last: Option<i32>,
    before: Option<String>,
  ) -> Result<OutputConnection> {
    let env = Env::of(context);
    let window = window((first, after), (last, before))?;
    // What is no id of ours names nothing.
    let task = task_id.map(|id| id.parse::<TaskId>().unwrap_or(TaskId(Uuid::nil())));
    let page = outputs::page(&env.edge.reads, env.viewer.account, task, window).await.map_err(|error| env.failed(error))?;
    Ok(OutputConnection::of(page))
  }

  /// What model requests used and cost: of the reply to a message or of a task (`of`), and in a stretch of time such as a day; without any condition, in all.
  async fn usage(&self, context: &Context<'_>, of: Option<ID>, since: Option<DateTime>, until: Option<DateTime>) -> Result<Usage> {
    let job = of.map(|id| JobId(Uuid::parse_str(&id).unwrap_or(Uuid::nil())));
    Usage::of(Env::of(context), Span { job, since: since.map(|at| at.0), until: until.map(|at| at.0) }).await
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

/// Which part of a list is wanted: forwards if anything says so, else backwards from the newest.
fn window(forwards: (Option<i32>, Option<String>), backwards: (Option<i32>, Option<String>)) -> Result<Window> {
  let cursor = |cursor: Option<String>| cursor.map(|cursor| cursor_of(&cursor)).transpose();
  match (forwards, backwards) {
    ((None, None), (last, before)) => Ok(Window::Last(page_size("last", last)?, cursor(before)?)),
    ((first, after), (None, None)) => Ok(Window::First(page_size("first", first)?, cursor(after)?)),
    _ => Err(invalid("a page goes forwards (first, after) or backwards (last, before), not both".to_owned())),
  }
}
