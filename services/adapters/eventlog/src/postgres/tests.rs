//! The suite that every engine passes, and what only this one can get wrong.

use std::sync::Arc;

use pa_store::testing::TestDb;

use super::PostgresLog;
use crate::port::{EventLog, LogError};
use crate::record::Stream;

async fn opened(db: &TestDb, partitions: u16) -> Arc<PostgresLog> {
  PostgresLog::open(&db.database, partitions, true).await.expect("open the log")
}

/// Each case on a log of its own; a database stays as long as the suite runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pr_18_the_log_in_postgres_passes_the_suite() {
  let kept = Arc::new(parking_lot::Mutex::new(Vec::new()));
  crate::conformance::run(async |partitions| {
    let db = TestDb::new().await;
    let log = opened(&db, partitions).await as Arc<dyn EventLog>;
    kept.lock().push(db);
    log
  })
  .await;
}

#[tokio::test]
async fn another_partition_count_stops_the_start() {
  let db = TestDb::new().await;
  opened(&db, 4).await;
  let Err(LogError::Unusable(why)) = PostgresLog::open(&db.database, 8, true).await.map(|_| ()) else { panic!("it must be refused") };
  assert!(why.contains('4') && why.contains('8') && why.contains("pa log copy"), "{why}");
}

#[tokio::test]
async fn another_way_of_sealing_stops_the_start() {
  let db = TestDb::new().await;
  opened(&db, 2).await;
  assert!(matches!(PostgresLog::open(&db.database, 2, false).await.map(|_| ()), Err(LogError::Unusable(_))));
}

#[tokio::test]
async fn a_log_of_another_kind_is_not_taken_over() {
  let db = TestDb::new().await;
  let other = pa_store::ops::log_identity::LogIdentity { kind: "kafka".into(), id: uuid::Uuid::from_u128(7), partitions: 2, sealed: true };
  pa_store::ops::log_identity::create(&db.pool, &other).await.unwrap();
  let Err(LogError::Unusable(why)) = PostgresLog::open(&db.database, 2, true).await.map(|_| ()) else { panic!("it must be refused") };
  assert!(why.contains("kafka") && why.contains("pa log copy"), "{why}");
}

#[tokio::test]
async fn a_log_that_was_replaced_under_a_running_process_is_noticed() {
  let db = TestDb::new().await;
  let log = opened(&db, 2).await;
  sqlx::query("UPDATE ops.log_identity SET id = $1").bind(uuid::Uuid::from_u128(9)).execute(&db.pool).await.unwrap();
  assert!(matches!(log.identity().await, Err(LogError::Unusable(_))));
}

#[tokio::test]
async fn appends_wait_for_the_disk() {
  let db = TestDb::new().await;
  let log = opened(&db, 2).await;
  let read = async |name: &str| -> String { sqlx::query_scalar("SELECT current_setting($1)").bind(name.to_owned()).fetch_one(&log.pool).await.unwrap() };
  assert_eq!(read("fsync").await, "on");
  assert_eq!(read("synchronous_commit").await, "on");
}

#[tokio::test]
async fn facts_never_expire_and_young_inputs_stay() {
  let db = TestDb::new().await;
  let log = opened(&db, 2).await;
  let records = (0..3).map(|n| crate::conformance::record(n, 10)).collect::<Vec<_>>();
  log.append(Stream::Inputs, 0, records.clone()).await.unwrap();
  log.append(Stream::Events, 0, records).await.unwrap();
  let none = std::time::Duration::ZERO;
  assert!(log.expire(Stream::Events, 0, none, i64::MAX).await.is_err());
  assert_eq!(log.expire(Stream::Inputs, 0, std::time::Duration::from_secs(3600), i64::MAX).await.unwrap(), 0);
  sqlx::query("UPDATE log.inputs SET appended_at = now() - interval '91 days' WHERE pos < 2").execute(&db.pool).await.unwrap();
  let ninety_days = std::time::Duration::from_secs(90 * 24 * 3600);
  assert_eq!(log.expire(Stream::Inputs, 0, ninety_days, 1).await.unwrap(), 1, "what a decider may still need is kept");
  assert_eq!(log.expire(Stream::Inputs, 0, ninety_days, 3).await.unwrap(), 1);
  // What this process appended itself it still knows; another one sees what the table holds.
  assert_eq!(opened(&db, 2).await.read(Stream::Inputs, 0, 0, 10).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_is_woken() {
  let db = TestDb::new().await;
  let (one, two) = (opened(&db, 2).await, opened(&db, 2).await);
  one.set_others(true);
  let listening = Arc::clone(&two);
  let database = db.database.clone();
  let mut tasks = tokio::task::JoinSet::new();
  tasks.spawn(async move { listening.listen(&database).await });
  for n in 0..20 {
    let position = one.append(Stream::Inputs, 1, vec![crate::conformance::record(n, 10)]).await.unwrap()[0];
    loop {
      let seen = two.read(Stream::Inputs, 1, position, 1).await.unwrap();
      if !seen.is_empty() {
        break;
      }
      two.wait(Stream::Inputs, 1, position).await;
    }
  }
  tasks.abort_all();
}

/// As many appends as make two statements at a time, and each partition has those of each caller in order and no gap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_side_by_side_keep_the_order_of_each_partition() {
  const PARTITIONS: u16 = 4;
  const CALLERS: u128 = 32;
  const APPENDS: u128 = 12;
  const RECORDS: u128 = 8;
  let db = TestDb::new().await;
  let log = opened(&db, PARTITIONS).await;
  let mut callers = tokio::task::JoinSet::new();
  for caller in 0..CALLERS {
    let log = Arc::clone(&log);
    callers.spawn(async move {
      let partition = u16::try_from(caller % u128::from(PARTITIONS)).unwrap();
      for append in 0..APPENDS {
        let records = (0..RECORDS).map(|n| crate::conformance::record(caller * 10_000 + append * RECORDS + n, 50)).collect();
        let positions = log.append(Stream::Events, partition, records).await.unwrap();
        assert!(positions.windows(2).all(|pair| pair[1] == pair[0] + 1), "an append stands together: {positions:?}");
      }
    });
  }
  callers.join_all().await;
  // Another process knows only what the table holds.
  let other = opened(&db, PARTITIONS).await;
  for partition in 0..PARTITIONS {
    let read = other.read(Stream::Events, partition, 0, 4_096).await.unwrap();
    assert!(read.iter().zip(0..).all(|(stored, position)| stored.position == position));
    let ids: Vec<u128> = read.iter().map(|stored| stored.record.id.as_u128()).collect();
    for caller in (0..CALLERS).filter(|caller| caller % u128::from(PARTITIONS) == u128::from(partition)) {
      let own: Vec<u128> = ids.iter().filter(|id| *id / 10_000 == caller).map(|id| id % 10_000).collect();
      assert_eq!(own, (0..APPENDS * RECORDS).collect::<Vec<_>>(), "caller {caller}");
    }
  }
}

#[tokio::test]
async fn large_records_come_in_answers_of_bounded_size() {
  let db = TestDb::new().await;
  let log = opened(&db, 1).await;
  for n in 0..20 {
    log.append(Stream::Events, 0, vec![crate::conformance::record(n, 700_000)]).await.unwrap();
  }
  let other = opened(&db, 1).await;
  let (mut seen, mut answers) = (Vec::new(), 0);
  loop {
    let batch = other.read(Stream::Events, 0, i64::try_from(seen.len()).unwrap(), 500).await.unwrap();
    if batch.is_empty() {
      break;
    }
    assert!(batch.iter().map(|stored| stored.record.size_bytes()).sum::<usize>() <= 9 * 1024 * 1024);
    seen.extend(batch.iter().map(|stored| stored.record.id.as_u128()));
    answers += 1;
  }
  assert_eq!((seen, answers), ((0..20).collect(), 2));
}
