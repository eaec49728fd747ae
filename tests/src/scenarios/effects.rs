//! "Approvals": effects outside wait for the owner's word on their card, happen once, and are never repeated when nobody knows whether they did.
//!
//! No product tool acts outside yet: the program under test has two that carry the fields of an email and of a batch of computer input.

use serde_json::{Value, json};

use super::sound;
use super::tasks::{call, finish, is_task, results, starting, task_of, told, until, verb};
use crate::harness::{Client, Effects, Model, Outside, Product, Setup, eventually, fresh_key};

/// The cards that wait for the owner.
pub(super) async fn cards(owner: &Client, count: usize) -> Vec<Value> {
  eventually(&format!("{count} cards"), async || {
    let data = owner.ask("{ pendingActions { id taskId kind state gate tool target content scope } }", json!({})).await;
    let cards: Vec<Value> = data["pendingActions"].as_array().expect("a list").clone();
    (cards.len() == count).then_some(cards)
  })
  .await
}

pub(super) async fn decide(owner: &Client, card: &Value, decision: &str) -> Value {
  let query = "mutation($input: DecideActionInput!) { answer: decideAction(input: $input) { decided userErrors { code } } }";
  owner.ask(query, json!({ "input": { "requestKey": fresh_key("d"), "actionId": card["id"], "decision": decision } })).await["answer"].clone()
}

pub(super) async fn reconcile(owner: &Client, action: &Value, outcome: &str) -> Value {
  let query = "mutation($input: ReconcileActionInput!) { answer: reconcileAction(input: $input) { decided userErrors { code } } }";
  owner.ask(query, json!({ "input": { "requestKey": fresh_key("r"), "actionId": action["id"], "outcome": outcome } })).await["answer"].clone()
}

pub(super) fn email(to: &str) -> Value {
  json!({ "to": [to], "subject": "Hello", "body": "Good morning." })
}

fn click(window: &str, x: i32) -> Value {
  json!({ "device": "office", "application": "Notes", "window": window, "snapshot_id": "s1", "steps": [{ "type": "click", "x": x, "y": 2 }] })
}

/// A tool and what makes its arguments.
type Planned = (&'static str, fn() -> Value);

/// A model of tasks that makes these calls one after the other and then ends with the results that it saw.
async fn acting(calls: &'static [Planned]) -> Model {
  let model = starting().await;
  model.script.on(move |seen| {
    is_task(seen).then(|| {
      if let Some((tool, arguments)) = calls.get(results(seen)) {
        return call(tool, &arguments());
      }
      let results = seen.messages().iter().filter(|message| message["role"] == "tool");
      let saw: Vec<String> = results.map(|message| crate::harness::words(&message["content"])).collect();
      finish(&format!("saw: {}", saw.join(" | ")))
    })
  });
  model
}

pub(super) async fn with_effects(model: &Model, effects: &Effects) -> Product {
  Setup::new().await.model(model).env("PA__TESTING__EFFECTS_URL", &effects.url()).start().await
}

/// An email waits for its card over a restart, is sent once by two taps at the same time, and by nothing else.
///
/// Proves USE-13, USE-15, USE-17, REP-20, REP-21.
#[tokio::test]
async fn an_email_is_sent_once_by_its_card_and_by_nothing_else() {
  let model = acting(&[("pa_test_email", || email("ada@example.org"))]).await;
  let effects = Effects::start(Outside::Accepts).await;
  let mut product = with_effects(&model, &effects).await;
  let task = task_of(&product.owner().send("write to Ada").await.id());
  until(&product.owner(), &task, |task| task["state"] == "WAITING").await;
  let card = cards(&product.owner(), 1).await.remove(0);
  assert_eq!((card["gate"].as_str(), card["target"].as_str()), (Some("EMAIL"), Some("ada@example.org\nHello")), "{card}");
  assert_eq!(card["content"], email("ada@example.org"), "the card has everything that would be sent");
  assert!(card["scope"].is_null(), "email is never allowed for a whole task");
  assert_eq!(decide(&product.owner(), &card, "ALLOW_FOR_TASK").await["userErrors"][0]["code"], "NOT_ALLOWED");
  // Neither a kill nor a word changes that.
  product.restart9().await;
  let owner = product.owner();
  assert_eq!(cards(&owner, 1).await[0]["id"], card["id"]);
  assert!(effects.taken().is_empty());

  let (one, other) = tokio::join!(decide(&owner, &card, "APPROVE_ONCE"), decide(&owner, &card, "APPROVE_ONCE"));
  let codes: Vec<_> = [&one, &other].iter().filter_map(|answer| answer["userErrors"][0]["code"].as_str()).collect();
  assert_eq!(codes, ["STATE_CHANGED"], "one of two taps counts: {one} {other}");
  assert!(told(&owner, "saw: ").await.contains("accepted"));
  assert_eq!(effects.taken().len(), 1);
  assert_eq!(effects.taken()[0]["action"], email("ada@example.org"));
  let dump = sound(&product);
  let started = dump.of("CallStarted").into_iter().find(|line| line.text("tool") == "pa_test_email").expect("it was permitted").clone();
  assert_eq!(started.text("card"), card["id"].as_str().unwrap(), "the log says who allowed it");
}

/// What the owner rejects is not made, and not asked for again, until they say something new.
///
/// Proves USE-20, USE-21.
#[tokio::test]
async fn a_rejected_action_is_not_asked_for_again() {
  let model = acting(&[("pa_test_email", || email("ada@example.org")), ("pa_test_email", || email("ada@example.org"))]).await;
  let effects = Effects::start(Outside::Accepts).await;
  let product = with_effects(&model, &effects).await;
  let owner = product.owner();
  owner.send("write to Ada").await;
  let card = cards(&owner, 1).await.remove(0);
  assert_eq!(decide(&owner, &card, "REJECT").await["userErrors"], json!([]));
  let told = told(&owner, "saw: ").await;
  assert_eq!(told.matches("rejected").count(), 2, "{told}");
  assert!(effects.taken().is_empty());
  assert_eq!(sound(&product).of("CallHeld").len(), 1, "the second one was not even asked for");
}

/// "Allow for this task" covers the application on that computer, and nothing else.
///
/// Proves USE-16.
#[tokio::test]
async fn what_is_allowed_for_a_task_is_one_application_on_one_computer() {
  let calls: &'static [Planned] =
    &[("pa_test_computer", || click("one", 1)), ("pa_test_computer", || click("two", 2)), ("pa_test_email", || email("ada@example.org"))];
  let model = acting(calls).await;
  let effects = Effects::start(Outside::Accepts).await;
  let product = with_effects(&model, &effects).await;
  let owner = product.owner();
  owner.send("click about").await;
  let card = cards(&owner, 1).await.remove(0);
  assert_eq!(card["scope"], "Notes on office", "{card}");
  assert_eq!(decide(&owner, &card, "ALLOW_FOR_TASK").await["userErrors"], json!([]));
  effects.reached(2).await;
  let card = cards(&owner, 1).await.remove(0);
  assert_eq!(card["gate"], "EMAIL", "the other window was covered, the email is not");
  assert_eq!(decide(&owner, &card, "APPROVE_ONCE").await["userErrors"], json!([]));
  told(&owner, "saw: ").await;
  assert_eq!(effects.taken().len(), 3);
  sound(&product);
}

/// An effect of which nobody knows whether it happened waits for the owner's word, and is not repeated, whatever dies.
///
/// Proves RUN-4, RUN-18, USE-23, USE-24.
#[tokio::test]
async fn an_effect_that_nobody_knows_of_is_never_repeated() {
  let model = acting(&[("pa_test_email", || email("ada@example.org"))]).await;
  let effects = Effects::start(Outside::Drops).await;
  let mut product = with_effects(&model, &effects).await;
  let task = task_of(&product.owner().send("write to Ada").await.id());
  let card = cards(&product.owner(), 1).await.remove(0);
  assert_eq!(decide(&product.owner(), &card, "APPROVE_ONCE").await["userErrors"], json!([]));
  effects.reached(1).await;
  let waiting = until(&product.owner(), &task, |task| task["state"] == "WAITING" && task["reason"] == "UNKNOWN_EFFECT").await;
  assert_eq!(waiting["reason"], "UNKNOWN_EFFECT");
  effects.becomes(Outside::Accepts);
  product.restart9().await;
  let owner = product.owner();
  let unknown = cards(&owner, 1).await.remove(0);
  assert_eq!((unknown["kind"].as_str(), unknown["state"].as_str()), (Some("EFFECT"), Some("UNKNOWN")), "{unknown}");
  assert_eq!(verb(&owner, "resumeTask", &task).await["userErrors"][0]["code"], "STATE_CHANGED", "no other word overrides it");
  assert_eq!(reconcile(&owner, &unknown, "EXECUTED").await["userErrors"], json!([]));
  told(&owner, "saw: ").await;
  assert_eq!(effects.taken().len(), 1);
  sound(&product);
}

/// An effect that the other side refuses certainly did not happen: the model is told, and the task goes on.
#[tokio::test]
async fn an_effect_that_was_refused_is_told_to_the_model() {
  let model = acting(&[("pa_test_email", || email("ada@example.org"))]).await;
  let effects = Effects::start(Outside::Refuses).await;
  let product = with_effects(&model, &effects).await;
  let owner = product.owner();
  owner.send("write to Ada").await;
  let card = cards(&owner, 1).await.remove(0);
  decide(&owner, &card, "APPROVE_ONCE").await;
  assert!(told(&owner, "saw: ").await.contains("Failed: \"REFUSED\""));
  sound(&product);
}

/// Processes whose command line has a word.
fn processes_with(word: &str) -> usize {
  let entries = std::fs::read_dir("/proc").expect("processes are listed").flatten();
  entries.filter(|entry| std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(word))).count()
}

/// A stop ends a running tool with all its processes, as seen from outside, and the task says that it was stopped.
///
/// Proves RUN-23, BB-11.
#[tokio::test]
async fn a_stop_ends_the_processes_of_a_running_tool() {
  let mark = fresh_key("pa-bb11");
  let arguments = json!({ "secs": 600, "mark": mark });
  let model = starting().await;
  let wanted = arguments.clone();
  model.script.on(move |seen| is_task(seen).then(|| call("pa_process_group", &wanted)));
  let effects = Effects::start(Outside::Accepts).await;
  let product = with_effects(&model, &effects).await;
  let owner = product.owner();
  let task = task_of(&owner.send("compile for ever").await.id());
  eventually("the processes run", async || (processes_with(&mark) > 0).then_some(())).await;
  assert_eq!(verb(&owner, "stopTask", &task).await["userErrors"], json!([]));
  eventually("the processes are gone", async || (processes_with(&mark) == 0).then_some(())).await;
  until(&owner, &task, |task| task["state"] == "STOPPED").await;
  eventually("what became of the call is known", async || (!product.dump().of("CallUnknown").is_empty()).then_some(())).await;
  sound(&product);
}

/// An effect that is never answered is unknown after its tool's own limit, and the owner may say that it did not happen.
///
/// Proves RUN-22, USE-24.
#[tokio::test]
async fn an_effect_that_is_never_answered_waits_for_the_owners_word() {
  let model = acting(&[("pa_test_email", || email("ada@example.org"))]).await;
  let effects = Effects::start(Outside::Hangs).await;
  let product = with_effects(&model, &effects).await;
  let owner = product.owner();
  let task = task_of(&owner.send("write to Ada").await.id());
  let card = cards(&owner, 1).await.remove(0);
  assert_eq!(decide(&owner, &card, "APPROVE_ONCE").await["userErrors"], json!([]));
  until(&owner, &task, |task| task["reason"] == "UNKNOWN_EFFECT").await;
  let unknown = cards(&owner, 1).await.remove(0);
  assert_eq!(reconcile(&owner, &unknown, "NOT_EXECUTED").await["userErrors"], json!([]));
  assert!(told(&owner, "saw: ").await.contains("not done"));
  assert_eq!(effects.taken().len(), 1);
  sound(&product);
}
