//! Leases: rows that prove a process lives.
//!
//! Two kinds: [`partition`], the decider's on a partition, and [`work`], an execution's on a job. Neither decides anything. What a partition's former holder still
//! appends is voided by the epoch in the log; what an execution's former worker still does is refused by the log, too.
//!
//! Time is the database's (`clock_timestamp()`), so nodes need not agree on it. Each change is one statement, guarded by who holds the row.

pub mod partition;
#[cfg(test)]
mod tests;
pub mod work;

use std::time::Duration;

use pa_domain::NodeId;
use uuid::Uuid;

/// How long a lease lasts without renewal: long enough for three missed renewals and a pause of the machine, short enough for a takeover that people sit out.
pub const LEASE: Duration = Duration::from_secs(10);

/// How often a lease is renewed: three tries fit into its life.
pub const RENEW_EVERY: Duration = Duration::from_secs(3);

const LEASE_SECONDS: f64 = LEASE.as_secs_f64();

/// Who holds a lease: a process of a node. A node is a data folder and outlives its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
  pub node: NodeId,
  pub process: Uuid,
}
