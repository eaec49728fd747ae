//! What the command line asks for.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

const USAGE: &str = "bench [--only NAME]… [--quick] [--compare FILE] [--statements] [--pa PATH]
  --only NAME     only this figure; may come again
  --quick         fewer and shorter rounds: for a look, not for a record
  --compare FILE  the JSON lines of an earlier run: says on standard error what changed
  --statements    says on standard error what each statement cost Postgres (this slows it a little)
  --pa PATH       the program to measure; without it the release build of the tree is made";

/// How the bench runs.
#[derive(Debug, Default)]
pub(super) struct Options {
  only: Vec<String>,
  pub(super) quick: bool,
  pub(super) statements: bool,
  pub(super) compare: Option<PathBuf>,
  pub(super) pa: Option<PathBuf>,
}

impl Options {
  /// Reads the command line; `names` are the figures that there are.
  pub(super) fn parse(names: &(impl Iterator<Item = &'static str> + Clone)) -> Result<Self> {
    let mut options = Self::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
      let mut value = || arguments.next().with_context(|| format!("{argument} needs a value\n{USAGE}"));
      match argument.as_str() {
        "--only" => options.only.push(value()?),
        "--quick" => options.quick = true,
        "--statements" => options.statements = true,
        "--compare" => options.compare = Some(value()?.into()),
        "--pa" => options.pa = Some(value()?.into()),
        _ => bail!("{argument} is not known\n{USAGE}"),
      }
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

  /// Interleaved pairs of control and ours.
  pub(super) fn pairs(&self) -> usize {
    if self.quick { 3 } else { 5 }
  }

  /// How long one round of one side lasts.
  pub(super) fn round(&self) -> Duration {
    Duration::from_secs(if self.quick { 2 } else { 8 })
  }

  /// `quick` or `whole`, by the kind of run.
  pub(super) fn either<T>(&self, quick: T, whole: T) -> T {
    if self.quick { quick } else { whole }
  }
}
