//! The rehearsal model as the product starts it, and its script.

use std::time::{Duration, Instant};

use super::{Rig, ask, listener, said};
use crate::rehearsal::{Hold, Options, Reply, Server, serve};
use crate::{ChatCompletions, Finish, Message, Request};

async fn plain(pause: Duration) -> (ChatCompletions, Server) {
  let server = serve(listener().await, Options { pause, ..Options::default() }).expect("serves");
  (ChatCompletions::new(server.config()).expect("a client"), server)
}

#[tokio::test]
async fn the_rehearsal_says_what_it_is_and_writes_in_pieces() {
  for pause in [Duration::ZERO, Duration::from_millis(1)] {
    let (model, _server) = plain(pause).await;
    let outcome = ask(&model, said("show me a table")).await;
    assert!(outcome.deltas.len() > 5, "{:?}", outcome.deltas);
    let shown = outcome.seen();
    let answer = outcome.answer();
    assert!(answer.text.starts_with("**Rehearsal model** (no real model is configured)"));
    assert!(answer.text.contains("| Planet |"));
    assert_eq!((answer.finish, answer.text, answer.model.as_deref()), (Finish::Stop, shown, Some("rehearsal")));
    assert!(answer.usage.input > Some(0) && answer.usage.output > Some(0));
  }
}

#[tokio::test]
async fn counting_is_written_number_by_number_and_slower_than_other_answers() {
  let pause = Duration::from_millis(4);
  let (model, _server) = plain(pause).await;
  let began = Instant::now();
  let outcome = ask(&model, said("count to 40")).await;
  assert!(began.elapsed() >= pause * 5 * 40, "{:?}", began.elapsed());
  assert!(outcome.deltas.len() > 40, "{:?}", outcome.deltas);
  assert!(outcome.answer().text.ends_with(" 38 39 40"));
}

#[tokio::test]
async fn the_rehearsal_answers_the_same_to_the_same_in_the_users_language() {
  let (model, server) = plain(Duration::ZERO).await;
  let first = ask(&model, said("帮助")).await.answer();
  let second = ask(&model, said("帮助")).await.answer();
  assert_eq!(first, second);
  assert!(first.text.starts_with("**演练模型**"));
  let messages = vec![Message::user("my cat is called Ada"), Message::user("what did I say before?")];
  let answer = ask(&model, Request { messages, ..Request::default() }).await.answer();
  assert!(answer.text.contains("1. my cat is called Ada"));
  server.stop().await;
}

#[tokio::test]
async fn parallel_conversations_are_scripted_by_what_they_say() {
  let rig = Rig::new().await;
  let hold = Hold::new();
  rig.script.on_words("slow", Reply::new().say("slow ").hold(&hold).say("answer"));
  rig.script.once_on_words("flaky", Reply::status(500));
  rig.script.on(|seen| seen.user_text().contains("count").then(|| Reply::text(&format!("request {}", seen.number))));
  let others = async {
    hold.reached().await;
    assert_eq!(rig.ask(said("flaky")).await.answer().attempts, 2);
    assert_eq!(rig.ask(said("count")).await.answer().text, "request 4");
    hold.release();
  };
  let (slow, ()) = tokio::join!(rig.ask(said("slow")), others);
  assert_eq!(slow.answer().text, "slow answer");
  assert_eq!((rig.script.count_of("flaky"), rig.script.count_of("slow")), (2, 1));
  rig.script.reached(4).await;
  rig.script.idle().await;
}
