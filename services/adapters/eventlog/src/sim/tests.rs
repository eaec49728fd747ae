//! The log in memory and its faults.

use uuid::Uuid;

use super::*;

fn record(n: u128) -> Record {
  Record {
    id: Uuid::from_u128(n),
    type_name: "pa.test.Thing.v1".into(),
    source: "pa/test".into(),
    traceparent: None,
    meta: vec![1].into(),
    value: vec![2].into(),
  }
}

const E: Stream = Stream::Events;

fn landed(log: &SimLog) -> Vec<(Position, u128)> {
  log.records(E, 0).iter().map(|stored| (stored.position, stored.record.id.as_u128())).collect()
}

fn is_unknown(result: &Result<Vec<Position>, AppendError>) -> bool {
  matches!(result, Err(AppendError::Unknown { .. }))
}

#[tokio::test(start_paused = true)]
async fn every_fault_leaves_what_it_says() {
  let log = SimLog::new(1, true, Plan::none());
  assert_eq!(log.append(E, 0, vec![record(1)]).await.unwrap(), [0]);
  log.inject(E, Fault::LostAck);
  assert!(is_unknown(&log.append(E, 0, vec![record(2)]).await));
  log.inject(E, Fault::Lost);
  assert!(is_unknown(&log.append(E, 0, vec![record(3)]).await));
  log.inject(E, Fault::Refused);
  assert!(matches!(log.append(E, 0, vec![record(4)]).await, Err(AppendError::Refused { .. })));
  log.inject(E, Fault::Duplicate);
  assert_eq!(log.append(E, 0, vec![record(5), record(6)]).await.unwrap(), [2, 3]);
  log.inject(E, Fault::Gap(10));
  assert_eq!(log.append(E, 0, vec![record(7)]).await.unwrap(), [16]);
  log.inject(E, Fault::Torn(1));
  assert!(is_unknown(&log.append(E, 0, vec![record(8), record(9)]).await));
  assert_eq!(landed(&log), [(0, 1), (1, 2), (2, 5), (3, 6), (4, 5), (5, 6), (16, 7), (17, 8)]);
  assert_eq!(log.end(E, 0).await.unwrap(), 18);
  let read = log.read(E, 0, 6, 10).await.unwrap();
  assert_eq!(read.iter().map(|stored| stored.position).collect::<Vec<_>>(), [16, 17]);
}

#[tokio::test(start_paused = true)]
async fn a_late_append_lands_after_its_caller_gave_up() {
  let log = SimLog::new(1, true, Plan::none());
  log.inject(E, Fault::Late(Duration::from_secs(20)));
  assert!(is_unknown(&log.append(E, 0, vec![record(1)]).await));
  log.append(E, 0, vec![record(2)]).await.unwrap();
  assert_eq!(landed(&log), [(0, 2)]);
  tokio::time::sleep(Duration::from_secs(21)).await;
  assert_eq!(landed(&log), [(0, 2), (1, 1)]);

  log.inject(E, Fault::Held);
  assert!(is_unknown(&log.append(E, 0, vec![record(3)]).await));
  tokio::time::sleep(Duration::from_secs(100)).await;
  assert_eq!(landed(&log).len(), 2);
  assert!(log.land_held());
  assert_eq!(landed(&log)[2], (2, 3));
  assert!(!log.land_held());
}

#[tokio::test(start_paused = true)]
async fn a_crash_drops_what_is_in_flight_or_lets_it_land() {
  let delays = Delays { append: Duration::from_millis(50), ..Delays::default() };
  for (fate, expected) in [(Fate::Dropped, vec![]), (Fate::Land, vec![(0, 1)])] {
    let log = SimLog::new(1, true, Plan::seeded(3, Odds::default(), delays));
    let other = log.fork();
    let append = tokio::time::timeout(Duration::from_micros(1), log.append(E, 0, vec![record(1)])).await;
    assert!(append.is_err(), "still in flight");
    log.crash(fate);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(landed(&other), expected, "{fate:?}");
    let dead = tokio::time::timeout(Duration::from_secs(1_000), log.read(E, 0, 0, 1)).await;
    assert!(dead.is_err(), "a dead process's calls never return");
    other.append(E, 0, vec![record(2)]).await.unwrap();
  }
}

#[tokio::test(start_paused = true)]
async fn one_process_appends_in_the_order_of_its_calls() {
  let delays = Delays { append: Duration::from_millis(50), ..Delays::default() };
  let log = SimLog::new(1, true, Plan::seeded(9, Odds::default(), delays));
  let appends = (1..=20).map(|n| {
    let log = log.clone();
    async move { log.append(E, 0, vec![record(n)]).await.unwrap()[0] }
  });
  let positions = futures::future::join_all(appends).await;
  assert_eq!(positions, (0..20).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_log() {
  let odds = Odds { lost_ack: 100, lost: 100, late: 100, duplicate: 100, gap: 100, torn: 100, refused: 100 };
  let delays = Delays { append: Duration::from_millis(5), read: Duration::from_millis(1), late: Duration::from_secs(3) };
  let mut logs = Vec::new();
  for seed in [7, 7, 8] {
    let log = SimLog::new(1, true, Plan::seeded(seed, odds, delays));
    let mut fates = String::new();
    for n in 0..200 {
      fates.push(match log.append(E, 0, vec![record(2 * n), record(2 * n + 1)]).await {
        Ok(_) => 'o',
        Err(AppendError::Refused { .. }) => 'r',
        Err(AppendError::Unknown { .. }) => 'u',
      });
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    logs.push((fates, landed(&log)));
  }
  assert_eq!(logs[0], logs[1]);
  assert_ne!(logs[0], logs[2]);
  assert!(logs[0].0.contains('o') && logs[0].0.contains('r') && logs[0].0.contains('u'));
}

#[tokio::test(start_paused = true)]
async fn a_cut_tail_is_gone_and_its_positions_are_given_again() {
  let log = SimLog::new(1, true, Plan::none());
  log.append(E, 0, (1..=5).map(record).collect()).await.unwrap();
  log.cut(E, 0, 3);
  assert_eq!(log.end(E, 0).await.unwrap(), 3);
  assert_eq!(log.append(E, 0, vec![record(9)]).await.unwrap(), [3]);
  assert_eq!(landed(&log), [(0, 1), (1, 2), (2, 3), (3, 9)]);
}

#[tokio::test]
async fn the_log_in_memory_passes_the_suite() {
  crate::conformance::run(|partitions| async move { Arc::new(SimLog::new(partitions, true, Plan::none())) as Arc<dyn EventLog> }).await;
}
