//! A network of its own for a test: namespaces of the kernel with cables between them that can be pulled.
//!
//! The test's own process stands at the hub, which has three switches: one for people and the model, one for the database, one for the log. Each node has a namespace
//! and a cable to each switch, and reaches nothing else. Everything is gone with the processes in it: nothing of the machine's own network is touched.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Set in the process that runs inside the network.
const INSIDE: &str = "PA_TESTS_NETWORK";
/// In front of everything of these networks.
const NET: &str = "10.77";

/// What a cable leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cable {
  People = 1,
  Database = 2,
  Log = 3,
}

impl Cable {
  pub(super) const ALL: [Self; 3] = [Self::People, Self::Database, Self::Log];

  /// The hub's address behind this cable.
  pub(super) fn hub(self) -> String {
    format!("{NET}.{}.1", self as u8)
  }

  fn switch(self) -> String {
    format!("switch{}", self as u8)
  }

  fn end_at_hub(self, node: usize) -> String {
    format!("hub{}n{node}", self as u8)
  }
}

/// Runs a test at the hub of a network of its own: the test binary starts itself again there, with this test alone.
///
/// Needs root, as the tests of a full disk do.
#[expect(clippy::disallowed_methods, reason = "the test binary tells itself where it runs")]
pub(super) fn inside(test: &str, body: impl AsyncFnOnce()) {
  if std::env::var(INSIDE).is_ok() {
    ip(&["link", "set", "lo", "up"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    return runtime.block_on(body());
  }
  let binary = std::env::current_exe().expect("the test binary knows itself");
  let mut command = Command::new("setpriv");
  command.args(["--pdeathsig", "KILL", "--", "unshare", "--net", "--"]).arg(binary).args([test, "--exact", "--nocapture"]).env(INSIDE, "1");
  let output = command.stdin(Stdio::null()).output().expect("a test can be started in a network of its own");
  println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
  assert!(output.status.success(), "it failed in a network of its own, which needs root: {}", output.status);
  assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "it ran there");
}

/// The hub's switches and the nodes' namespaces.
pub(super) struct Network {
  nodes: Vec<Namespace>,
}

/// A namespace lives as long as a process in it.
struct Namespace(Child);

impl Network {
  /// A network with so many nodes.
  pub(super) fn of(nodes: usize) -> Self {
    for cable in Cable::ALL {
      let switch = cable.switch();
      ip(&["link", "add", &switch, "type", "bridge"]);
      ip(&["addr", "add", &format!("{}/24", cable.hub()), "dev", &switch]);
      ip(&["link", "set", &switch, "up"]);
    }
    let network = Self { nodes: (0..nodes).map(|_| Namespace::new()).collect() };
    for node in 0..nodes {
      network.wire(node);
    }
    network
  }

  fn wire(&self, node: usize) {
    let inside = |arguments: &[&str]| {
      let line: Vec<String> = self.enter(node).into_iter().chain(std::iter::once("ip".to_owned())).collect();
      run(Command::new(&line[0]).args(&line[1..]).args(arguments));
    };
    inside(&["link", "set", "lo", "up"]);
    for cable in Cable::ALL {
      let (ours, theirs) = (cable.end_at_hub(node), format!("cable{}", cable as u8));
      let pid = self.nodes[node].0.id().to_string();
      ip(&["link", "add", &ours, "type", "veth", "peer", "name", &theirs, "netns", &pid]);
      ip(&["link", "set", &ours, "master", &cable.switch()]);
      ip(&["link", "set", &ours, "up"]);
      inside(&["addr", "add", &format!("{}/24", Self::address(node, cable)), "dev", &theirs]);
      inside(&["link", "set", &theirs, "up"]);
    }
  }

  /// A node's own address at a cable.
  pub(super) fn address(node: usize, cable: Cable) -> String {
    format!("{NET}.{}.{}", cable as u8, 11 + node)
  }

  /// The words in front of a command that is to run in a node's namespace.
  pub(super) fn enter(&self, node: usize) -> Vec<String> {
    vec!["nsenter".to_owned(), format!("--net=/proc/{}/ns/net", self.nodes[node].0.id()), "--".to_owned()]
  }

  /// Pulls a cable: what is sent into it is lost without a word.
  pub(super) fn pull(node: usize, cable: Cable) {
    ip(&["link", "set", &cable.end_at_hub(node), "down"]);
  }

  /// Plugs it in again.
  pub(super) fn plug(node: usize, cable: Cable) {
    ip(&["link", "set", &cable.end_at_hub(node), "up"]);
  }
}

impl Namespace {
  fn new() -> Self {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "unshare", "--net", "--", "sleep", "infinity"]).stdin(Stdio::null()).process_group(0);
    let child = command.spawn().expect("a namespace can be made");
    let of = |pid: &str| std::fs::read_link(PathBuf::from("/proc").join(pid).join("ns/net")).ok();
    let deadline = std::time::Instant::now() + crate::harness::PATIENCE;
    while of(&child.id().to_string()).is_none_or(|its| Some(its) == of("self")) {
      assert!(std::time::Instant::now() < deadline, "a namespace can be made");
      std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Self(child)
  }
}

impl Drop for Namespace {
  fn drop(&mut self) {
    self.0.kill().expect("the child is ours");
    self.0.wait().expect("the child is ours");
  }
}

fn ip(arguments: &[&str]) {
  run(Command::new("ip").args(arguments));
}

fn run(command: &mut Command) {
  let output = command.output().expect("iproute2 and util-linux are installed");
  assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
