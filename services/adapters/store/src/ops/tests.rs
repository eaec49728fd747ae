//! The small control tables on a real server.

use pa_domain::{AgentId, NodeId, Timestamp};
use secrecy::{ExposeSecret as _, SecretString};
use uuid::Uuid;

use super::log_identity::{self, LogIdentity};
use super::nodes::{self, Node};
use super::presence;
use super::rate::{self, Bucket};
use super::tokens::{self, Kind, NewToken, TokenHash};
use super::uploads::{self, Upload};
use crate::clock::{Clock as _, Ids as _, SystemClock, SystemIds};
use crate::lease::Holder;
use crate::testing::TestDb;

fn agent() -> AgentId {
  AgentId(SystemIds.new_id())
}

fn token(kind: Kind, lives_for_ms: Option<i64>) -> NewToken {
  NewToken { account: agent(), kind, label: "a browser".to_owned(), lives_for_ms }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_sign_in_code_is_consumed_once_however_many_try_at_once() {
  let db = TestDb::new().await;
  let new = token(Kind::SignIn, Some(60_000));
  let code = tokens::create(&db.pool, &new).await.unwrap();
  assert!(tokens::is_open(&db.pool, code.expose_secret(), Kind::SignIn).await.unwrap());
  assert_eq!(tokens::find(&db.pool, code.expose_secret(), &[Kind::SignIn, Kind::Owner]).await.unwrap(), None, "it is no bearer token");
  let mut callers = tokio::task::JoinSet::new();
  for _ in 0..16 {
    let (pool, code) = (db.pool.clone(), code.clone());
    callers.spawn(async move { tokens::consume(&pool, code.expose_secret(), Kind::SignIn).await.unwrap() });
  }
  let got: Vec<_> = callers.join_all().await.into_iter().flatten().collect();
  assert!(got.len() == 1 && got[0].account == new.account, "{got:?}");
  assert!(!tokens::is_open(&db.pool, code.expose_secret(), Kind::SignIn).await.unwrap());
}

#[tokio::test]
async fn a_token_counts_for_its_kind_until_it_expires_or_is_revoked() {
  let db = TestDb::new().await;
  let new = token(Kind::Session, Some(60_000));
  let session = tokens::create(&db.pool, &new).await.unwrap();
  let session = session.expose_secret();
  assert!(session.starts_with("pa_") && session.len() == 46);
  let found = tokens::find(&db.pool, session, &[Kind::Session, Kind::Owner]).await.unwrap().unwrap();
  assert_eq!((found.account, found.kind, found.label.as_str()), (new.account, Kind::Session, "a browser"));
  assert_eq!(tokens::find(&db.pool, session, &[Kind::Owner]).await.unwrap(), None);
  assert_eq!(tokens::consume(&db.pool, session, Kind::SignIn).await.unwrap(), None);
  assert_eq!(tokens::find(&db.pool, "pa_guess", &[Kind::Session]).await.unwrap(), None);
  let short = tokens::create(&db.pool, &token(Kind::Session, Some(-1))).await.unwrap();
  assert_eq!(tokens::find(&db.pool, short.expose_secret(), &[Kind::Session]).await.unwrap(), None);
  assert!(!tokens::extend(&db.pool, TokenHash::of(short.expose_secret()), 60_000).await.unwrap(), "an expired session stays expired");
  assert!(tokens::extend(&db.pool, found.hash, 120_000).await.unwrap());
  assert!(tokens::revoke(&db.pool, found.hash).await.unwrap());
  assert!(!tokens::revoke(&db.pool, found.hash).await.unwrap());
  assert_eq!(tokens::find(&db.pool, session, &[Kind::Session]).await.unwrap(), None);
}

#[tokio::test]
async fn a_given_token_counts_again_after_it_was_revoked_and_is_nowhere_in_the_clear() {
  let db = TestDb::new().await;
  let given = SecretString::from("planted-owner-token");
  let owner = token(Kind::Owner, None);
  tokens::adopt(&db.pool, &owner, &given).await.unwrap();
  assert_eq!(tokens::revoke_all(&db.pool, owner.account, Kind::Owner).await.unwrap(), 1);
  assert_eq!(tokens::find(&db.pool, "planted-owner-token", &[Kind::Owner]).await.unwrap(), None);
  tokens::adopt(&db.pool, &owner, &given).await.unwrap();
  let found = tokens::find(&db.pool, "planted-owner-token", &[Kind::Owner]).await.unwrap().unwrap();
  assert!(!format!("{found:?}").contains("planted"));
  let dump: String = sqlx::query_scalar("SELECT string_agg(t::text, '') FROM ops.tokens AS t").fetch_one(&db.pool).await.unwrap();
  assert!(!dump.contains("planted") && !dump.contains(&hex::encode("planted")));
}

#[tokio::test]
async fn pruning_keeps_what_counts() {
  let db = TestDb::new().await;
  let week = 7 * 86_400_000;
  for lives_for_ms in [None, Some(60_000), Some(-60_000), Some(-week - 60_000)] {
    tokens::create(&db.pool, &token(Kind::Api, lives_for_ms)).await.unwrap();
  }
  assert_eq!(tokens::prune(&db.pool).await.unwrap(), 1);
}

#[tokio::test]
async fn the_first_identity_of_a_log_stands() {
  let db = TestDb::new().await;
  let identity = |kind: &str, partitions| LogIdentity { kind: kind.to_owned(), id: SystemIds.new_id(), partitions, sealed: true };
  let (first, second) = (identity("postgres", 8), identity("kafka", 16));
  assert_eq!(log_identity::load(&db.pool).await.unwrap(), None);
  assert_eq!(log_identity::create(&db.pool, &first).await.unwrap(), first);
  assert_eq!(log_identity::create(&db.pool, &second).await.unwrap(), first);
  assert!(!super::moving::switch(&db.pool, &second, &second).await.unwrap());
  assert!(super::moving::switch(&db.pool, &first, &second).await.unwrap());
  assert_eq!(log_identity::load(&db.pool).await.unwrap(), Some(second));
}

#[tokio::test]
async fn the_first_mark_of_the_files_stands_and_goes_along_with_the_log() {
  let db = TestDb::new().await;
  let (one, two) = (SystemIds.new_id(), SystemIds.new_id());
  assert_eq!(log_identity::files(&db.pool, Some(one)).await.unwrap(), None, "there is no log yet");
  let identity = LogIdentity { kind: "postgres".to_owned(), id: SystemIds.new_id(), partitions: 8, sealed: true };
  log_identity::create(&db.pool, &identity).await.unwrap();
  assert_eq!(log_identity::files(&db.pool, None).await.unwrap(), None);
  assert_eq!(log_identity::files(&db.pool, Some(one)).await.unwrap(), Some(one));
  assert_eq!(log_identity::files(&db.pool, Some(two)).await.unwrap(), Some(one));
  assert!(super::moving::switch(&db.pool, &identity, &LogIdentity { kind: "kafka".to_owned(), ..identity.clone() }).await.unwrap());
  assert_eq!(log_identity::files(&db.pool, None).await.unwrap(), Some(one));
}

#[tokio::test]
async fn whoever_can_lead_is_counted_for_a_lease() {
  let db = TestDb::new().await;
  let [one, two] = [(); 2].map(|()| Holder { node: NodeId(SystemIds.new_id()), process: SystemIds.new_id() });
  for holder in [one, two] {
    nodes::register(&db.pool, &Node { holder, roles: vec!["decider".to_owned()], listen: None, version: "1".to_owned() }).await.unwrap();
  }
  // The other one runs, and does not reach the log.
  assert_eq!(nodes::can_lead(&db.pool, one.process).await.unwrap(), 1);
  assert_eq!(nodes::can_lead(&db.pool, two.process).await.unwrap(), 2);
  assert_eq!(nodes::can_lead(&db.pool, one.process).await.unwrap(), 2);
  sqlx::query("UPDATE ops.nodes SET leads_at = clock_timestamp() - interval '11 s' WHERE process = $1").bind(two.process).execute(&db.pool).await.unwrap();
  assert_eq!(nodes::can_lead(&db.pool, one.process).await.unwrap(), 1);
}

#[tokio::test]
async fn an_upload_is_its_agents_alone_and_goes_when_it_is_forgotten() {
  let db = TestDb::new().await;
  let upload = Upload { id: SystemIds.new_id(), agent: agent(), name: "рис 1.png".to_owned(), media_type: "image/png".to_owned(), size: 3, sha256: [1; 32] };
  uploads::put(&db.pool, &upload).await.unwrap();
  uploads::put(&db.pool, &upload).await.unwrap();
  assert_eq!(uploads::get(&db.pool, upload.agent, &[upload.id, Uuid::nil()]).await.unwrap(), std::slice::from_ref(&upload));
  assert!(uploads::get(&db.pool, agent(), &[upload.id]).await.unwrap().is_empty());
  let now = SystemClock.now();
  assert!(uploads::made_before(&db.pool, now.plus_millis(-60_000)).await.unwrap().is_empty());
  assert_eq!(uploads::made_before(&db.pool, now.plus_millis(60_000)).await.unwrap(), std::slice::from_ref(&upload));
  uploads::forget(&db.pool, &[upload.id]).await.unwrap();
  assert!(uploads::get(&db.pool, upload.agent, &[upload.id]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_process_knows_whether_another_one_is_there() {
  let db = TestDb::new().await;
  let node = || Node {
    holder: Holder { node: NodeId(SystemIds.new_id()), process: SystemIds.new_id() },
    roles: vec!["gateway".to_owned()],
    listen: Some("127.0.0.1:1".to_owned()),
    version: "1".to_owned(),
  };
  let (one, two) = (node(), node());
  nodes::register(&db.pool, &one).await.unwrap();
  assert!(!nodes::seen(&db.pool, one.holder.process).await.unwrap());
  nodes::register(&db.pool, &two).await.unwrap();
  assert!(nodes::seen(&db.pool, one.holder.process).await.unwrap());
  assert_eq!(nodes::alive(&db.pool).await.unwrap(), [one.clone(), two.clone()]);
  sqlx::query("UPDATE ops.nodes SET seen_at = seen_at - interval '11 seconds' WHERE process = $1").bind(two.holder.process).execute(&db.pool).await.unwrap();
  assert!(!nodes::seen(&db.pool, one.holder.process).await.unwrap(), "it stopped renewing");
  nodes::leave(&db.pool, one.holder.process).await.unwrap();
  assert!(nodes::alive(&db.pool).await.unwrap().is_empty());
}

#[tokio::test]
async fn presence_is_the_last_time() {
  let db = TestDb::new().await;
  let account = agent();
  assert_eq!(presence::last_seen(&db.pool, account).await.unwrap(), None);
  presence::seen(&db.pool, account).await.unwrap();
  let Timestamp(first) = presence::last_seen(&db.pool, account).await.unwrap().unwrap();
  tokio::time::sleep(std::time::Duration::from_millis(10)).await;
  presence::seen(&db.pool, account).await.unwrap();
  assert!(presence::last_seen(&db.pool, account).await.unwrap().unwrap().0 > first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_gives_its_burst_and_no_more_until_it_fills() {
  let db = TestDb::new().await;
  let slow = Bucket { name: "sign-in", burst: 5.0, per_second: 0.001 };
  let mut callers = tokio::task::JoinSet::new();
  for _ in 0..20 {
    let pool = db.pool.clone();
    callers.spawn(async move { rate::take(&pool, "10.0.0.1", slow).await.unwrap() });
  }
  assert_eq!(callers.join_all().await.into_iter().filter(|taken| *taken).count(), 5);
  assert!(rate::take(&db.pool, "10.0.0.2", slow).await.unwrap(), "another subject has its own");
  sqlx::query("UPDATE ops.rate SET at = at - interval '2000 seconds' WHERE subject = '10.0.0.1'").execute(&db.pool).await.unwrap();
  for expected in [true, true, false] {
    assert_eq!(rate::take(&db.pool, "10.0.0.1", slow).await.unwrap(), expected);
  }
  sqlx::query("UPDATE ops.rate SET at = at - interval '2 days' WHERE subject = '10.0.0.2'").execute(&db.pool).await.unwrap();
  rate::prune(&db.pool).await.unwrap();
  let left: Vec<String> = sqlx::query_scalar("SELECT subject FROM ops.rate").fetch_all(&db.pool).await.unwrap();
  assert_eq!(left, ["10.0.0.1"]);
}
