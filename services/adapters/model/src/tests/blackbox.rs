//! The cases that other products failed, as far as they concern the model port.

use super::{Rig, said};
use crate::rehearsal::Reply;
use crate::{Delta, Disposition, Error, Finish};

/// Proves BB-06 (the model text part), D28: the answer arrives whole, offending code points replaced.
#[tokio::test]
async fn bb_06_nul_and_lone_surrogates_in_model_text_are_replaced() {
  let rig = Rig::new().await;
  let reply = Reply::new()
    .say_escaped(r"A\u0000B")
    .say_escaped(r"C\ud800D")
    .say_escaped(r"\ud83d\ude00")
    .raw(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"E\0F\xed\"}}]}\n\n".to_vec());
  let outcome = rig.answer_of(reply).await;
  assert_eq!(outcome.seen(), "A\u{fffd}BC\u{fffd}D😀E\u{fffd}F\u{fffd}");
  let answer = outcome.answer();
  assert_eq!((answer.text.as_str(), answer.attempts), ("A\u{fffd}BC\u{fffd}D😀E\u{fffd}F\u{fffd}", 1));
  let calling = Reply::new().call("a", "one", r#"{"x":"A\u0000B\udc00"}"#);
  let answer = rig.answer_of(calling).await.answer();
  let arguments: serde_json::Value = serde_json::from_str(&answer.calls[0].arguments).expect("sound arguments");
  assert_eq!(arguments["x"], "A\u{fffd}B\u{fffd}");
}

/// Proves BB-29, D29: a think tag split across two deltas and never closed shows nothing of what follows.
#[tokio::test]
async fn bb_29_an_unclosed_think_tag_across_two_deltas_hides_the_rest() {
  let rig = Rig::new().await;
  let outcome = rig.answer_of(Reply::new().say("Hello. ").say("<thi").say("nk>the owner's secret").say(" plan")).await;
  assert_eq!(outcome.seen(), "Hello. ");
  let answer = outcome.answer();
  assert_eq!((answer.text.as_str(), answer.only_reasoning), ("Hello. ", false));
}

/// Proves BB-29: an answer of only reasoning is empty and says so, so that the caller asks for the words without tools.
#[tokio::test]
async fn bb_29_an_answer_of_only_reasoning_says_so() {
  let rig = Rig::new().await;
  let silent = [
    Reply::new().say("<think>all of it").say(" is reasoning"),
    Reply::new().say("<think>all of it</think>\n\n"),
    Reply::new().think("all of it"),
    Reply::new().think("all of it").finish("length"),
  ];
  for reply in silent {
    let outcome = rig.answer_of(reply).await;
    assert_eq!(outcome.deltas, []);
    let answer = outcome.answer();
    assert!(answer.only_reasoning && answer.is_blank());
  }
  let empty = rig.answer_of(Reply::new()).await.answer();
  assert!(empty.is_blank() && !empty.only_reasoning);
  let calling = rig.answer_of(Reply::new().think("look first").call("a", "one", "")).await.answer();
  assert!(!calling.only_reasoning && !calling.is_blank());
}

/// Proves BB-29: reasoning whose opening tag stood in the model's prompt is taken back when its closing tag comes.
#[tokio::test]
async fn bb_29_reasoning_without_its_opening_tag_is_taken_back() {
  let rig = Rig::new().await;
  let outcome = rig.answer_of(Reply::new().say("they greet me</thi").say("nk>\n\nHello")).await;
  assert!(outcome.deltas.contains(&Delta::Restarted));
  assert_eq!(outcome.seen(), "Hello");
  assert_eq!(outcome.answer().text, "Hello");
}

/// Proves BB-58: a stream cut after half a tool call runs no tool, however it was cut, and is tried again.
#[tokio::test]
async fn bb_58_a_cut_after_half_a_tool_call_is_tried_again() {
  let rig = Rig::new().await;
  let half = || Reply::new().half_a_call("a", "pa_bash", r#"{"command":"rm"#);
  let whole_but_unfinished = || Reply::new().call("a", "pa_bash", r#"{"command":"ls"}"#);
  for cut in [half().cut(), half().end(), whole_but_unfinished().cut(), whole_but_unfinished().end()] {
    rig.script.queue(cut);
    rig.script.queue(Reply::text("whole"));
    let answer = rig.ask(said("hi")).await.answer();
    assert_eq!((answer.calls.len(), answer.text.as_str(), answer.attempts), (0, "whole", 2));
  }
}

/// Proves BB-58: half a sentence is never an answer; its pieces are taken back before the next attempt's.
#[tokio::test]
async fn bb_58_a_cut_after_half_a_sentence_starts_anew() {
  let rig = Rig::new().await;
  for cut in [Reply::text("The answer is fo").cut(), Reply::text("The answer is fo").end(), Reply::text("The answer is fo").raw("data: [DONE]\n\n").end()] {
    rig.script.queue(cut);
    rig.script.queue(Reply::text("The answer is 42."));
    let outcome = rig.ask(said("hi")).await;
    let expected = [Delta::Text("The answer is fo".into()), Delta::Restarted, Delta::Text("The answer is 42.".into())];
    assert_eq!(outcome.deltas, expected);
    assert_eq!(outcome.answer().text, "The answer is 42.");
  }
}

/// Proves BB-58: when every attempt is cut there is an error and no answer.
#[tokio::test]
async fn bb_58_a_stream_that_is_always_cut_is_an_error() {
  let rig = Rig::new().await;
  rig.script.on(|_| Some(Reply::text("half a sen").cut()));
  let error = rig.ask(said("hi")).await.error();
  assert!(matches!(error, Error::Cut), "{error:?}");
  assert_eq!(error.disposition(), Disposition::Retry { after: None });
  assert_eq!(rig.script.requests().len(), 4);
}

/// Proves BB-58: an end by length is incomplete, and none of its calls runs, not even one that looks whole.
#[tokio::test]
async fn bb_58_an_end_by_length_is_incomplete_and_calls_nothing() {
  let rig = Rig::new().await;
  let reply = Reply::text("The answer is fo").call("a", "pa_bash", r#"{"command":"ls"}"#).half_a_call("b", "pa_bash", "").finish("length");
  let answer = rig.answer_of(reply).await.answer();
  assert_eq!((answer.finish, answer.calls.len(), answer.calls_dropped), (Finish::Length, 0, 2));
  assert_eq!(answer.text, "The answer is fo");
}
