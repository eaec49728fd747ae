//! What the command line asks for.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

const USAGE: &str = "bench [--log embedded|kafka] [--brokers LIST] [--only NAME]… [--quick | --tiny] [--compare FILE] [--statements] [--pa PATH]
  --log LOG       the log that is measured: embedded (the default), or kafka: one node of infra/kafka/run, started for the bench
  --brokers LIST  with kafka: the brokers of a cluster that is there, HOST:PORT,…; the bench removes its topics at the end
  --only NAME     only this figure; may come again
  --quick         fewer and shorter rounds: for a look, not for a record
  --tiny          one round of a moment: whether every figure can be measured, not how large it is
  --compare FILE  the JSON lines of an earlier run: says on standard error what changed
  --statements    says on standard error what each statement cost Postgres (this slows it a little)
  --pa PATH       the program to measure; without it the release build of the tree is made";

/// The log that is measured.
#[derive(Clone, Debug, Default)]
pub(super) enum Log {
  #[default]
  Embedded,
  /// On these brokers, or on a node that the bench starts.
  Kafka { brokers: Option<String> },
}

/// How much is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Extent {
  #[default]
  Whole,
  Quick,
  Tiny,
}

/// How the bench runs.
#[derive(Debug, Default)]
pub(super) struct Options {
  only: Vec<String>,
  extent: Extent,
  pub(super) log: Log,
  pub(super) statements: bool,
  pub(super) compare: Option<PathBuf>,
  pub(super) pa: Option<PathBuf>,
}

impl Options {
  /// Reads the command line; `names` are the figures that there are.
  pub(super) fn parse(names: &(impl Iterator<Item = &'static str> + Clone)) -> Result<Self> {
    let mut options = Self::default();
    let mut brokers = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
      let mut value = || arguments.next().with_context(|| format!("{argument} needs a value\n{USAGE}"));
      match argument.as_str() {
        "--only" => options.only.push(value()?),
        "--log" => options.log = log(&value()?)?,
        "--brokers" => brokers = Some(value()?),
        "--quick" => options.extent = Extent::Quick,
        "--tiny" => options.extent = Extent::Tiny,
        "--statements" => options.statements = true,
        "--compare" => options.compare = Some(value()?.into()),
        "--pa" => options.pa = Some(value()?.into()),
        _ => bail!("{argument} is not known\n{USAGE}"),
      }
    }
    if let Some(list) = brokers {
      let Log::Kafka { brokers } = &mut options.log else { bail!("--brokers goes with --log kafka\n{USAGE}") };
      *brokers = Some(list);
    }
    for name in &options.only {
      let known: Vec<&str> = names.clone().collect();
      ensure!(known.contains(&name.as_str()), "there is no figure {name}; there are {}", known.join(", "));
    }
    Ok(options)
  }

  pub(super) fn wants(&self, name: &str) -> bool {
    self.only.is_empty() || self.only.iter().any(|only| only == name)
  }

  /// Whether this very figure was asked for.
  pub(super) fn names(&self, name: &str) -> bool {
    self.only.iter().any(|only| only == name)
  }

  /// Interleaved pairs of control and ours.
  pub(super) fn pairs(&self) -> usize {
    self.of(1, 3, 5)
  }

  /// How long one round of one side lasts.
  pub(super) fn round(&self) -> Duration {
    Duration::from_millis(self.of(200, 2_000, 8_000))
  }

  /// By the kind of run.
  pub(super) fn of<T>(&self, tiny: T, quick: T, whole: T) -> T {
    match self.extent {
      Extent::Tiny => tiny,
      Extent::Quick => quick,
      Extent::Whole => whole,
    }
  }
}

fn log(name: &str) -> Result<Log> {
  match name {
    "embedded" => Ok(Log::Embedded),
    "kafka" => Ok(Log::Kafka { brokers: None }),
    _ => bail!("there is no log {name}; there are embedded and kafka"),
  }
}
