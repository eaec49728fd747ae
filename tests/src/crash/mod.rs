//! Processes die: `pa` whole, Postgres, one role after another, at named places and at random, and a process that was stopped wakes up too late.
//!
//! While that happens people go on writing. Afterwards the same is true as always: what was accepted is there once, in order, and is answered once, or has
//! exactly one notice after two losses; the log keeps its rules, and the read model is what it says. Seeds are fixed and printed, so that a failure comes again.

mod clocks;
mod kills;
mod load;
mod points;
mod roles;
mod zombies;

use crate::harness::{Client, Dump, Product, Promise, check_log, check_promises};
use load::Load;

/// Random numbers from a seed, the same in every run.
struct Dice(u64);

impl Dice {
  fn new(seed: u64) -> Self {
    println!("seed {seed}");
    Self(seed)
  }

  /// A number from `low` to `high`, both included.
  fn roll(&mut self, low: u64, high: u64) -> u64 {
    // SplitMix64.
    self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = self.0;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    low + (mixed ^ (mixed >> 31)) % (high - low + 1)
  }

  async fn pause(&mut self, low_millis: u64, high_millis: u64) {
    let millis = self.roll(low_millis, high_millis);
    tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
  }
}

/// Everybody writes once more and is answered; then every promise is kept, and the log and the read model are sound.
async fn check(product: &Product, said: &mut [(Client, Vec<Promise>)]) -> Dump {
  for (client, promises) in said {
    let client = Client::new(&product.url, &client.token);
    let text = format!("and on, after {}", promises.len());
    let last = client.send_surely(&text).await.id();
    promises.push(Promise { text, accepted: true });
    client.reply_to(&last).await;
    check_promises(promises, &client.settled().await);
  }
  let dump = product.dump();
  check_log(&dump);
  product.verify();
  dump
}
