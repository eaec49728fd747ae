//! What people are told and shown while deciders and projectors overtake each other.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::event::message_of;
use pa_domain::testing::inputs;
use pa_eventlog::Stream;
use pa_eventlog::sim::{Fate, Fault};
use tokio::time::sleep;

use super::super::client::{request, resolve_at};
use super::super::oracle;
use super::super::process::Roles;
use super::super::run::in_paused_time;
use super::super::traps::Moment;
use super::{CALM, Stage, texts};

/// A stale decider's decision lands while its input's client still waits: it is void, and the client is told of the one that counts.
pub(in super::super) async fn void_decision() -> Result<(), String> {
  let stage = Arc::new(Stage::led_by_the_first(&[Roles::DECIDER, Roles::DECIDER]).await);
  let (first, log) = (stage.process(1), stage.world.shared.log.clone());
  log.inject(Stream::Events, Fault::Held);
  let gate = first.gate.clone();
  first.traps.set(Moment::After, "events/pa.conversation.MessageAdmitted", move || gate.stop());
  let client = {
    let stage = Arc::clone(&stage);
    async move { resolve_at(&stage.world, &stage.edge, &request(stage.agent, "once", inputs::message("once"))).await }
  };
  let takeover = async {
    stage.until("the first is stopped", || first.gate.is_stopped()).await;
    stage.world.shared.database.expire(0);
    let second = stage.world.start(2).await;
    second.traps.set(Moment::Before, "events/pa.conversation.MessageAdmitted", move || assert!(log.land_held()));
  };
  tokio::join!(client, takeover);
  let accepted = stage.judge(CALM).await?;
  if texts(&accepted) == ["once"] { Ok(()) } else { Err(format!("decided: {:?}", texts(&accepted))) }
}

#[test]
fn nobody_is_told_of_a_decision_that_is_void() {
  in_paused_time(void_decision()).unwrap();
}

/// A projector is stopped right before it commits; another one goes on meanwhile; then the first one commits after all, and dies.
pub(in super::super) async fn stale_commit() -> Result<(), String> {
  let mut stage = Stage::led_by_the_first(&[Roles::KEEPER, Roles::PROJECTOR]).await;
  let second = stage.world.start(2).await;
  sleep(Duration::from_secs(3)).await;
  let gate = second.gate.clone();
  second.traps.set(Moment::Before, "commit", move || gate.stop());
  let said = stage.say("taken back").await;
  stage.until("the second projector is stopped", || second.gate.is_stopped()).await;
  stage.ask("stop", inputs::stop(message_of(said.input).into(), "")).await;
  sleep(Duration::from_secs(3)).await;
  let (gate, log) = (second.gate.clone(), second.log.clone());
  second.traps.set(Moment::After, "commit", move || {
    log.crash(Fate::Land);
    gate.kill();
  });
  second.gate.wake();
  sleep(Duration::from_secs(3)).await;
  stage.world.crash(2, Fate::Land);
  let said = stage.say("taken back as well").await;
  stage.ask("stop again", inputs::stop(message_of(said.input).into(), "")).await;
  stage.judge(CALM).await?;
  oracle::judge_read_model(&stage.world).await
}

#[test]
fn a_projector_that_was_overtaken_writes_nothing() {
  in_paused_time(stale_commit()).unwrap();
}
