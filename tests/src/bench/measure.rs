//! Rounds, pairs and medians.

use std::time::Duration;

use hdrhistogram::Histogram;

/// What one round of one side gave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
  pub(super) units: u64,
  pub(super) wall: Duration,
  /// CPU of our own process.
  pub(super) cpu: Duration,
  /// CPU of Postgres.
  pub(super) postgres: Duration,
}

impl Round {
  pub(super) fn per_second(&self) -> f64 {
    self.units as f64 / self.wall.as_secs_f64()
  }

  pub(super) fn cpu_us(&self) -> f64 {
    self.cpu.as_secs_f64() * 1e6 / self.units as f64
  }

  pub(super) fn postgres_us(&self) -> f64 {
    self.postgres.as_secs_f64() * 1e6 / self.units as f64
  }
}

/// Interleaved rounds of a control and of ours.
#[derive(Debug, Default)]
pub(super) struct Pairs {
  pub(super) control: Vec<Round>,
  pub(super) ours: Vec<Round>,
}

impl Pairs {
  pub(super) fn push(&mut self, control: Round, ours: Round) {
    self.control.push(control);
    self.ours.push(ours);
  }

  /// Ours by control, of each pair.
  fn ratios(&self) -> impl Iterator<Item = f64> + '_ {
    self.control.iter().zip(&self.ours).map(|(control, ours)| ours.per_second() / control.per_second())
  }

  pub(super) fn ratio(&self) -> f64 {
    median(self.ratios())
  }

  pub(super) fn worst(&self) -> f64 {
    self.ratios().fold(f64::INFINITY, f64::min)
  }
}

/// The middle value.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
  let mut values: Vec<f64> = values.collect();
  values.sort_by(f64::total_cmp);
  match values.len() {
    0 => f64::NAN,
    odd if odd % 2 == 1 => values[odd / 2],
    even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
  }
}

pub(super) fn round_to(value: f64, digits: i32) -> f64 {
  let scale = 10_f64.powi(digits);
  (value * scale).round() / scale
}

/// Latencies in microseconds, up to a minute.
pub(super) fn histogram() -> Histogram<u64> {
  Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are valid")
}

pub(super) fn record(histogram: &mut Histogram<u64>, took: Duration) {
  histogram.saturating_record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
}

/// A quantile in milliseconds.
pub(super) fn quantile(histogram: &Histogram<u64>, quantile: f64) -> f64 {
  histogram.value_at_quantile(quantile) as f64 / 1_000.0
}
