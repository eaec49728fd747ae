//! A process is stopped, not killed: its leases run out, others take over, and then it wakes up and goes on as if nothing had happened.

use std::time::Duration;

use nix::sys::signal::Signal;
use pa_model::rehearsal::{Hold, Reply};

use super::roles::Installation;
use super::{Load, check};
use crate::harness::{Client, Engine, Model, Process, Setup, Socket, TOKEN, eventually, text_of_last, within};

/// A worker sleeps beyond its lease with a reply half written; another one answers; the sleeper wakes with a tool call in its hands and may do nothing.
///
/// Proves RUN-15, RUN-16, REP-34.
#[tokio::test]
async fn a_worker_that_wakes_after_its_lease_publishes_nothing_and_calls_nothing() {
  a_worker_wakes_late(Engine::Embedded).await;
}

/// Proves RUN-15, RUN-16, REP-34.
#[tokio::test]
async fn on_kafka_a_worker_that_wakes_after_its_lease_publishes_nothing_and_calls_nothing() {
  a_worker_wakes_late(Engine::Kafka).await;
}

async fn a_worker_wakes_late(engine: Engine) {
  let model = Model::silent().await;
  let hold = Hold::new();
  model.script.once_on_words("the question", Reply::new().say("from the sleeper ").hold(&hold).call("call_1", "pa_history", "{}"));
  model.script.on(|seen| Some(Reply::text(&format!("re: {}", text_of_last(seen)))));
  let mut installation = Installation::start(Setup::on(engine).await.model(&model)).await;
  let owner = installation.owner();
  let id = owner.send("the question").await.id();
  hold.reached().await;

  installation.process("agent").signal(Signal::SIGSTOP);
  let elsewhere = installation.product.setup.data().with_file_name("elsewhere").display().to_string();
  installation.launch("second agent", "agent", &[("PA_DATA_DIR", &elsewhere)]);
  installation.ready("second agent").await;
  assert_eq!(owner.reply_to(&id).await.text, "re: the question");
  hold.release();
  installation.process("agent").signal(Signal::SIGCONT);

  // Awake again it finds out and works on with the others.
  for n in 0..6 {
    let id = owner.send(&format!("after {n}")).await.id();
    owner.reply_to(&id).await;
  }
  within(Duration::from_secs(30), "the sleeper's request is over", async || {
    model.script.idle().await;
    Some(())
  })
  .await;
  let dump = installation.product.dump();
  crate::harness::check_log(&dump);
  installation.product.verify();
  assert_eq!(
    dump.story(&id),
    ["MessageAdmitted", "ReplyRequested", "ExecutionStarted", "ExecutionLost", "ExecutionStarted", "StepRecorded", "ExecutionFinished", "ReplyPosted"]
  );
  assert!(dump.of("CallStarted").is_empty(), "no call of the sleeper began");
  let replies: Vec<_> = owner.settled().await.into_iter().filter(|message| message.role == "AGENT").collect();
  assert_eq!(replies.len(), 7);
}

/// A decider sleeps beyond its lease in the middle of its work; another one leads; the sleeper wakes and what it still writes counts for nobody.
#[tokio::test]
async fn a_decider_that_wakes_after_its_lease_changes_nothing() {
  a_decider_wakes_late(Engine::Embedded).await;
}

/// The same where what it still writes goes past the database.
#[tokio::test]
async fn on_kafka_a_decider_that_wakes_after_its_lease_changes_nothing() {
  a_decider_wakes_late(Engine::Kafka).await;
}

async fn a_decider_wakes_late(engine: Engine) {
  let model = Model::echo().await;
  let mut installation = Installation::start(Setup::on(engine).await.model(&model)).await;
  let people = vec![installation.owner(), installation.product.add_account("Ann")];
  let load = Load::of(people, Duration::from_millis(50));
  tokio::time::sleep(Duration::from_millis(500)).await;
  installation.process("decider").signal(Signal::SIGSTOP);
  let elsewhere = installation.product.setup.data().with_file_name("elsewhere").display().to_string();
  installation.launch("second decider", "decider", &[("PA_DATA_DIR", &elsewhere)]);
  installation.ready("second decider").await;
  let owner = installation.owner();
  let id = eventually("the second decider leads", async || owner.try_send("probe", "probe").await.and_then(|sent| sent.message)).await.id;
  installation.process("decider").signal(Signal::SIGCONT);
  owner.reply_to(&id).await;
  let mut said = load.end().await;
  // The probe came in between; its place is where the log put it.
  let messages = owner.settled().await;
  let before = messages.iter().filter(|message| message.role == "OWNER").take_while(|message| message.text != "probe").count();
  let (_, promises) = said.iter_mut().find(|(client, _)| client.token == owner.token).unwrap();
  let place = promises
    .iter()
    .enumerate()
    .filter(|(_, promise)| messages.iter().any(|message| message.text == promise.text))
    .nth(before)
    .map_or(promises.len(), |(at, _)| at);
  promises.insert(place, crate::harness::Promise { text: "probe".into(), accepted: true });
  let dump = check(&installation.product, &mut said).await;
  // The sleeper steps down for good: it is terminated without a word of protest.
  assert!(installation.process("decider").terminate().await.success());
  assert!(dump.of("EpochAnnounced").len() >= 16, "both deciders led every partition");
}

/// Two processes project and show pages. Whichever of them writes, both pages follow; one sleeps, the other goes on alone; it wakes, and both go on.
///
/// A page looks by itself only every five seconds, so that a page which follows sooner, and does so each time, was told.
#[tokio::test]
async fn two_processes_that_project_tell_their_own_pages_and_one_that_wakes_late_spoils_nothing() {
  const TOLD_WITHIN: Duration = Duration::from_secs(3);
  let model = Model::echo().await;
  let mut installation = Installation::start(Setup::new().await.model(&model)).await;
  let elsewhere = installation.product.setup.data().with_file_name("elsewhere").display().to_string();
  let mut pages = Vec::new();
  for name in ["one", "two"] {
    let env = installation.product.setup.env_with(&[("PA_DATA_DIR", &format!("{elsewhere}-{name}")), ("PA_LISTEN", "127.0.0.1:0")]);
    let mut process = Process::start(name, &["run", "--role", "projector,gateway"], &env);
    let url = process.prints("listening").await.unwrap_or_else(|why| panic!("{why}"));
    pages.push((process, Client::new(&url, TOKEN)));
  }
  // From here on only these two project.
  installation.process("projector").kill9();
  let mut sockets = Vec::new();
  for (_, client) in &pages {
    sockets.push(client.updates(Some(&client.position().await)).await);
  }
  let say = async |client: &Client, text: String, sockets: &mut [Socket]| {
    let id = client.send_surely(&text).await.id();
    for socket in sockets {
      let seen = socket.until(|update| update.entry().is_some_and(|(entry, status)| entry == id && status == "ANSWERED"));
      tokio::time::timeout(TOLD_WITHIN, seen).await.unwrap_or_else(|_| panic!("{text}: a page was not told"));
    }
  };
  for n in 0..12 {
    say(&pages[n % 2].1, format!("both {n}"), &mut sockets).await;
  }
  let awake = pages[1].1.clone();
  drop(sockets.remove(0));
  pages[0].0.signal(Signal::SIGSTOP);
  for n in 0..4 {
    say(&awake, format!("one sleeps {n}"), &mut sockets).await;
  }
  pages[0].0.signal(Signal::SIGCONT);
  let again = &pages[0].1;
  let there = eventually("the one that slept answers", async || again.try_send("awake", "awake").await.and_then(|sent| sent.message)).await;
  again.reply_to(&there.id).await;
  assert_eq!(again.settled().await, awake.settled().await, "both show the same");
  for (process, _) in &mut pages {
    assert!(process.terminate().await.success());
  }
  crate::harness::check_log(&installation.product.dump());
}

/// The whole product sleeps, and a second one over the same database takes over; the first wakes, and both go on together.
#[tokio::test]
async fn a_whole_product_that_wakes_late_finds_the_other_one_and_doubles_nothing() {
  let model = Model::silent().await;
  let hold = Hold::new();
  model.script.once_on_words("half written", Reply::new().say("by the first ").hold(&hold).say("to the end"));
  model.script.on(|seen| Some(Reply::text(&format!("re: {}", text_of_last(seen)))));
  let mut installation = Installation::start(Setup::new().await.model(&model)).await;
  let owner = installation.owner();
  let id = owner.send("half written").await.id();
  hold.reached().await;
  for role in super::roles::ROLES {
    installation.process(role).signal(Signal::SIGSTOP);
  }
  let elsewhere = installation.product.setup.data().with_file_name("elsewhere").display().to_string();
  let env = installation.product.setup.env_with(&[("PA_DATA_DIR", &elsewhere), ("PA_LISTEN", "127.0.0.1:0")]);
  let mut second = crate::harness::Process::start("second pa up", &["up"], &env);
  let url = second.prints("listening").await.unwrap_or_else(|why| panic!("{why}"));
  let there = crate::harness::Client::new(&url, &owner.token);
  assert_eq!(there.reply_to(&id).await.text, "re: half written");
  hold.release();
  for role in super::roles::ROLES {
    installation.process(role).signal(Signal::SIGCONT);
  }
  for n in 0..3 {
    let (here, there) = (owner.clone(), there.clone());
    let one =
      eventually("the first answers again", async || here.try_send(&format!("here {n}"), &format!("here {n}")).await.and_then(|sent| sent.message)).await;
    here.reply_to(&one.id).await;
    let two = there.send(&format!("there {n}")).await.id();
    there.reply_to(&two).await;
  }
  let messages = there.settled().await;
  assert_eq!(owner.settled().await, messages, "both show the same");
  assert_eq!(messages.iter().filter(|message| message.role == "AGENT").count(), 7);
  let dump = installation.product.dump();
  crate::harness::check_log(&dump);
  installation.product.verify();
  assert_eq!(dump.story(&id).iter().filter(|kind| **kind == "ReplyPosted").count(), 1);
  assert!(second.terminate().await.success());
}
