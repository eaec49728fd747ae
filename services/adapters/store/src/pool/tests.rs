//! Pools on a real server.

use std::time::Duration;

use sqlx::{PgPool, Row as _};

use super::{Database, Kept, ReadSchema, Role, assert_durable};
use crate::testing::TestDb;
use crate::{Disposition, Error};

/// A dropped connection goes back by a task of its own.
async fn given_back(pool: &PgPool) {
  given_back_but(pool, 0).await;
}

/// All but so many are back.
async fn given_back_but(pool: &PgPool, kept: usize) {
  while pool.num_idle() + kept < pool.size() as usize {
    tokio::task::yield_now().await;
  }
}

const DURABLE_ROLES: [Role; 4] = [Role::Log, Role::Decider, Role::Gateway, Role::Tool];

#[tokio::test]
async fn every_pool_but_those_of_the_projector_and_of_work_waits_for_the_disk() {
  let db = TestDb::new().await;
  for role in DURABLE_ROLES {
    assert_durable(&db.database.pool(role)).await.unwrap();
  }
  for role in [Role::Projector, Role::Leases] {
    let error = assert_durable(&db.database.pool(role)).await.unwrap_err();
    assert!(matches!(&error, Error::NotDurable { setting, .. } if setting == "synchronous_commit"), "{error}");
  }
  let fsync: String = sqlx::query_scalar("SHOW fsync").fetch_one(&db.pool).await.unwrap();
  assert_eq!(fsync, "on");
}

#[tokio::test]
async fn a_database_that_would_forget_is_refused_by_the_name_of_the_setting() {
  let db = TestDb::new().await;
  let pool = db.database.pool(Role::Tool);
  let mut connection = pool.acquire().await.unwrap();
  sqlx::query("SET synchronous_commit = off").execute(&mut *connection).await.unwrap();
  drop(connection);
  given_back(&pool).await;
  assert!(assert_durable(&pool).await.unwrap_err().to_string().contains("synchronous_commit is off"));
}

#[tokio::test]
async fn a_connection_left_inside_a_transaction_serves_nobody_else() {
  let db = TestDb::new().await;
  let pool = db.database.pool(Role::Decider);
  let mut connection = pool.acquire().await.unwrap();
  let left: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *connection).await.unwrap();
  // What a cancelled begin() does: the server is in a transaction that the client's pool knows nothing of.
  sqlx::raw_sql("BEGIN").execute(&mut *connection).await.unwrap();
  drop(connection);
  given_back(&pool).await;
  assert_eq!(pool.size(), 1);
  sqlx::query("INSERT INTO ops.presence (account, seen_at) VALUES ('00000000-0000-0000-0000-000000000001', now())").execute(&pool).await.unwrap();
  let next: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&pool).await.unwrap();
  assert_ne!(left, next);
  // Seen from elsewhere: it was committed, not left hanging in the stray transaction.
  let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM ops.presence").fetch_one(&db.pool).await.unwrap();
  assert_eq!(rows, 1);
}

/// A plan outlives the emptiness of its table: it must not be a scan.
#[tokio::test]
async fn a_plan_made_for_an_empty_table_goes_by_the_key() {
  let db = TestDb::new().await;
  for role in [Role::Log, Role::Decider, Role::Projector, Role::Gateway, Role::Leases] {
    let pool = db.database.pool(role);
    let plan: Vec<String> =
      sqlx::query_scalar("EXPLAIN SELECT value FROM log.events WHERE part = 1 AND pos >= 5 ORDER BY pos LIMIT 10").fetch_all(&pool).await.unwrap();
    assert!(plan.iter().any(|line| line.contains("Index Scan")), "{role:?}: {plan:?}");
    let mode: String = sqlx::query_scalar("SHOW plan_cache_mode").fetch_one(&pool).await.unwrap();
    assert_eq!(mode, "force_generic_plan", "{role:?}");
  }
}

#[tokio::test]
async fn a_healthy_connection_is_used_again() {
  let db = TestDb::new().await;
  let pool = db.database.pool(Role::Gateway);
  let mut seen = Vec::new();
  for _ in 0..5 {
    seen.push(sqlx::query_scalar::<_, i32>("SELECT pg_backend_pid()").fetch_one(&pool).await.unwrap());
    given_back(&pool).await;
  }
  seen.dedup();
  assert_eq!(seen.len(), 1, "{seen:?}");
}

#[tokio::test]
async fn a_read_pool_sees_its_schema_without_a_prefix() {
  let db = TestDb::new().await;
  let (old, new) = (ReadSchema::new("read_0a").unwrap(), ReadSchema::new("read_0b").unwrap());
  for (schema, n) in [(&old, 1), (&new, 2)] {
    schema.create(&db.pool).await.unwrap();
    schema.create(&db.pool).await.unwrap();
    let pool = db.database.read_pool(Role::Projector, schema);
    sqlx::raw_sql("CREATE TABLE rows (n int)").execute(&pool).await.unwrap();
    sqlx::query("INSERT INTO rows VALUES ($1)").bind(n).execute(&pool).await.unwrap();
  }
  let gateway = db.database.read_pool(Role::Gateway, &new);
  assert_eq!(sqlx::query_scalar::<_, i32>("SELECT n FROM rows").fetch_one(&gateway).await.unwrap(), 2);
  assert_eq!(ReadSchema::list(&db.pool).await.unwrap(), [old.clone(), new.clone()]);
  new.replace(&db.pool, &old).await.unwrap();
  assert!(old.exists(&db.pool).await.unwrap() && !new.exists(&db.pool).await.unwrap());
  let gateway = db.database.read_pool(Role::Gateway, &old);
  assert_eq!(sqlx::query_scalar::<_, i32>("SELECT n FROM rows").fetch_one(&gateway).await.unwrap(), 2);
  old.drop(&db.pool).await.unwrap();
  assert!(!old.exists(&db.pool).await.unwrap());
}

#[tokio::test]
async fn waiting_says_so_and_ends_when_the_server_answers() {
  let db = TestDb::new().await;
  let folder = tempfile::tempdir().unwrap();
  let absent = format!("postgres://pa@localhost/pa?host={}", folder.path().display());
  let database = Database::new(&absent).unwrap();
  let mut waits = 0;
  let waiting = database.wait(|error| {
    assert!(error.is_away());
    assert_eq!(error.disposition(), Disposition::Retry);
    waits += 1;
  });
  assert!(tokio::time::timeout(Duration::from_millis(400), waiting).await.is_err());
  assert!(waits >= 2, "{waits}");
  db.database.wait(|_| panic!("it is there")).await.unwrap();
}

#[tokio::test]
async fn an_address_where_nothing_answers_counts_as_away() {
  let silent = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
  let database = Database::new(&format!("postgres://pa@127.0.0.1:{}/pa", silent.local_addr().unwrap().port())).unwrap();
  let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
  tokio::select! {
    waited = database.wait(|error| told.send(error.is_away()).unwrap()) => panic!("{waited:?}"),
    away = heard.recv() => assert_eq!(away, Some(true)),
  }
}

#[tokio::test]
async fn waiting_does_not_help_against_a_database_that_is_not_there() {
  let db = TestDb::new().await;
  let error = Database::new(&db.url.replace("/t_", "/absent_")).unwrap().wait(|_| panic!("not to be waited for")).await.unwrap_err();
  assert_eq!(error.disposition(), Disposition::Fail);
}

#[tokio::test]
async fn a_commit_whose_connection_broke_has_an_unknown_fate_and_a_read_may_be_repeated() {
  let db = TestDb::new().await;
  let pool = db.database.pool(Role::Decider);
  let mut connection = pool.acquire().await.unwrap();
  let backend: i32 = sqlx::query("SELECT pg_backend_pid()").fetch_one(&mut *connection).await.unwrap().get(0);
  sqlx::query("SELECT pg_terminate_backend($1)").bind(backend).execute(&db.pool).await.unwrap();
  tokio::time::sleep(Duration::from_millis(100)).await;
  // The first statement meets the server's farewell or the closed socket, the second surely the closed socket.
  let first = sqlx::query("SELECT 1").execute(&mut *connection).await.unwrap_err();
  assert_eq!(crate::error::reading("look")(first).disposition(), Disposition::Retry);
  let second = sqlx::query("SELECT 1").execute(&mut *connection).await.unwrap_err();
  assert_eq!(crate::error::writing("commit")(second).disposition(), Disposition::Unknown);
}

#[tokio::test]
async fn an_exhausted_pool_sent_nothing() {
  let db = TestDb::new().await;
  let pool = db.database.pool(Role::Leases);
  let mut held = Vec::new();
  for _ in 0..pool.options().get_max_connections() {
    held.push(pool.acquire().await.unwrap());
  }
  let error = sqlx::query("SELECT 1").execute(&pool).await.map_err(crate::error::writing("write")).unwrap_err();
  assert_eq!(error.disposition(), Disposition::Retry);
}

#[tokio::test]
async fn migrating_again_changes_nothing_and_a_newer_database_is_refused() {
  let db = TestDb::new().await;
  crate::migrate(&db.pool).await.unwrap();
  let known: i64 = sqlx::query_scalar("SELECT count(*) FROM ops.migrations").fetch_one(&db.pool).await.unwrap();
  assert!(known >= 5);
  sqlx::query("INSERT INTO ops.migrations (version, description, success, checksum, execution_time) VALUES (999912312359, 'of the future', true, '\\x00', 0)")
    .execute(&db.pool)
    .await
    .unwrap();
  let refused = crate::migrate(&db.pool).await.unwrap_err();
  assert!(matches!(refused, Error::Newer { migration: 999_912_312_359 }), "{refused:?}");
  assert_eq!(refused.disposition(), Disposition::Fail);
}

/// Proves DEP-13.
#[tokio::test]
async fn the_database_of_any_earlier_version_is_brought_up_and_keeps_what_it_has() {
  let all: Vec<_> = crate::migrator().iter().cloned().collect();
  let whole = TestDb::new().await;
  let columns = "SELECT table_schema || '.' || table_name || '.' || column_name || ' ' || data_type FROM information_schema.columns WHERE table_schema IN ('ops', 'log') ORDER BY 1";
  let expected: Vec<String> = sqlx::query_scalar(columns).fetch_all(&whole.pool).await.unwrap();
  let old = TestDb::new().await;
  for earlier in 1..all.len() {
    sqlx::raw_sql("DROP SCHEMA IF EXISTS ops CASCADE; DROP SCHEMA IF EXISTS log CASCADE").execute(&old.pool).await.unwrap();
    let mut migrator = sqlx::migrate::Migrator::with_migrations(all[..earlier].to_vec());
    migrator.dangerous_set_table_name("ops.migrations");
    migrator.create_schema("ops");
    migrator.run(&old.pool).await.unwrap();
    sqlx::raw_sql("CREATE TABLE ops.kept (row int); INSERT INTO ops.kept VALUES (7)").execute(&old.pool).await.unwrap();
    crate::migrate(&old.pool).await.unwrap();
    assert_eq!(sqlx::query_scalar::<_, i32>("SELECT row FROM ops.kept").fetch_one(&old.pool).await.unwrap(), 7);
    sqlx::raw_sql("DROP TABLE ops.kept").execute(&old.pool).await.unwrap();
    let brought_up: Vec<String> = sqlx::query_scalar(columns).fetch_all(&old.pool).await.unwrap();
    assert_eq!(brought_up, expected, "from the first {earlier} migrations");
  }
}

async fn server_process(connection: &mut sqlx::postgres::PgConnection) -> i32 {
  sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn a_connection_is_kept_while_it_is_used_and_not_after_a_failure() {
  let db = TestDb::new().await;
  let pool = db.database.pool(Role::Log);
  let kept = Kept::new(pool.clone(), 1);
  let mut first = kept.acquire().await.unwrap();
  let process = server_process(&mut first).await;
  let mut second = kept.acquire().await.unwrap();
  let other = server_process(&mut second).await;
  kept.keep(first);
  // One is kept, and the other goes back to the pool.
  kept.keep(second);
  given_back_but(&pool, 1).await;
  let mut again = kept.acquire().await.unwrap();
  assert_eq!(server_process(&mut again).await, process);
  kept.keep(again);
  // After a failure none is trusted: the pool looks at it, and hands out the one that was idle for the longest.
  kept.give_back();
  given_back_but(&pool, 0).await;
  assert_eq!(server_process(&mut kept.acquire().await.unwrap()).await, other);
}

#[tokio::test]
async fn a_connection_that_was_not_used_for_a_while_is_looked_at_before_it_is_used() {
  let db = TestDb::new().await;
  let pool = db.database.pool(Role::Log);
  let kept = Kept::new(pool.clone(), 1);
  let mut connection = kept.acquire().await.unwrap();
  let process = server_process(&mut connection).await;
  kept.keep(connection);
  sqlx::query("SELECT pg_terminate_backend($1)").bind(process).execute(&db.pool).await.unwrap();
  tokio::time::sleep(super::TRUSTED_FOR).await;
  let mut connection = kept.acquire().await.unwrap();
  assert_ne!(server_process(&mut connection).await, process, "the dead one is not handed out");
}
