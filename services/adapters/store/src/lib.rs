//! Postgres and the data folder: pools, migrations, leases, checkpoints, credentials and keys, and the private Postgres that `pa up` runs.
//!
//! SQL of the control tables (`ops.*`) stands here and nowhere else. Invariants:
//! - Nothing in these tables is a fact: the log is the only way in for facts. Leases prove life, checkpoints are derived, the rest decides nothing.
//! - Time in leases is the database's clock; time in rules comes from [`clock::Clock`].
//! - Keys, tokens and secrets never reach `Debug`, a log line or a child's environment.
//! - Lease, epoch, key and blob-reference writes are synchronous: only the projector's pool may commit without waiting for the disk.
//!
//! Start with [`pool`], then [`lease`] and [`checkpoint`]; [`data_dir`] and [`private_postgres`] are what `pa up` begins with.

pub mod checkpoint;
pub mod clock;
pub mod data_dir;
pub mod durable_file;
pub mod error;
pub mod fail;
pub mod keys;
pub mod lease;
pub mod ops;
pub mod pool;
pub mod private_postgres;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod together;

use std::borrow::Cow;

/// A pool as crates above hold it; statements stay here and in the projections.
pub use sqlx::PgPool;
use sqlx::migrate::{MigrateError, Migrator};

pub use error::{Disposition, Error};
pub use pool::{Database, ReadSchema, Role, assert_durable};

/// The migrations of `ops` and `log`, forward only. Read schemas are no part of them: a projection's tables belong to the binary that folds into them.
static MIGRATIONS: Migrator = sqlx::migrate!("../../../migrations");

/// The migrations with their record kept in `ops.migrations`.
pub fn migrator() -> Migrator {
  let mut migrator = Migrator::with_migrations(MIGRATIONS.iter().cloned().collect());
  migrator.dangerous_set_table_name("ops.migrations");
  migrator.create_schema("ops");
  migrator
}

/// Brings the control tables up to this binary; concurrent callers wait for each other.
///
/// # Errors
/// [`Error::Migrate`] when a migration fails; [`Error::Newer`] when the database has one that this binary does not know.
pub async fn migrate(pool: &PgPool) -> Result<(), Error> {
  migrator().run(pool).await.map_err(|source| match source {
    MigrateError::VersionMissing(migration) => Error::Newer { migration },
    source => Error::Migrate { source },
  })
}

/// Whether an installation has ever been made in this database.
pub async fn is_migrated(pool: &PgPool) -> Result<bool, Error> {
  sqlx::query_scalar("SELECT to_regclass('ops.log_identity') IS NOT NULL").fetch_one(pool).await.map_err(error::reading("look for an installation"))
}

/// One name for everything that the migrations contain, such as for a template database in tests.
pub fn migrations_hash() -> String {
  let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
  for migration in MIGRATIONS.iter() {
    let checksum: &Cow<'_, [u8]> = &migration.checksum;
    context.update(checksum);
  }
  hex::encode(&context.finish().as_ref()[..6])
}
