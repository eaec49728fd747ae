//! Tells a log: each method is a decision as a decider would write it.

use pa_domain::account::{self, AccountAdded, Role};
use pa_domain::agent::{self, AgentCreated, AgentErased};
use pa_domain::call::{self, CallReconciled, CallReturned, CallSkipped, CallStarted, CallUnknown, Class, ResultPart, SkipReason};
use pa_domain::conversation::{
  self, Author, ConversationKind, ConversationOpened, FileRef, MessageAdmitted, MessageRetried, NoticeParam, NoticePosted, ReplyFailed, ReplyPosted,
  ReplyRequested, ReplyStopped,
};
use pa_domain::execution::{
  self, ExecutionFinished, ExecutionLost, ExecutionStarted, ExecutionStopped, ExecutionYielded, JobKind, LossReason, ModelCall, StepRecorded, ToolCall,
};
use pa_domain::ids::{INSTALLATION, call as call_id, derived, named};
use pa_domain::log::{self, InputSettled, Settlement};
use pa_domain::meta::Kind;
use pa_domain::settings::{self, Effort, SettingsChanged};
use pa_domain::timer::{self, Purpose, TimerCancelled, TimerSet};
use pa_domain::{AgentId, ConversationId, Event, JobId, MessageId, Meta, Origin, TimerId, Timestamp};
use uuid::Uuid;

use crate::commit::{Batch, Fact, Mark};

/// The partition that the story plays in.
pub const PARTITION: u16 = 3;

/// A decision as stored.
#[derive(Clone, Debug)]
pub struct Decision {
  pub first: i64,
  pub facts: Vec<(Meta, Event)>,
}

impl Decision {
  pub fn facts(&self) -> Vec<Fact<'_>> {
    (self.first..).zip(&self.facts).map(|(position, (meta, event))| Fact { partition: PARTITION, position, meta, event }).collect()
  }

  pub fn add_to(&self, batch: &mut Batch) {
    batch.add_decision(&self.facts());
  }
}

/// Where a partition stands after `decisions` of a story; the hash stands for the record before.
pub fn mark(decisions: &[Decision]) -> Mark {
  let Some(decision) = decisions.last() else { return Mark::default() };
  let next = decision.first + i64::try_from(decision.facts.len()).expect("a story is short");
  let mut last = [0; 32];
  last[..8].copy_from_slice(&next.to_be_bytes());
  Mark { next_position: next, epoch: 1, seq: i64::try_from(decisions.len()).expect("a story is short"), last }
}

/// A story that is being told.
#[derive(Debug, Default)]
pub struct Story {
  pub decisions: Vec<Decision>,
  /// How many decisions were told in all, also those that somebody took away.
  told: u128,
  ordinals: std::collections::HashMap<AgentId, i64>,
  next: i64,
  now: i64,
}

/// One message's turn.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
  pub agent: AgentId,
  pub conversation: ConversationId,
  pub message: MessageId,
  pub reply: MessageId,
}

impl Turn {
  pub fn job(&self) -> JobId {
    self.message.into()
  }
}

pub fn agent(number: u128) -> AgentId {
  AgentId(Uuid::from_u128(0xa0_0000 + number))
}

pub fn main_of(agent: AgentId) -> ConversationId {
  ConversationId(named(agent.0, "main"))
}

pub fn settings(version: i64, name: &str) -> SettingsChanged {
  SettingsChanged {
    version,
    time_zone: "Europe/Berlin".into(),
    language: "en".into(),
    concurrency: 2,
    model: String::new(),
    effort: Effort::Fast,
    name: name.into(),
    avatar: String::new(),
  }
}

pub fn model_call(tokens: Option<i64>) -> ModelCall {
  ModelCall {
    model: "small".into(),
    effort: Effort::Low,
    prompt_version: "1".into(),
    parts: Vec::new(),
    tools: Vec::new(),
    finish: "STOP".into(),
    attempts: 1,
    started_ms: Timestamp(1),
    ended_ms: Timestamp(2),
    input_tokens: tokens,
    output_tokens: tokens,
    cached_tokens: None,
    reasoning_tokens: None,
    price_micros: tokens.map(|tokens| tokens * 3),
    currency: tokens.map(|_| "USD".into()),
  }
}

impl Story {
  /// Decides on a new input of `agent`; the events are made with the input's id.
  pub fn decide(&mut self, agent: AgentId, events: impl FnOnce(Uuid) -> Vec<Event>) -> Uuid {
    self.now += 7;
    let input = Uuid::from_u128(0x1_0000 + self.told);
    self.told += 1;
    let first = self.next;
    let facts: Vec<_> = (0_u32..)
      .zip(events(input))
      .map(|(index, event)| {
        let ordinal = self.ordinals.entry(agent).or_insert(0);
        *ordinal += 1;
        let meta = Meta {
          id: derived(input, 1_000 + index),
          kind: Kind::Event,
          agent,
          ordinal: *ordinal,
          at: Timestamp(self.now),
          cause: input,
          correlation: input,
          actor: "owner".into(),
          origin: Origin::Owner,
          producer: String::new(),
          key: Vec::new(),
          input: first,
          held: false,
          part: i32::try_from(index).expect("a story is short") + 1,
        };
        (meta, event)
      })
      .collect();
    self.next += i64::try_from(facts.len()).expect("a story is short");
    self.decisions.push(Decision { first, facts });
    input
  }

  pub fn ordinal(&self, agent: AgentId) -> i64 {
    self.ordinals.get(&agent).copied().unwrap_or(0)
  }

  pub fn now(&self) -> Timestamp {
    Timestamp(self.now)
  }

  pub fn account(&mut self, account: AgentId, name: &str) {
    let added = AccountAdded { account, name: name.into(), role: Role::Member };
    self.decide(INSTALLATION, |_| vec![account::Event::from(added).into()]);
  }

  pub fn create(&mut self, agent: AgentId) {
    self.decide(agent, |_| {
      let opened = ConversationOpened { conversation: main_of(agent), kind: ConversationKind::Main, title: String::new(), connection: String::new() };
      vec![
        agent::Event::from(AgentCreated { owner_name: "Kim".into() }).into(),
        conversation::Event::from(opened).into(),
        settings::Event::from(settings(1, "")).into(),
      ]
    });
  }

  pub fn settings(&mut self, agent: AgentId, changed: SettingsChanged) {
    self.decide(agent, |_| vec![settings::Event::from(changed).into()]);
  }

  pub fn settled(&mut self, agent: AgentId) {
    let settled = InputSettled { outcome: Settlement::NoChange, reason: String::new(), of: None };
    self.decide(agent, |_| vec![log::Event::from(settled).into()]);
  }

  /// A message whose turn it is at once.
  pub fn message(&mut self, agent: AgentId, text: &str) -> Turn {
    self.admit(agent, text, &[], true)
  }

  /// A message, with files, and with or without its turn.
  pub fn admit(&mut self, agent: AgentId, text: &str, attachments: &[FileRef], has_turn: bool) -> Turn {
    let conversation = main_of(agent);
    let input = self.decide(agent, |input| {
      let (message, reply) = (MessageId(derived(input, 0)), MessageId(derived(input, 1)));
      let admitted = MessageAdmitted {
        message,
        conversation,
        author: Author::Owner,
        author_name: String::new(),
        text: text.into(),
        attachments: attachments.to_vec(),
        reply,
      };
      let mut events = vec![conversation::Event::from(admitted).into()];
      if has_turn {
        events.push(conversation::Event::from(ReplyRequested { job: message.into(), conversation, reply }).into());
      }
      events
    });
    Turn { agent, conversation, message: MessageId(derived(input, 0)), reply: MessageId(derived(input, 1)) }
  }

  pub fn start(&mut self, turn: Turn, execution: i32) {
    let limit = Timestamp(self.now + 240_000);
    self.decide(turn.agent, |_| {
      let started = ExecutionStarted { job: turn.job(), kind: JobKind::Reply, execution, conversation: turn.conversation, reply: turn.reply, limit_ms: limit };
      let set = TimerSet { timer: timer_of(turn, execution), purpose: Purpose::AttemptLimit, due_ms: limit, thing: Some(turn.job().into()) };
      vec![execution::Event::from(started).into(), timer::Event::from(set).into()]
    });
  }

  pub fn finish(&mut self, turn: Turn, execution: i32, text: &str, next: Option<Turn>) {
    self.decide(turn.agent, |_| {
      let step = StepRecorded { job: turn.job(), execution, step: execution, model_call: model_call(Some(10)), text: String::new(), calls: Vec::new() };
      let posted = ReplyPosted { job: turn.job(), conversation: turn.conversation, reply: turn.reply, text: text.into(), incomplete: false };
      let mut events = vec![
        execution::Event::from(step).into(),
        execution::Event::from(ExecutionFinished { job: turn.job(), execution }).into(),
        timer::Event::from(TimerCancelled { timer: timer_of(turn, execution) }).into(),
        conversation::Event::from(posted).into(),
      ];
      events.extend(next.map(requested));
      events
    });
  }

  pub fn turn(&mut self, agent: AgentId, text: &str, answer: &str) -> Turn {
    let turn = self.message(agent, text);
    self.start(turn, 1);
    self.finish(turn, 1, answer, None);
    turn
  }

  pub fn lose(&mut self, turn: Turn, execution: i32) {
    self.decide(turn.agent, |_| lost(turn, execution, 1));
  }

  pub fn give_back(&mut self, turn: Turn, execution: i32) {
    self.decide(turn.agent, |_| {
      vec![
        execution::Event::from(ExecutionYielded { job: turn.job(), execution }).into(),
        timer::Event::from(TimerCancelled { timer: timer_of(turn, execution) }).into(),
      ]
    });
  }

  /// The second loss: the reply fails with a notice.
  pub fn fail(&mut self, turn: Turn, execution: i32) -> MessageId {
    let input = self.decide(turn.agent, |input| {
      let mut events = lost(turn, execution, 2);
      let code = "REPLY_INTERRUPTED".to_owned();
      events.push(conversation::Event::from(ReplyFailed { job: turn.job(), conversation: turn.conversation, reply: turn.reply, code: code.clone() }).into());
      let params = vec![NoticeParam { name: "losses".into(), value: "2".into() }];
      let notice = NoticePosted { notice: MessageId(derived(input, 9)), conversation: turn.conversation, reply_to: Some(turn.message), code, params };
      events.push(conversation::Event::from(notice).into());
      events
    });
    MessageId(derived(input, 9))
  }

  pub fn retry(&mut self, turn: Turn) {
    self.decide(turn.agent, |_| {
      let retried = MessageRetried { message: turn.message, conversation: turn.conversation, reply: turn.reply };
      vec![conversation::Event::from(retried).into(), requested(turn)]
    });
  }

  pub fn stop(&mut self, turn: Turn, execution: Option<i32>, shown: &str) {
    self.decide(turn.agent, |_| {
      let mut events: Vec<Event> = Vec::new();
      if let Some(execution) = execution {
        events.push(execution::Event::from(ExecutionStopped { job: turn.job(), execution }).into());
        events.push(timer::Event::from(TimerCancelled { timer: timer_of(turn, execution) }).into());
      }
      let stopped = ReplyStopped { job: turn.job(), conversation: turn.conversation, reply: turn.reply, text: shown.into() };
      events.push(conversation::Event::from(stopped).into());
      events
    });
  }

  /// A step that asks for two calls: an external one that starts and whose outcome is `known` or not, and one that never starts.
  pub fn calls(&mut self, turn: Turn, execution: i32, known: bool) -> [pa_domain::CallId; 2] {
    let job = turn.job();
    let calls = [call_id(job, 7, 0), call_id(job, 7, 1)];
    self.decide(turn.agent, |_| {
      let asked = |id: &str| ToolCall { provider_id: id.into(), tool: "pa_email_send".into(), arguments: "{}".into() };
      let step = StepRecorded { job, execution, step: 7, model_call: model_call(None), text: "wait".into(), calls: vec![asked("a"), asked("b")] };
      vec![execution::Event::from(step).into()]
    });
    self.decide(turn.agent, |_| {
      let started = CallStarted {
        job,
        execution,
        step: 7,
        index: 0,
        call: calls[0],
        tool: "pa_email_send".into(),
        class: Class::External,
        action: "{}".into(),
        limit_millis: 1_000,
        started_ms: Timestamp(5),
        card: None,
      };
      vec![call::Event::from(started).into()]
    });
    self.decide(turn.agent, |_| {
      if known {
        let parts = vec![ResultPart { origin: Origin::Tool, text: "sent".into(), blob: None }];
        vec![call::Event::from(CallReturned { job, execution, call: calls[0], parts }).into()]
      } else {
        vec![call::Event::from(CallUnknown { job, execution, call: calls[0] }).into()]
      }
    });
    self.decide(turn.agent, |_| {
      let skipped = CallSkipped { job, call: calls[1], step: 7, index: 1, tool: "pa_email_send".into(), reason: SkipReason::Stopped };
      vec![call::Event::from(skipped).into()]
    });
    calls
  }

  pub fn reconcile(&mut self, turn: Turn, call: pa_domain::CallId) {
    let reconciled = CallReconciled { job: turn.job(), call, executed: true, by_owner: true, parts: Vec::new() };
    self.decide(turn.agent, |_| vec![call::Event::from(reconciled).into()]);
  }

  pub fn erase(&mut self, agent: AgentId) {
    self.decide(agent, |_| vec![agent::Event::from(AgentErased {}).into()]);
  }
}

fn requested(turn: Turn) -> Event {
  conversation::Event::from(ReplyRequested { job: turn.job(), conversation: turn.conversation, reply: turn.reply }).into()
}

fn lost(turn: Turn, execution: i32, losses: i32) -> Vec<Event> {
  vec![
    execution::Event::from(ExecutionLost { job: turn.job(), execution, reason: LossReason::LeaseExpired, losses }).into(),
    timer::Event::from(TimerCancelled { timer: timer_of(turn, execution) }).into(),
  ]
}

pub fn timer_of(turn: Turn, execution: i32) -> TimerId {
  TimerId(named(turn.message.0, &format!("limit/{execution}")))
}

pub fn file(number: u32) -> FileRef {
  FileRef {
    id: Uuid::from_u128(0xf000 + u128::from(number)).to_string(),
    name: format!("note {number}.txt"),
    media_type: "text/plain".into(),
    size_bytes: 5,
    sha256: "ab".repeat(32),
    blob: format!("blob{number}"),
    origin: Origin::ThirdParty,
  }
}

/// Three agents and everything that can happen to them so far; one is erased in the end.
pub fn everything() -> Story {
  let mut story = Story::default();
  let agents = [agent(1), agent(2), agent(3)];
  for (number, id) in agents.into_iter().enumerate() {
    story.account(id, &format!("account {number}"));
    story.create(id);
  }
  for id in agents {
    for round in 0..4 {
      story.turn(id, &format!("question {round}"), &format!("answer {round}"));
    }
    let with_files = story.admit(id, "", &[file(1), file(2)], true);
    let waiting = story.admit(id, "and then?", &[], false);
    story.start(with_files, 1);
    story.lose(with_files, 1);
    story.start(with_files, 2);
    story.finish(with_files, 2, "two files", Some(waiting));
    story.start(waiting, 1);
    story.give_back(waiting, 1);
    story.start(waiting, 2);
    story.settled(id);
    story.stop(waiting, Some(2), "as far as");
    let failing = story.message(id, "too hard\u{0}for you");
    story.start(failing, 1);
    story.lose(failing, 1);
    story.start(failing, 2);
    story.fail(failing, 2);
    story.retry(failing);
    story.start(failing, 3);
    let calls = story.calls(failing, 3, id == agents[0]);
    if id == agents[1] {
      story.reconcile(failing, calls[0]);
    }
    story.finish(failing, 3, "after all", None);
    story.stop(never_admitted(id), None, "");
    story.settings(id, settings(2, "Ada"));
    let open = story.message(id, "still open");
    story.start(open, 1);
    super::tasks::every_kind(&mut story, id);
  }
  story.erase(agents[2]);
  story
}

/// A message that was never admitted: a stop of it changes nothing, and the audit has it all the same.
fn never_admitted(agent: AgentId) -> Turn {
  let message = MessageId(named(agent.0, "never"));
  Turn { agent, conversation: main_of(agent), message, reply: MessageId(named(agent.0, "never/reply")) }
}
