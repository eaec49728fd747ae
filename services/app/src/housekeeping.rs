//! The scheduler role's parts: timers that are due, and what is thrown away by age.

use crate::config::Config;
use crate::storage::Storage;
use crate::wire::Shared;
use tokio_util::sync::CancellationToken;

/// Starts the scheduler.
pub(crate) fn start(_config: &Config, _storage: &Storage, _shared: &Shared, _stop: &CancellationToken) {}
