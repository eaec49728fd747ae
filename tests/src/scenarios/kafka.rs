//! The same product with its log on a real Apache Kafka: what the embedded log promises holds there, too.

use pa_eventlog::kafka::testing;

use super::sound;
use crate::harness::{Client, Model, Process, Product, Promise, Setup, check_promises};

/// A product whose log lies under a prefix of its own on the tests' Kafka.
async fn on_kafka() -> Setup {
  let kafka = tokio::task::spawn_blocking(testing::config).await.expect("a real Kafka");
  Setup::new().await.env("PA_KAFKA_BROKERS", &kafka.brokers).env("PA_KAFKA_PREFIX", &kafka.prefix)
}

/// What a browser sends with, by hand.
fn browser() -> reqwest::Client {
  reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(std::time::Duration::from_secs(20)).build().unwrap()
}

/// Presses the button of the sign-in link; the session's cookie.
async fn sign_in(product: &Product) -> String {
  let answer = browser().post(&product.sign_in).header("origin", &product.url).send().await.unwrap();
  assert!(answer.status().is_redirection() || answer.status().is_success(), "{}", answer.status());
  let cookie = answer.headers().get("set-cookie").expect("a session").to_str().unwrap();
  cookie.split(';').next().unwrap().to_owned()
}

/// Starts the product with these settings and waits until it has given up; what it said.
async fn gives_up(setup: &Setup, more: &[(&str, &str)]) -> String {
  let mut process = Process::start("pa up", &["up"], &setup.env_with(more));
  assert!(!process.dies().await.success(), "it must not start");
  process.log()
}

/// Sign in, write, be answered, kill, start again, find everything, verify.
///
/// Proves REP-30, REP-34.
#[tokio::test]
async fn on_kafka_nothing_that_was_accepted_is_lost_by_a_kill() {
  let model = Model::echo().await;
  let mut product = on_kafka().await.model(&model).start().await;
  let cookie = sign_in(&product).await;
  let page = browser().post(format!("{}/graphql", product.url)).header("cookie", &cookie).header("origin", &product.url);
  let answer = page.json(&serde_json::json!({ "query": "{ viewer { __typename } }" })).send().await.unwrap();
  assert_eq!(answer.status(), 200, "the session is good");

  let mut promises = Vec::new();
  let mut said = async |owner: &Client, text: &str| {
    promises.push(Promise { text: text.to_owned(), accepted: true });
    owner.send(text).await.id()
  };
  let first = said(&product.owner(), "before").await;
  assert_eq!(product.owner().reply_to(&first).await.text, "re: before");
  for round in 0..3 {
    said(&product.owner(), &format!("round {round}")).await;
    product.restart9().await;
  }
  let last = said(&product.owner(), "after").await;
  assert_eq!(product.owner().reply_to(&last).await.text, "re: after");
  check_promises(&promises, &product.owner().settled().await);
  let dump = sound(&product);
  assert!(dump.events().count() > 10, "the log is exported from Kafka");
}

#[tokio::test]
async fn a_log_does_not_change_its_kind_silently() {
  let kafka = tokio::task::spawn_blocking(testing::config).await.expect("a real Kafka");
  let on_kafka = [("PA_KAFKA_BROKERS", kafka.brokers.as_str()), ("PA_KAFKA_PREFIX", kafka.prefix.as_str())];
  let model = Model::echo().await;
  let mut embedded = Setup::new().await.model(&model).start().await;
  embedded.terminate().await;
  let said = gives_up(&embedded.setup, &on_kafka).await;
  assert!(said.contains("a log of kind postgres") && said.contains("pa log copy"), "{said}");

  let mut product = Setup::new().await.model(&model).start_with(&on_kafka).await;
  product.terminate().await;
  let said = gives_up(&product.setup, &[]).await;
  assert!(said.contains("a log of kind kafka") && said.contains("pa log copy"), "{said}");
  // With its own log it goes on.
  product.start_again_with(&on_kafka).await;
}

/// Without its Kafka the product waits and says so; when it comes, the product is ready.
#[tokio::test]
async fn an_absent_kafka_is_waited_for() {
  let folder = tempfile::tempdir().unwrap();
  let (go, path) = (std::sync::mpsc::channel::<()>(), folder.path().to_owned());
  let (brokers, told) = std::sync::mpsc::channel();
  let (next, wait) = go;
  // A node dies with its thread.
  let keeper = std::thread::spawn(move || {
    // Made once, so that its address is known before it runs.
    let node = testing::Node::start_in(&path);
    brokers.send(node.brokers.clone()).unwrap();
    node.kill9();
    wait.recv().unwrap();
    let _node = testing::Node::start_in(&path);
    wait.recv().unwrap();
  });
  let address = tokio::task::spawn_blocking(move || told.recv().unwrap()).await.unwrap();
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).env("PA_KAFKA_BROKERS", &address).stopped();
  product.launch(&[]);
  product.process().says("waiting for Kafka").await;
  next.send(()).unwrap();
  product.ready().await.unwrap();
  let sent = product.owner().send("are you there?").await.id();
  assert_eq!(product.owner().reply_to(&sent).await.text, "re: are you there?");
  product.terminate().await;
  next.send(()).unwrap();
  keeper.join().unwrap();
}
