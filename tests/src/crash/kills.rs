//! kill -9 of `pa`, and of Postgres, at random times under load.

use std::time::Duration;

use super::{Dice, Load, check};
use crate::harness::{Engine, Model, Product, Setup};

/// The owner and two others, each writing.
fn people(product: &Product) -> Vec<crate::harness::Client> {
  vec![product.owner(), product.add_account("Ann"), product.add_account("Ben")]
}

async fn pa_is_killed_at_random_times(engine: Engine, seed: u64, times: usize) {
  let model = Model::echo().await;
  let mut product = Setup::on(engine).await.model(&model).start().await;
  let mut dice = Dice::new(seed);
  let load = Load::of(people(&product), Duration::from_millis(20));
  for _ in 0..times {
    dice.pause(30, 900).await;
    product.kill9();
    product.start_again().await;
  }
  dice.pause(300, 600).await;
  check(&product, &mut load.end().await).await;
}

/// Proves BB-01, REP-30, REP-32, REP-34, REP-35.
#[tokio::test]
async fn pa_killed_at_random_times_under_load_loses_and_doubles_nothing() {
  pa_is_killed_at_random_times(Engine::Embedded, 20_260_101, 8).await;
}

/// Proves BB-01, REP-30, REP-32, REP-34, REP-35.
#[tokio::test]
async fn on_kafka_pa_killed_at_random_times_under_load_loses_and_doubles_nothing() {
  pa_is_killed_at_random_times(Engine::Kafka, 20_260_102, 4).await;
}

/// It is also killed before it is ready, again and again.
#[tokio::test]
async fn pa_killed_while_it_starts_comes_up_in_the_end() {
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).start().await;
  let mut dice = Dice::new(7);
  let load = Load::of(people(&product), Duration::from_millis(10));
  dice.pause(300, 600).await;
  product.kill9();
  for _ in 0..10 {
    product.launch(&[]);
    dice.pause(5, 500).await;
    product.kill9();
  }
  product.start_again().await;
  check(&product, &mut load.end().await).await;
}

async fn postgres_is_killed_at_random_times(engine: Engine, seed: u64, times: usize) {
  let model = Model::echo().await;
  let product = Setup::private().await.log_on(engine).await.model(&model).start().await;
  let mut dice = Dice::new(seed);
  let load = Load::of(people(&product), Duration::from_millis(20));
  for _ in 0..times {
    dice.pause(100, 1_500).await;
    product.setup.kill_postgres().await;
    product.caught_up().await;
  }
  dice.pause(300, 600).await;
  check(&product, &mut load.end().await).await;
}

/// The private Postgres dies under `pa`, which starts it again by itself.
#[tokio::test]
async fn postgres_killed_at_random_times_under_load_loses_and_doubles_nothing() {
  postgres_is_killed_at_random_times(Engine::Embedded, 42, 4).await;
}

/// With the log on Kafka only leases, checkpoints and the read model lie there.
#[tokio::test]
async fn on_kafka_postgres_killed_at_random_times_under_load_loses_and_doubles_nothing() {
  postgres_is_killed_at_random_times(Engine::Kafka, 43, 2).await;
}

/// Both at once, as when the power goes; a postmaster that outlived a crash of `pa` alone is taken over.
#[tokio::test]
async fn a_power_cut_loses_nothing_and_a_postmaster_left_behind_is_adopted() {
  let model = Model::echo().await;
  let mut product = Setup::private().await.model(&model).start().await;
  let mut dice = Dice::new(3);
  let load = Load::of(people(&product), Duration::from_millis(20));
  for both in [true, false, true] {
    dice.pause(100, 800).await;
    product.kill9();
    let before = product.setup.postmaster();
    assert!(before.is_some(), "Postgres outlives a crash of pa");
    if both {
      product.setup.kill_postgres().await;
    }
    product.start_again().await;
    assert_eq!(product.setup.postmaster() == before, !both, "the same server goes on, if it lives");
  }
  check(&product, &mut load.end().await).await;
}
