//! Checkpoints on a real server: whole or not at all, and only by the holder that saw the one before.

use pa_domain::{AgentId, NodeId};
use sqlx::PgPool;
use uuid::Uuid;

use super::{InputKey, Loaded, Mark, Outcome, ROOT, Scope, ThingState, Write};
use crate::clock::{Ids as _, SystemIds};
use crate::lease::Holder;
use crate::lease::partition::{self, Take};
use crate::testing::TestDb;

const SCOPE: Scope = Scope { part: 3, fold_version: 1 };

fn mark(next_position: i64) -> Mark {
  Mark { next_input: next_position / 2, next_position, epoch: 1, seq: next_position, last: [7; 32] }
}

async fn term(pool: &PgPool) -> (Uuid, i64) {
  let process = SystemIds.new_id();
  match partition::take(pool, SCOPE.part, Holder { node: NodeId(Uuid::nil()), process }, true).await.unwrap() {
    Take::Taken(term) => (process, term.epoch),
    held @ Take::Held { .. } => panic!("{held:?}"),
  }
}

fn write((process, lease_epoch): (Uuid, i64), expected: Option<i64>, next_position: i64) -> Write {
  Write {
    scope: SCOPE,
    process,
    lease_epoch,
    expected,
    mark: mark(next_position),
    things: Vec::new(),
    keys: Vec::new(),
    causes: Vec::new(),
    keys_expire_before_ms: 0,
  }
}

fn thing(agent: AgentId, thing: Uuid, state: &[u8]) -> ThingState {
  ThingState { agent, thing, state: state.to_vec() }
}

fn sorted(mut loaded: Loaded) -> Loaded {
  loaded.things.sort_by_key(|thing| (thing.agent, thing.thing));
  loaded
}

#[tokio::test]
async fn what_was_written_is_loaded_with_its_position() {
  let db = TestDb::new().await;
  let term = term(&db.pool).await;
  let (agent, other, task) = (AgentId(Uuid::from_u128(1)), AgentId(Uuid::from_u128(2)), Uuid::from_u128(9));
  assert_eq!(super::load(&db.pool, SCOPE).await.unwrap(), None);
  assert_eq!(super::things(&db.pool, SCOPE, &[(agent, ROOT)]).await.unwrap(), Loaded { next_position: None, things: Vec::new() });
  let first = Write { things: vec![thing(agent, ROOT, b"root"), thing(agent, task, b"task"), thing(other, ROOT, b"other")], ..write(term, None, 10) };
  assert_eq!(super::write(&db.pool, first).await.unwrap(), Outcome::Written);
  let second = Write { things: vec![thing(agent, ROOT, b"root two"), thing(agent, task, b"")], ..write(term, Some(10), 20) };
  assert_eq!(super::write(&db.pool, second).await.unwrap(), Outcome::Written);
  assert_eq!(super::load(&db.pool, SCOPE).await.unwrap(), Some(mark(20)));
  let loaded = super::things(&db.pool, SCOPE, &[(agent, ROOT), (agent, task), (other, ROOT), (other, task)]).await.unwrap();
  assert_eq!(sorted(loaded), Loaded { next_position: Some(20), things: vec![thing(agent, ROOT, b"root two"), thing(other, ROOT, b"other")] });
  assert_eq!(super::things(&db.pool, SCOPE, &[(other, task)]).await.unwrap(), Loaded { next_position: Some(20), things: Vec::new() });
  assert_eq!(super::things_of(&db.pool, SCOPE, other).await.unwrap().things, [thing(other, ROOT, b"other")]);
}

/// PR-01: a checkpoint of a decider that lost its term, or that never saw the last one, is not written.
#[tokio::test]
async fn a_checkpoint_is_refused_without_the_lease_or_on_another_position() {
  let db = TestDb::new().await;
  let old = term(&db.pool).await;
  let agent = AgentId(Uuid::from_u128(1));
  let attempt = |term, expected, next| Write { things: vec![thing(agent, ROOT, b"x")], ..write(term, expected, next) };
  assert_eq!(super::write(&db.pool, attempt(old, Some(5), 10)).await.unwrap(), Outcome::Moved, "there is none yet");
  assert_eq!(super::write(&db.pool, attempt((old.0, old.1 + 1), None, 10)).await.unwrap(), Outcome::LeaseLost);
  assert_eq!(super::write(&db.pool, attempt((Uuid::nil(), old.1), None, 10)).await.unwrap(), Outcome::LeaseLost);
  assert_eq!(super::load(&db.pool, SCOPE).await.unwrap(), None);
  assert_eq!(super::write(&db.pool, attempt(old, None, 10)).await.unwrap(), Outcome::Written);
  assert_eq!(super::write(&db.pool, attempt(old, None, 20)).await.unwrap(), Outcome::Moved);
  assert_eq!(super::write(&db.pool, attempt(old, Some(9), 20)).await.unwrap(), Outcome::Moved);
  let new = term(&db.pool).await;
  assert_eq!(super::write(&db.pool, attempt(old, Some(10), 20)).await.unwrap(), Outcome::LeaseLost);
  assert_eq!(super::write(&db.pool, attempt(new, Some(10), 20)).await.unwrap(), Outcome::Written);
}

/// Beside a decider of another fold version nobody holds a lease for this one: only the position guards it, and the decider's own write wins.
#[tokio::test]
async fn a_checkpoint_beside_a_decider_is_refused_once_somebody_else_has_moved_it() {
  let db = TestDb::new().await;
  let holder = term(&db.pool).await;
  let nobody = (Uuid::nil(), 0);
  assert_eq!(super::write_beside(&db.pool, write(nobody, None, 10)).await.unwrap(), Outcome::Written);
  assert_eq!(super::write_beside(&db.pool, write(nobody, None, 20)).await.unwrap(), Outcome::Moved);
  assert_eq!(super::write(&db.pool, write(holder, Some(10), 20)).await.unwrap(), Outcome::Written, "whoever starts goes on from it");
  assert_eq!(super::write_beside(&db.pool, write(nobody, Some(10), 30)).await.unwrap(), Outcome::Moved);
  assert_eq!(super::load(&db.pool, SCOPE).await.unwrap(), Some(mark(20)));
}

fn key(agent: AgentId, n: u8, at_ms: i64) -> InputKey {
  InputKey {
    agent,
    producer: "owner".to_owned(),
    key: [n; 32],
    position: i64::from(n),
    cause: Uuid::from_u128(n.into()),
    content: n.is_multiple_of(2).then_some([n; 32]),
    at_ms,
  }
}

#[tokio::test]
async fn keys_are_found_by_agent_and_producer_until_they_expire() {
  let db = TestDb::new().await;
  let term = term(&db.pool).await;
  let (agent, other) = (AgentId(Uuid::from_u128(1)), AgentId(Uuid::from_u128(2)));
  let first = Write { keys: vec![key(agent, 1, 100), key(agent, 2, 200), key(other, 1, 200)], ..write(term, None, 10) };
  super::write(&db.pool, first).await.unwrap();
  let wanted = [(agent, "owner", [1; 32]), (agent, "owner", [2; 32]), (agent, "other", [2; 32]), (other, "owner", [2; 32])];
  let mut found = super::keys(&db.pool, SCOPE, &wanted).await.unwrap();
  found.sort_by_key(|key| key.position);
  assert_eq!(found, [key(agent, 1, 100), key(agent, 2, 200)]);
  // Expired at 150, and come again after its window, twice in one range: the last stands.
  let mut again = key(agent, 1, 400);
  again.position = 77;
  let second = Write { keys: vec![key(agent, 1, 300), again.clone()], keys_expire_before_ms: 150, ..write(term, Some(10), 20) };
  super::write(&db.pool, second).await.unwrap();
  assert_eq!(super::keys(&db.pool, SCOPE, &wanted[..1]).await.unwrap(), [again]);
  let third = Write { keys_expire_before_ms: 250, ..write(term, Some(20), 30) };
  super::write(&db.pool, third).await.unwrap();
  assert_eq!(super::keys(&db.pool, SCOPE, &wanted).await.unwrap().len(), 1);
}

#[tokio::test]
async fn all_keys_of_an_agent_are_read_shortened() {
  let db = TestDb::new().await;
  let term = term(&db.pool).await;
  let (agent, other, none) = (AgentId(Uuid::from_u128(1)), AgentId(Uuid::from_u128(2)), AgentId(Uuid::from_u128(3)));
  super::write(&db.pool, Write { keys: vec![key(agent, 1, 100), key(agent, 2, 200), key(other, 1, 200)], ..write(term, None, 10) }).await.unwrap();
  let mut found = super::keys_of(&db.pool, SCOPE, &[agent, none], 10).await.unwrap();
  found.sort_unstable();
  assert_eq!(found, [(agent, [1; 8]), (agent, [2; 8])]);
  assert_eq!(super::keys_of(&db.pool, SCOPE, &[agent, other], 1).await.unwrap().len(), 2, "so many for each");
}

/// PR-13: the causes by which a start notices that the input log was cut.
#[tokio::test]
async fn causes_are_read_downwards_and_the_latest_decision_of_a_position_stands() {
  let db = TestDb::new().await;
  let term = term(&db.pool).await;
  let id = Uuid::from_u128;
  let first = Write { causes: vec![(0, id(100)), (1, id(101)), (2, id(102))], ..write(term, None, 10) };
  super::write(&db.pool, first).await.unwrap();
  let second = Write { causes: vec![(1, id(201)), (1, id(301)), (3, id(103))], ..write(term, Some(10), 20) };
  super::write(&db.pool, second).await.unwrap();
  assert_eq!(super::causes_below(&db.pool, SCOPE, 3, 2).await.unwrap(), [(2, id(102)), (1, id(301))]);
}

/// PR-10: things, keys and causes go with a dropped checkpoint; another fold version stays.
#[tokio::test]
async fn a_dropped_checkpoint_takes_everything_of_its_scope_along() {
  let db = TestDb::new().await;
  let term = term(&db.pool).await;
  let agent = AgentId(Uuid::from_u128(1));
  let next = Scope { fold_version: 2, ..SCOPE };
  for scope in [SCOPE, next] {
    let full = Write { scope, things: vec![thing(agent, ROOT, b"x")], keys: vec![key(agent, 1, 100)], causes: vec![(0, Uuid::nil())], ..write(term, None, 10) };
    assert_eq!(super::write(&db.pool, full).await.unwrap(), Outcome::Written);
  }
  assert_eq!(super::fold_versions(&db.pool, SCOPE.part).await.unwrap(), [1, 2]);
  super::drop(&db.pool, SCOPE).await.unwrap();
  for (scope, left) in [(SCOPE, 0), (next, 1)] {
    assert_eq!(usize::from(super::load(&db.pool, scope).await.unwrap().is_some()), left);
    assert_eq!(super::things_of(&db.pool, scope, agent).await.unwrap().things.len(), left);
    assert_eq!(super::keys(&db.pool, scope, &[(agent, "owner", [1; 32])]).await.unwrap().len(), left);
    assert_eq!(super::causes_below(&db.pool, scope, 10, 10).await.unwrap().len(), left);
  }
  let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM ops.entity_state").fetch_one(&db.pool).await.unwrap();
  assert_eq!(rows, 1);
}

#[tokio::test]
async fn an_erased_agents_states_and_keys_are_forgotten_and_others_stay() {
  let db = TestDb::new().await;
  let term = term(&db.pool).await;
  let (erased, other) = (AgentId(Uuid::from_u128(1)), AgentId(Uuid::from_u128(2)));
  let full = Write {
    things: vec![thing(erased, ROOT, b"x"), thing(erased, Uuid::from_u128(9), b"z"), thing(other, ROOT, b"y")],
    keys: vec![key(erased, 1, 100), key(other, 1, 100)],
    ..write(term, None, 10)
  };
  super::write(&db.pool, full).await.unwrap();
  let older = Scope { fold_version: SCOPE.fold_version + 1, ..SCOPE };
  super::write(&db.pool, Write { scope: older, things: vec![thing(erased, ROOT, b"x")], ..write(term, None, 10) }).await.unwrap();
  super::forget_agent(&db.pool, SCOPE, erased).await.unwrap();
  assert_eq!(super::things_of(&db.pool, SCOPE, erased).await.unwrap().things, [thing(erased, ROOT, b"x")], "the tombstone stays");
  assert!(super::things_of(&db.pool, older, erased).await.unwrap().things.is_empty());
  assert_eq!(super::things_of(&db.pool, SCOPE, other).await.unwrap().things.len(), 1);
  let keys = super::keys(&db.pool, SCOPE, &[(erased, "owner", [1; 32]), (other, "owner", [1; 32])]).await.unwrap();
  assert!(keys.len() == 1 && keys[0].agent == other);
}
