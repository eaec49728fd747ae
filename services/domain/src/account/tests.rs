//! Accounts: names, where they may be added, and the agent that follows.

use super::AccountAdded;
use crate::account::Role;
use crate::codes::reason;
use crate::event::Event;
use crate::ids::{AgentId, INSTALLATION, derived};
use crate::meta::Origin;
use crate::route::{Routed, route};
use crate::testing::{TestAgent, inputs};

fn installation() -> TestAgent {
  TestAgent::of(INSTALLATION)
}

#[test]
fn an_account_gets_the_id_of_its_decision_and_an_agent_of_the_same_id() {
  let mut installation = installation();
  let decided = installation.when(inputs::add_account("  Grace "));
  let account = AgentId(derived(decided.input, 0));
  let event: Event = AccountAdded { account, name: "Grace".to_owned(), role: Role::Member }.into();
  decided.then(std::slice::from_ref(&event));
  assert_eq!(installation.root.accounts, 1);
  let (meta, _) = installation.log.last().unwrap();
  assert_eq!(route(meta, &event), Some(Routed { agent: account, input: inputs::create("Grace") }));
}

#[test]
fn an_account_is_added_nowhere_else() {
  TestAgent::alive().when(inputs::add_account("Grace")).then_refused(reason::NOT_ALLOWED);
}

#[test]
fn only_the_owner_and_the_product_add_accounts() {
  for origin in [Origin::Agent, Origin::Tool, Origin::ThirdParty] {
    installation().when_from(origin, inputs::add_account("Grace")).then_refused(reason::NOT_ALLOWED);
  }
  installation().when_from(Origin::Owner, inputs::add_account("Grace")).then_types(&["AccountAdded"]);
}

#[test]
fn a_name_that_is_none_is_refused() {
  for name in ["", "   ", "a\nb", "a\0b", &"x".repeat(65)] {
    installation().when(inputs::add_account(name)).then_refused(reason::VALUE_INVALID);
  }
  installation().when(inputs::add_account(&"名".repeat(64))).then_types(&["AccountAdded"]);
}

#[test]
fn the_installation_never_becomes_an_agent() {
  installation().when(inputs::create("Ada")).then_refused(reason::NOT_ALLOWED);
  installation().when(inputs::message("hello")).then_refused(reason::NOT_FOUND);
}

#[test]
fn nothing_else_is_routed() {
  let mut agent = TestAgent::alive();
  let job = agent.when(inputs::message("hello")).message();
  agent.when(inputs::ask(job));
  agent.when(inputs::finish(job, 1, 1, agent.ordinal(), "hi"));
  assert!(agent.log.iter().all(|(meta, event)| route(meta, event).is_none()));
}
