//! Three brokers, one Postgres, three nodes with all roles, each node in a namespace of its own, over one folder of files.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pa_eventlog::kafka::testing;
use pa_model::rehearsal::Reply;

use super::network::{Cable, Network};
use crate::harness::{Client, Model, Process, Product, Proxy, Setup, TOKEN, eventually, text_of_last};

/// One key for all nodes.
const MASTER_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
/// Nodes of `pa`, and brokers.
pub(super) const NODES: usize = 3;
/// Partitions of the log.
pub(super) const PARTITIONS: usize = 8;

/// A running cluster. What stands first ends first.
pub(super) struct Cluster {
  nodes: Vec<Option<Process>>,
  /// Not started itself: its database and its tools, which see what the first node sees.
  pub(super) product: Product,
  pub(super) network: Network,
  pub(super) model: Model,
  _brokers: testing::Node,
  folder: tempfile::TempDir,
}

impl Cluster {
  /// Starts everything and waits until each node is ready.
  pub(super) async fn start() -> Self {
    let network = Network::of(NODES);
    let folder = tempfile::tempdir().expect("a folder");
    let brokers = testing::Node::three_in(&folder.path().join("kafka"), &Cable::Log.hub());
    let model = Model::silent_at(&Cable::People.hub()).await;
    model.script.on(|seen| Some(Reply::text(&format!("re: {}", text_of_last(seen)))));
    let setup = Setup::new().await.model(&model);
    let database = database_by_network(setup.test_db().url.clone());
    let setup = setup
      .env("PA_DATABASE_URL", &database)
      .env("PA_KAFKA_BROKERS", &brokers.brokers)
      .env("PA_MASTER_KEY", MASTER_KEY)
      .env("PA__DATA__SHARED_DIR", &folder.path().join("files").display().to_string())
      .env("PA_ALLOW_INSECURE", "1");
    let product = setup.stopped();
    let mut cluster = Self { nodes: Vec::new(), product, network, model, _brokers: brokers, folder };
    cluster.nodes.resize_with(NODES, || None);
    for node in 0..NODES {
      cluster.launch(node);
    }
    for node in 0..NODES {
      cluster.ready(node).await;
    }
    cluster.product.url = Self::url(0);
    cluster
  }

  fn url(node: usize) -> String {
    format!("http://{}:8787", Network::address(node, Cable::People))
  }

  fn data(&self, node: usize) -> PathBuf {
    // The tools of the product look where the first node keeps its own.
    if node == 0 { self.product.setup.data() } else { self.folder.path().join(format!("node-{node}")) }
  }

  /// The settings of a node.
  fn env(&self, node: usize) -> Vec<(String, String)> {
    let listen = Self::url(node).replace("http://", "");
    self.product.setup.env_with(&[("PA_DATA_DIR", &self.data(node).display().to_string()), ("PA_LISTEN", &listen)])
  }

  /// Starts a node and waits for nothing.
  pub(super) fn launch(&mut self, node: usize) {
    let env = self.env(node);
    self.nodes[node] = Some(Process::start_behind(&self.network.enter(node), &format!("node {node}"), &["up"], &env));
  }

  /// Waits until a node says that it is ready.
  pub(super) async fn ready(&mut self, node: usize) {
    self.node(node).prints("listening").await.unwrap_or_else(|why| panic!("{why}"));
  }

  /// Waits until a node that was away says that it is ready again.
  pub(super) async fn caught_up(&self, node: usize) {
    let owner = Self::owner(node);
    eventually("a node that was away is ready again", async || {
      let answer = tokio::time::timeout(std::time::Duration::from_secs(3), owner.get("/readyz")).await.ok()?.ok()?;
      (answer.status() == 200).then_some(())
    })
    .await;
  }

  pub(super) fn node(&mut self, node: usize) -> &mut Process {
    self.nodes[node].as_mut().expect("it runs")
  }

  pub(super) fn kill9(&mut self, node: usize) {
    self.node(node).kill9();
    self.nodes[node] = None;
  }

  /// Kills one broker.
  pub(super) fn kill_broker(&self, broker: usize) {
    let pid = fs::read_to_string(self.folder.path().join(format!("kafka/node-{broker}/pid"))).expect("a broker says its process");
    kill(Pid::from_raw(pid.trim().parse().expect("a process id")), Signal::SIGKILL).expect("the broker is ours");
  }

  /// An account's ways in, one for each node.
  pub(super) fn everywhere(token: &str) -> Vec<Client> {
    (0..NODES).map(|node| Client::new(&Self::url(node), token)).collect()
  }

  pub(super) fn owner(node: usize) -> Client {
    Client::new(&Self::url(node), TOKEN)
  }

  /// How many partitions each process holds by a lease that runs.
  pub(super) async fn held(&self) -> BTreeMap<uuid::Uuid, usize> {
    let rows = pa_store::lease::partition::read(self.product.setup.pool()).await.expect("the leases can be read");
    let mut held = BTreeMap::new();
    for row in rows.into_iter().filter(|row| row.live) {
      *held.entry(row.holder.expect("a lease that runs has a holder").process).or_insert(0) += 1;
    }
    held
  }

  /// Waits until so many nodes hold all partitions between them, each its share.
  pub(super) async fn spread_over(&self, nodes: usize) {
    let share = PARTITIONS.div_ceil(nodes);
    eventually(&format!("{nodes} nodes hold their shares"), async || {
      let held = self.held().await;
      (held.len() == nodes && held.values().sum::<usize>() == PARTITIONS && held.values().all(|count| *count <= share)).then_some(())
    })
    .await;
  }
}

/// The address of a database at the hub, for as long as the test runs. On a thread of its own, since a test waits for tools without doing anything else.
fn database_by_network(url: String) -> String {
  let (say, hear) = std::sync::mpsc::channel();
  let carry = move || {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
      let mut database = Proxy::at(&Cable::Database.hub(), &url).await;
      database.join().await;
      say.send(database.url().to_owned()).expect("the test waits");
      std::future::pending::<()>().await;
    });
  };
  std::thread::Builder::new().name("database".to_owned()).spawn(carry).expect("a thread can be started");
  hear.recv().expect("the network's way to the database")
}
