//! What becomes of what servers send.

use serde_json::json;
use tokio::sync::mpsc;

use super::{Rig, said};
use crate::client::TEXT_BYTES_MAX;
use crate::rehearsal::{Hold, Reply};
use crate::{Delta, Finish, Model as _, Prices, ToolCall, Usage};

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
  ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

#[tokio::test]
async fn a_piece_is_there_while_the_model_is_still_held() {
  let rig = Rig::new().await;
  let hold = Hold::new();
  rig.script.queue(Reply::new().say("Hel").hold(&hold).say("lo"));
  let (send, mut pieces) = mpsc::unbounded_channel();
  let request = said("hi");
  let mut sink = move |delta| send.send(delta).expect("the test listens");
  let answering = rig.model.stream(&request, &mut sink);
  let watching = async {
    let first = pieces.recv().await;
    assert_eq!(first, Some(Delta::Text("Hel".into())));
    assert!(pieces.try_recv().is_err(), "nothing comes while the model is held");
    hold.release();
    pieces.recv().await
  };
  let (answer, second) = tokio::join!(answering, watching);
  assert_eq!(second, Some(Delta::Text("lo".into())));
  assert_eq!(answer.expect("an answer").text, "Hello");
}

/// Proves D29, RUN-30 (reasoning in fields of its own and in content parts).
#[tokio::test]
async fn reasoning_goes_nowhere() {
  let rig = Rig::new().await;
  let reply = Reply::new()
    .think("they greet me")
    .delta(r#"{"reasoning":"so I greet"}"#)
    .delta(r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Hel"}]}"#)
    .say("lo");
  let outcome = rig.answer_of(reply).await;
  assert_eq!(outcome.seen(), "Hello");
  let answer = outcome.answer();
  assert_eq!((answer.text.as_str(), answer.only_reasoning), ("Hello", false));
}

#[tokio::test]
async fn usage_is_taken_where_a_server_puts_it_and_else_stays_unknown() {
  let rig = Rig::new().await;
  let usage =
    json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}});
  let known = Usage { input: Some(10), output: Some(5), cached: Some(4), reasoning: Some(2) };
  let in_choice = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":7,"completion_tokens":3}}]}"#;
  let cases = [
    (Reply::text("x").usage(usage.clone()), known),
    (Reply::text("x").usage_in_last_choice(usage), known),
    (Reply::text("x").raw(format!("{in_choice}\n\n")).without_usage(), Usage { input: Some(7), output: Some(3), ..Usage::default() }),
    (Reply::text("x").usage(json!({"prompt_tokens": 9, "prompt_cache_hit_tokens": 1})), Usage { input: Some(9), cached: Some(1), ..Usage::default() }),
    (Reply::text("x").usage(json!("many")), Usage::default()),
    (Reply::text("x").without_usage(), Usage::default()),
  ];
  for (reply, expected) in cases {
    let shown = format!("{reply:?}");
    assert_eq!(rig.answer_of(reply).await.answer().usage, expected, "{shown}");
  }
}

#[tokio::test]
async fn a_price_is_known_or_unknown_but_never_guessed() {
  let prices = Prices { currency: "EUR".into(), input_micros: 2_000_000, output_micros: 8_000_000, cached_micros: Some(500_000) };
  let rig = Rig::configured(|config| config.prices = Some(prices)).await;
  let usage = |input, output, cached| Usage { input, output, cached, reasoning: None };
  let price = |usage| rig.model.config().price_micros(&usage);
  assert_eq!(price(usage(Some(1_000), Some(100), Some(400))), Some(1_200 + 200 + 800));
  assert_eq!(price(usage(Some(1_000), Some(100), None)), None);
  assert_eq!(price(usage(None, Some(100), Some(0))), None);
  assert_eq!(price(usage(Some(1_000), None, Some(0))), None);
  let without = Rig::new().await;
  assert_eq!(without.model.config().price_micros(&usage(Some(1), Some(1), Some(0))), None);
}

#[tokio::test]
async fn the_habits_of_many_servers_are_understood() {
  let rig = Rig::new().await;
  let end = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
  let crlf = format!(
    ": ping\r\n\r\ndata: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"Hello\"}},\"finish_reason\":\"\"}}]}}\r\n\r\n{end}\r\n\r\ndata: [DONE]\r\n\r\n"
  );
  let cases = [
    ("no [DONE]", Reply::text("Hello").without_done()),
    ("no usage", Reply::text("Hello").without_usage()),
    ("CRLF and a comment", Reply::new().raw(crlf).end()),
    ("no blank line at the end", Reply::text("Hello").raw(end).end()),
    ("chunks without a choice", Reply::new().raw("data: {\"choices\":[]}\n\ndata: {\"choices\":null}\n\ndata: {}\n\n").say("Hello")),
    ("null fields", Reply::new().delta(r#"{"role":"assistant","content":null,"tool_calls":null,"reasoning":null}"#).say("Hello")),
    ("other choices", Reply::new().raw("data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}}]}\n\n").say("Hello")),
    ("an unknown reason to finish", Reply::text("Hello").finish("eos")),
    ("a break after the end", Reply::text("Hello").raw(format!("{end}\n\n")).cut()),
    ("no streaming", Reply::json(&json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}))),
  ];
  for (habit, reply) in cases {
    let outcome = rig.answer_of(reply).await;
    assert_eq!(outcome.seen(), "Hello", "{habit}");
    let answer = outcome.answer();
    assert_eq!((answer.text.as_str(), answer.finish, answer.attempts), ("Hello", Finish::Stop, 1), "{habit}");
  }
}

#[tokio::test]
async fn parallel_calls_are_put_together_in_order() {
  let rig = Rig::new().await;
  let reply = Reply::new().say("Let me look.").calls(&[
    ("a", "pa_history", r#"{"query":"你好","last":5}"#),
    ("b", "pa_task_list", ""),
    ("c", "pa_web_search", r#"{"q":"x"}"#),
  ]);
  let answer = rig.answer_of(reply).await.answer();
  assert_eq!(answer.finish, Finish::ToolCalls);
  assert_eq!(answer.text, "Let me look.");
  let expected = [call("a", "pa_history", r#"{"query":"你好","last":5}"#), call("b", "pa_task_list", "{}"), call("c", "pa_web_search", r#"{"q":"x"}"#)];
  assert_eq!(answer.calls, expected);
}

#[tokio::test]
async fn calls_of_servers_that_number_them_otherwise_are_kept_apart() {
  let rig = Rig::new().await;
  let calls = |pieces: &[&str]| pieces.iter().fold(Reply::new().finish("stop"), |reply, piece| reply.delta(&format!(r#"{{"tool_calls":[{piece}]}}"#)));
  let cases = [
    (
      "all number 0",
      calls(&[
        r#"{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\":1}"}}"#,
        r#"{"index":0,"id":"b","function":{"name":"two","arguments":"{\"y\":2}"}}"#,
      ]),
      vec![call("a", "one", r#"{"x":1}"#), call("b", "two", r#"{"y":2}"#)],
    ),
    (
      "no number and no id",
      calls(&[r#"{"function":{"name":"one","arguments":"{}"}}"#, r#"{"function":{"name":"two","arguments":{"y":2}}}"#]),
      vec![call("call_0", "one", "{}"), call("call_1", "two", r#"{"y":2}"#)],
    ),
    (
      "the name with every piece",
      calls(&[r#"{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\""}}"#, r#"{"index":0,"id":"a","function":{"name":"one","arguments":":1}"}}"#]),
      vec![call("a", "one", r#"{"x":1}"#)],
    ),
    (
      "one id twice",
      calls(&[r#"{"index":0,"id":"a","function":{"name":"one","arguments":"null"}}"#, r#"{"index":1,"id":"a","function":{"name":"two"}}"#]),
      vec![call("a", "one", "{}"), call("call_1", "two", "{}")],
    ),
  ];
  for (habit, reply, expected) in cases {
    let answer = rig.answer_of(reply).await.answer();
    assert_eq!((answer.calls, answer.finish), (expected, Finish::ToolCalls), "{habit}");
  }
}

#[tokio::test]
async fn a_malformed_answer_is_tried_again_and_never_half_used() {
  let rig = Rig::new().await;
  let cases = [
    ("a broken chunk", Reply::text("half").raw("data: {\"choices\":[{\"ind\n\n")),
    ("no JSON", Reply::text("half").raw("data: oops\n\n")),
    ("arguments that are no JSON", Reply::new().call("a", "one", r#"{"x": }"#)),
    ("arguments that are no object", Reply::new().call("a", "one", "[1, 2]")),
    ("arguments that stop in the middle", Reply::new().half_a_call("a", "one", r#"{"x": "#)),
    ("a call without a name", Reply::new().call("a", "", "{}")),
    ("calls announced and none made", Reply::text("half").finish("tool_calls")),
    ("more calls than any turn has", Reply::new().calls(&[("", "one", ""); 65])),
    ("arguments over the limit", Reply::new().call("a", "one", &json!({"x": "y".repeat(256 * 1024)}).to_string())),
    ("an event over the limit", Reply::new().raw(format!("data: {}\n\n", " ".repeat(1024 * 1024)))),
  ];
  for (fault, reply) in cases {
    rig.script.queue(reply);
    rig.script.queue(Reply::text("whole"));
    let outcome = rig.ask(said("hi")).await;
    assert_eq!(outcome.seen(), "whole", "{fault}");
    let answer = outcome.answer();
    assert_eq!((answer.text.as_str(), answer.calls.len(), answer.attempts), ("whole", 0, 2), "{fault}");
  }
}

#[tokio::test]
async fn text_over_the_limit_ends_as_incomplete() {
  let rig = Rig::new().await;
  let hold = Hold::new();
  let long = "你".repeat(TEXT_BYTES_MAX / 3);
  let reply = Reply::new().half_a_call("a", "one", "").say(&long).say("你好").hold(&hold);
  let outcome = rig.answer_of(reply).await;
  let shown = outcome.seen();
  let answer = outcome.answer();
  assert_eq!(answer.finish, Finish::Length);
  assert_eq!(answer.text.len(), TEXT_BYTES_MAX - TEXT_BYTES_MAX % 3);
  assert_eq!(answer.text, shown);
  assert_eq!((answer.calls.len(), answer.calls_dropped), (0, 1));
}

#[tokio::test]
async fn a_filter_ends_an_answer_without_its_calls() {
  let rig = Rig::new().await;
  let answer = rig.answer_of(Reply::text("I can").call("a", "one", "{}").finish("content_filter")).await.answer();
  assert_eq!((answer.finish, answer.calls.len(), answer.calls_dropped), (Finish::ContentFilter, 0, 1));
}
