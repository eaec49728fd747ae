//! What comes in: the owner's messages may be refused, a platform's never.

use crate::codes::{notice, reason};
use crate::conversation::{
  Author, ConversationKind, ConversationOpened, MessageAdmitted, MessageGiven, MessageReceived, NoticeParam, NoticePosted, ReplyFailed, ReplyRequested,
};
use crate::event::{Event, message_of};
use crate::ids::{ConversationId, MessageId, derived, named};
use crate::limits::{ATTACHMENTS_MAX, CONVERSATIONS_MAX, MESSAGE_TEXT_BYTES_MAX, OPEN_MESSAGES_MAX};
use crate::meta::Origin;
use crate::testing::{Decided, TestAgent, input_id, inputs};

fn admitted(decided: &Decided) -> MessageAdmitted {
  let find = |event: &Event| {
    if let Event::Conversation(crate::conversation::Event::MessageAdmitted(admitted)) = event { Some(admitted.clone()) } else { None }
  };
  decided.events.iter().find_map(find).expect("a message is admitted")
}

/// Proves REP-1, REP-5: every message is its own job of the agent, and its turn comes at once when nothing waits.
#[test]
fn a_message_of_the_owner_is_admitted_and_has_its_turn() {
  let mut agent = TestAgent::alive();
  let main = agent.root.main.unwrap();
  let decided = agent.when(MessageGiven { conversation: None, text: "hello".to_owned(), attachments: vec![inputs::file("a.txt")] });
  let message = message_of(decided.input);
  let reply = MessageId(named(message.0, "reply"));
  decided.then(&[
    MessageAdmitted {
      message,
      conversation: main,
      author: Author::Owner,
      author_name: String::new(),
      text: "hello".to_owned(),
      attachments: vec![inputs::file("a.txt")],
      reply,
    }
    .into(),
    ReplyRequested { job: message.into(), conversation: main, reply }.into(),
  ]);
}

#[test]
fn a_message_without_text_and_files_is_refused() {
  TestAgent::alive().when(inputs::message(" \n ")).then_refused(reason::TEXT_EMPTY);
  let with_file = MessageGiven { conversation: None, text: String::new(), attachments: vec![inputs::file("a.txt")] };
  TestAgent::alive().when(with_file).then_types(&["MessageAdmitted", "ReplyRequested"]);
}

#[test]
fn text_is_taken_up_to_the_limit_in_bytes() {
  let longest = "é".repeat(MESSAGE_TEXT_BYTES_MAX / 2);
  TestAgent::alive().when(inputs::message(&longest)).then_types(&["MessageAdmitted", "ReplyRequested"]);
  TestAgent::alive().when(inputs::message(&format!("{longest}x"))).then_refused(reason::TEXT_TOO_LONG);
}

/// NUL is replaced before it counts: a text of NULs can't grow past the limit.
#[test]
fn nul_is_replaced_everywhere() {
  let mut agent = TestAgent::alive();
  let mut file = inputs::file("a\0.txt");
  file.media_type = "text/\0".to_owned();
  let decided = agent.when(MessageGiven { conversation: None, text: "A\0B".to_owned(), attachments: vec![file] });
  let message = admitted(&decided);
  assert_eq!((message.text.as_str(), message.attachments[0].name.as_str()), ("A\u{FFFD}B", "a\u{FFFD}.txt"));
  let channel = MessageReceived { title: "T\0".to_owned(), author_name: "N\0".to_owned(), ..inputs::received(inputs::channel(1), "\0") };
  let decided = agent.when(channel);
  assert!(!format!("{:?}", decided.events).contains("\\0"));
  agent.when(inputs::message(&"\0".repeat(MESSAGE_TEXT_BYTES_MAX))).then_refused(reason::TEXT_TOO_LONG);
}

#[test]
fn an_unknown_conversation_is_not_found() {
  TestAgent::alive().when(inputs::message_in(ConversationId(input_id(99)), "hello")).then_refused(reason::NOT_FOUND);
}

#[test]
fn the_owner_may_write_in_a_channel_conversation() {
  let mut agent = TestAgent::alive();
  agent.when(inputs::received(inputs::channel(1), "hello"));
  let decided = agent.when(inputs::message_in(inputs::channel(1), "me too"));
  assert_eq!(admitted(&decided).author, Author::Owner);
  decided.then_types(&["MessageAdmitted"]);
}

/// Proves D30 for messages: what isn't the owner's never becomes a message of the owner.
#[test]
fn text_of_others_is_never_the_owners_message() {
  for origin in [Origin::Agent, Origin::Tool, Origin::ThirdParty, Origin::Platform] {
    TestAgent::alive().when_from(origin, inputs::message("hello")).then_refused(reason::NOT_ALLOWED);
    let claimed = MessageReceived { author: Author::Owner, ..inputs::received(inputs::channel(1), "hello") };
    assert_eq!(admitted(&TestAgent::alive().when_from(origin, claimed)).author, Author::Person);
  }
  let linked = MessageReceived { author: Author::Owner, ..inputs::received(inputs::channel(1), "hello") };
  assert_eq!(admitted(&TestAgent::alive().when(linked)).author, Author::Owner);
}

#[test]
fn too_many_files_are_refused() {
  let files = |count| (0..count).map(|_| inputs::file("a.txt")).collect::<Vec<_>>();
  let given = |count| MessageGiven { conversation: None, text: "hello".to_owned(), attachments: files(count) };
  TestAgent::alive().when(given(ATTACHMENTS_MAX)).then_types(&["MessageAdmitted", "ReplyRequested"]);
  TestAgent::alive().when(given(ATTACHMENTS_MAX + 1)).then_refused(reason::VALUE_INVALID);
}

#[test]
fn the_first_message_of_a_contact_opens_its_conversation() {
  let mut agent = TestAgent::alive();
  let opened =
    ConversationOpened { conversation: inputs::channel(1), kind: ConversationKind::Channel, title: "Grace".to_owned(), connection: "lark-1".to_owned() };
  let decided = agent.when(inputs::received(inputs::channel(1), "hello")).then_types(&["ConversationOpened", "MessageAdmitted", "ReplyRequested"]);
  assert_eq!(decided.events[0], opened.into());
  assert_eq!(admitted(&decided).author_name, "Grace");
  agent.when(inputs::received(inputs::channel(1), "hello again")).then_types(&["MessageAdmitted"]);
}

fn full() -> TestAgent {
  let mut agent = TestAgent::alive();
  for number in 0..OPEN_MESSAGES_MAX {
    agent.when(inputs::message(&number.to_string()));
  }
  assert_eq!(agent.root.open_messages(), OPEN_MESSAGES_MAX);
  agent
}

#[test]
fn with_a_full_queue_the_owner_is_refused_until_something_is_answered() {
  let mut agent = full();
  agent.when(inputs::message("one more")).then_refused(reason::QUEUE_FULL);
  let head = agent.root.conversations[&agent.root.main.unwrap()].open[0].job;
  agent.when(inputs::stop(head, ""));
  agent.when(inputs::message("one more")).then_types(&["MessageAdmitted"]);
}

#[test]
fn with_a_full_queue_a_channel_message_is_admitted_as_failed() {
  let mut agent = full();
  let decided = agent.when(inputs::received(inputs::channel(1), "hello"));
  let message = admitted(&decided);
  let failed = ReplyFailed { job: message.message.into(), conversation: message.conversation, reply: message.reply, code: notice::QUEUE_FULL.to_owned() };
  let posted = NoticePosted {
    notice: MessageId(derived(decided.input, 3)),
    conversation: message.conversation,
    reply_to: Some(message.message),
    code: notice::QUEUE_FULL.to_owned(),
    params: vec![NoticeParam::new("limit", "500")],
  };
  assert_eq!(decided.events[2..], [failed.into(), posted.into()]);
  assert_eq!(agent.root.open_messages(), OPEN_MESSAGES_MAX);
}

#[test]
fn a_channel_message_that_is_too_long_stands_cut_with_a_notice() {
  let mut agent = TestAgent::alive();
  let text = format!("x{}", "é".repeat(MESSAGE_TEXT_BYTES_MAX / 2));
  let decided = agent.when(inputs::received(inputs::channel(1), &text)).then_types(&["ConversationOpened", "MessageAdmitted", "ReplyFailed", "NoticePosted"]);
  let kept = admitted(&decided).text;
  assert_eq!(kept.len(), MESSAGE_TEXT_BYTES_MAX - 1);
  assert!(text.starts_with(&kept));
  assert_eq!(agent.root.open_messages(), 0);
}

#[test]
fn a_channel_message_with_too_many_files_stands_with_the_first_ones() {
  let attachments = (0..=ATTACHMENTS_MAX).map(|number| inputs::file(&number.to_string())).collect();
  let mut agent = TestAgent::alive();
  let decided = agent.when(MessageReceived { attachments, ..inputs::received(inputs::channel(1), "") });
  assert_eq!(admitted(&decided).attachments.len(), ATTACHMENTS_MAX);
  decided.then_types(&["ConversationOpened", "MessageAdmitted", "ReplyFailed", "NoticePosted"]);
}

#[test]
fn a_channel_message_with_nothing_in_it_changes_nothing() {
  TestAgent::alive().when(inputs::received(inputs::channel(1), " ")).then_unchanged(reason::TEXT_EMPTY);
}

#[test]
fn beyond_the_limit_the_longest_idle_channel_conversation_is_forgotten_and_opens_again() {
  let mut agent = TestAgent::alive();
  let waits = agent.when(inputs::received(inputs::channel(0), "still open")).message();
  for number in 1..=u64::try_from(CONVERSATIONS_MAX).unwrap() {
    let job = agent.when(inputs::received(inputs::channel(number), "hello")).message();
    agent.when(inputs::stop(job, ""));
  }
  assert_eq!(agent.root.conversations.len(), CONVERSATIONS_MAX);
  assert!(agent.root.conversations.contains_key(&agent.root.main.unwrap()));
  assert!(agent.root.has_turn(inputs::channel(0), waits));
  assert!(!agent.root.conversations.contains_key(&inputs::channel(1)));
  agent.when(inputs::received(inputs::channel(1), "back")).then_types(&["ConversationOpened", "MessageAdmitted", "ReplyRequested"]);
}
