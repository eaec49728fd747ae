//! Errors: what is tried again, what is not, and what they say.

use std::error::Error as _;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{KEY, Rig, said};
use crate::rehearsal::{Hold, Reply};
use crate::{Delta, Disposition, Error, Phase, Request, Timeouts};

/// Proves RUN-22 (a failing request is tried again within its limits).
#[tokio::test]
async fn passing_trouble_is_tried_again() {
  let rig = Rig::new().await;
  let trouble = [
    ("429", Reply::status(429)),
    ("429 with a wait", Reply::status(429).retry_after("0")),
    ("500", Reply::status(500)),
    ("503 with a wait", Reply::status(503).retry_after("0.01")),
    ("408", Reply::status(408)),
    ("no answer at all", Reply::hang_up()),
    ("an error under status 200", Reply::json(&json!({"error": {"message": "busy", "code": 503}}))),
    ("an error in the stream", Reply::text("half").raw("data: {\"error\":{\"message\":\"overloaded\",\"code\":\"429\"}}\n\n")),
  ];
  for (name, reply) in trouble {
    rig.script.queue(reply);
    rig.script.queue(Reply::text("fine"));
    let outcome = rig.ask(said("hi")).await;
    assert_eq!(outcome.seen(), "fine", "{name}");
    assert_eq!(outcome.answer().attempts, 2, "{name}");
  }
}

#[tokio::test]
async fn nothing_is_taken_back_when_nothing_was_shown() {
  let rig = Rig::new().await;
  rig.script.queue(Reply::status(500));
  rig.script.queue(Reply::new().think("hm").cut());
  let outcome = rig.answer_of(Reply::text("fine")).await;
  assert_eq!(outcome.deltas, [Delta::Text("fine".into())]);
}

#[tokio::test]
async fn the_wait_that_a_server_asks_for_is_kept() {
  let rig = Rig::new().await;
  rig.script.queue(Reply::status(429).retry_after("0.2"));
  let begun = Instant::now();
  rig.answer_of(Reply::text("fine")).await.answer();
  assert!(begun.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn trouble_that_stays_ends_at_the_limit_of_attempts() {
  let rig = Rig::new().await;
  rig.script.on(|_| Some(Reply::status(503)));
  let error = rig.ask(said("hi")).await.error();
  assert!(matches!(error, Error::Unavailable { status: 503, .. }), "{error:?}");
  assert_eq!(rig.script.requests().len(), 4);
}

#[tokio::test]
async fn a_wait_longer_than_we_have_goes_back_to_the_caller_at_once() {
  let rig = Rig::new().await;
  rig.script.on(|_| Some(Reply::status(429).retry_after("30")));
  let deadline = Some(Instant::now() + Duration::from_secs(20));
  let error = rig.ask(Request { deadline, ..said("hi") }).await.error();
  assert_eq!(error.disposition(), Disposition::Retry { after: Some(Duration::from_secs(30)) });
  rig.script.on(|_| Some(Reply::status(429).retry_after("3600")));
  let patient = Rig::configured(|config| config.retry.retry_after_max_ms = 1_000).await;
  patient.script.on(|_| Some(Reply::status(429).retry_after("3")));
  let error = patient.ask(said("hi")).await.error();
  assert_eq!(error.disposition(), Disposition::Retry { after: Some(Duration::from_secs(3)) });
  assert_eq!((rig.script.requests().len(), patient.script.requests().len()), (1, 1));
}

#[tokio::test]
async fn a_lasting_refusal_is_not_tried_again() {
  let rig = Rig::new().await;
  let refusals = [
    (400, "", "bad_request"),
    (400, r#"{"error":{"message":"This model's maximum context length is 8 tokens"}}"#, "context_too_long"),
    (401, "", "unauthorized"),
    (403, "", "unauthorized"),
    (404, r#"{"error":{"message":"The model `x` does not exist"}}"#, "model_unknown"),
    (404, "not found", "endpoint_unknown"),
    (413, "", "request_too_large"),
    (429, r#"{"error":{"code":"insufficient_quota"}}"#, "out_of_credit"),
  ];
  for (status, body, code) in refusals {
    let before = rig.script.requests().len();
    let error = rig.answer_of(Reply::status(status).body(body)).await.error();
    assert_eq!((error.code(), error.disposition()), (code, Disposition::Fail), "{status} {body}");
    assert_eq!(rig.script.requests().len(), before + 1, "{status} {body}");
  }
}

#[tokio::test]
async fn no_error_and_no_debug_output_holds_the_key() {
  let rig = Rig::configured(|config| config.retry.attempts_max = 1).await;
  let quoting = json!({"error": {"message": format!("Incorrect API key provided: {KEY}.\u{7}"), "code": 500}}).to_string();
  let replies = [
    Reply::status(401).body(&quoting),
    Reply::status(500).body(&format!("<p>{KEY}</p>")),
    Reply::json(&serde_json::from_str(&quoting).expect("json")),
    Reply::hang_up(),
  ];
  for reply in replies {
    let error = rig.answer_of(reply).await.error();
    let mut shown = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
      write!(shown, "{cause} {cause:?}").expect("writes to memory");
      source = cause.source();
    }
    assert!(!shown.contains(KEY) && !shown.contains('\u{7}'), "{shown}");
  }
  let config = crate::Config { base_url: format!("https://user:{KEY}@host/v1?key={KEY}"), ..crate::Model::config(&rig.model).clone() };
  assert!(!format!("{config:?}").contains(KEY), "{config:?}");
}

#[tokio::test]
async fn an_endless_error_body_is_read_up_to_a_limit() {
  let rig = Rig::configured(|config| config.retry.attempts_max = 1).await;
  let error = rig.answer_of(Reply::status(500).body(&"x".repeat(4 * 1024 * 1024))).await.error();
  assert!(error.to_string().len() < 1_000);
}

/// Proves RUN-22.
#[tokio::test]
async fn each_time_out_ends_a_request() {
  let rig = Rig::configured(|config| config.retry.attempts_max = 1).await;
  let hold = Hold::new();
  let never = Timeouts::default();
  let soon = 30;
  let idle = Reply::text("half").hold(&hold);
  let cases = [
    (Phase::FirstByte, Timeouts { first_byte_ms: soon, ..never }, Reply::new().held_from_the_start(&hold)),
    (Phase::FirstByte, Timeouts { first_byte_ms: soon, ..never }, Reply::new().raw(": still alive\n\n").hold(&hold)),
    (Phase::Idle, Timeouts { idle_ms: soon, ..never }, idle.clone()),
    (Phase::Total, Timeouts { total_ms: soon, ..never }, idle),
  ];
  for (expected, timeouts, reply) in cases {
    rig.script.queue(reply);
    let error = rig.ask(Request { timeouts: Some(timeouts), ..said("hi") }).await.error();
    assert!(matches!(error, Error::TimedOut { phase } if phase == expected), "{expected:?}: {error:?}");
    assert_eq!(error.disposition(), Disposition::Retry { after: None });
  }
}

/// Proves RUN-22.
#[tokio::test]
async fn a_time_out_is_tried_again_before_the_deadline_and_not_after() {
  let rig = Rig::new().await;
  let hold = Hold::new();
  let timeouts = Some(Timeouts { idle_ms: 30, ..Timeouts::default() });
  rig.script.queue(Reply::text("half").hold(&hold));
  rig.script.queue(Reply::text("whole"));
  assert_eq!(rig.ask(Request { timeouts, ..said("hi") }).await.answer().attempts, 2);
  rig.script.queue(Reply::text("half").hold(&hold));
  let deadline = Some(Instant::now() + Duration::from_millis(40));
  let error = rig.ask(Request { deadline, ..said("hi") }).await.error();
  assert!(matches!(error, Error::TimedOut { phase: Phase::Total }), "{error:?}");
  assert_eq!(rig.script.requests().len(), 3);
}
