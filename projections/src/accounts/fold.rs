//! From a fact to an account. Pure.

use pa_domain::account::{self, Role};
use pa_domain::{AgentId, Event, Meta, Timestamp};

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountRow {
  pub id: AgentId,
  pub name: String,
  pub role: Role,
  pub added: Timestamp,
  pub changed: i64,
}

/// What a fact changes here.
pub(super) fn fold(meta: &Meta, event: &Event) -> Option<AccountRow> {
  match event {
    Event::Account(account::Event::AccountAdded(added)) => {
      Some(AccountRow { id: added.account, name: added.name.clone(), role: added.role, added: meta.at, changed: meta.ordinal })
    }
    Event::Agent(_) | Event::Call(_) | Event::Conversation(_) | Event::Execution(_) | Event::Log(_) | Event::Settings(_) | Event::Task(_) | Event::Timer(_) => {
      None
    }
  }
}
