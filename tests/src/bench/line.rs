//! One JSON line a figure, and what changed since an earlier run.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::measure::round_to;

/// A figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Line {
  pub(super) name: String,
  /// The log that was measured; the printer fills it in.
  pub(super) engine: String,
  /// What `control` and `ours` count.
  pub(super) unit: String,
  pub(super) control: Option<f64>,
  pub(super) ours: f64,
  pub(super) ratio: Option<f64>,
  /// CPU of our own process for one unit of work, without Postgres, model and clients.
  pub(super) cpu_us_per_unit: Option<f64>,
  pub(super) target: String,
  pub(super) met: bool,
  #[serde(flatten)]
  pub(super) more: Map<String, Value>,
}

impl Line {
  /// A figure without control and CPU.
  pub(super) fn new(name: &str, unit: &str, ours: f64) -> Self {
    Self {
      name: name.to_owned(),
      engine: String::new(),
      unit: unit.to_owned(),
      control: None,
      ours: round_to(ours, 3),
      ratio: None,
      cpu_us_per_unit: None,
      target: String::new(),
      met: true,
      more: Map::new(),
    }
  }

  /// Beside a control.
  pub(super) fn control(mut self, control: f64) -> Self {
    self.control = Some(round_to(control, 3));
    self.ratio = Some(round_to(self.ours / control, 3));
    self
  }

  /// With another ratio than that of the medians: that of the pairs.
  pub(super) fn ratio(mut self, ratio: f64) -> Self {
    self.ratio = Some(round_to(ratio, 3));
    self
  }

  pub(super) fn cpu(mut self, microseconds: f64) -> Self {
    self.cpu_us_per_unit = Some(round_to(microseconds, 2));
    self
  }

  pub(super) fn target(mut self, target: impl Into<String>, met: bool) -> Self {
    (self.target, self.met) = (target.into(), met);
    self
  }

  pub(super) fn more(mut self, name: &str, value: impl Into<Value>) -> Self {
    self.more.insert(name.to_owned(), value.into());
    self
  }

  /// A number beside the others.
  pub(super) fn also(self, name: &str, value: f64) -> Self {
    self.more(name, round_to(value, 3))
  }
}

/// Prints figures.
pub(super) struct Printer {
  engine: &'static str,
  before: BTreeMap<String, Line>,
}

impl Printer {
  /// A printer of figures of one engine, which compares with the lines that `file` has of it.
  pub(super) fn new(engine: &'static str, file: Option<&Path>) -> Result<Self> {
    let mut before = BTreeMap::new();
    if let Some(file) = file {
      let text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
      for line in text.lines().filter(|line| line.starts_with('{')) {
        let line: Line = serde_json::from_str(line).with_context(|| format!("a line of {}", file.display()))?;
        if line.engine == engine {
          before.insert(line.name.clone(), line);
        }
      }
    }
    Ok(Self { engine, before })
  }

  /// Prints a figure.
  pub(super) fn print(&self, line: &Line) -> Result<()> {
    let line = &Line { engine: self.engine.to_owned(), ..line.clone() };
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, line).context("write a figure")?;
    writeln!(out).and_then(|()| out.flush()).context("write a figure")?;
    if let Some(before) = self.before.get(&line.name) {
      eprintln!("bench: {}", changed(before, line));
    }
    Ok(())
  }
}

fn changed(before: &Line, now: &Line) -> String {
  let percent = |before: f64, now: f64| format!("{before} → {now} ({:+.1} %)", (now / before - 1.0) * 100.0);
  let mut text = format!("{}: {} {}", now.name, percent(before.ours, now.ours), now.unit);
  if let (Some(before), Some(now)) = (before.ratio, now.ratio) {
    text.push_str(", ratio ");
    text.push_str(&percent(before, now));
  }
  if let (Some(before), Some(now)) = (before.cpu_us_per_unit, now.cpu_us_per_unit) {
    text.push_str(", CPU µs ");
    text.push_str(&percent(before, now));
  }
  text
}
