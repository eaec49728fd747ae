//! Nodes whose clocks are an hour apart.

use std::collections::BTreeMap;

use super::check;
use super::roles::Installation;
use crate::harness::{Client, Model, Process, Promise, Setup, eventually, fresh_key};

/// In front of a program that is to live an hour ahead; what it measures by the monotonic clock stays as it is.
const AN_HOUR_AHEAD: [&str; 5] = ["faketime", "-m", "-f", "--exclude-monotonic", "+1h"];

/// Deciders whose clocks are an hour apart lead one after the other, and a page is served by the one that is ahead: no lease is stolen, and the time of an agent's events only grows.
#[tokio::test]
async fn clocks_an_hour_apart_steal_no_lease_and_turn_no_time_back() {
  let model = Model::echo().await;
  let mut installation = Installation::start(Setup::new().await.model(&model)).await;
  let owner = installation.owner();
  let mut promises = Vec::new();
  let mut say = async |client: &Client, text: &str| {
    let key = fresh_key("clock");
    let sent = eventually(text, async || client.try_send(&key, text).await.filter(|sent| sent.decided)).await;
    client.reply_to(&sent.id()).await;
    promises.push(Promise { text: text.to_owned(), accepted: true });
  };
  say(&owner, "by the right clock").await;

  let folder = installation.product.setup.data().with_file_name("ahead").display().to_string();
  let env = installation.product.setup.env_with(&[("PA_DATA_DIR", &folder), ("PA_LISTEN", "127.0.0.1:0")]);
  let mut ahead = Process::start_behind(&AN_HOUR_AHEAD.map(str::to_owned), "an hour ahead", &["up"], &env);
  let url = ahead.prints("listening").await.unwrap_or_else(|why| panic!("{why}"));
  let there = Client::new(&url, &owner.token);
  say(&there, "asked of the one that is ahead").await;
  // It alone decides now, from its own time.
  installation.process("decider").kill9();
  say(&owner, "decided by the one that is ahead").await;
  installation.launch("decider", "decider", &[]);
  installation.ready("decider").await;
  ahead.kill9();
  say(&owner, "decided by the right clock again").await;

  let mut said = [(owner, promises)];
  let dump = check(&installation.product, &mut said).await;
  let mut last: BTreeMap<&str, i64> = BTreeMap::new();
  for line in dump.events().filter(|line| line.kind != "EpochAnnounced") {
    let at = line.core["at_ms"].as_i64().unwrap_or_else(|| panic!("the time of {line:?}"));
    let last = last.entry(line.agent.as_str()).or_insert(at);
    assert!(at >= *last, "the time of an agent went back: {line:?}");
    *last = at;
  }
}
