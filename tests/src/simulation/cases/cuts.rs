//! PR-10, PR-12, PR-13: logs whose tail is cut.

use std::time::Duration;

use pa_domain::Input;
use pa_domain::testing::inputs;
use pa_eventlog::sim::Fate;
use pa_eventlog::{Position, Stream};
use tokio::time::sleep;

use super::super::process::Roles;
use super::super::run::in_paused_time;
use super::super::traps::Moment;
use super::{CUT, Stage, repeats, texts};

const ONE: [Roles; 1] = [Roles::DECIDER];

impl Stage {
  /// A power loss: everybody loses the log for a while, and then its end is gone.
  async fn cut(&self, stream: Stream, end: Position) {
    let log = &self.world.shared.log;
    log.set_away_for_all(true);
    sleep(Duration::from_millis(2_500)).await;
    log.cut(stream, 0, end);
    log.set_away_for_all(false);
  }

  fn end(&self, stream: Stream) -> Position {
    self.world.shared.log.records(stream, 0).last().map_or(0, |stored| stored.position + 1)
  }
}

#[test]
fn pr_10_a_dropped_checkpoint_takes_its_keys_along() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&ONE).await;
    let end = stage.end(Stream::Events);
    stage.say("decided anew").await;
    sleep(Duration::from_secs(12)).await;
    assert!(stage.world.shared.database.copy().marks[&0].next_position > end, "the decision is in a checkpoint");
    stage.cut(Stream::Events, end).await;
    stage.until("it is decided anew", || stage.events().iter().any(|stored| stored.record.type_name.starts_with("pa.conversation.MessageAdmitted"))).await;
    let accepted = stage.judge(CUT).await.unwrap();
    assert_eq!(texts(&accepted), ["decided anew"]);
    assert_eq!(repeats(&accepted), 0);
  });
}

/// An announcement is cut, and then a decision of its term lands: it is void for everybody.
pub(in super::super) async fn pr_12() -> Result<(), String> {
  let mut stage = Stage::led_by_the_first(&ONE).await;
  let second = {
    stage.world.crash(1, Fate::Land);
    stage.world.start(1).await
  };
  stage.leads(1).await;
  let (log, announcement) = (stage.world.shared.log.clone(), stage.end(Stream::Events) - 1);
  second.traps.set(Moment::Before, "events/pa.conversation.MessageAdmitted", move || log.cut(Stream::Events, 0, announcement));
  stage.leave("of an epoch that nobody knows").await;
  let accepted = stage.judge(CUT).await?;
  if texts(&accepted).len() == 1 { Ok(()) } else { Err(format!("decided: {:?}", texts(&accepted))) }
}

#[test]
fn pr_12_a_decision_of_an_unannounced_epoch_is_void() {
  in_paused_time(pr_12()).unwrap();
}

#[test]
fn pr_13_what_stands_where_inputs_were_cut_is_decided_under_a_running_decider() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&ONE).await;
    let end = stage.end(Stream::Inputs);
    for text in ["gone 1", "gone 2", "gone 3"] {
      stage.say(text).await;
    }
    stage.cut(Stream::Inputs, end).await;
    stage.say("new 1").await;
    stage.say("new 2").await;
    let accepted = stage.judge(CUT).await.unwrap();
    assert_eq!(texts(&accepted), ["gone 1", "gone 2", "gone 3", "new 1", "new 2"]);
  });
}

#[test]
fn pr_13_what_stands_where_inputs_were_cut_is_decided_at_the_next_start() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&ONE).await;
    let end = stage.end(Stream::Inputs);
    for text in ["gone 1", "gone 2", "gone 3"] {
      stage.say(text).await;
    }
    sleep(Duration::from_secs(12)).await;
    stage.world.crash(1, Fate::Land);
    stage.world.shared.log.cut(Stream::Inputs, 0, end);
    stage.leave("new 1").await;
    stage.leave("new 2").await;
    stage.world.start(1).await;
    let accepted = stage.judge(CUT).await.unwrap();
    assert_eq!(texts(&accepted), ["gone 1", "gone 2", "gone 3", "new 1", "new 2"]);
  });
}

/// One record that agrees above one that doesn't is not the end of the search.
#[test]
fn pr_13c_an_input_that_agrees_does_not_hide_one_below_it_that_differs() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&ONE).await;
    let end = stage.end(Stream::Inputs);
    stage.say("A").await;
    stage.say("B").await;
    let again = stage.inputs().last().unwrap().record.clone();
    sleep(Duration::from_secs(12)).await;
    stage.world.crash(1, Fate::Land);
    stage.world.shared.log.cut(Stream::Inputs, 0, end);
    stage.leave("C").await;
    stage.world.shared.log.put(Stream::Inputs, 0, vec![again]);
    stage.world.start(1).await;
    let accepted = stage.judge(CUT).await.unwrap();
    assert_eq!(texts(&accepted), ["A", "B", "C"]);
    assert_eq!(repeats(&accepted), 1, "B is decided again and is a repeat");
  });
}

/// A held input that is decided later says nothing about what stands at its position now.
#[test]
fn pr_13d_a_drained_input_does_not_count_for_its_position() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&ONE).await;
    let end = stage.end(Stream::Inputs);
    stage.say("at the position of the release").await;
    stage.leave_unreadable().await;
    stage.until("it is quarantined", || stage.quarantined() == 1).await;
    stage.cut(Stream::Inputs, end).await;
    let release: Input = inputs::release(true);
    stage.ask("release", release).await;
    stage.say("new at the position of the quarantined one").await;
    let accepted = stage.judge(CUT).await.unwrap();
    assert_eq!(texts(&accepted), ["at the position of the release", "new at the position of the quarantined one"]);
  });
}
