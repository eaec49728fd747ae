//! "Sidebar and selectors": the thinking effort.

use serde_json::json;

use super::settings::update;
use super::sound;
use crate::harness::{Model, Setup};

/// Proves SID-19, SID-20.
#[tokio::test]
async fn effort_starts_fast_follows_the_model_and_goes_into_each_request() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).env("PA__MODEL__EFFORTS", r#"["LOW","HIGH"]"#).start().await;
  let owner = product.owner();
  let settings = owner.ask("{ settings { effort availableModels { name efforts } } }", json!({})).await;
  assert_eq!(settings["settings"]["effort"], "FAST");
  assert_eq!(settings["settings"]["availableModels"], json!([{ "name": "scripted", "efforts": ["FAST", "LOW", "HIGH"] }]));

  let id = owner.send("fast").await.id();
  owner.reply_to(&id).await;
  let changed = update(&owner, json!({ "version": 1, "effort": "HIGH" })).await;
  assert_eq!(changed["settings"]["effort"], "HIGH", "{changed}");
  let id = owner.send("slow").await.id();
  owner.reply_to(&id).await;
  let refused = update(&owner, json!({ "version": 2, "effort": "MEDIUM" })).await;
  assert_eq!(refused["userErrors"][0]["code"], "VALUE_INVALID", "the model does not have it: {refused}");

  let asked: Vec<_> = model.script.requests().iter().map(|seen| seen.body["reasoning_effort"].clone()).collect();
  assert!(asked[0].is_null(), "no extra thinking: {}", asked[0]);
  assert_eq!(asked[1], "high");
  let dump = sound(&product);
  let recorded: Vec<_> = dump.of("StepRecorded").iter().map(|line| line.body["model_call"]["effort"].clone()).collect();
  assert_eq!(recorded, ["FAST", "HIGH"]);
}
