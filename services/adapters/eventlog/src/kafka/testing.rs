//! A real Kafka for tests: one node of `infra/kafka/run`, started once for a test binary when it is first needed, and gone with it. A test that kills brokers has one of its own.

mod administrator;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::{Config, Security};
pub use administrator::Administrator;

/// From an empty machine: the broker is fetched, its folder made, the node started.
const STARTED_WITHIN: Duration = Duration::from_secs(300);

static BROKERS: OnceLock<String> = OnceLock::new();
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The address of the shared node. Panics when it can't be started: no test is skipped for want of it.
pub fn brokers() -> &'static str {
  BROKERS.get_or_init(|| {
    let (said, heard) = mpsc::channel();
    // The node lives as long as the thread that starts it, so this one never ends.
    let live = move || {
      let mut node = Node::start(&["--temporary"]);
      said.send(node.brokers.clone()).expect("whoever started it waits");
      panic!("infra/kafka/run ended: {:?}", node.script.wait());
    };
    std::thread::Builder::new().name("kafka".to_owned()).spawn(live).expect("a thread can be started");
    heard.recv_timeout(STARTED_WITHIN).expect("infra/kafka/run prints brokers=")
  })
}

/// A log of its own on the shared node: a prefix that nothing else has.
pub fn config() -> Config {
  config_on(brokers())
}

/// A log of its own on these brokers.
pub fn config_on(brokers: &str) -> Config {
  let n = NEXT.fetch_add(1, Ordering::Relaxed);
  let prefix = format!("t{}-{n}.", std::process::id());
  Config { brokers: brokers.to_owned(), prefix, inputs_kept: Duration::from_secs(90 * 24 * 3600), security: Security::default() }
}

/// A node of one's own, or three. It dies with the thread that started it.
#[derive(Debug)]
pub struct Node {
  pub brokers: String,
  script: Child,
}

impl Node {
  /// Starts a node whose log lies in `folder`, or the one that lay there.
  pub fn start_in(folder: &Path) -> Self {
    Self::start(&["--data", folder.to_str().expect("a path in UTF-8")])
  }

  /// Starts three nodes that listen on an address, with their log in `folder`: each names its process in `node-N/pid` there.
  pub fn three_in(folder: &Path, host: &str) -> Self {
    Self::start(&["--nodes", "3", "--host", host, "--data", folder.to_str().expect("a path in UTF-8")])
  }

  fn start(arguments: &[&str]) -> Self {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../infra/kafka/run");
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]).arg(script).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut script = command.spawn().expect("infra/kafka/run can be started");
    let mut lines = BufReader::new(script.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
    let brokers = lines.find_map(|line| line.strip_prefix("brokers=").map(str::to_owned));
    let Some(brokers) = brokers else { panic!("infra/kafka/run ended: {:?}", script.wait()) };
    Self { brokers, script }
  }

  /// Kills it as a power cut would: the node dies with its script.
  pub fn kill9(mut self) {
    self.script.kill().expect("the script is ours");
    self.script.wait().expect("the script is ours");
  }
}
