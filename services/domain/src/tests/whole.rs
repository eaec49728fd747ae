//! What holds for every input and event: classes, provenance, sizes.

use crate::call::{Class, Outcome};
use crate::conversation::{Author, MessageReceived, ResultReported};
use crate::event::{Event, Input};
use crate::ids::{ConversationId, JobId, Timestamp};
use crate::limits::{CHANNEL_REPLIES_MAX, CONVERSATIONS_MAX, HELD_INPUTS_MAX, OPEN_MESSAGES_MAX, ROOT_BYTES_MAX, TASKS_OPEN_MAX};
use crate::log::held;
use crate::meta::Origin;
use crate::state::State;
use crate::testing::{TestAgent, inputs, tasks};

/// A run through one turn with every kind of content, for what holds for each of its events.
fn a_turn() -> TestAgent {
  let mut agent = TestAgent::alive();
  let job = agent.when(inputs::message("hello")).message();
  agent.when(inputs::ask(job));
  agent.when(inputs::step(job, 1, 1, &["send"]));
  let call = crate::ids::call(job, 1, 0);
  agent.when(inputs::call(job, 1, (1, 0), "send", Class::External));
  agent.when(inputs::outcome(job, 1, call, Outcome::Unknown));
  agent.when(inputs::reconcile(job, call, true));
  agent.when(inputs::outcome(job, 1, call, Outcome::Returned));
  agent.when(inputs::finish(job, 1, 2, agent.ordinal(), "done"));
  agent.when(inputs::received(inputs::channel(1), "hello"));
  agent
}

#[test]
fn reports_are_what_happened_outside() {
  let (job, timer) = (JobId(crate::testing::input_id(1)), crate::ids::TimerId(crate::testing::input_id(2)));
  let task = tasks::task(1);
  let call = crate::ids::call(job, 1, 0);
  let result = ResultReported { task, conversation: inputs::channel(1), author: Author::Owner, title: String::new(), revision: 1, text: "42".to_owned() };
  let reports: [Input; 11] = [
    result.into(),
    tasks::looped(task, 1),
    tasks::desktop_busy(task, 1),
    tasks::desktop_free(task),
    inputs::received(inputs::channel(1), "hello").into(),
    inputs::loss(job, 1),
    inputs::give_back(job, 1),
    inputs::failure(job, 1, "MODEL_REFUSED"),
    inputs::step(job, 1, 1, &[]),
    inputs::outcome(job, 1, crate::ids::call(job, 1, 0), Outcome::Returned).into(),
    inputs::fire(timer, job),
  ];
  assert!(reports.iter().all(|input| input.is_report() && !input.is_command()));
  let commands: [Input; 20] = [
    tasks::start(task, "go").into(),
    tasks::instruct(task, "more").into(),
    tasks::pause(task),
    tasks::resume(task),
    tasks::stop(task),
    tasks::decide(task, crate::ids::ActionId(call.0), crate::task::Decision::Reject),
    tasks::checkpoint(task, 1, call, "half").into(),
    tasks::deliver(task, 1, call, "key").into(),
    inputs::add_account("Ada"),
    inputs::create("Ada"),
    inputs::erase("Ada"),
    crate::settings::SettingsGiven::default().into(),
    inputs::message("hello"),
    inputs::stop(job, ""),
    inputs::retry(job),
    inputs::ask(job),
    inputs::finish(job, 1, 1, 1, "hi").into(),
    inputs::call(job, 1, (1, 0), "tool", Class::Repeatable).into(),
    inputs::reconcile(job, crate::ids::call(job, 1, 0), true),
    inputs::release(false),
  ];
  assert!(commands.iter().all(|input| input.is_command() && !input.is_report()));
  let mut types: Vec<&str> = reports.iter().chain(&commands).map(Input::type_name).collect();
  types.sort_unstable();
  let mut all: Vec<&str> = Input::types().map(|(name, _)| *name).collect();
  all.sort_unstable();
  assert_eq!(types, all);
}

/// Proves D30: every event says where its content comes from.
#[test]
fn every_event_says_where_its_content_comes_from() {
  let agent = a_turn();
  let origin_of = |name: &str| {
    let found = agent.log.iter().find(|(_, event)| event.type_name().ends_with(&format!(".{name}")));
    found.map(|(meta, _)| meta.origin)
  };
  let expected = [
    ("AgentCreated", Origin::Platform),
    ("MessageAdmitted", Origin::Owner),
    ("ReplyRequested", Origin::Platform),
    ("ExecutionStarted", Origin::Platform),
    ("StepRecorded", Origin::Agent),
    ("CallStarted", Origin::Agent),
    ("CallUnknown", Origin::Platform),
    ("NoticePosted", Origin::Platform),
    ("CallReconciled", Origin::Owner),
    ("CallOutcomeNoted", Origin::Tool),
    ("ReplyPosted", Origin::Agent),
  ];
  for (name, origin) in expected {
    assert_eq!(origin_of(name), Some(origin), "{name}");
  }
  let last = agent.log.iter().rev().find(|(_, event)| event.type_name().ends_with(".MessageAdmitted"));
  assert_eq!(last.map(|(meta, _)| meta.origin), Some(Origin::ThirdParty));
}

#[test]
fn an_event_changes_no_other_thing_than_the_one_it_names() {
  let agent = a_turn();
  for (meta, event) in &agent.log {
    let thing = agent.things.values().next().cloned().unwrap();
    let after = crate::evolve(State { root: agent.root.clone(), thing: thing.clone() }, meta, event);
    assert!(event.thing().is_some() || after.thing == thing, "{}", event.type_name());
  }
}

/// The root is loaded for every input: with everything it counts at its limit it still fits.
#[test]
fn a_root_at_all_its_limits_is_below_its_size() {
  let mut agent = TestAgent::alive();
  for number in 0..u64::try_from(CONVERSATIONS_MAX).unwrap() {
    let job = agent.when(inputs::received(inputs::channel(number), "hello")).message();
    agent.when(inputs::stop(job, ""));
  }
  for number in 0..u64::try_from(OPEN_MESSAGES_MAX).unwrap() {
    agent.when(inputs::received(inputs::channel(10_000 + number % 50), "hello"));
  }
  let running: Vec<JobId> = agent.root.conversations.values().flat_map(|known| &known.open).filter(|open| open.has_turn).map(|open| open.job).collect();
  for job in running {
    agent.when(inputs::ask(job)).then_types(&["ExecutionStarted", "TimerSet"]);
  }
  for number in 0..u64::try_from(TASKS_OPEN_MAX).unwrap() {
    agent.when(tasks::start(tasks::task(number), "go"));
  }
  assert_eq!(agent.root.tasks.len(), TASKS_OPEN_MAX);
  for position in 0..i64::try_from(HELD_INPUTS_MAX).unwrap() {
    let meta = agent.input_meta(Origin::Owner);
    agent.apply_at((1 << 40 | position, false), &meta, &held(inputs::held(position)));
  }
  assert_eq!((agent.root.open_messages(), agent.root.timers.len()), (OPEN_MESSAGES_MAX, CHANNEL_REPLIES_MAX));
  assert_eq!((agent.root.conversations.len(), agent.root.quarantine.held.len()), (CONVERSATIONS_MAX, HELD_INPUTS_MAX));
  let bytes = postcard::to_stdvec(&agent.root).unwrap().len();
  assert!(bytes < ROOT_BYTES_MAX, "{bytes}");
}

#[test]
fn a_message_that_was_admitted_once_is_not_admitted_again() {
  let mut agent = TestAgent::alive();
  let meta = agent.input_meta(Origin::Owner);
  let input = inputs::message("hello");
  let events = agent.decide(&meta, &input);
  agent.apply(&meta, &events);
  assert_eq!(agent.decide(&meta, &input), [crate::settle::no_change(crate::codes::reason::ALREADY_DONE)]);
  let received: Input = MessageReceived { conversation: ConversationId(meta.id), ..inputs::received(inputs::channel(1), "hello") }.into();
  assert_eq!(agent.decide(&meta, &received), [crate::settle::no_change(crate::codes::reason::ALREADY_DONE)]);
}

#[test]
fn an_events_fold_needs_only_its_place_and_body() {
  let agent = a_turn();
  let replayed = agent.replayed();
  assert_eq!((&replayed.root, &replayed.things), (&agent.root, &agent.things));
  let mut moved = agent.clone();
  moved.now = Timestamp(0);
  assert_eq!(moved.replayed().root, agent.root);
  assert!(agent.log.iter().all(|(_, event): &(_, Event)| Event::types().any(|(name, _)| *name == event.type_name())));
}
