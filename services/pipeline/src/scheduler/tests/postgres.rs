//! The scheduler's lease and its broom on a real Postgres.

use std::sync::Arc;
use std::time::Duration;

use pa_blobs::Blobs;
use pa_domain::{AgentId, NodeId, Timestamp};
use pa_eventlog::postgres::PostgresLog;
use pa_eventlog::{EventLog as _, Record, Stream};
use pa_projections::live::Live;
use pa_projections::schema::{self, Indexes, Schemas};
use pa_projections::testing::tamper;
use pa_store::Role;
use pa_store::clock::{Clock as _, Ids as _, SystemClock, SystemIds};
use pa_store::lease::Holder;
use pa_store::ops::uploads;
use pa_store::testing::TestDb;
use uuid::Uuid;

use super::super::postgres::{PostgresKeeper, PostgresTimers};
use super::super::{Keeper as _, Timers as _};

fn timers(db: &TestDb, node: u128, life: u128) -> PostgresTimers {
  let holder = Holder { node: NodeId(Uuid::from_u128(node)), process: Uuid::from_u128((node << 32) | life) };
  PostgresTimers::new(db.pool.clone(), db.database.read_pool(Role::Gateway, &schema::current()), &Live::local(), holder)
}

#[tokio::test]
async fn one_process_at_a_time_looks_after_the_timers() {
  let db = TestDb::new().await;
  Schemas::new(&db.database).create(&schema::current(), Indexes::Now).await.unwrap();
  let (one, two) = (timers(&db, 1, 1), timers(&db, 2, 1));
  assert!(one.leads().await.unwrap());
  assert!(one.leads().await.unwrap(), "and stays so");
  assert!(!two.leads().await.unwrap());
  let again = timers(&db, 1, 2);
  assert!(again.leads().await.unwrap(), "a node that starts again takes its own work back at once");
  assert!(!one.leads().await.unwrap(), "its earlier life, should it wake, does not");
  again.resign().await;
  assert!(two.leads().await.unwrap());
  assert!(two.due(SystemClock.now(), 10).await.unwrap().is_empty());
  assert_eq!(two.next_due(Timestamp(0)).await.unwrap(), None);
}

fn record(number: u128) -> Record {
  Record {
    id: Uuid::from_u128(number),
    type_name: "pa.conversation.MessageGiven.v1".into(),
    source: "test".into(),
    traceparent: None,
    meta: vec![1, 2, 3].into(),
    value: vec![4, 5, 6].into(),
  }
}

#[tokio::test]
async fn inputs_are_cleared_away_by_age_and_never_before_a_decider_has_passed_them() {
  let db = TestDb::new().await;
  let schema = schema::current();
  Schemas::new(&db.database).create(&schema, Indexes::Now).await.unwrap();
  let log = PostgresLog::open(&db.database, 1, true).await.unwrap();
  log.append(Stream::Inputs, 0, (1..=4).map(record).collect()).await.unwrap();
  log.append(Stream::Pieces, 0, (5..=6).map(record).collect()).await.unwrap();
  let folder = std::env::temp_dir().join(format!("pa-scheduler-test-{}", SystemIds.new_id()));
  let blobs = Arc::new(Blobs::local(&folder).unwrap());
  let keeper = PostgresKeeper { pool: db.pool.clone(), log: Some(Arc::clone(&log)), blobs, inputs_kept: Duration::from_secs(90 * 86_400), fold_version: 1 };
  tamper(&db.database, &schema, "UPDATE log.inputs SET appended_at = now() - interval '91 days' WHERE pos < 3").await;
  assert_eq!(keeper.inputs().await.unwrap(), 0, "no checkpoint: a decider begins at the first one");
  tamper(
    &db.database,
    &schema,
    "INSERT INTO ops.decider_checkpoint (part, fold_version, next_input, next_position, epoch, seq, last) VALUES (0, 1, 2, 9, 1, 9, decode(repeat('00', 32), 'hex'))",
  )
  .await;
  assert_eq!(keeper.inputs().await.unwrap(), 2, "old enough and decided");
  let left = PostgresLog::open(&db.database, 1, true).await.unwrap().read(Stream::Inputs, 0, 0, 10).await.unwrap();
  assert_eq!(left.iter().map(|stored| stored.position).collect::<Vec<_>>(), [2, 3]);
  assert_eq!(log.end(Stream::Inputs, 0).await.unwrap(), 4, "positions are never given again");

  assert_eq!(keeper.pieces().await.unwrap(), 0);
  tamper(&db.database, &schema, "UPDATE log.stream SET appended_at = now() - interval '1 hour'").await;
  assert_eq!(keeper.pieces().await.unwrap(), 2);

  let upload = |number| uploads::Upload {
    id: Uuid::from_u128(number),
    agent: AgentId(Uuid::from_u128(9)),
    name: "a.txt".into(),
    media_type: "text/plain".into(),
    size: 1,
    sha256: [7; 32],
  };
  uploads::put(&db.pool, &upload(1)).await.unwrap();
  uploads::put(&db.pool, &upload(2)).await.unwrap();
  tamper(&db.database, &schema, "UPDATE ops.uploads SET created_at = now() - interval '25 hours' WHERE id = '00000000-0000-0000-0000-000000000001'").await;
  assert_eq!(keeper.uploads(SystemClock.now()).await.unwrap(), 1);
  assert_eq!(uploads::get(&db.pool, upload(1).agent, &[Uuid::from_u128(1), Uuid::from_u128(2)]).await.unwrap().len(), 1);
  assert_eq!(keeper.tokens().await.unwrap(), 0);
  std::fs::remove_dir_all(&folder).unwrap();
}
