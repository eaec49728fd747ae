//! Three nodes on three brokers lose one of each, and links, under load.

use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::Instant;

use super::cluster::{Cluster, NODES};
use super::load::Load;
use super::network::{Cable, Network};
use super::{check, network};
use crate::harness::TOKEN;

/// People, so that most partitions have somebody.
const PEOPLE: usize = 6;
/// Longer than a lease, so that others have taken over before what was lost comes back.
const AWAY_FOR: Duration = Duration::from_secs(14);

/// The owner and others.
fn people(cluster: &Cluster) -> Vec<String> {
  let others = (1..PEOPLE).map(|n| cluster.product.add_account(&format!("Person {n}")).token);
  std::iter::once(TOKEN.to_owned()).chain(others).collect()
}

/// Loses something, and waits until everybody is heard again; the time is printed, and judged in the bench.
async fn lose(what: &str, load: &Load, lose: impl FnOnce()) {
  let at = Instant::now();
  lose();
  let heard = load.everybody_heard_after(at, PEOPLE).await;
  println!("{what}: who waited longest was heard after {:.1} s", heard.as_secs_f64());
  tokio::time::sleep_until(at + AWAY_FOR).await;
}

/// A node dies and comes back; a broker dies; nothing is lost and nothing is done twice.
///
/// Proves RUN-14, RUN-15, REP-34.
#[test]
fn three_nodes_on_three_brokers_lose_one_of_each_under_load() {
  network::inside("nodes::losses::three_nodes_on_three_brokers_lose_one_of_each_under_load", async || {
    let mut cluster = Cluster::start().await;
    let people = people(&cluster);
    cluster.spread_over(NODES).await;
    let load = Load::of(&people);
    load.everybody_heard_after(Instant::now(), PEOPLE).await;
    lose("a node was killed", &load, || cluster.kill9(2)).await;
    cluster.spread_over(NODES - 1).await;
    cluster.launch(2);
    cluster.ready(2).await;
    cluster.spread_over(NODES).await;
    lose("a broker was killed", &load, || cluster.kill_broker(1)).await;
    check(&cluster, &mut load.end().await, 2).await;
  });
}

/// A node is cut off from Postgres, from Kafka, from both, and sleeps; each time it comes back after its leases have run out, and finds that others went on.
///
/// Proves RUN-14, RUN-15, RUN-16, REP-34.
#[test]
fn a_node_that_is_cut_off_or_sleeps_is_replaced_and_spoils_nothing_when_it_is_back() {
  network::inside("nodes::losses::a_node_that_is_cut_off_or_sleeps_is_replaced_and_spoils_nothing_when_it_is_back", async || {
    let mut cluster = Cluster::start().await;
    let people = people(&cluster);
    cluster.spread_over(NODES).await;
    let load = Load::of(&people);
    load.everybody_heard_after(Instant::now(), PEOPLE).await;
    for (node, what, cables) in [
      (0, "a node was cut off from Postgres", &[Cable::Database][..]),
      (1, "a node was cut off from Kafka", &[Cable::Log]),
      (2, "a node was cut off from both", &[Cable::Database, Cable::Log]),
    ] {
      lose(what, &load, || {
        for cable in cables {
          Network::pull(node, *cable);
        }
      })
      .await;
      for cable in cables {
        Network::plug(node, *cable);
      }
      cluster.caught_up(node).await;
      cluster.spread_over(NODES).await;
    }
    lose("a node was stopped", &load, || cluster.node(1).signal(Signal::SIGSTOP)).await;
    cluster.node(1).signal(Signal::SIGCONT);
    cluster.caught_up(1).await;
    cluster.spread_over(NODES).await;
    check(&cluster, &mut load.end().await, 1).await;
  });
}
