//! Who is signed in, and the agent that belongs to them.

use async_graphql::{Context, Enum, ID, Object, Result};
use pa_domain::account::Role;
use pa_projections::accounts;

use super::scalars::Position;
use crate::graphql::env::{Env, unavailable};

/// Who is signed in.
pub(crate) struct Viewer;

/// The agent of the viewer.
pub(crate) struct Agent;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub(crate) enum ViewerRole {
  /// Owns the installation.
  Owner,
  /// Helps to run it.
  Administrator,
  /// Has an account on it.
  Member,
}

impl Viewer {
  async fn account_row(context: &Context<'_>) -> Result<accounts::Account> {
    let env = Env::of(context);
    env.account().await?.ok_or_else(|| unavailable("this account is not in the read model yet"))
  }
}

/// Who is signed in.
#[Object]
impl Viewer {
  /// The account's id, equal to its agent's id.
  async fn account(&self, context: &Context<'_>) -> ID {
    ID::from(Env::of(context).viewer.account)
  }

  /// The account's name.
  async fn name(&self, context: &Context<'_>) -> Result<String> {
    Ok(Self::account_row(context).await?.name)
  }

  async fn role(&self, context: &Context<'_>) -> Result<ViewerRole> {
    Ok(match Self::account_row(context).await?.role {
      Role::Owner => ViewerRole::Owner,
      Role::Administrator => ViewerRole::Administrator,
      Role::Member => ViewerRole::Member,
    })
  }

  /// The language to speak to the viewer: the chosen one, or empty for the browser's choice.
  async fn language(&self, context: &Context<'_>) -> Result<String> {
    Ok(Env::of(context).settings().await?.language)
  }
}

/// The agent that belongs to the signed-in account.
#[Object]
impl Agent {
  /// The agent's id, equal to its account's id.
  async fn id(&self, context: &Context<'_>) -> ID {
    ID::from(Env::of(context).viewer.account)
  }

  /// The name the owner gave the agent; empty while it has none.
  async fn name(&self, context: &Context<'_>) -> Result<String> {
    Ok(Env::of(context).settings().await?.name)
  }

  /// The agent's picture: `builtin:<name>` or `file:<id>`; empty while it has none.
  async fn avatar(&self, context: &Context<'_>) -> Result<String> {
    Ok(Env::of(context).settings().await?.avatar)
  }

  /// How far the read model has come for this agent. A page that reads this first, reads everything else with `atLeast` and then subscribes with `after` misses nothing.
  async fn position(&self, context: &Context<'_>) -> Result<Position> {
    Env::of(context).position().await
  }
}
