//! Bad input from the administrator of a cluster, and from backups: topics that are not as they must be, a Postgres that is older than the log.

use pa_eventlog::kafka::Config;
use pa_eventlog::kafka::testing::{self, Administrator};

use super::sound;
use crate::harness::{Client, Engine, Model, Process, Product, Promise, Setup, check_promises};

/// A product that was used on a log of its own, and stopped.
async fn used(model: &Model) -> (Product, Config) {
  let kafka = tokio::task::spawn_blocking(testing::config).await.expect("a real Kafka");
  let setup = Setup::new().await.model(model).env("PA_KAFKA_BROKERS", &kafka.brokers).env("PA_KAFKA_PREFIX", &kafka.prefix);
  let mut product = setup.start().await;
  assert!(product.process().log().contains("has one copy"), "what one broker means is said: {}", product.process().log());
  let sent = product.owner().send("before").await.id();
  product.owner().reply_to(&sent).await;
  product.terminate().await;
  (product, kafka)
}

/// Starts the product with these settings and waits until it has given up; what it said.
async fn gives_up(product: &Product, more: &[(&str, &str)]) -> String {
  let mut process = Process::start("pa up", &["up"], &product.setup.env_with(more));
  assert!(!process.dies().await.success(), "it must not start");
  process.log()
}

/// Each is refused in words that say what is wrong; when it is mended, everything is there.
#[tokio::test]
async fn topics_that_are_not_as_they_must_be_stop_the_start_until_they_are_mended() {
  let model = Model::echo().await;
  let (mut product, kafka) = used(&model).await;
  let said = gives_up(&product, &[("PA__LOG__PARTITIONS", "4")]).await;
  assert!(said.contains("created with 8 partitions") && said.contains("4 are configured") && said.contains("pa log copy"), "{said}");
  let administrator = Administrator::of(&kafka);
  for (topic, setting, wrong, right) in [
    ("events", "retention.ms", "604800000", "-1"),
    ("inputs", "retention.ms", "604800000", "-1"),
    ("events", "cleanup.policy", "compact", "delete"),
    ("inputs", "max.message.bytes", "500000", "1048588"),
  ] {
    administrator.set(topic, &[(setting, wrong)]);
    let said = gives_up(&product, &[]).await;
    assert!(said.contains(&format!("the topic {}{topic} has {setting}={wrong}", kafka.prefix)), "{said}");
    administrator.set(topic, &[(setting, right)]);
  }
  product.start_again().await;
  assert_eq!(product.owner().settled().await.len(), 2);
  sound(&product);
}

/// The topic of facts was deleted and made again, with a broker's defaults: a start is refused, and so is the work of a process that runs.
#[tokio::test]
async fn a_topic_made_anew_behind_the_products_back_is_refused_by_a_start_and_by_a_running_process() {
  let model = Model::echo().await;
  let (mut product, kafka) = used(&model).await;
  product.start_again().await;
  let administrator = Administrator::of(&kafka);
  administrator.delete("events");
  administrator.make("events", 8).await;
  crate::harness::eventually("it says why it is not ready", async || {
    let (status, ready) = product.readyz().await;
    (status == 503 && ready["reasons"].to_string().contains("made anew")).then_some(())
  })
  .await;
  let sent = product.owner().try_send("k", "into the void").await;
  assert!(sent.is_none_or(|sent| !sent.decided), "nothing is decided on another log");
  product.kill9();
  let said = gives_up(&product, &[]).await;
  assert!(said.contains("made anew"), "{said}");
}

/// Postgres is put back as it was some messages ago, while Kafka has all of them: what it lacks is read again from the log, and nobody is answered twice.
///
/// Proves REP-30.
#[tokio::test]
async fn a_restored_postgres_that_is_older_than_the_log_catches_up() {
  let model = Model::echo().await;
  let (mut product, _) = used(&model).await;
  let older = product.setup.test_db().copy().await;
  product.start_again().await;
  let mut promises = vec![Promise { text: "before".into(), accepted: true }];
  for n in 0..5 {
    let text = format!("after the backup {n}");
    let sent = product.owner().send(&text).await.id();
    product.owner().reply_to(&sent).await;
    promises.push(Promise { text, accepted: true });
  }
  product.kill9();
  product.setup.set("PA_DATABASE_URL", &older.url);
  product.start_again().await;
  check_promises(&promises, &product.owner().settled().await);
  assert!(promises.iter().all(|promise| model.asked_about(&promise.text).len() == 1), "no message is answered again");
  let sent = product.owner().send("and on").await.id();
  assert_eq!(product.owner().reply_to(&sent).await.text, "re: and on");
  let dump = sound(&product);
  assert_eq!(dump.of("ReplyPosted").len(), 7);
}

/// An account was added after the backup: its keys are lost with the newer Postgres. That is told, its facts are not guessed, no keys are made anew, and the others go on.
#[tokio::test]
async fn keys_that_an_older_postgres_lacks_are_told_and_not_made_anew() {
  let model = Model::echo().await;
  let (mut product, _) = used(&model).await;
  let older = product.setup.test_db().copy().await;
  product.start_again().await;
  let ann = product.add_account("Ann");
  let sent = ann.send("sealed under lost keys").await.id();
  ann.reply_to(&sent).await;
  product.kill9();
  product.setup.set("PA_DATABASE_URL", &older.url);
  product.launch(&[]);
  crate::harness::eventually("it says which key is missing", async || {
    let log = product.process().log();
    (log.contains("has no key 1") && log.contains("restore")).then_some(())
  })
  .await;
  let keys: i64 = sqlx::query_scalar("SELECT count(*) FROM ops.agent_keys").fetch_one(&older.pool).await.unwrap();
  assert_eq!(keys, 2, "the installation's and the owner's");
  // With the newer Postgres nothing was lost.
  product.kill9();
  let newer = product.setup.test_db().url.clone();
  product.setup.set("PA_DATABASE_URL", &newer);
  product.start_again().await;
  assert_eq!(Client::new(&product.url, &ann.token).settled().await.len(), 2);
  sound(&product);
}

/// The same as on the embedded log.
#[tokio::test]
async fn on_kafka_a_lost_key_is_told_and_not_made_anew() {
  super::operations::a_key_is_lost(Engine::Kafka).await;
}
