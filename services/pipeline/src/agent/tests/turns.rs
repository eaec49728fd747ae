//! Turns: granted, shown, finished, stopped, lost, given back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pa_domain::testing::inputs;
use pa_eventlog::pieces::{Heard, Subscription};
use pa_model::{Error, Finish};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::model::{ended, text_of};
use super::world::AGENT;
use super::{Line, ScriptedModel, World};
use crate::agent::prompt::TURNS_MAX;

async fn hears(subscription: &mut Subscription) -> (i32, i64, String) {
  loop {
    match timeout(Duration::from_secs(60), subscription.next()).await {
      Ok(Some(Heard::Piece(piece))) => return (piece.attempt, piece.offset_utf16, piece.text.to_string()),
      Ok(Some(Heard::Step(_))) => {}
      other => panic!("no piece but {other:?}"),
    }
  }
}

/// Proves REP-5, RUN-26.
#[tokio::test(start_paused = true)]
async fn a_message_is_answered_by_a_granted_execution() {
  let world = World::new().await;
  let model = ScriptedModel::new([Line::Say("Hello Ada"), Line::Say("Again")]);
  let process = world.process(1, &model, vec![]);
  let job = world.send("good morning").await;
  assert_eq!(world.answered(job).await.as_deref(), Ok("Hello Ada"));
  assert_eq!(world.types(job), ["MessageAdmitted", "ExecutionStarted", "StepRecorded", "ExecutionFinished", "ReplyPosted"]);
  let next = world.send("and now?").await;
  assert_eq!(world.answered(next).await.as_deref(), Ok("Again"));
  let prompts: Vec<String> = model.requests().iter().map(text_of).collect();
  assert!(prompts[0].contains("It is now 2026-01-01 13:34, Thursday, in the owner's time zone Europe/Berlin (UTC+01:00)."), "{}", prompts[0]);
  assert!(prompts[0].ends_with("good morning"));
  assert!(prompts[1].ends_with("good morning\nHello Ada\nand now?"), "{}", prompts[1]);
  process.stop().await;
  assert_eq!(world.rows.leases(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_more_turns_are_read_than_a_prompt_uses() {
  let world = World::new().await;
  let sent = TURNS_MAX + 5;
  let model = ScriptedModel::new((0..=sent).map(|_| Line::Say("yes")));
  let process = world.process(1, &model, vec![]);
  for number in 0..sent {
    let job = world.send(&format!("question {number}")).await;
    assert_eq!(world.answered(job).await.as_deref(), Ok("yes"));
  }
  let job = world.send("and the last one").await;
  assert_eq!(world.answered(job).await.as_deref(), Ok("yes"));
  assert_eq!(process.ports.turns_read.load(Ordering::SeqCst), TURNS_MAX + 1, "the message itself and its history");
  let last = text_of(model.requests().last().unwrap());
  assert!(last.contains("question 5\n") && !last.contains("question 4\n"), "the newest are kept");
}

/// A piece is heard while the model is still held, and whoever comes in the middle hears all of it.
#[tokio::test(start_paused = true)]
async fn text_is_heard_while_it_is_written() {
  let world = World::new().await;
  let released = Arc::new(Notify::new());
  let model = ScriptedModel::new([Line::Hold(&["Hello ", "world", "!"], Arc::clone(&released))]);
  let process = world.process(1, &model, vec![]);
  let mut early = process.pieces.subscribe(AGENT);
  let job = world.send("hi").await;
  assert_eq!(hears(&mut early).await, (1001, 0, "Hello ".into()));
  assert!(!world.types(job).contains(&"ReplyPosted"));
  let mut late = process.pieces.subscribe(AGENT);
  assert_eq!(hears(&mut late).await, (1001, 0, "Hello ".into()));
  released.notify_one();
  assert_eq!(hears(&mut late).await, (1001, 6, "world".into()));
  released.notify_one();
  assert_eq!(world.answered(job).await.as_deref(), Ok("Hello world!"));
}

#[tokio::test(start_paused = true)]
async fn text_that_begins_anew_is_a_higher_attempt() {
  let world = World::new().await;
  let model = ScriptedModel::new([Line::Restart("wrong way", "right way")]);
  let process = world.process(1, &model, vec![]);
  let mut heard = process.pieces.subscribe(AGENT);
  let job = world.send("hi").await;
  assert_eq!(world.answered(job).await.as_deref(), Ok("right way"));
  let mut last = (0, 0, String::new());
  while let Ok(Some(Heard::Piece(piece))) = timeout(Duration::from_millis(100), heard.next()).await {
    assert!(piece.attempt >= last.0);
    last = (piece.attempt, piece.offset_utf16, piece.text.to_string());
  }
  assert!(last.0 == 1002 || last.0 == 0, "{last:?}");
}

/// Proves RUN-16.
#[tokio::test(start_paused = true)]
async fn a_stop_drops_the_model_request_at_once_and_nothing_follows() {
  let world = World::new().await;
  let model = ScriptedModel::new([Line::Hang("Half a sen")]);
  let process = world.process(1, &model, vec![]);
  let job = world.send("write a novel").await;
  model.reached(1).await;
  let begun = Instant::now();
  world.give(inputs::stop(job, "Half a sen")).await;
  model.idle().await;
  assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
  world.happened(job, "ReplyStopped", 1).await;
  tokio::time::sleep(Duration::from_secs(600)).await;
  assert_eq!(world.types(job), ["MessageAdmitted", "ExecutionStarted", "ExecutionStopped", "ReplyStopped"]);
  assert_eq!(process.pieces.text_so_far(AGENT, world.rows.store.all_entries(AGENT).iter().find_map(|entry| entry.reply).unwrap()), None);
  assert_eq!(world.rows.leases(), 0);
}

/// Proves REP-33, REP-35.
#[tokio::test(start_paused = true)]
async fn an_attempt_of_four_minutes_is_an_interruption_and_two_are_a_failure() {
  let world = World::new().await;
  let model = ScriptedModel::new([Line::Hang(""), Line::Hang("")]);
  let _process = world.process(1, &model, vec![]);
  let begun = Instant::now();
  let job = world.send("hi").await;
  assert_eq!(world.answered(job).await, Err("REPLY_INTERRUPTED".to_owned()));
  let minutes = begun.elapsed().as_secs_f64() / 60.0;
  assert!((8.0..8.2).contains(&minutes), "{minutes}");
  assert_eq!(world.types(job), ["MessageAdmitted", "ExecutionStarted", "ExecutionLost", "ExecutionStarted", "ExecutionLost", "ReplyFailed"]);
}

/// Proves REP-34: after a kill another node answers when the lease has run out, and not before.
#[tokio::test(start_paused = true)]
async fn another_node_answers_when_the_lease_of_a_killed_one_has_run_out() {
  let world = World::new().await;
  let hanging = ScriptedModel::new([Line::Hang("never")]);
  let killed = world.process(1, &hanging, vec![]);
  let job = world.send("hi").await;
  hanging.reached(1).await;
  let model = ScriptedModel::new([Line::Say("from the other one")]);
  let _other = world.process(2, &model, vec![]);
  tokio::time::sleep(Duration::from_secs(30)).await;
  assert!(model.requests().is_empty(), "the first lives");
  let begun = Instant::now();
  killed.kill();
  assert_eq!(world.answered(job).await.as_deref(), Ok("from the other one"));
  assert!((Duration::from_secs(6)..Duration::from_secs(14)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
  assert_eq!(world.types(job).iter().filter(|name| **name == "ExecutionLost").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_starts_again_reports_its_own_losses_at_once() {
  let world = World::new().await;
  let hanging = ScriptedModel::new([Line::Hang("never")]);
  let killed = world.process(1, &hanging, vec![]);
  let job = world.send("hi").await;
  hanging.reached(1).await;
  killed.kill();
  let begun = Instant::now();
  let model = ScriptedModel::new([Line::Say("here again")]);
  let _process = world.process(1, &model, vec![]);
  assert_eq!(world.answered(job).await.as_deref(), Ok("here again"));
  assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

/// A graceful stop gives the job back, and that is not counted.
#[tokio::test(start_paused = true)]
async fn a_graceful_stop_gives_the_job_back() {
  let world = World::new().await;
  let hanging = ScriptedModel::new([Line::Hang("half")]);
  let process = world.process(1, &hanging, vec![]);
  let job = world.send("hi").await;
  hanging.reached(1).await;
  let begun = Instant::now();
  process.stop().await;
  assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
  assert_eq!(world.rows.leases(), 0);
  let model = ScriptedModel::new([Line::Say("done")]);
  let _other = world.process(2, &model, vec![]);
  assert_eq!(world.answered(job).await.as_deref(), Ok("done"));
  let types = world.types(job);
  assert!(types.contains(&"ExecutionYielded") && !types.contains(&"ExecutionLost"), "{types:?}");
}

/// Proves RUN-16, PR-21: whoever has no grant of its own does nothing.
#[tokio::test(start_paused = true)]
async fn a_worker_whose_lease_is_gone_stops_and_never_posts() {
  let world = World::new().await;
  let released = Arc::new(Notify::new());
  let model = ScriptedModel::new([Line::Hold(&["old ", "words"], Arc::clone(&released))]);
  let paused = world.process(1, &model, vec![]);
  let job = world.send("hi").await;
  model.reached(1).await;
  // Its database is away: no renewals, and no answers to it either.
  paused.ports.away.store(true, Ordering::SeqCst);
  let other = ScriptedModel::new([Line::Say("new words")]);
  let _other = world.process(2, &other, vec![]);
  assert_eq!(world.answered(job).await.as_deref(), Ok("new words"));
  released.notify_one();
  tokio::time::sleep(Duration::from_secs(60)).await;
  assert_eq!(world.types(job).iter().filter(|name| **name == "ReplyPosted").count(), 1);
  assert_eq!(other.requests().len(), 1);
}

/// Proves BB-29.
#[tokio::test(start_paused = true)]
async fn an_answer_without_words_is_asked_for_once_more_without_tools() {
  let world = World::new().await;
  let model = ScriptedModel::new([ended("  ", Finish::Stop), Line::Say("the words")]);
  let tool = Arc::new(pa_tools::testing::TestTool::slow_read(pa_tools::testing::Counter::default()));
  let _process = world.process(1, &model, vec![tool]);
  let job = world.send("hi").await;
  assert_eq!(world.answered(job).await.as_deref(), Ok("the words"));
  let requests = model.requests();
  assert!(requests[0].tools.iter().any(|tool| tool.name == "pa_slow_read"));
  assert_eq!(requests[1].tools.len(), 0);
  assert!(text_of(&requests[1]).contains("Your last answer had no words"));
  assert_eq!(world.types(job).iter().filter(|name| **name == "StepRecorded").count(), 2, "both requests are on record");
}

/// Proves BB-29.
#[tokio::test(start_paused = true)]
async fn a_model_that_says_nothing_twice_fails_the_reply() {
  let world = World::new().await;
  let model = ScriptedModel::new([ended("", Finish::Stop), ended("\n", Finish::Stop)]);
  let _process = world.process(1, &model, vec![]);
  let job = world.send("hi").await;
  assert_eq!(world.answered(job).await, Err("MODEL_SAID_NOTHING".to_owned()));
}

/// Proves BB-58: an answer that ended by its length is posted as incomplete.
#[tokio::test(start_paused = true)]
async fn an_answer_cut_by_its_length_is_marked_incomplete() {
  let world = World::new().await;
  let model = ScriptedModel::new([ended("Once upon a", Finish::Length)]);
  let _process = world.process(1, &model, vec![]);
  let job = world.send("a tale").await;
  assert_eq!(world.answered(job).await.as_deref(), Ok("Once upon a"));
  let incomplete = world.rows.store.all_entries(AGENT).iter().any(|entry| entry.text == "Once upon a" && entry.incomplete);
  assert!(incomplete);
}

#[tokio::test(start_paused = true)]
async fn what_trying_again_would_not_mend_is_said_at_once() {
  let refused = || Error::BadRequest { status: 400, detail: "no".into() };
  let errors = [
    (Error::Unauthorized { status: 401, detail: "bad key".into() }, "MODEL_UNAUTHORIZED"),
    (Error::ModelUnknown { detail: "gone".into() }, "MODEL_NOT_CONFIGURED"),
    (refused(), "MODEL_REFUSED"),
    (Error::Cut, "MODEL_UNAVAILABLE"),
  ];
  for (error, code) in errors {
    let world = World::new().await;
    let model = ScriptedModel::new([Line::Fail(error)]);
    let _process = world.process(1, &model, vec![]);
    let job = world.send("hi").await;
    assert_eq!(world.answered(job).await, Err(code.to_owned()));
    assert_eq!(model.requests().len(), 1);
  }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_too_long_is_tried_with_less_history() {
  let long = || Error::ContextTooLong { detail: "too long".into() };
  let world = World::new().await;
  let model = ScriptedModel::new([
    Line::Say("pomegranate"),
    Line::Fail(long()),
    Line::Say("second"),
    Line::Fail(long()),
    Line::Fail(long()),
    Line::Fail(long()),
    Line::Fail(long()),
  ]);
  let _process = world.process(1, &model, vec![]);
  let job = world.send("a").await;
  assert!(world.answered(job).await.is_ok());
  let job = world.send("b").await;
  assert_eq!(world.answered(job).await.as_deref(), Ok("second"));
  let job = world.send("c").await;
  assert_eq!(world.answered(job).await, Err("CONTEXT_TOO_LONG".to_owned()));
  let last = text_of(model.requests().last().unwrap());
  assert!(!last.contains("pomegranate"), "without any history: {last}");
}

/// Proves REP-32, BB-01: messages of one conversation are answered in order, each once, across a kill.
#[tokio::test(start_paused = true)]
async fn messages_are_answered_in_order_across_a_kill() {
  let world = World::new().await;
  let first = ScriptedModel::new([Line::Hang("")]);
  let killed = world.process(1, &first, vec![]);
  let mut jobs = Vec::new();
  for number in 0..5 {
    jobs.push(world.send(&format!("m{number}")).await);
  }
  first.reached(1).await;
  killed.kill();
  let model = ScriptedModel::new([Line::Say("r0"), Line::Say("r1"), Line::Say("r2"), Line::Say("r3"), Line::Say("r4")]);
  let _process = world.process(1, &model, vec![]);
  for (number, job) in jobs.iter().enumerate() {
    assert_eq!(world.answered(*job).await, Ok(format!("r{number}")));
  }
  let asked: Vec<String> = model.requests().iter().map(|request| text_of(request).lines().last().unwrap().to_owned()).collect();
  assert_eq!(asked, ["m0", "m1", "m2", "m3", "m4"]);
}

/// Proves PR-15: a process that slept through a restart of its node reports nothing of the newer life lost.
#[tokio::test(start_paused = true)]
async fn an_earlier_life_that_wakes_does_not_report_the_newer_one_lost() {
  let world = World::new().await;
  let sleeper_model = ScriptedModel::new([]);
  let sleeper = world.process(1, &sleeper_model, vec![]);
  tokio::time::sleep(Duration::from_secs(60)).await;
  sleeper.ports.away.store(true, Ordering::SeqCst);
  let hanging = ScriptedModel::new([Line::Hang("")]);
  let _newer = world.process(1, &hanging, vec![]);
  let job = world.send("hi").await;
  hanging.reached(1).await;
  sleeper.ports.away.store(false, Ordering::SeqCst);
  tokio::time::sleep(Duration::from_secs(100)).await;
  assert!(!world.types(job).contains(&"ExecutionLost"), "{:?}", world.types(job));
}
