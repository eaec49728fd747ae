//! "Settings": one versioned entity behind one mutation.

use serde_json::{Value, json};

use super::sound;
use crate::harness::{Client, Model, Setup, fresh_key};

/// Changes settings; the whole payload.
pub(super) async fn update(client: &Client, mut input: Value) -> Value {
  input["requestKey"] = fresh_key("settings").into();
  let mutation = "mutation($input: UpdateSettingsInput!) { updateSettings(input: $input) { decided userErrors { code field } \
    settings { version timeZone language concurrency model effort name } } }";
  client.ask(mutation, json!({ "input": input })).await["updateSettings"].clone()
}

/// Proves RUN-42, SET-8.
#[tokio::test]
async fn zone_model_and_concurrency_are_changed_by_one_mutation_with_a_version() {
  let model = Model::echo().await;
  let mut product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let mut updates = owner.updates(Some(&owner.position().await)).await;
  let changed = update(&owner, json!({ "version": 1, "timeZone": "Europe/Berlin", "concurrency": 3, "model": "scripted" })).await;
  let settings = &changed["settings"];
  assert_eq!(
    (&settings["version"], &settings["timeZone"], &settings["concurrency"], &settings["model"]),
    (&json!(2), &json!("Europe/Berlin"), &json!(3), &json!("scripted"))
  );
  updates.until(|update| update.kind() == "SettingsUpserted" && update.change["settings"]["timeZone"] == "Europe/Berlin").await;

  // Somebody who has not seen that changes nothing.
  let late = update(&owner, json!({ "version": 1, "timeZone": "Asia/Tokyo" })).await;
  assert_eq!(late["userErrors"][0]["code"], "STATE_CHANGED", "{late}");
  for wrong in [json!({ "version": 2, "timeZone": "Mars/Olympus" }), json!({ "version": 2, "model": "not-offered" }), json!({ "version": 2, "concurrency": 0 })]
  {
    let refused = update(&owner, wrong).await;
    assert_eq!(refused["userErrors"][0]["code"], "VALUE_INVALID", "{refused}");
  }

  // Empty follows the installation's default again, and the next request uses it.
  let back = update(&owner, json!({ "version": 2, "model": "" })).await;
  assert_eq!(back["settings"]["model"], "");
  owner.send("hello").await;
  owner.settled().await;
  assert_eq!(model.script.requests()[0].body["model"], "scripted");

  product.restart9().await;
  let kept = product.owner().ask("{ settings { version timeZone concurrency model } }", json!({})).await;
  assert_eq!(kept["settings"], json!({ "version": 3, "timeZone": "Europe/Berlin", "concurrency": 3, "model": "" }));
  sound(&product);
}
