//! The scheduler: says when timers are due, and clears away what has had its time.
//!
//! Reads: the read model (timers)
//! Appends: `pa.inputs` (`TimerFired`)
//! Effects: deletes expired inputs and pieces, uploads that were never attached, tokens that have run out
//!
//! Invariants
//! - A timer is fired with its own id as the key, so several schedulers, or one that fires again after a crash, fire it once; the log decides whether it still counts.
//! - One process at a time does the work, by a lease row; that only saves work, nothing rests on it.
//! - An input is never cleared away before the decider's checkpoint has passed it.

mod housekeeping;
pub mod postgres;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pa_domain::timer::TimerFired;
use pa_domain::{Origin, TimerId, Timestamp};
use pa_eventlog::appender::{Appender, Submission};
use pa_projections::timers::Timer;
use pa_store::Disposition;
use pa_store::clock::Clock;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

pub use housekeeping::Keeper;

/// Timers of one look.
const DUE_MAX: u32 = 256;
/// How long the scheduler sleeps at the most when nothing is due: wake-ups can get lost, and so can the lease of the one who works.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Between two looks: every turn sets a timer and takes it away again, and none of them is meant to the millisecond.
const LOOK_APART: Duration = Duration::from_millis(50);
/// A timer that was fired shows as due until the read model has its end; after this time it is fired again, which is a repeat if it was decided.
const AGAIN_AFTER: Duration = Duration::from_secs(30);
/// How often things are cleared away.
const CLEAR_EVERY: Duration = Duration::from_secs(3_600);
/// The first clearing waits until a start is over.
const CLEAR_FIRST: Duration = Duration::from_secs(60);
/// Who makes the keys of fired timers: the same for every process.
const PRODUCER: &str = "scheduler";

/// The timers that run, and who looks after them.
#[async_trait]
pub trait Timers: Send + Sync + 'static {
  /// Whether this process is the one that does the work; takes that up when it is free.
  async fn leads(&self) -> anyhow::Result<bool>;
  /// Gives the work up.
  async fn resign(&self);
  /// Timers due at an instant, earliest first.
  async fn due(&self, at: Timestamp, limit: u32) -> anyhow::Result<Vec<Timer>>;
  /// When the first one is due that is not due at an instant.
  async fn next_due(&self, after: Timestamp) -> anyhow::Result<Option<Timestamp>>;
  /// Returns when a timer was set or has gone; may wait for ever.
  async fn changed(&self);
}

/// What the scheduler works with.
pub struct SchedulerParts {
  pub timers: Arc<dyn Timers>,
  pub keeper: Arc<dyn Keeper>,
  /// With the source `pa/scheduler`.
  pub appender: Appender,
  pub clock: Arc<dyn Clock>,
}

/// Fires timers and clears away until `stop`.
pub async fn run(parts: SchedulerParts, stop: CancellationToken) {
  let mut scheduler = Scheduler { parts, fired: HashMap::new(), clear_at: Instant::now() + CLEAR_FIRST };
  tokio::select! {
    biased;
    () = stop.cancelled() => {}
    () = scheduler.work() => {}
  }
  scheduler.parts.timers.resign().await;
}

struct Scheduler {
  parts: SchedulerParts,
  /// When timers were fired that the read model still has.
  fired: HashMap<TimerId, Instant>,
  clear_at: Instant,
}

impl Scheduler {
  async fn work(&mut self) {
    loop {
      let pause = match self.round().await {
        Ok(pause) => pause,
        Err(error) => {
          tracing::warn!(error = &*error as &dyn std::error::Error, "the scheduler can't work now");
          LOOK_EVERY
        }
      };
      tokio::select! {
        biased;
        () = self.parts.timers.changed() => sleep(LOOK_APART).await,
        () = sleep(pause) => {}
      }
    }
  }

  /// Does what is due; how long nothing more is.
  async fn round(&mut self) -> anyhow::Result<Duration> {
    if !self.parts.timers.leads().await? {
      return Ok(LOOK_EVERY);
    }
    if Instant::now() >= self.clear_at {
      self.clear_at = Instant::now() + CLEAR_EVERY;
      housekeeping::clear(&*self.parts.keeper, self.parts.clock.now()).await;
    }
    let now = self.parts.clock.now();
    let due = self.parts.timers.due(now, DUE_MAX).await?;
    self.fired.retain(|timer, at| at.elapsed() < AGAIN_AFTER && due.iter().any(|due| due.id == *timer));
    for timer in &due {
      if !self.fired.contains_key(&timer.id) && self.fire(timer).await? {
        self.fired.insert(timer.id, Instant::now());
      }
    }
    if due.len() == DUE_MAX as usize {
      // What is due behind them shows when they go, and that is told.
      return Ok(LOOK_EVERY);
    }
    self.until_next(now).await
  }

  /// How long it is to the first timer after those that were looked at: one of them that was fired shows until the read model has its end.
  async fn until_next(&self, looked: Timestamp) -> anyhow::Result<Duration> {
    let next = self.parts.timers.next_due(looked).await?;
    let now = self.parts.clock.now();
    Ok(next.map_or(LOOK_EVERY, |next| Duration::from_millis((next.0 - now.0).max(0).unsigned_abs()).min(LOOK_EVERY)))
  }

  /// Appends that a timer is due; whether that is done with.
  async fn fire(&self, timer: &Timer) -> anyhow::Result<bool> {
    let key = timer.id.to_string();
    let submission = Submission {
      agent: timer.agent,
      input: TimerFired { timer: timer.id, thing: timer.thing }.into(),
      producer: PRODUCER,
      key: Some(&key),
      content: None,
      actor: "platform",
      origin: Origin::Platform,
      cause: None,
      correlation: None,
      traceparent: None,
    };
    match self.parts.appender.submit(submission).await {
      Ok(_) => {
        metrics::counter!("pa_timers_fired").increment(1);
        Ok(true)
      }
      Err(error) => match error.disposition() {
        // Such as an agent that was erased meanwhile: its timers go with it.
        Disposition::Fail => {
          tracing::warn!(timer.id = %timer.id, agent.id = %timer.agent, error = &error as &dyn std::error::Error, "a timer can't be fired");
          Ok(true)
        }
        // Fired again it is a repeat.
        Disposition::Retry | Disposition::Unknown => Err(error.into()),
      },
    }
  }
}
