//! Whose turn it is (D33).

use crate::conversation::ReplyRequested;
use crate::event::Event;
use crate::ids::{ConversationId, JobId};
use crate::limits::CHANNEL_REPLIES_MAX;
use crate::testing::{Decided, TestAgent, inputs};

fn answer(agent: &mut TestAgent, job: JobId) -> Decided {
  agent.when(inputs::ask(job)).then_types(&["ExecutionStarted", "TimerSet"]);
  let work = agent.reply(job).work;
  agent.when(inputs::finish(job, work.executions, work.last_step() + 1, agent.ordinal(), "answer"))
}

fn turn_given(decided: &Decided) -> Option<JobId> {
  decided
    .events
    .iter()
    .find_map(|event| if let Event::Conversation(crate::conversation::Event::ReplyRequested(ReplyRequested { job, .. })) = event { Some(*job) } else { None })
}

fn received(agent: &mut TestAgent, conversation: ConversationId) -> Decided {
  agent.when(inputs::received(conversation, "hello"))
}

/// Proves REP-32: replies follow the message order of their conversation.
#[test]
fn the_next_message_has_its_turn_when_the_one_before_is_answered() {
  let mut agent = TestAgent::alive();
  let jobs: Vec<JobId> = ["one", "two", "three"].iter().map(|text| agent.when(inputs::message(text)).message()).collect();
  for pair in jobs.windows(2) {
    assert_eq!(turn_given(&answer(&mut agent, pair[0])), Some(pair[1]));
  }
  assert_eq!(turn_given(&answer(&mut agent, jobs[2])), None);
  assert_eq!(agent.root.open_messages(), 0);
}

#[test]
fn a_message_behind_another_can_not_be_worked_on() {
  let mut agent = TestAgent::alive();
  agent.when(inputs::message("one"));
  let second = agent.when(inputs::message("two")).then_types(&["MessageAdmitted"]).message();
  agent.when(inputs::ask(second)).then_refused(crate::codes::reason::NOT_QUEUED);
}

#[test]
fn four_channel_conversations_have_their_turn_beside_the_main_one() {
  let mut agent = TestAgent::alive();
  for number in 0..4 {
    assert!(received(&mut agent, inputs::channel(number)).has("ReplyRequested"));
  }
  assert!(!received(&mut agent, inputs::channel(4)).has("ReplyRequested"));
  agent.when(inputs::message("the main one never waits")).then_types(&["MessageAdmitted", "ReplyRequested"]);
}

#[test]
fn a_free_place_goes_to_the_channel_conversation_that_waits_longest() {
  let mut agent = TestAgent::alive();
  let first: Vec<JobId> = (0..4).map(|number| received(&mut agent, inputs::channel(number)).message()).collect();
  let same_conversation = received(&mut agent, inputs::channel(0)).message();
  let fifth = received(&mut agent, inputs::channel(9)).message();
  let sixth = received(&mut agent, inputs::channel(5)).message();
  assert_eq!(turn_given(&answer(&mut agent, first[1])), Some(fifth));
  assert_eq!(turn_given(&answer(&mut agent, first[0])), Some(same_conversation));
  assert_eq!(turn_given(&answer(&mut agent, fifth)), Some(sixth));
  assert_eq!(turn_given(&answer(&mut agent, sixth)), None);
}

#[test]
fn the_main_conversation_does_not_fill_a_place_of_the_channels() {
  let mut agent = TestAgent::alive();
  let main = agent.when(inputs::message("hello")).message();
  for number in 0..5 {
    received(&mut agent, inputs::channel(number));
  }
  assert_eq!(turn_given(&answer(&mut agent, main)), None);
  let channels_with_a_turn = agent.root.conversations.values().filter(|known| known.open.iter().any(|message| message.has_turn)).count();
  assert_eq!(channels_with_a_turn, CHANNEL_REPLIES_MAX);
}

#[test]
fn a_waiting_message_that_is_taken_back_frees_no_place() {
  let mut agent = TestAgent::alive();
  for number in 0..6 {
    received(&mut agent, inputs::channel(number));
  }
  let waiting = agent.root.conversations[&inputs::channel(4)].open[0].job;
  let decided = agent.when(inputs::stop(waiting, "")).then_types(&["ReplyStopped"]);
  assert_eq!(turn_given(&decided), None);
}
