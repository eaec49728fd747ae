//! Leases on a real server, raced.

use std::collections::BTreeSet;

use pa_domain::{AgentId, JobId, NodeId};
use sqlx::PgPool;
use uuid::Uuid;

use super::Holder;
use super::partition::{self, Note, Take, Term};
use super::work;
use crate::clock::{Ids as _, SystemIds};
use crate::testing::TestDb;

fn holder() -> Holder {
  Holder { node: NodeId(SystemIds.new_id()), process: SystemIds.new_id() }
}

async fn taken(pool: &PgPool, holder: Holder, starting: bool) -> Term {
  match partition::take(pool, 0, holder, starting).await.unwrap() {
    Take::Taken(term) => term,
    held @ Take::Held { .. } => panic!("{held:?}"),
  }
}

async fn is_held(pool: &PgPool, holder: Holder, starting: bool) -> bool {
  matches!(partition::take(pool, 0, holder, starting).await.unwrap(), Take::Held { .. })
}

/// Lets all leases run out, as if nobody had renewed them.
async fn run_out(pool: &PgPool) {
  sqlx::query("UPDATE ops.partition_lease SET expires_at = clock_timestamp()").execute(pool).await.unwrap();
  sqlx::query("UPDATE ops.leases SET expires_at = clock_timestamp()").execute(pool).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_takers_at_once_exactly_one_gets_a_new_partition() {
  let db = TestDb::new().await;
  let mut takers = tokio::task::JoinSet::new();
  for _ in 0..16 {
    let pool = db.pool.clone();
    takers.spawn(async move { partition::take(&pool, 0, holder(), true).await.unwrap() });
  }
  let answers = takers.join_all().await;
  let terms: Vec<Term> = answers.iter().filter_map(|take| if let Take::Taken(term) = take { Some(*term) } else { None }).collect();
  assert_eq!(terms, [Term { epoch: 1, clean: true, note: None }]);
  let others = answers.iter().filter(|take| matches!(take, Take::Held { expires_in_ms, .. } if (5_000..=10_000).contains(expires_in_ms))).count();
  assert_eq!(others, 15);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn epochs_of_all_terms_differ() {
  let db = TestDb::new().await;
  let mut takers = tokio::task::JoinSet::new();
  for _ in 0..16 {
    let pool = db.pool.clone();
    takers.spawn(async move {
      run_out(&pool).await;
      let mine = holder();
      let mut epochs = Vec::new();
      if let Take::Taken(term) = partition::take(&pool, 0, mine, false).await.unwrap() {
        epochs.push(term.epoch);
        epochs.extend(partition::new_term(&pool, 0, mine.process, 0).await.unwrap());
      }
      epochs
    });
  }
  let epochs: Vec<i64> = takers.join_all().await.into_iter().flatten().collect();
  let different: BTreeSet<i64> = epochs.iter().copied().collect();
  assert!(epochs.len() >= 2 && different.len() == epochs.len(), "{epochs:?}");
}

#[tokio::test]
async fn a_held_partition_is_free_when_its_lease_has_run_out_or_was_given_back() {
  let db = TestDb::new().await;
  let (one, two) = (holder(), holder());
  taken(&db.pool, one, true).await;
  assert!(is_held(&db.pool, two, true).await, "of another node, so even a starting process waits");
  assert!(!partition::is_given_back(&db.pool, 0).await.unwrap() && partition::is_given_back(&db.pool, 1).await.unwrap());
  run_out(&db.pool).await;
  assert_eq!(taken(&db.pool, two, false).await, Term { epoch: 2, clean: false, note: None });
  assert!(partition::renew(&db.pool, one.process, &[0]).await.unwrap().is_empty());
  assert!(!partition::give_back(&db.pool, 0, one.process, 1).await.unwrap());
  assert!(!partition::is_given_back(&db.pool, 0).await.unwrap());
  assert!(partition::give_back(&db.pool, 0, two.process, 2).await.unwrap());
  assert!(partition::is_given_back(&db.pool, 0).await.unwrap());
  assert_eq!(taken(&db.pool, one, false).await, Term { epoch: 3, clean: true, note: None });
}

/// PR-15: an overlapping restart, a woken process.
#[tokio::test]
async fn only_a_starting_process_takes_its_nodes_row_at_once() {
  let db = TestDb::new().await;
  let old = holder();
  let new = Holder { node: old.node, process: SystemIds.new_id() };
  taken(&db.pool, old, true).await;
  assert!(is_held(&db.pool, new, false).await);
  assert_eq!(taken(&db.pool, new, true).await.epoch, 2);
  // The old one wakes, sees that it lost, and waits: no ping-pong.
  assert!(partition::renew(&db.pool, old.process, &[0]).await.unwrap().is_empty());
  assert_eq!(partition::new_term(&db.pool, 0, old.process, 9).await.unwrap(), None);
  assert!(is_held(&db.pool, old, false).await);
}

/// PR-06: the epoch is in the row before it is announced, and above whatever the log has accepted.
#[tokio::test]
async fn a_new_term_lies_above_the_row_and_above_the_log() {
  let db = TestDb::new().await;
  let mine = holder();
  taken(&db.pool, mine, true).await;
  assert_eq!(partition::new_term(&db.pool, 0, mine.process, 0).await.unwrap(), Some(2));
  assert_eq!(partition::new_term(&db.pool, 0, mine.process, 41).await.unwrap(), Some(42));
  assert_eq!(partition::renew(&db.pool, mine.process, &[0, 1]).await.unwrap(), [(0, 42)]);
  let rows = partition::read(&db.pool).await.unwrap();
  assert!(rows.len() == 1 && rows[0].live && rows[0].holder == Some(mine) && rows[0].epoch == 42);
}

#[tokio::test]
async fn a_lease_that_ran_out_untaken_is_still_ones_own() {
  let db = TestDb::new().await;
  let mine = holder();
  taken(&db.pool, mine, true).await;
  run_out(&db.pool).await;
  assert_eq!(partition::renew(&db.pool, mine.process, &[0]).await.unwrap(), [(0, 1)]);
  assert!(is_held(&db.pool, holder(), false).await);
}

/// PR-16: three deaths under one note are counted, whoever dies.
#[tokio::test]
async fn deaths_under_one_note_add_up_over_processes() {
  let db = TestDb::new().await;
  let input = SystemIds.new_id();
  let mut process = holder();
  let mut term = taken(&db.pool, process, true).await;
  for deaths in 0..3 {
    assert_eq!(term.note.map_or(0, |note| note.deaths), deaths);
    assert!(partition::note(&db.pool, 0, process.process, term.epoch, input, 0).await.unwrap());
    // It dies; another process of its node starts.
    process.process = SystemIds.new_id();
    term = taken(&db.pool, process, true).await;
  }
  assert_eq!(term.note, Some(Note { input, quarantined_before: 0, deaths: 3 }));
  assert!(!term.clean);
}

/// PR-16: a note of the time before a release, or of another input, counts for nothing.
#[tokio::test]
async fn another_note_starts_at_zero() {
  let db = TestDb::new().await;
  let (input, other) = (SystemIds.new_id(), SystemIds.new_id());
  let first = holder();
  let term = taken(&db.pool, first, true).await;
  partition::note(&db.pool, 0, first.process, term.epoch, input, 0).await.unwrap();
  let second = Holder { node: first.node, process: SystemIds.new_id() };
  let mut term = taken(&db.pool, second, true).await;
  for (noted, quarantined_before, deaths) in [(input, 0, 1), (input, 1, 0), (other, 1, 0), (input, 0, 0)] {
    assert!(partition::note(&db.pool, 0, second.process, term.epoch, noted, quarantined_before).await.unwrap());
    let again = taken(&db.pool, second, false).await;
    assert_eq!(again.note, Some(Note { input: noted, quarantined_before, deaths }));
    term = again;
  }
  assert!(!partition::note(&db.pool, 0, second.process, term.epoch - 1, input, 0).await.unwrap(), "of an earlier term");
  assert!(partition::clear_note(&db.pool, 0, second.process, term.epoch).await.unwrap());
  let third = Holder { node: first.node, process: SystemIds.new_id() };
  assert_eq!(taken(&db.pool, third, true).await.note, None);
}

/// PR-16: a living process that lost its lease, or takes its own row again, does not count; neither does a takeover from one that wrote no note.
#[tokio::test]
async fn a_takeover_without_a_death_counts_for_nothing() {
  let db = TestDb::new().await;
  let input = SystemIds.new_id();
  let paused = holder();
  let term = taken(&db.pool, paused, true).await;
  partition::note(&db.pool, 0, paused.process, term.epoch, input, 0).await.unwrap();
  assert_eq!(taken(&db.pool, paused, false).await.note.unwrap().deaths, 0, "its own row again");
  run_out(&db.pool).await;
  let next = holder();
  assert_eq!(taken(&db.pool, next, false).await.note.unwrap().deaths, 1);
  assert!(partition::lost_alive(&db.pool, 0, paused.process).await.unwrap());
  assert!(!partition::lost_alive(&db.pool, 0, paused.process).await.unwrap(), "once");
  // The second one wrote no note, so its end says nothing about the input.
  run_out(&db.pool).await;
  assert_eq!(taken(&db.pool, holder(), false).await.note.unwrap().deaths, 0);
}

fn jobs(count: usize) -> Vec<(JobId, AgentId)> {
  (0..count).map(|_| (JobId(SystemIds.new_id()), AgentId(SystemIds.new_id()))).collect()
}

/// Claims up to `limit` candidates with fresh asks; each claim has one of them, and none twice.
async fn claim(pool: &PgPool, kind: &str, holder: Holder, candidates: &[(JobId, AgentId)], limit: usize) -> Vec<(JobId, AgentId)> {
  let asks: Vec<Uuid> = (0..limit).map(|_| SystemIds.new_id()).collect();
  let claims = work::claim(pool, kind, holder, candidates, &asks).await.unwrap();
  let used: BTreeSet<Uuid> = claims.iter().map(|claim| claim.ask).collect();
  assert!(used.len() == claims.len() && used.iter().all(|ask| asks.contains(ask)));
  claims.into_iter().map(|claim| (claim.job, claim.agent)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claimers_at_once_never_get_the_same_job_and_together_get_all() {
  let db = TestDb::new().await;
  let candidates = jobs(60);
  for round in 0..3 {
    let mut claimers = tokio::task::JoinSet::new();
    for _ in 0..8 {
      let (pool, mut candidates) = (db.database.pool(crate::Role::Leases), candidates.clone());
      claimers.spawn(async move {
        let mine = holder();
        let mut claimed = Vec::new();
        // A claimer that loses a race for the head of the queue looks again.
        for _ in 0..40 {
          claimed.extend(claim(&pool, "reply", mine, &candidates, 3).await);
          candidates.rotate_left(7);
        }
        claimed
      });
    }
    let claimed: Vec<(JobId, AgentId)> = claimers.join_all().await.into_iter().flatten().collect();
    let different: BTreeSet<(JobId, AgentId)> = claimed.iter().copied().collect();
    assert_eq!((claimed.len(), different), (60, candidates.iter().copied().collect()), "round {round}");
    run_out(&db.pool).await;
  }
}

#[tokio::test]
async fn a_claim_takes_the_best_candidates_first_and_no_job_of_another_kind() {
  let db = TestDb::new().await;
  let candidates = jobs(10);
  let first = claim(&db.pool, "reply", holder(), &candidates, 4).await;
  assert_eq!(first.iter().copied().collect::<BTreeSet<_>>(), candidates[..4].iter().copied().collect());
  assert!(claim(&db.pool, "reply", holder(), &candidates[..4], 4).await.is_empty());
  assert_eq!(claim(&db.pool, "task", holder(), &candidates[..1], 4).await, candidates[..1]);
  assert!(claim(&db.pool, "reply", holder(), &[], 4).await.is_empty());
  let twice = [candidates[5], candidates[5]];
  assert_eq!(claim(&db.pool, "reply", holder(), &twice, 4).await, twice[..1]);
}

#[tokio::test]
async fn a_lost_lease_is_not_renewed_and_can_be_claimed_again() {
  let db = TestDb::new().await;
  let (mine, other) = (holder(), holder());
  let candidates = jobs(2);
  let all: Vec<JobId> = candidates.iter().map(|(job, _)| *job).collect();
  let (job, agent) = candidates[0];
  let asks = [SystemIds.new_id(), SystemIds.new_id()];
  let claims = work::claim(&db.pool, "reply", mine, &candidates, &asks).await.unwrap();
  let ask = claims.iter().find(|claim| claim.job == job).unwrap().ask;
  assert_eq!(ask, asks[0], "the best candidate has the first ask");
  assert!(work::started(&db.pool, "reply", job, mine.process, 1).await.unwrap());
  assert!(work::expired(&db.pool, 10).await.unwrap().is_empty());
  run_out(&db.pool).await;
  let lost = work::expired(&db.pool, 10).await.unwrap();
  let seen = lost.iter().find(|lease| lease.job == job).unwrap();
  assert_eq!((seen.agent, seen.holder, seen.ask, seen.execution), (agent, mine, Some(ask), Some(1)));
  let again = SystemIds.new_id();
  work::claim(&db.pool, "reply", other, &candidates[..1], &[again]).await.unwrap();
  assert_eq!(work::renew(&db.pool, mine.process, &all).await.unwrap(), [candidates[1].0]);
  assert!(!work::release(&db.pool, "reply", job, mine.process).await.unwrap());
  assert!(!work::forget(&db.pool, seen).await.unwrap(), "claimed anew meanwhile");
  let now = work::of_jobs(&db.pool, "reply", &all).await.unwrap();
  assert!(now.iter().any(|(lease, live)| lease.job == job && *live && lease.holder == other && lease.ask == Some(again) && lease.execution.is_none()));
  assert!(work::release(&db.pool, "reply", job, other.process).await.unwrap());
}

#[tokio::test]
async fn a_restarted_node_finds_what_its_earlier_life_held() {
  let db = TestDb::new().await;
  let before = holder();
  let after = Holder { node: before.node, process: Uuid::from_u128(7) };
  let candidates = jobs(3);
  claim(&db.pool, "reply", before, &candidates[..2], 2).await;
  claim(&db.pool, "reply", after, &candidates[2..], 1).await;
  let own = work::of_node(&db.pool, after).await.unwrap();
  assert_eq!(own.iter().map(|lease| lease.job).collect::<BTreeSet<_>>(), candidates[..2].iter().map(|(job, _)| *job).collect());
  assert!(work::forget(&db.pool, &own[0]).await.unwrap());
  assert_eq!(work::of_node(&db.pool, after).await.unwrap().len(), 1);
}
