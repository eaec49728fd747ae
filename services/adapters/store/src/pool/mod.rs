//! Connection pools by purpose, so that one kind of work can't starve another.
//!
//! Invariants:
//! - Every pool but those of the projector and of leases on work has `synchronous_commit = on`: what it acknowledged survives a power loss.
//! - A connection that was left inside a transaction (a cancelled `begin()` does that, sqlx#4385) never serves another caller: it is closed instead of handed out.
//!   Callers still must not put `begin()` into a `select!` or a time-out. On the hot pools (log, gateway, leases) no transaction is ever begun: every statement there
//!   commits by itself, so that a round trip for this check is saved.
//! - A pool of a read schema sees that schema and `ops` by its search path; statements therefore name no schema and stay static text.

mod durable;
mod kept;
mod schema;
#[cfg(test)]
mod tests;

use std::str::FromStr as _;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

pub use durable::assert_durable;
pub use kept::Kept;
pub use schema::ReadSchema;

use crate::Error;
use crate::error::reading;

/// The embedded log: an append holds its partition's head row for one commit, so more connections than partitions (8) would only queue on rows; the rest are for
/// readers.
const LOG_CONNECTIONS: u32 = 12;
/// Checkpoints (one at a time for a partition, seconds apart) and the loading of things.
const DECIDER_CONNECTIONS: u32 = 6;
/// One transaction at a time for a partition; batches are merged before they are written, so few connections keep two cores busy.
const PROJECTOR_CONNECTIONS: u32 = 6;
/// Short reads of the page; queueing a few milliseconds in the pool is cheaper than more backends on a small machine.
const GATEWAY_CONNECTIONS: u32 = 12;
/// Renewals must never wait behind other work, or a living process loses its lease.
const LEASES_CONNECTIONS: u32 = 3;
/// Commands that run and end.
const TOOL_CONNECTIONS: u32 = 3;

/// All pools of one process together; the private Postgres allows this many and room for a second process. Of the gateway's there are two, one of them for the read
/// model; of the tools', too: the projector's and the scheduler's.
pub const CONNECTIONS_PER_PROCESS: u32 =
  LOG_CONNECTIONS + DECIDER_CONNECTIONS + PROJECTOR_CONNECTIONS + 2 * GATEWAY_CONNECTIONS + LEASES_CONNECTIONS + 2 * TOOL_CONNECTIONS;

/// A request of the page that waits longer for a connection had better be refused.
const ACQUIRE_TIMEOUT_INTERACTIVE: Duration = Duration::from_secs(2);
/// Background work can wait out a checkpoint of the server, but not a dead one.
const ACQUIRE_TIMEOUT_BACKGROUND: Duration = Duration::from_secs(10);
/// A renewal that waits longer than this is about to miss the lease.
const ACQUIRE_TIMEOUT_LEASES: Duration = Duration::from_secs(3);
/// Idle connections cost a backend of some megabytes each.
const IDLE_TIMEOUT: Duration = Duration::from_mins(2);

/// So long after its last use a connection of a pool without transactions is taken to be alive; the statement itself tells if it is not.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// A server that lives answers within milliseconds, also while it starts.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Every statement of a serving process finds its few rows by a key. A connection keeps its plans, and one made while a table was empty would read the whole table for
/// as long as the connection lives; planning anew for each call costs more than most calls.
const PLANNING: &[(&str, &str)] =
  &[("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off"), ("enable_hashjoin", "off"), ("enable_mergejoin", "off")];

/// The first pause between two tries to reach the server, and the longest.
const WAIT_FIRST: Duration = Duration::from_millis(50);
const WAIT_LONGEST: Duration = Duration::from_secs(2);

/// What a pool is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
  /// Appends to the embedded log and reads of it.
  Log,
  /// The decider's checkpoints and things.
  Decider,
  /// Projections: rows and position in one transaction, *without* waiting for the disk. Both are lost together and folded again from the log; whoever keeps a
  /// position in memory reads it anew after a lost connection. Nothing else may be written through it.
  Projector,
  /// Reads of the page, tokens, uploads.
  Gateway,
  /// Leases on work, and renewals of all leases, *without* waiting for the disk: a lease only chooses who asks or decides, the log grants and fences. A claim that a
  /// power loss takes is made again, a running execution that lost its row is seen by the observers of abandoned work, and a renewal that was lost lets a lease run out
  /// earlier, never later: a renewal changes no holder and no epoch. Who then takes the partition while its decider still works gets a higher epoch, whose announcement
  /// makes all that the older one still appends void, so two deciders at once are what the fence is for. Epochs, holders and notes are written by the decider's pool, which
  /// waits; and since the server loses only the end of what it wrote, a row never comes back as it was before a later commit that was waited for.
  Leases,
  /// Commands such as migrate and rebuild: no statement time-out.
  Tool,
}

impl Role {
  fn name(self) -> &'static str {
    match self {
      Self::Log => "pa log",
      Self::Decider => "pa decider",
      Self::Projector => "pa projector",
      Self::Gateway => "pa gateway",
      Self::Leases => "pa leases",
      Self::Tool => "pa tool",
    }
  }

  fn connections(self) -> u32 {
    match self {
      Self::Log => LOG_CONNECTIONS,
      Self::Decider => DECIDER_CONNECTIONS,
      Self::Projector => PROJECTOR_CONNECTIONS,
      Self::Gateway => GATEWAY_CONNECTIONS,
      Self::Leases => LEASES_CONNECTIONS,
      Self::Tool => TOOL_CONNECTIONS,
    }
  }

  fn acquire_timeout(self) -> Duration {
    match self {
      Self::Gateway => ACQUIRE_TIMEOUT_INTERACTIVE,
      Self::Leases => ACQUIRE_TIMEOUT_LEASES,
      Self::Log | Self::Decider | Self::Projector | Self::Tool => ACQUIRE_TIMEOUT_BACKGROUND,
    }
  }

  /// The longest a statement may run on the server. Reads of the page are a few milliseconds; a batch of a projection may meet a checkpoint; a rebuild takes what
  /// it takes.
  fn statement_timeout(self) -> &'static str {
    match self {
      Self::Leases => "3s",
      Self::Gateway => "5s",
      Self::Log | Self::Decider => "30s",
      Self::Projector => "120s",
      Self::Tool => "0",
    }
  }

  fn synchronous_commit(self) -> &'static str {
    match self {
      Self::Projector | Self::Leases => "off",
      Self::Log | Self::Decider | Self::Gateway | Self::Tool => "on",
    }
  }

  /// Whether transactions are begun on connections of this pool. Where none are, statements commit by themselves.
  fn begins_transactions(self) -> bool {
    match self {
      Self::Decider | Self::Projector | Self::Tool => true,
      Self::Log | Self::Gateway | Self::Leases => false,
    }
  }
}

/// An address of a Postgres, from which pools are made.
#[derive(Clone)]
pub struct Database {
  options: PgConnectOptions,
}

impl std::fmt::Debug for Database {
  // The options hold a password.
  fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    write!(f, "Database({}:{})", self.options.get_host(), self.options.get_port())
  }
}

impl Database {
  /// Understands `postgres://…`; connects to nothing yet.
  pub fn new(url: &str) -> Result<Self, Error> {
    let options = PgConnectOptions::from_str(url).map_err(|source| Error::Address { source })?;
    Ok(Self { options: options.log_slow_statements(tracing::log::LevelFilter::Off, Duration::MAX).log_statements(tracing::log::LevelFilter::Trace) })
  }

  /// A pool for one purpose. It connects when it is first used.
  pub fn pool(&self, role: Role) -> PgPool {
    pool_options(role).connect_lazy_with(self.connect_options(role, None))
  }

  /// A pool for one purpose that sees a read schema: its tables need no prefix.
  pub fn read_pool(&self, role: Role, schema: &ReadSchema) -> PgPool {
    pool_options(role).connect_lazy_with(self.connect_options(role, Some(schema)))
  }

  /// The options of one connection, for whoever keeps a dedicated one (an appender, a listener).
  pub fn connect_options(&self, role: Role, schema: Option<&ReadSchema>) -> PgConnectOptions {
    let search_path = schema.map_or_else(|| "ops".to_owned(), |schema| format!("{},ops", schema.name()));
    let planning = if role == Role::Tool { &[] } else { PLANNING };
    self.options.clone().application_name(role.name()).options(planning.iter().copied()).options([
      ("search_path", search_path.as_str()),
      ("synchronous_commit", role.synchronous_commit()),
      ("statement_timeout", role.statement_timeout()),
      // A transaction of ours never waits for anything outside the database.
      ("idle_in_transaction_session_timeout", "60s"),
      ("lock_timeout", "20s"),
      // Sessions and rows must not depend on the server's own setting.
      ("timezone", "UTC"),
    ])
  }

  /// Waits until the server answers, telling `on_wait` about each failed try.
  ///
  /// # Errors
  /// Whatever does not pass by waiting: a wrong password, a database that does not exist, an address that is none.
  pub async fn wait(&self, mut on_wait: impl FnMut(&Error)) -> Result<(), Error> {
    let options = self.connect_options(Role::Tool, None);
    let mut pause = WAIT_FIRST;
    loop {
      match connect(&options).await {
        Ok(connection) => return connection.close().await.map_err(reading("close the first connection")),
        Err(source) => {
          let error = Error::Read { doing: "connect to the database", source };
          if !error.is_away() {
            return Err(error);
          }
          on_wait(&error);
        }
      }
      tokio::time::sleep(pause).await;
      pause = (pause * 2).min(WAIT_LONGEST);
    }
  }
}

/// Connects, and gives up on an address where something answers nothing, as after a machine has gone or when another program listens there.
pub(crate) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
  match tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options)).await {
    Ok(connected) => connected,
    Err(_) => Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
  }
}

fn pool_options(role: Role) -> PgPoolOptions {
  let always = role.begins_transactions();
  PgPoolOptions::new()
    .max_connections(role.connections())
    .min_connections(0)
    .acquire_timeout(role.acquire_timeout())
    .idle_timeout(IDLE_TIMEOUT)
    // The check below is a round trip already and notices a dead connection just as well.
    .test_before_acquire(false)
    .before_acquire(move |connection, metadata| {
      Box::pin(async move { if always || metadata.idle_for >= TRUSTED_FOR { outside_transaction(connection).await } else { Ok(true) } })
    })
}

/// Inside a transaction `now()` is the instant of its beginning, outside that of the statement; in a failed transaction the statement is an error. Either way sqlx
/// closes the connection and takes another. (A plain `ROLLBACK` would do as well, at the price of a warning in the server's log for every acquire.) It goes as a
/// simple query, one message: in the extended protocol the transaction begins with an earlier message than the one that dates the statement.
async fn outside_transaction(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
  let row = sqlx::raw_sql("SELECT now() = statement_timestamp()").fetch_one(connection).await?;
  row.try_get(0)
}
