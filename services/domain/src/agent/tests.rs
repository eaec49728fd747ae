//! An agent's life: made once, erased once.

use super::{AgentCreated, AgentErased};
use crate::codes::reason;
use crate::conversation::{ConversationKind, ConversationOpened};
use crate::ids::{ConversationId, ThingId, TimerId, Timestamp, derived};
use crate::limits::DECISION_EVENTS_MAX;
use crate::meta::Origin;
use crate::settings::{Effort, SettingsChanged};
use crate::state::{Life, Root};
use crate::testing::{TestAgent, given, input_id, inputs};
use crate::timer::{Purpose, TimerCancelled, TimerSet};

/// Proves TOP-2: the agent begins with its one main conversation.
#[test]
fn an_agent_begins_with_its_main_conversation_and_default_settings() {
  let mut agent = TestAgent::absent();
  let decided = agent.when(inputs::create("Ada"));
  let conversation = ConversationId(derived(decided.input, 1));
  decided.then(&[
    AgentCreated { owner_name: "Ada".to_owned() }.into(),
    ConversationOpened { conversation, kind: ConversationKind::Main, title: String::new(), connection: String::new() }.into(),
    SettingsChanged {
      version: 1,
      time_zone: String::new(),
      language: String::new(),
      concurrency: 3,
      model: String::new(),
      effort: Effort::Fast,
      name: "Hugo".to_owned(),
      avatar: "builtin:hugo".to_owned(),
    }
    .into(),
  ]);
  assert_eq!((agent.root.life, agent.root.main), (Life::Alive, Some(conversation)));
}

#[test]
fn an_agent_is_made_once() {
  let mut agent = TestAgent::alive();
  let before = agent.root.clone();
  agent.when(inputs::create("Ada")).then_unchanged(reason::ALREADY_DONE);
  assert_eq!(agent.root, before);
}

#[test]
fn before_it_exists_commands_are_refused_and_reports_change_nothing() {
  let mut agent = TestAgent::absent();
  agent.when(inputs::message("hello")).then_refused(reason::NOT_FOUND);
  agent.when(inputs::received(inputs::channel(1), "hello")).then_unchanged(reason::NOT_FOUND);
  agent.when(inputs::erase("Ada")).then_refused(reason::NOT_FOUND);
}

#[test]
fn an_erasure_repeats_the_accounts_name() {
  let mut agent = TestAgent::alive();
  agent.when(inputs::erase("ada")).then_refused(reason::VALUE_INVALID);
  agent.when_from(Origin::Agent, inputs::erase("Ada")).then_refused(reason::NOT_ALLOWED);
  agent.when(inputs::erase("Ada")).then(&[AgentErased {}.into()]);
}

#[test]
fn an_erasure_cancels_what_runs_and_stands_last() {
  let mut agent = TestAgent::alive();
  let job = agent.when(inputs::message("hello")).message();
  agent.when(inputs::ask(job));
  let timer = agent.reply(job).work.running.unwrap().timer;
  agent.when(inputs::erase("Ada")).then(&[TimerCancelled { timer }.into(), AgentErased {}.into()]);
}

#[test]
fn after_an_erasure_nothing_is_remembered_and_nothing_happens() {
  let mut agent = TestAgent::alive();
  let job = agent.when(inputs::message("hello")).message();
  agent.when(inputs::ask(job));
  let timer = agent.reply(job).work.running.unwrap().timer;
  agent.when(inputs::erase("Ada"));
  assert_eq!(agent.root, Root { life: Life::Erased, ..Root::default() });
  agent.when(inputs::message("again")).then_refused(reason::NOT_FOUND);
  agent.when(inputs::finish(job, 1, 1, i64::MAX, "hi")).then_refused(reason::NOT_FOUND);
  agent.when(inputs::loss(job, 1)).then_unchanged(reason::NOT_FOUND);
  agent.when(inputs::fire(timer, job)).then_unchanged(reason::NOT_FOUND);
  agent.when(inputs::received(inputs::channel(1), "hello")).then_unchanged(reason::NOT_FOUND);
  agent.when(inputs::create("Ada")).then_refused(reason::NOT_ALLOWED);
  agent.when(inputs::erase("Ada")).then_refused(reason::NOT_FOUND);
}

#[test]
fn an_erasure_with_many_timers_is_one_decision_within_its_limit() {
  let timers = (0..100).map(|number| {
    let set = TimerSet {
      timer: TimerId(input_id(10_000 + number)),
      purpose: Purpose::AttemptLimit,
      due_ms: Timestamp(1),
      thing: Some(ThingId(input_id(20_000 + number))),
    };
    set.into()
  });
  let mut agent = given([AgentCreated { owner_name: "Ada".to_owned() }.into()].into_iter().chain(timers));
  let decided = agent.when(inputs::erase("Ada"));
  assert_eq!(decided.events.len(), DECISION_EVENTS_MAX);
  assert_eq!(decided.events.last(), Some(&AgentErased {}.into()));
  assert!(agent.root.timers.is_empty());
}
