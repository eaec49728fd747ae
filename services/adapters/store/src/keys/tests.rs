//! Keys and secrets on a real server.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use aws_lc_rs::aead::{Aad, Nonce};
use pa_domain::AgentId;
use secrecy::{ExposeSecret as _, SecretString};

use super::{AgentKeys, Error, KeyRing, Lookup, MasterKey, secrets};
use crate::clock::{Ids as _, SystemIds};
use crate::testing::TestDb;

fn agent() -> AgentId {
  AgentId(SystemIds.new_id())
}

#[test]
fn a_master_key_file_is_made_once_and_kept() {
  let folder = tempfile::tempdir().unwrap();
  let path = folder.path().join("master.key");
  let first = MasterKey::load_or_create(&path).unwrap();
  let second = MasterKey::load_or_create(&path).unwrap();
  let sealed = first.seal(b"here", b"content");
  assert_eq!(second.open(b"here", &sealed).unwrap(), b"content");
  assert_eq!(second.open(b"there", &sealed), None);
  assert_eq!(MasterKey::ephemeral().open(b"here", &sealed), None);
  assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_master_key_that_others_may_read_is_refused_with_the_mend() {
  let folder = tempfile::tempdir().unwrap();
  let path = folder.path().join("master.key");
  MasterKey::load_or_create(&path).unwrap();
  fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
  let error = MasterKey::load_or_create(&path).unwrap_err();
  assert!(error.to_string().contains("chmod 600"), "{error}");
}

#[test]
fn a_malformed_master_key_is_refused_without_being_shown() {
  for text in ["", "short", "AAAA", "not base64 at all, but a secret nonetheless!"] {
    let error = MasterKey::from_base64(&SecretString::from(text)).unwrap_err();
    assert!(matches!(error, Error::MasterKeyMalformed));
    assert!(text.is_empty() || !error.to_string().contains(text));
  }
  assert_eq!(format!("{:?}", MasterKey::ephemeral()), "MasterKey");
}

/// The labels and the derivation are permanent: this pins their bytes.
#[test]
fn derived_keys_never_change() {
  let keys = AgentKeys::derive(1, &[0; 32]);
  assert_eq!(hex::encode(keys.hash_key(b"key")), "8bd36c476f0270dbd8c6a85c585ef4d41b20c8dac505c161fb5a52f3331413e2");
  assert_eq!(hex::encode(aws_lc_rs::hmac::sign(&keys.blob, b"content")), "59c6ea6a19553e1e29891e53edfa71451b0f1552e2b27c4cbe696d2646089a5d");
  let mut sealed = b"content".to_vec();
  keys.seal.seal_in_place_append_tag(Nonce::assume_unique_for_key([0; 12]), Aad::empty(), &mut sealed).unwrap();
  assert_eq!(hex::encode(sealed), "dc2c1858860d08de4496f5a2d00983ed9349a8b5cfa2c6");
  assert_eq!(format!("{keys:?}"), "AgentKeys(1)");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_make_a_key_at_once_get_the_same_one() {
  let db = TestDb::new().await;
  let master = Arc::new(MasterKey::ephemeral());
  let agent = agent();
  let mut makers = tokio::task::JoinSet::new();
  for _ in 0..8 {
    let ring = KeyRing::new(db.pool.clone(), Arc::clone(&master));
    makers.spawn(async move { ring.get_or_create(agent).await.unwrap().hash_key(b"x") });
  }
  let mut hashes = makers.join_all().await;
  hashes.dedup();
  assert_eq!(hashes.len(), 1);
}

#[tokio::test]
async fn keys_come_back_after_a_restart_and_differ_between_agents() {
  let db = TestDb::new().await;
  let master = Arc::new(MasterKey::ephemeral());
  let (one, two) = (agent(), agent());
  let ring = KeyRing::new(db.pool.clone(), Arc::clone(&master));
  assert!(ring.cached(one).is_none());
  assert!(matches!(ring.get(one).await.unwrap(), Lookup::Missing));
  let hash = ring.get_or_create(one).await.unwrap().hash_key(b"x");
  assert!(ring.cached(one).is_some());
  assert_ne!(ring.get_or_create(two).await.unwrap().hash_key(b"x"), hash);
  let after = KeyRing::new(db.pool.clone(), master);
  after.check().await.unwrap();
  assert_eq!(after.get_or_create(one).await.unwrap().hash_key(b"x"), hash);
}

#[tokio::test]
async fn a_wrong_master_key_and_an_exchanged_row_are_noticed() {
  let db = TestDb::new().await;
  let master = Arc::new(MasterKey::ephemeral());
  let (one, two) = (agent(), agent());
  let ring = KeyRing::new(db.pool.clone(), Arc::clone(&master));
  ring.get_or_create(one).await.unwrap();
  ring.get_or_create(two).await.unwrap();
  let wrong = KeyRing::new(db.pool.clone(), Arc::new(MasterKey::ephemeral()));
  assert!(wrong.check().await.unwrap_err().to_string().contains("PA_MASTER_KEY"));
  sqlx::query("UPDATE ops.agent_keys SET wrapped = (SELECT wrapped FROM ops.agent_keys WHERE agent = $2) WHERE agent = $1")
    .bind(one.0)
    .bind(two.0)
    .execute(&db.pool)
    .await
    .unwrap();
  let after = KeyRing::new(db.pool.clone(), master);
  assert!(matches!(after.get(one).await.unwrap_err(), Error::MasterKeyWrong { agent } if agent == one));
}

#[tokio::test]
async fn an_erased_agent_is_told_apart_from_a_missing_one_and_gets_no_key_again() {
  let db = TestDb::new().await;
  let master = Arc::new(MasterKey::ephemeral());
  let (one, never) = (agent(), agent());
  let ring = KeyRing::new(db.pool.clone(), Arc::clone(&master));
  ring.get_or_create(one).await.unwrap();
  let erased_at = ring.erase(one).await.unwrap();
  assert!(erased_at.0 > 1_600_000_000_000);
  assert!(ring.cached(one).is_none());
  assert_eq!(ring.erase(one).await.unwrap(), erased_at, "the first erasure counts");
  ring.erase(never).await.unwrap();
  let after = KeyRing::new(db.pool.clone(), master);
  assert!(matches!(after.get(one).await.unwrap(), Lookup::Erased(at) if at == erased_at));
  assert!(matches!(after.get_or_create(one).await.unwrap_err(), Error::Erased { .. }));
  assert!(matches!(after.get_or_create(never).await.unwrap_err(), Error::Erased { .. }));
  let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM ops.agent_keys WHERE wrapped IS NOT NULL").fetch_one(&db.pool).await.unwrap();
  assert_eq!(kept, 0);
}

/// Another process erases: who has read the erasure keeps no key, also while it may still be in the database.
#[tokio::test]
async fn a_key_that_was_forgotten_is_not_kept_again() {
  let db = TestDb::new().await;
  let master = Arc::new(MasterKey::ephemeral());
  let agent = agent();
  let (erasing, other) = (KeyRing::new(db.pool.clone(), Arc::clone(&master)), KeyRing::new(db.pool.clone(), master));
  other.get_or_create(agent).await.unwrap();
  assert!(other.cached(agent).is_some());
  other.forget(agent);
  assert!(matches!(other.get(agent).await.unwrap(), Lookup::Key(_)), "what is decided until it is gone is sealed");
  assert!(other.cached(agent).is_none());
  erasing.erase(agent).await.unwrap();
  assert!(matches!(other.get(agent).await.unwrap(), Lookup::Erased(_)));
  other.forget(agent);
  assert!(matches!(other.get_or_create(agent).await.unwrap_err(), Error::Erased { .. }));
}

#[tokio::test]
async fn a_secret_is_sealed_bound_to_its_agent_and_gone_when_deleted() {
  let db = TestDb::new().await;
  let master = MasterKey::ephemeral();
  let (id, owner) = (SystemIds.new_id(), agent());
  secrets::put(&db.pool, &master, id, owner, &SecretString::from("planted-secret")).await.unwrap();
  secrets::put(&db.pool, &master, id, owner, &SecretString::from("another")).await.unwrap();
  let read = secrets::get(&db.pool, &master, id, owner).await.unwrap().unwrap();
  assert_eq!(read.expose_secret(), "planted-secret");
  assert!(secrets::get(&db.pool, &master, id, agent()).await.unwrap().is_none());
  assert!(matches!(secrets::get(&db.pool, &MasterKey::ephemeral(), id, owner).await.unwrap_err(), Error::SecretDamaged { .. }));
  let sealed: Vec<u8> = sqlx::query_scalar("SELECT sealed FROM ops.secrets").fetch_one(&db.pool).await.unwrap();
  assert!(!sealed.windows(7).any(|window| window == b"planted"));
  secrets::delete(&db.pool, id, owner).await.unwrap();
  assert!(secrets::get(&db.pool, &master, id, owner).await.unwrap().is_none());
  let (erased, other) = (SystemIds.new_id(), SystemIds.new_id());
  secrets::put(&db.pool, &master, erased, owner, &SecretString::from("x")).await.unwrap();
  secrets::put(&db.pool, &master, other, agent(), &SecretString::from("x")).await.unwrap();
  secrets::delete_all(&db.pool, owner).await.unwrap();
  let left: Vec<uuid::Uuid> = sqlx::query_scalar("SELECT id FROM ops.secrets").fetch_all(&db.pool).await.unwrap();
  assert_eq!(left, [other]);
}
