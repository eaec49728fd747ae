//! Death at each named place of the way of a message, at its first passes and at later ones.

use super::check;
use crate::harness::{Client, Engine, Model, Promise, Setup, fresh_key};

/// For each point: start, die there, start again, and check. Nobody sends anything twice.
async fn dies_at(engine: Engine, points: &[&str]) {
  let model = Model::echo().await;
  let mut product = Setup::on(engine).await.model(&model).start().await;
  // A person of its own, so that a start's own decisions about the owner do not count for it.
  let person = product.add_account("Person");
  let mut said = [(person.clone(), Vec::new())];
  for point in points {
    product.kill9();
    product.launch(&[("PA_FAIL", point)]);
    if product.ready().await.is_ok() {
      let client = Client::new(&product.url, &person.token);
      for n in 0..3 {
        let text = format!("{point} {n}");
        let sent = client.try_send(&fresh_key("point"), &text).await;
        let accepted = sent.is_some_and(|sent| sent.user_errors.is_empty());
        said[0].1.push(Promise { text, accepted });
      }
    }
    product.dies().await;
    product.start_again().await;
    check(&product, &mut said).await;
  }
}

/// Proves REP-30, RUN-14.
#[tokio::test]
async fn death_at_intake_loses_and_doubles_nothing() {
  dies_at(Engine::Embedded, &["gateway.before_append:1", "gateway.after_append:1", "gateway.after_append:3"]).await;
}

/// Proves REP-30, RUN-14.
#[tokio::test]
async fn death_of_a_decider_loses_and_doubles_nothing() {
  let points = [
    "decider.after_announcement:3",
    "decider.before_append:1",
    "decider.after_append:1",
    "decider.before_append:3",
    "decider.after_append:4",
    "decider.before_checkpoint:1",
    "decider.after_checkpoint:1",
  ];
  dies_at(Engine::Embedded, &points).await;
}

/// Proves RUN-10.
#[tokio::test]
async fn death_of_a_projector_loses_and_doubles_nothing() {
  dies_at(Engine::Embedded, &["projector.before_commit:1", "projector.after_commit:1", "projector.before_commit:4", "projector.after_commit:5"]).await;
}

/// Proves REP-34.
#[tokio::test]
async fn death_of_a_worker_loses_and_doubles_nothing() {
  dies_at(Engine::Embedded, &["agent.after_grant:1", "agent.before_model:1", "agent.after_model:1", "agent.before_finish:1", "agent.before_finish:2"]).await;
}

/// Proves REP-30, RUN-14.
#[tokio::test]
async fn on_kafka_death_at_intake_and_of_a_decider_loses_and_doubles_nothing() {
  let points = ["gateway.after_append:1", "decider.after_announcement:3", "decider.after_append:1", "decider.before_append:3", "decider.after_checkpoint:1"];
  dies_at(Engine::Kafka, &points).await;
}

/// Proves RUN-10, REP-34.
#[tokio::test]
async fn on_kafka_death_of_a_projector_and_of_a_worker_loses_and_doubles_nothing() {
  let points = ["projector.before_commit:1", "projector.after_commit:1", "agent.after_grant:1", "agent.after_model:1", "agent.before_finish:1"];
  dies_at(Engine::Kafka, &points).await;
}
