//! The log that is measured: the embedded one, or Apache Kafka, which the bench starts (`infra/kafka/run --temporary`) or is told of.
//!
//! Every figure has a log of its own: a database, and on Kafka topics whose prefix nobody else has. On a cluster that was there before the bench, those topics are
//! removed at the end.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pa_eventlog::kafka::{self, KafkaLog};
use pa_eventlog::postgres::PostgresLog;
use pa_eventlog::{EventLog, Partition};
use pa_store::Database;
use parking_lot::Mutex;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;

use super::cpu;
use super::options::Log;

/// As the product keeps inputs.
const INPUTS_KEPT: Duration = Duration::from_secs(90 * 24 * 3600);

/// A log's kind, and where it is.
pub(super) enum Engine {
  Embedded,
  Kafka(Cluster),
}

/// The brokers.
pub(super) struct Cluster {
  brokers: String,
  /// The node that was started, to be ended; `None`: others run the cluster.
  script: Option<Child>,
  prefixes: Mutex<Vec<String>>,
}

/// Where one figure's log is.
#[derive(Clone, Debug)]
pub(super) enum Place {
  Embedded,
  Kafka { brokers: String, prefix: String },
}

impl Engine {
  pub(super) fn start(log: &Log) -> Result<Self> {
    match log {
      Log::Embedded => Ok(Self::Embedded),
      Log::Kafka { brokers: Some(brokers) } => Ok(Self::Kafka(Cluster { brokers: brokers.clone(), script: None, prefixes: Mutex::default() })),
      Log::Kafka { brokers: None } => Cluster::start().map(Self::Kafka),
    }
  }

  /// As it stands in a figure's line.
  pub(super) fn name(&self) -> &'static str {
    match self {
      Self::Embedded => "postgres, fsync on",
      Self::Kafka(Cluster { script: Some(_), .. }) => "kafka, 1 node, flush each",
      Self::Kafka(Cluster { script: None, .. }) => "kafka, as given",
    }
  }

  /// A place that nothing else has; `name` is its database's.
  pub(super) fn place(&self, name: &str) -> Place {
    match self {
      Self::Embedded => Place::Embedded,
      Self::Kafka(cluster) => {
        let prefix = format!("bench-{}-{name}.", std::process::id());
        cluster.prefixes.lock().push(prefix.clone());
        Place::Kafka { brokers: cluster.brokers.clone(), prefix }
      }
    }
  }

  /// CPU time of the brokers, as far as they are known; `None` on the embedded log.
  pub(super) fn brokers_cpu(&self) -> Result<Option<Duration>> {
    match self {
      Self::Kafka(Cluster { script: Some(script), .. }) => cpu::of_family(i32::try_from(script.id()).context("a process id")?).map(Some),
      Self::Kafka(Cluster { script: None, .. }) => Ok(Some(Duration::ZERO)),
      Self::Embedded => Ok(None),
    }
  }

  /// Removes what the bench made on a cluster of others.
  pub(super) async fn leave(&self) -> Result<()> {
    match self {
      Self::Kafka(cluster) if cluster.script.is_none() => cluster.remove_topics().await,
      Self::Kafka(_) | Self::Embedded => Ok(()),
    }
  }
}

impl Cluster {
  fn start() -> Result<Self> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/kafka/run");
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]).arg(&script).arg("--temporary").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut script = command.spawn().with_context(|| format!("start {}", script.display()))?;
    let said = script.stdout.take().context("it is piped")?;
    let brokers = BufReader::new(said).lines().map_while(Result::ok).find_map(|line| line.strip_prefix("brokers=").map(str::to_owned));
    let Some(brokers) = brokers else { bail!("infra/kafka/run ended: {}", script.wait().context("wait for its end")?) };
    Ok(Self { brokers, script: Some(script), prefixes: Mutex::default() })
  }

  async fn remove_topics(&self) -> Result<()> {
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new().set("bootstrap.servers", &self.brokers).create().context("a client of Kafka")?;
    let metadata = admin.inner().fetch_metadata(None, Duration::from_secs(10)).context("list the topics")?;
    let prefixes = self.prefixes.lock().clone();
    let ours: Vec<&str> =
      metadata.topics().iter().map(rdkafka::metadata::MetadataTopic::name).filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix))).collect();
    if !ours.is_empty() {
      admin.delete_topics(&ours, &AdminOptions::new()).await.context("remove the bench's topics")?;
    }
    Ok(())
  }
}

impl Drop for Cluster {
  fn drop(&mut self) {
    let Some(script) = &mut self.script else { return };
    // It takes its node down when it is interrupted.
    let pid = Pid::from_raw(i32::try_from(script.id()).unwrap_or(i32::MAX));
    if let Err(error) = kill(pid, Signal::SIGTERM).map_err(std::io::Error::from).and_then(|()| script.wait()) {
      eprintln!("bench: infra/kafka/run could not be ended: {error}");
    }
  }
}

impl Place {
  /// The product's log at this place; with `others`, readers of other processes are woken by what is appended.
  pub(super) async fn open(&self, database: &Database, partitions: Partition, others: bool) -> Result<Arc<dyn EventLog>> {
    Ok(match self {
      Self::Embedded => {
        let log = PostgresLog::open(database, partitions, true).await.context("open the embedded log")?;
        log.set_others(others);
        log
      }
      Self::Kafka { brokers, prefix } => {
        let config = kafka::Config { brokers: brokers.clone(), prefix: prefix.clone(), inputs_kept: INPUTS_KEPT, security: kafka::Security::default() };
        KafkaLog::open(&config, database, partitions, true).await.context("open the log on Kafka")?
      }
    })
  }

  /// What the product is told of it by its environment.
  pub(super) fn environment(&self) -> Vec<(&'static str, &str)> {
    match self {
      Self::Embedded => Vec::new(),
      Self::Kafka { brokers, prefix } => vec![("PA_KAFKA_BROKERS", brokers), ("PA_KAFKA_PREFIX", prefix)],
    }
  }
}
