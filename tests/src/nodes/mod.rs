//! Several nodes on several brokers: separate processes in network namespaces, whose cables are pulled while people write.
//!
//! Whatever is cut or killed, the same is true as on one machine: what was accepted is there once, in order, and answered once; no node does what another one does;
//! the log keeps its rules, and the read model is what it says.

mod cluster;
mod load;
mod losses;
mod network;

use crate::harness::{Client, Promise, check_log, check_promises};
use cluster::Cluster;

/// Everybody writes once more and is answered; then every promise is kept, the model was asked once at most for each execution that the log had granted, and the log
/// and the read model are sound, also when that is built anew.
async fn check(cluster: &Cluster, said: &mut [(String, Vec<Promise>)], node: usize) {
  let mut given = Vec::new();
  for (who, (token, promises)) in said.iter_mut().enumerate() {
    let client: Client = Cluster::everywhere(token).swap_remove(node);
    let text = format!("person {who} goes on after {}", promises.len());
    let last = client.send_surely(&text).await.id();
    promises.push(Promise { text, accepted: true });
    client.reply_to(&last).await;
    let messages = client.settled().await;
    check_promises(promises, &messages);
    given.extend(messages.into_iter().filter(|message| message.role == "OWNER"));
  }
  let dump = cluster.product.dump();
  check_log(&dump);
  for message in given {
    let granted = dump.story(&message.id).into_iter().filter(|kind| *kind == "ExecutionStarted").count();
    let asked = cluster.model.asked_about(&message.text).len();
    assert!((1..=granted).contains(&asked), "the model was asked {asked} times about {:?}, for {granted} executions", message.text);
  }
  cluster.product.verify();
  let rebuilt = cluster.product.tool(&["rebuild"]);
  assert_eq!(rebuilt.code, Some(0), "pa rebuild: {}{}", rebuilt.out, rebuilt.err);
  cluster.product.verify();
}
