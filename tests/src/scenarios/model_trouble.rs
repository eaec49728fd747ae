//! The model misbehaves: cut streams, refusals, endings by length. Nothing half is ever shown as final.

use pa_model::rehearsal::{Hold, Reply};

use super::sound;
use crate::harness::{Model, Setup};

/// Cut after half a tool call: no tool runs. Cut after half a sentence: written again. Ended by "length": kept, and marked.
///
/// Proves BB-58.
#[tokio::test]
async fn bb_58_a_cut_stream_is_tried_again_and_an_end_by_length_is_marked() {
  let model = Model::silent().await;
  model.script.queue(Reply::new().half_a_call("call_1", "pa_history", r#"{"last"#).cut());
  model.script.queue(Reply::new().say("Half a sen").cut());
  let hold = Hold::new();
  model.script.queue(Reply::new().say("A whole sentence.").hold(&hold));
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let mut updates = owner.updates(None).await;
  let first = owner.send("first").await.id();
  assert_eq!(updates.text_with("sentence.").await, "A whole sentence.", "what was shown before is taken back");
  hold.release();
  let reply = owner.reply_to(&first).await;
  assert_eq!((reply.text.as_str(), reply.incomplete), ("A whole sentence.", false));

  model.script.queue(Reply::new().say("As long as it go").finish("length"));
  let second = owner.send("second").await.id();
  let reply = owner.reply_to(&second).await;
  assert_eq!((reply.text.as_str(), reply.incomplete), ("As long as it go", true));

  let dump = sound(&product);
  assert!(dump.of("CallStarted").is_empty(), "half a call is no call");
  assert!(!dump.text.contains("Half a sen"));
  let calls: Vec<_> =
    dump.of("StepRecorded").iter().map(|line| (line.body["model_call"]["finish"].clone(), line.body["model_call"]["attempts"].clone())).collect();
  assert_eq!(calls, [("STOP".into(), 3.into()), ("LENGTH".into(), 1.into())]);
}

/// "Too many requests" is waited out as the server asks; a server that never gives an answer ends in one notice.
///
/// Proves REP-5, RUN-22.
#[tokio::test]
async fn a_busy_model_is_asked_again_and_an_impossible_one_ends_in_a_notice() {
  let model = Model::silent().await;
  model.script.queue(Reply::status(429).retry_after("1"));
  model.script.queue(Reply::status(503));
  model.script.queue(Reply::text("at last"));
  let product = Setup::new().await.model(&model).start().await;
  let owner = product.owner();
  let id = owner.send("patience").await.id();
  assert_eq!(owner.reply_to(&id).await.text, "at last");

  for _ in 0..8 {
    model.script.queue(Reply::hang_up());
  }
  let id = owner.send("hopeless").await.id();
  owner.has_status(&id, "FAILED").await;
  let messages = owner.settled().await;
  let notices: Vec<_> = messages.iter().filter(|message| message.role == "NOTICE").collect();
  assert_eq!(notices.len(), 1);
  assert_eq!(notices[0].notice.as_ref().unwrap()["code"], "MODEL_UNAVAILABLE");
  sound(&product);
}

/// Usage and price are kept as the model reports them; what it does not report stays unknown, never 0.
#[tokio::test]
async fn usage_is_recorded_and_unknown_stays_unknown() {
  let model = Model::silent().await;
  model.script.queue(Reply::text("counted").usage(serde_json::json!({ "prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200 })));
  model.script.queue(Reply::text("not counted").without_usage());
  let product = Setup::new().await.model(&model).env("PA__MODEL__PRICE_INPUT_MICROS", "150000").env("PA__MODEL__PRICE_OUTPUT_MICROS", "600000").start().await;
  let owner = product.owner();
  for text in ["one", "two"] {
    let id = owner.send(text).await.id();
    owner.reply_to(&id).await;
  }
  let dump = sound(&product);
  let steps = dump.of("StepRecorded");
  let call = |n: usize, field: &str| steps[n].body["model_call"][field].clone();
  assert_eq!((call(0, "input_tokens"), call(0, "output_tokens"), call(0, "price_micros")), (1000.into(), 200.into(), 270.into()));
  assert_eq!(call(0, "currency"), "USD");
  for field in ["input_tokens", "output_tokens", "price_micros"] {
    assert!(call(1, field).is_null(), "{field}: {}", call(1, field));
  }
  assert!(!steps[0].body["model_call"]["parts"].as_array().unwrap().is_empty(), "what the prompt was made of");
}
