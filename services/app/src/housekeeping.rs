//! The scheduler role: timers that are due, and what is cleared away by age.

use std::sync::Arc;
use std::time::Duration;

use pa_pipeline::scheduler::postgres::{PostgresKeeper, PostgresTimers};
use pa_pipeline::scheduler::{self, SchedulerParts};
use pa_store::Role;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::storage::Storage;
use crate::wire::{self, Shared};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Starts the scheduler.
pub(crate) fn start(config: &Config, storage: &Storage, shared: &Shared, stop: &CancellationToken) {
  let keeper = PostgresKeeper {
    pool: storage.database.pool(Role::Tool),
    log: storage.log.embedded(),
    blobs: Arc::clone(&shared.blobs),
    inputs_kept: DAY * config.log.inputs_kept_days,
    fold_version: wire::fold_version(),
  };
  let parts = SchedulerParts {
    timers: Arc::new(PostgresTimers::new(shared.leases.clone(), shared.reads.clone(), &shared.live, shared.holder)),
    keeper: Arc::new(keeper),
    appender: shared.appender("pa/scheduler"),
    clock: Arc::clone(&shared.clock),
  };
  let (shared, stop) = (shared.clone(), stop.clone());
  shared.tasks.clone().spawn(async move {
    shared.has_read_model(&stop).await;
    scheduler::run(parts, stop).await;
  });
}
