//! Each role in a process of its own over shared storage, and each dies in its turn.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Dice, Load};
use crate::harness::{Client, Engine, Model, Process, Product, Setup, TOKEN};

/// One key for all processes, as people set it who have several.
const MASTER_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
/// The roles, the gateway last: it says that it is ready when the others have done something for it.
pub(super) const ROLES: [&str; 5] = ["decider", "projector", "agent", "scheduler", "gateway"];

/// Processes of one installation.
pub(super) struct Installation {
  pub(super) processes: BTreeMap<String, Process>,
  /// Not started itself: its tools and its folder.
  pub(super) product: Product,
}

impl Installation {
  /// Starts a process for each role.
  pub(super) async fn start(setup: Setup) -> Self {
    // Files and workspaces are where all processes see them, those with a data folder of their own, too.
    let shared = setup.data().display().to_string();
    let product = setup.env("PA_MASTER_KEY", MASTER_KEY).env("PA__DATA__SHARED_DIR", &shared).stopped();
    let mut installation = Self { processes: BTreeMap::new(), product };
    for role in ROLES {
      installation.launch(role, role, &[]);
    }
    for role in ROLES {
      installation.ready(role).await;
    }
    installation
  }

  /// Starts a process of a role under a name, and waits for nothing.
  pub(super) fn launch(&mut self, name: &str, role: &str, more: &[(&str, &str)]) {
    // The gateway has the product's own port, and keeps it.
    let listen: &[_] = if name == "gateway" { &[] } else { &[("PA_LISTEN", "127.0.0.1:0")] };
    let mut env = self.product.setup.env_with(listen);
    env.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    self.processes.insert(name.to_owned(), Process::start(name, &["run", "--role", role], &env));
  }

  /// Waits until a process says that it is ready.
  pub(super) async fn ready(&mut self, name: &str) {
    let process = self.process(name);
    let listening = process.prints("listening").await.unwrap_or_else(|why| panic!("{why}"));
    if name == "gateway" {
      self.product.url = listening;
    }
  }

  pub(super) fn process(&mut self, name: &str) -> &mut Process {
    self.processes.get_mut(name).expect("it runs")
  }

  pub(super) fn owner(&self) -> Client {
    Client::new(&self.product.url, TOKEN)
  }
}

async fn each_role_is_killed(engine: Engine) {
  let model = Model::echo().await;
  let mut installation = Installation::start(Setup::on(engine).await.model(&model)).await;
  let people = vec![installation.owner(), installation.product.add_account("Ann")];
  let mut dice = Dice::new(5);
  let load = Load::of(people, Duration::from_millis(40));
  for role in ROLES.into_iter().chain(["agent", "decider"]) {
    dice.pause(200, 700).await;
    println!("{role} dies");
    installation.process(role).kill9();
    dice.pause(0, 300).await;
    installation.launch(role, role, &[]);
    installation.ready(role).await;
  }
  dice.pause(300, 600).await;
  super::check(&installation.product, &mut load.end().await).await;
  for role in ROLES {
    let status = installation.process(role).terminate().await;
    assert!(status.success(), "{role}: {status}");
  }
}

/// Proves RUN-14, RUN-15, REP-34.
#[tokio::test]
async fn each_role_killed_in_its_turn_under_load_loses_and_doubles_nothing() {
  each_role_is_killed(Engine::Embedded).await;
}

/// Proves RUN-14, RUN-15, REP-34.
#[tokio::test]
async fn on_kafka_each_role_killed_in_its_turn_under_load_loses_and_doubles_nothing() {
  each_role_is_killed(Engine::Kafka).await;
}
