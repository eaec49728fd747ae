//! Which faults appends meet: said one by one, or drawn from a seed.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::record::{Position, Stream};

/// What happens to one append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
  /// It lands and is acknowledged.
  None,
  /// It lands; the caller is told that its fate is unknown.
  LostAck,
  /// It does not land; the caller is told that its fate is unknown.
  Lost,
  /// It lands so much later than the caller is told that its fate is unknown: a zombie.
  Late(Duration),
  /// It lands when [`super::SimLog::land_held`] says so; the caller is told that its fate is unknown.
  Held,
  /// It lands twice and is acknowledged once.
  Duplicate,
  /// So many positions are left out before it.
  Gap(Position),
  /// Only so many of its records land, at least one less than all; the caller is told that its fate is unknown.
  Torn(usize),
  /// It does not land, and the caller is told so.
  Refused,
}

/// How often faults happen, in a thousand appends each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Odds {
  pub lost_ack: u32,
  pub lost: u32,
  pub late: u32,
  pub duplicate: u32,
  pub gap: u32,
  pub torn: u32,
  pub refused: u32,
}

/// How long calls take: each draws between nothing and these.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delays {
  /// To the log, and back again.
  pub append: Duration,
  pub read: Duration,
  /// How late a late append lands.
  pub late: Duration,
}

/// The faults of one simulation.
#[derive(Debug)]
pub struct Plan {
  random: StdRng,
  odds: Odds,
  delays: Delays,
  injected: HashMap<Stream, VecDeque<Fault>>,
}

impl Plan {
  /// No faults but injected ones, and no delays.
  pub fn none() -> Self {
    Self::seeded(0, Odds::default(), Delays::default())
  }

  /// Faults and delays drawn from `seed`.
  pub fn seeded(seed: u64, odds: Odds, delays: Delays) -> Self {
    Self { random: StdRng::seed_from_u64(seed), odds, delays, injected: HashMap::new() }
  }

  pub(super) fn set_odds(&mut self, odds: Odds) {
    self.odds = odds;
  }

  pub(super) fn inject(&mut self, stream: Stream, fault: Fault) {
    self.injected.entry(stream).or_default().push_back(fault);
  }

  pub(super) fn next(&mut self, stream: Stream, records: usize) -> Fault {
    let fault = match self.injected.get_mut(&stream).and_then(VecDeque::pop_front) {
      Some(fault) => fault,
      None => self.drawn(records),
    };
    match fault {
      // With one record there is no half: it is lost.
      Fault::Torn(_) if records < 2 => Fault::Lost,
      Fault::Torn(landing) => Fault::Torn(landing.clamp(1, records - 1)),
      other => other,
    }
  }

  fn drawn(&mut self, records: usize) -> Fault {
    let odds = self.odds;
    let late = Fault::Late(drawn_between(&mut self.random, self.delays.late));
    let torn = Fault::Torn(self.random.random_range(1..=records.max(1)));
    let gap = Fault::Gap(self.random.random_range(1..=3));
    let table = [
      (odds.lost_ack, Fault::LostAck),
      (odds.lost, Fault::Lost),
      (odds.late, late),
      (odds.duplicate, Fault::Duplicate),
      (odds.gap, gap),
      (odds.torn, torn),
      (odds.refused, Fault::Refused),
    ];
    let mut draw = self.random.random_range(0..1_000);
    for (odds, fault) in table {
      if draw < odds {
        return fault;
      }
      draw -= odds;
    }
    Fault::None
  }

  pub(super) fn append_delay(&mut self) -> Duration {
    drawn_between(&mut self.random, self.delays.append)
  }

  pub(super) fn read_delay(&mut self) -> Duration {
    drawn_between(&mut self.random, self.delays.read)
  }
}

fn drawn_between(random: &mut StdRng, most: Duration) -> Duration {
  if most.is_zero() { most } else { Duration::from_micros(random.random_range(0..=u64::try_from(most.as_micros()).unwrap_or(u64::MAX))) }
}
