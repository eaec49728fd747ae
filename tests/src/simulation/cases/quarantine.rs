//! PR-16, PR-17: inputs on which a process dies, and what waits behind them.

use std::time::Duration;

use pa_domain::testing::inputs;
use pa_domain::{Event, log};
use pa_eventlog::sim::{Fate, Fault};
use pa_eventlog::{Position, Stream};
use tokio::time::sleep;
use uuid::Uuid;

use super::super::client::request;
use super::super::process::Roles;
use super::super::run::in_paused_time;
use super::super::traps::Moment;
use super::{Accepted, CALM, Stage, repeats, texts};

const TWO: [Roles; 2] = [Roles::DECIDER, Roles::DECIDER];
const QUARANTINED: &str = "pa.log.InputQuarantined";

impl Stage {
  /// Appends an input that can't be opened although its key is there.
  pub(super) async fn leave_unreadable(&mut self) -> Position {
    self.said += 1;
    self.world.leave_unreadable(self.agent, self.said).await
  }

  /// How many quarantines the log has seen, void ones not counted apart.
  pub(super) fn quarantined(&self) -> usize {
    self.events().iter().filter(|stored| stored.record.type_name.starts_with(QUARANTINED)).count()
  }

  /// Appends a message on which every decider dies.
  async fn leave_deadly(&mut self, text: &str) -> Uuid {
    self.said += 1;
    let request = request(self.agent, format!("deadly-{}", self.said), inputs::message(text));
    let record = self.world.input(&request, Uuid::from_u128(0xdead_0000 + u128::from(self.said))).await;
    self.world.shared.deadly.lock().push(record.id);
    let id = record.id;
    self.world.shared.log.put(Stream::Inputs, 0, vec![record]);
    id
  }

  /// Waits for the death of node 1's process and starts the next.
  async fn die_and_start_again(&self) {
    let process = self.process(1);
    self.until("the process dies", || process.gate.is_dead()).await;
    self.world.start(1).await;
  }
}

fn quarantines(accepted: &Accepted) -> Vec<(Uuid, String)> {
  let of = |event: &Event| match event {
    Event::Log(log::Event::InputQuarantined(quarantined)) => Some((quarantined.held.id.0, quarantined.reason.clone())),
    _ => None,
  };
  accepted.decisions().flat_map(|decision| decision.events.iter()).filter_map(|recorded| of(&recorded.event)).collect()
}

#[test]
fn pr_16_the_third_death_under_a_note_sets_the_input_aside_and_other_agents_go_on() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    let deadly = stage.leave_deadly("kills").await;
    // The first death is in normal work, where nothing is noted.
    stage.die_and_start_again().await;
    assert_eq!(stage.world.shared.database.deaths(0), None);
    for deaths in 0..3 {
      let process = stage.process(1);
      stage.until("the process dies", || process.gate.is_dead()).await;
      assert_eq!(stage.world.shared.database.deaths(0), Some((deadly, deaths)), "the note counts the deaths before it");
      stage.world.start(1).await;
    }
    stage.until("it is quarantined", || stage.quarantined() == 1).await;
    let other = super::super::world::agent_in_after(stage.agent);
    stage.world.create(&mut rand::SeedableRng::seed_from_u64(2), other).await;
    let accepted = stage.judge(CALM).await.unwrap();
    assert_eq!(quarantines(&accepted), [(deadly, "DEADLY".to_owned())]);
    assert!(texts(&accepted).is_empty());
  });
}

/// A process dies with a decision on the way that it had decided and not read: the decision landed, and the death is not the next input's.
#[test]
fn pr_16_a_note_on_another_input_starts_at_nothing() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    stage.world.crash(1, Fate::Land);
    stage.world.start(1).await;
    stage.leads(1).await;
    for text in ["one", "two", "three", "four", "five"] {
      let process = stage.process(1);
      let (gate, log) = (process.gate.clone(), process.log.clone());
      process.traps.set(Moment::After, "events/pa.conversation.MessageAdmitted", move || {
        log.crash(Fate::Land);
        gate.kill();
      });
      stage.leave(text).await;
      stage.die_and_start_again().await;
      stage.leads(1).await;
    }
    let accepted = stage.judge(CALM).await.unwrap();
    assert_eq!(texts(&accepted), ["one", "two", "three", "four", "five"]);
    assert!(quarantines(&accepted).is_empty());
  });
}

#[test]
fn pr_16_a_takeover_without_a_death_counts_for_nothing() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    stage.world.crash(1, Fate::Land);
    let first = stage.world.start(1).await;
    stage.leads(1).await;
    let gate = first.gate.clone();
    first.traps.set(Moment::Before, "events/pa.conversation.MessageAdmitted", move || gate.stop());
    stage.leave("under a note").await;
    stage.until("the first is stopped", || first.gate.is_stopped()).await;
    let second = stage.world.start(2).await;
    let gate = second.gate.clone();
    second.traps.set(Moment::Before, "events/pa.conversation.MessageAdmitted", move || gate.stop());
    stage.until("the second is stopped", || second.gate.is_stopped()).await;
    assert_eq!(stage.world.shared.database.deaths(0).map(|(_, deaths)| deaths), Some(1));
    first.gate.wake();
    stage.until("the first takes its death back", || stage.world.shared.database.deaths(0).is_some_and(|(_, deaths)| deaths == 0)).await;
    second.gate.wake();
    let accepted = stage.judge(CALM).await.unwrap();
    assert_eq!(texts(&accepted), ["under a note"]);
    assert!(quarantines(&accepted).is_empty());
  });
}

#[test]
fn pr_17_held_inputs_are_decided_once_and_in_order_over_a_crash_and_before_new_ones() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    stage.leave_unreadable().await;
    for text in ["held 1", "held 2", "held 3", "held 4"] {
      stage.leave(text).await;
    }
    let again = request(stage.agent, "left-3", inputs::message("held 2"));
    stage.edge.append(&again).await.unwrap();
    stage.until("they are held", || stage.held() == 5).await;
    sleep(Duration::from_secs(12)).await;
    // Their content survives the inputs.
    let end = stage.inputs().last().unwrap().position + 1;
    let process = stage.process(1);
    let (gate, log) = (process.gate.clone(), process.log.clone());
    stage.ask("release", inputs::release(true)).await;
    process.traps.set(Moment::After, "events/pa.conversation.MessageAdmitted", move || {
      log.crash(Fate::Land);
      gate.kill();
    });
    stage.until("a process dies in the middle", || process.gate.is_dead() || stage.admitted() == 4).await;
    stage.leave("new 1").await;
    stage.world.start(1).await;
    stage.say("new 2").await;
    let accepted = stage.judge(CALM).await.unwrap();
    assert_eq!(texts(&accepted), ["held 1", "held 2", "held 3", "held 4", "new 1", "new 2"]);
    assert_eq!(repeats(&accepted), 1, "the repeat of a held one is a repeat");
    assert!(accepted.inputs.keys().any(|position| *position >= end));
  });
}

#[test]
fn pr_17_a_second_quarantine_in_the_middle_keeps_the_rest_itself_first() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    stage.leave_unreadable().await;
    stage.leave("held 1").await;
    stage.leave_unreadable().await;
    stage.leave("held 2").await;
    stage.until("they are held", || stage.held() == 3).await;
    stage.ask("release-1", inputs::release(true)).await;
    stage.until("the second is quarantined", || stage.quarantined() == 2).await;
    stage.leave("held 3").await;
    sleep(Duration::from_secs(8)).await;
    assert_eq!(texts(&stage.accepted().await.unwrap()), ["held 1"]);
    // Not dropped: it is tried again, and is the first one again.
    stage.ask("release-2", inputs::release(false)).await;
    stage.until("it is quarantined again", || stage.quarantined() == 3).await;
    stage.ask("release-3", inputs::release(true)).await;
    let accepted = stage.judge(CALM).await.unwrap();
    assert_eq!(texts(&accepted), ["held 1", "held 2", "held 3"]);
  });
}

#[test]
fn pr_17_a_deadly_input_is_decided_after_all_when_it_kills_no_more() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    stage.leave_deadly("kills no more").await;
    for _ in 0..4 {
      stage.die_and_start_again().await;
    }
    stage.until("it is quarantined", || stage.quarantined() == 1).await;
    stage.leave("behind it").await;
    stage.world.shared.deadly.lock().clear();
    stage.ask("release", inputs::release(false)).await;
    let accepted = stage.judge(CALM).await.unwrap();
    assert_eq!(texts(&accepted), ["kills no more", "behind it"]);
  });
}

impl Stage {
  fn held(&self) -> usize {
    self.events().iter().filter(|stored| stored.record.type_name.starts_with("pa.log.InputHeld")).count()
  }

  fn admitted(&self) -> usize {
    self.events().iter().filter(|stored| stored.record.type_name.starts_with("pa.conversation.MessageAdmitted")).count()
  }
}

/// The first term after an unclean end comes to nothing: what is decided in the next is still noted.
#[test]
fn pr_16_care_is_taken_until_it_is_done_whatever_becomes_of_a_term() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    stage.world.crash(1, Fate::Land);
    for _ in 0..2 {
      stage.world.shared.log.inject(Stream::Events, Fault::LostAck);
    }
    stage.world.start(1).await;
    stage.leads(1).await;
    let deadly = stage.leave_deadly("kills").await;
    let process = stage.process(1);
    stage.until("the process dies", || process.gate.is_dead()).await;
    assert_eq!(stage.world.shared.database.deaths(0), Some((deadly, 0)), "it was noted");
  });
}

/// While one agent's held inputs are decided, another one's new input does not wait for the last of them.
#[test]
fn held_inputs_and_new_ones_of_others_are_decided_side_by_side() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    let (own, other) = (stage.agent, super::super::world::agent_in_after(stage.agent));
    stage.world.create(&mut rand::SeedableRng::seed_from_u64(2), other).await;
    stage.leave_unreadable().await;
    let held: Vec<String> = (0..30).map(|number| format!("held {number}")).collect();
    for text in &held {
      stage.leave(text).await;
    }
    stage.until("they are held", || stage.held() == 30).await;
    stage.edge.append(&request(own, "release", inputs::release(true))).await.unwrap();
    stage.agent = other;
    for number in 0..30 {
      stage.leave(&format!("new {number}")).await;
      sleep(Duration::from_millis(1)).await;
    }
    let accepted = stage.judge(CALM).await.unwrap();
    let texts = texts(&accepted);
    let place = |text: &str| texts.iter().position(|other| other == text).unwrap();
    assert!(place("new 0") < place("held 29"), "{texts:?}");
    assert!(held.is_sorted_by_key(|text| place(text)), "{texts:?}");
    assert_eq!(texts.len(), 60);
  });
}

/// A byte of one agent's event is changed: its inputs are set aside, also by the next decider; others go on; and when the byte is mended, a release decides all of it.
#[test]
fn an_event_that_cant_be_read_concerns_its_agent_alone_and_heals() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    stage.say("one").await;
    let damaged = stage.events().last().unwrap().clone();
    assert!(damaged.record.type_name.starts_with("pa.conversation."), "{}", damaged.record.type_name);
    stage.say("and one").await;
    stage.world.crash(1, Fate::Land);
    stage.world.shared.log.damage(Stream::Events, 0, damaged.position);
    stage.world.start(1).await;
    stage.leave("two").await;
    stage.until("it is quarantined", || stage.quarantined() == 1).await;
    let (own, other) = (stage.agent, super::super::world::agent_in_after(stage.agent));
    stage.world.create(&mut rand::SeedableRng::seed_from_u64(2), other).await;
    stage.agent = other;
    stage.say("of another agent").await;
    // Also when the state comes from the checkpoint, and from a decider that never saw it whole.
    sleep(Duration::from_secs(12)).await;
    stage.world.crash(1, Fate::Land);
    stage.world.start(2).await;
    stage.leads(2).await;
    stage.say("of another agent again").await;
    stage.agent = own;
    stage.leave("three").await;
    stage.until("it is held", || stage.held() == 1).await;
    // A release too early changes nothing.
    stage.ask("release too early", inputs::release(false)).await;
    stage.until("it is quarantined again", || stage.quarantined() == 2).await;
    stage.world.shared.log.damage(Stream::Events, 0, damaged.position);
    stage.ask("release", inputs::release(false)).await;
    stage.say("four").await;
    let accepted = stage.judge(CALM).await.unwrap();
    assert_eq!(texts(&accepted), ["one", "and one", "of another agent", "of another agent again", "two", "three", "four"]);
  });
}

/// The same under the decider that wrote it.
#[test]
fn an_own_event_that_cant_be_read_back_ends_no_term() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    let epoch = stage.leads(1).await;
    let (log, position) = (stage.world.shared.log.clone(), i64::try_from(stage.events().len()).unwrap());
    stage.process(1).traps.set(Moment::After, "events/pa.conversation.MessageAdmitted", move || log.damage(Stream::Events, 0, position));
    stage.leave("one").await;
    stage.until("it is damaged", || stage.process(1).traps.is_empty()).await;
    stage.leave("two").await;
    stage.until("it is quarantined", || stage.quarantined() == 1).await;
    assert_eq!(stage.leads(1).await, epoch, "the term goes on");
    stage.world.shared.log.damage(Stream::Events, 0, position);
    stage.ask("release", inputs::release(false)).await;
    let accepted = stage.judge(CALM).await.unwrap();
    assert_eq!(texts(&accepted), ["one", "two"]);
  });
}
