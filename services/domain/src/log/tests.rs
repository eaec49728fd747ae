//! Quarantine: who is held, in which order they come back, and what goes on meanwhile.

use super::{InputHeld, InputQuarantined, QuarantineReleased, exempt, held, is_holding, next_to_drain, quarantined, set_aside};
use crate::codes::{notice, reason};
use crate::event::{Event, Input};
use crate::limits::HELD_INPUTS_MAX;
use crate::meta::Origin;
use crate::settle::{refused, repeated};
use crate::testing::{Decided, TestAgent, inputs};

impl TestAgent {
  /// Quarantines the input at `position`, or holds it behind another.
  fn set_aside(&mut self, position: i64, first: bool) {
    let meta = self.input_meta(Origin::Owner);
    let bytes = inputs::held(position);
    let events = if first { quarantined(bytes, "PANIC", "index out of bounds") } else { held(bytes) };
    self.apply_at((position, false), &meta, &events);
  }

  /// Decides the next held input as if it were this one.
  fn drain(&mut self, input: &Input) -> (i64, Decided) {
    let next = next_to_drain(&self.root).expect("an input is to be drained");
    let meta = self.input_meta(Origin::Owner);
    let events = self.decide(&meta, input);
    self.apply_at((next.input, true), &meta, &events);
    (next.input, Decided { input: meta.id, events })
  }

  fn held_positions(&self) -> Vec<i64> {
    self.root.quarantine.held.iter().map(|held| held.input).collect()
  }
}

fn quarantine_of(positions: &[i64]) -> TestAgent {
  let mut agent = TestAgent::alive();
  for (index, &position) in positions.iter().enumerate() {
    agent.set_aside(position, index == 0);
  }
  agent
}

#[test]
fn a_quarantined_input_is_the_first_held_one_and_the_root_knows_the_bytes_event() {
  let agent = quarantine_of(&[10, 11, 12]);
  assert!(is_holding(&agent.root));
  assert_eq!(agent.held_positions(), [10, 11, 12]);
  for held in &agent.root.quarantine.held {
    let (_, event) = agent.log.iter().find(|(meta, _)| meta.ordinal == held.ordinal).unwrap();
    let Event::Log(super::Event::InputQuarantined(InputQuarantined { held: bytes, .. }) | super::Event::InputHeld(InputHeld { held: bytes })) = event else {
      panic!("not a held input: {event:?}")
    };
    assert_eq!(bytes.position, held.input);
  }
  assert_eq!(next_to_drain(&agent.root), None);
}

#[test]
fn release_and_erasure_are_decided_at_once_and_nothing_else_is() {
  assert!(exempt(&inputs::release(false)));
  assert!(exempt(&inputs::erase("Ada")));
  assert!(!exempt(&inputs::create("Ada")));
  assert!(!exempt(&inputs::message("hello")));
  assert!(!exempt(&inputs::received(inputs::channel(1), "hello").into()));
}

/// Proves the rules' side of PR-17: the deadly one first, each once, in order, before the new ones.
#[test]
fn pr_17_held_inputs_are_decided_in_order_after_a_release() {
  let mut agent = quarantine_of(&[10, 11, 12]);
  agent.when(inputs::release(false)).then(&[QuarantineReleased { drop_first: false }.into()]);
  let mut texts = Vec::new();
  for (position, text) in [(10, "first"), (11, "second"), (12, "third")] {
    let (drained, decided) = agent.drain(&inputs::message(text));
    assert_eq!(drained, position);
    texts.push(decided.message());
  }
  assert!(!is_holding(&agent.root));
  assert_eq!(next_to_drain(&agent.root), None);
  let open: Vec<_> = agent.root.conversations[&agent.root.main.unwrap()].open.iter().map(|message| message.job).collect();
  assert_eq!(open, texts);
}

/// Proves the rules' side of PR-13d: where the input log was cut, another input stands at a held one's position; only a decision marked `held` takes one off, and one at a time.
#[test]
fn pr_13d_a_position_that_comes_again_is_another_input() {
  let mut agent = TestAgent::alive();
  agent.set_aside(1, true);
  let meta = agent.input_meta(Origin::Owner);
  let release = agent.decide(&meta, &inputs::release(false));
  agent.apply_at((1, false), &meta, &release);
  assert_eq!(agent.held_positions(), [1]);
  agent.set_aside(1, false);
  let ordinals: Vec<i64> = agent.root.quarantine.held.iter().map(|held| held.ordinal).collect();
  for ordinal in ordinals {
    assert_eq!(next_to_drain(&agent.root).map(|held| held.ordinal), Some(ordinal));
    agent.drain(&inputs::message("hello"));
  }
  assert!(!is_holding(&agent.root) && !agent.root.quarantine.draining);
  assert_eq!(agent.root.open_messages(), 2);
}

#[test]
fn only_the_first_part_of_a_decision_takes_its_input_off_the_list() {
  let mut agent = quarantine_of(&[10, 11]);
  agent.when(inputs::release(false));
  let (_, decided) = agent.drain(&inputs::message("hello"));
  decided.then_types(&["MessageAdmitted", "ReplyRequested"]);
  assert_eq!(agent.held_positions(), [11]);
}

/// Proves the rules' side of PR-17: a second quarantine in the middle keeps the rest, itself first.
#[test]
fn pr_17_a_quarantine_while_draining_leaves_the_rest_itself_first() {
  let mut agent = quarantine_of(&[10, 11, 12, 13]);
  agent.when(inputs::release(false));
  agent.drain(&inputs::message("ten"));
  let meta = agent.input_meta(Origin::Owner);
  agent.apply_at((11, true), &meta, &quarantined(inputs::held(11), "PANIC", "again"));
  assert_eq!(agent.held_positions(), [11, 12, 13]);
  assert_eq!(next_to_drain(&agent.root), None);
  agent.set_aside(20, false);
  agent.when(inputs::release(true)).then(&[QuarantineReleased { drop_first: true }.into()]);
  assert_eq!(next_to_drain(&agent.root).map(|held| held.input), Some(12));
  for position in [12, 13, 20] {
    assert_eq!(agent.drain(&inputs::message("later")).0, position);
  }
  assert!(!is_holding(&agent.root));
}

#[test]
fn a_held_repeat_is_a_repeat_and_leaves_the_list() {
  let mut agent = quarantine_of(&[10, 11]);
  agent.when(inputs::release(false));
  let (_, first) = agent.drain(&inputs::message("ten"));
  let meta = agent.input_meta(Origin::Owner);
  agent.apply_at((11, true), &meta, &[repeated(first.input)]);
  assert!(!is_holding(&agent.root));
  assert_eq!(agent.root.open_messages(), 1);
}

#[test]
fn a_release_is_refused_without_a_quarantine_and_once_is_enough() {
  let mut agent = TestAgent::alive();
  agent.when(inputs::release(false)).then_refused(reason::NO_QUARANTINE);
  let mut agent = quarantine_of(&[10, 11]);
  agent.when_from(Origin::ThirdParty, inputs::release(false)).then_refused(reason::NOT_ALLOWED);
  agent.when(inputs::release(false)).then_types(&["QuarantineReleased"]);
  agent.when(inputs::release(true)).then_unchanged(reason::ALREADY_DONE);
  assert_eq!(agent.held_positions(), [10, 11]);
}

#[test]
fn dropping_the_only_one_ends_the_quarantine() {
  let mut agent = quarantine_of(&[10]);
  agent.when(inputs::release(true));
  assert!(!is_holding(&agent.root));
  assert!(!agent.root.quarantine.draining);
}

#[test]
fn while_inputs_are_held_others_are_held_with_their_bytes() {
  let mut agent = quarantine_of(&[10]);
  let meta = agent.input_meta(Origin::Owner);
  let events = set_aside(&agent.root, &meta, Some(&inputs::message("hello")), inputs::held(11));
  assert_eq!(events, [InputHeld { held: inputs::held(11) }.into()]);
  assert_eq!(set_aside(&agent.root, &meta, None, inputs::held(12)), held(inputs::held(12)));
}

#[test]
fn beyond_the_limit_commands_are_refused_channel_messages_fail_and_reports_are_held() {
  let mut agent = TestAgent::alive();
  let job = agent.when(inputs::message("hello")).message();
  agent.when(inputs::ask(job));
  agent.set_aside(1, true);
  for position in 2..=i64::try_from(HELD_INPUTS_MAX).unwrap() {
    agent.set_aside(position, false);
  }
  let meta = agent.input_meta(Origin::ThirdParty);
  let beyond = |input: Input| set_aside(&agent.root, &meta, Some(&input), inputs::held(9_999));
  assert_eq!(beyond(inputs::message("one more")), [refused(reason::QUEUE_FULL)]);
  assert_eq!(beyond(inputs::loss(job, 1)), held(inputs::held(9_999)));
  assert_eq!(set_aside(&agent.root, &meta, None, inputs::held(9_999)), held(inputs::held(9_999)));
  let events = beyond(inputs::received(inputs::channel(1), "hello").into());
  let decided = Decided { input: meta.id, events };
  let decided = decided.then_types(&["ConversationOpened", "MessageAdmitted", "ReplyFailed", "NoticePosted"]);
  let Event::Conversation(crate::conversation::Event::NoticePosted(posted)) = &decided.events[3] else { panic!("not a notice: {decided:?}") };
  assert_eq!(posted.code, notice::QUEUE_FULL);
}

#[test]
fn an_erasure_takes_held_inputs_along() {
  let mut agent = quarantine_of(&[10, 11]);
  agent.when(inputs::erase("Ada")).then_types(&["AgentErased"]);
  assert!(!is_holding(&agent.root));
}

#[test]
fn what_was_seen_is_kept_short() {
  let events = quarantined(inputs::held(1), "PANIC", &"é".repeat(10_000));
  match &events[..] {
    [Event::Log(super::Event::InputQuarantined(quarantined))] => assert_eq!(quarantined.detail.chars().count(), 500),
    other => panic!("not a quarantine: {other:?}"),
  }
}
