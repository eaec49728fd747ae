//! Tells of tasks: the decisions of a story that are about background work.

use pa_domain::call::{
  self, CallFailed, CallHeld, CallOutcomeNoted, CallReconciled, CallReturned, CallSkipped, CallStarted, CallUnknown, Class, Gate, GateKind, Outcome,
  ResultPart, SkipReason,
};
use pa_domain::conversation::{self, Author, ConversationKind, ConversationOpened, NoticePosted, ReplyRequested, ReportAdmitted};
use pa_domain::execution::{
  self, ExecutionFinished, ExecutionLost, ExecutionStarted, ExecutionStopped, ExecutionSuspended, JobKind, LossReason, StepRecorded, ToolCall,
};
use pa_domain::ids::{call as call_id, conversation_of, derived, named, output as output_id};
use pa_domain::task::{
  self, ActionApproved, ActionRejected, ActionWithdrawn, CheckpointRecorded, OutputDelivered, PauseReason, TaskCompleted, TaskFailed, TaskInstructed,
  TaskPaused, TaskQueued, TaskResumed, TaskRunRequested, TaskStarted, TaskStopped, TaskWaiting, WaitReason, WithdrawReason,
};
use pa_domain::{ActionId, AgentId, CallId, ConversationId, Event, MessageId, Origin, OutputId, TaskId, Timestamp};
use uuid::Uuid;

use super::story::{Story, Turn, file, main_of, model_call};

/// A task of the story.
#[derive(Clone, Copy, Debug)]
pub struct Told {
  pub agent: AgentId,
  pub id: TaskId,
}

/// A held call with its card.
#[derive(Clone, Copy, Debug)]
pub struct Held {
  pub call: CallId,
  pub card: ActionId,
}

impl Told {
  pub fn conversation(&self) -> ConversationId {
    conversation_of(self.id)
  }
}

/// A canonical action of an email.
pub const EMAIL: &str = r#"{"body":"The numbers are in.","subject":"Numbers","to":["kim@example.org"]}"#;

fn sent(text: &str) -> Vec<ResultPart> {
  vec![ResultPart { origin: Origin::Tool, text: text.into(), blob: None }]
}

impl Story {
  /// A task that starts and has its turn at once.
  pub fn task(&mut self, agent: AgentId, title: &str, goal: &str) -> Told {
    let id = TaskId(named(agent.0, &format!("task/{}", self.decisions.len())));
    self.decide(agent, |_| {
      let opened = ConversationOpened { conversation: conversation_of(id), kind: ConversationKind::Task, title: title.into(), connection: String::new() };
      let started = TaskStarted {
        task: id,
        conversation: conversation_of(id),
        asked_in: main_of(agent),
        author: Author::Owner,
        title: title.into(),
        goal: goal.into(),
        attachments: vec![file(7)],
        by: Origin::Agent,
        order: None,
      };
      vec![conversation::Event::from(opened).into(), task::Event::from(started).into(), task::Event::from(TaskRunRequested { task: id }).into()]
    });
    Told { agent, id }
  }

  pub fn begin_task(&mut self, told: Told, execution: i32) {
    self.decide(told.agent, |_| {
      let started = ExecutionStarted {
        job: told.id.into(),
        kind: JobKind::Task,
        execution,
        conversation: told.conversation(),
        reply: MessageId(told.id.0),
        limit_ms: Timestamp(0),
      };
      vec![execution::Event::from(started).into()]
    });
  }

  /// A step with words and calls that it asks for.
  pub fn step(&mut self, told: Told, step: i32, text: &str, tools: &[&str]) {
    self.decide(told.agent, |_| {
      let asked = |tool: &&str| ToolCall { provider_id: (*tool).into(), tool: (*tool).into(), arguments: "{}".into() };
      let calls = tools.iter().map(asked).collect();
      let recorded = StepRecorded { job: told.id.into(), execution: 1, step, model_call: model_call(Some(5)), text: text.into(), calls };
      vec![execution::Event::from(recorded).into()]
    });
  }

  /// A call that starts, and that has returned if there is a result.
  pub fn tool(&mut self, told: Told, at: (i32, i32), tool: &str, result: Option<&str>) -> CallId {
    let call = self.begin_call(told, at, (tool, Class::Repeatable, r#"{"path":"notes.md"}"#), None);
    if let Some(result) = result {
      self.returned(told, call, result);
    }
    call
  }

  pub fn begin_call(&mut self, told: Told, at: (i32, i32), what: (&str, Class, &str), card: Option<ActionId>) -> CallId {
    let ((step, index), (tool, class, action)) = (at, what);
    let call = call_id(told.id.into(), step, index);
    let started_ms = self.now();
    self.decide(told.agent, |_| {
      let started = CallStarted {
        job: told.id.into(),
        execution: 1,
        step,
        index,
        call,
        tool: tool.into(),
        class,
        action: action.into(),
        limit_millis: 1_000,
        started_ms,
        card,
      };
      vec![call::Event::from(started).into()]
    });
    call
  }

  pub fn returned(&mut self, told: Told, call: CallId, result: &str) {
    self.decide(told.agent, |_| vec![call::Event::from(CallReturned { job: told.id.into(), execution: 1, call, parts: sent(result) }).into()]);
  }

  pub fn call_failed(&mut self, told: Told, call: CallId, code: &str) {
    let parts = sent("no such file");
    self.decide(told.agent, |_| vec![call::Event::from(CallFailed { job: told.id.into(), execution: 1, call, code: code.into(), parts }).into()]);
  }

  /// A call that is held for the owner; the task waits.
  pub fn hold(&mut self, told: Told, at: (i32, i32), gate: Gate, action: &str) -> Held {
    let (step, index) = at;
    let held = Held { call: call_id(told.id.into(), step, index), card: ActionId(named(told.id.0, &format!("card/{step}/{index}/{}", self.decisions.len()))) };
    self.decide(told.agent, |_| {
      let event = CallHeld {
        job: told.id.into(),
        execution: 1,
        step,
        index,
        call: held.call,
        card: held.card,
        tool: "pa_email_send".into(),
        class: Class::External,
        gate,
        action: action.into(),
        limit_millis: 1_000,
      };
      vec![
        call::Event::from(event).into(),
        execution::Event::from(ExecutionSuspended { job: told.id.into(), execution: 1 }).into(),
        task::Event::from(TaskWaiting { task: told.id, reason: WaitReason::Approval }).into(),
      ]
    });
    held
  }

  pub fn hold_email(&mut self, told: Told, at: (i32, i32)) -> Held {
    self.hold(told, at, Gate { kind: GateKind::Email, target: "kim@example.org · Numbers".into(), scope: None, valid_until_ms: None }, EMAIL)
  }

  pub fn approve(&mut self, told: Told, held: Held, scope: Option<&str>) {
    self.decide(told.agent, |_| {
      let approved = ActionApproved { task: told.id, card: held.card, call: held.call, scope: scope.map(Into::into) };
      vec![task::Event::from(approved).into(), queued(told, 1), task::Event::from(TaskRunRequested { task: told.id }).into()]
    });
  }

  pub fn reject(&mut self, told: Told, held: Held, at: (i32, i32)) {
    self.decide(told.agent, |input| {
      let rejected = ActionRejected { task: told.id, card: held.card, call: held.call, remembered: input.into() };
      vec![task::Event::from(rejected).into(), skipped(told, held.call, at, SkipReason::Rejected), queued(told, 1)]
    });
  }

  pub fn unknown(&mut self, told: Told, call: CallId) {
    self.decide(told.agent, |input| {
      let notice = NoticePosted {
        notice: MessageId(derived(input, 5)),
        conversation: main_of(told.agent),
        reply_to: None,
        code: "CALL_UNKNOWN".into(),
        params: Vec::new(),
      };
      vec![
        call::Event::from(CallUnknown { job: told.id.into(), execution: 1, call }).into(),
        conversation::Event::from(notice).into(),
        execution::Event::from(ExecutionSuspended { job: told.id.into(), execution: 1 }).into(),
        task::Event::from(TaskWaiting { task: told.id, reason: WaitReason::UnknownEffect }).into(),
      ]
    });
  }

  pub fn settle(&mut self, told: Told, call: CallId, executed: bool) {
    self.decide(told.agent, |_| {
      let reconciled = CallReconciled { job: told.id.into(), call, executed, by_owner: true, parts: Vec::new() };
      vec![call::Event::from(reconciled).into(), queued(told, 1), task::Event::from(TaskRunRequested { task: told.id }).into()]
    });
  }

  /// What a worker reports after the owner's word.
  pub fn noted(&mut self, told: Told, call: CallId) {
    let noted = CallOutcomeNoted { job: told.id.into(), execution: 1, call, outcome: Outcome::Returned, parts: sent("sent after all") };
    self.decide(told.agent, |_| vec![call::Event::from(noted).into()]);
  }

  /// A newer instruction, which withdraws a card.
  pub fn instruct(&mut self, told: Told, text: &str, withdrawn: Option<(Held, (i32, i32))>) -> MessageId {
    let input = self.decide(told.agent, |input| {
      let instructed = TaskInstructed {
        task: told.id,
        conversation: told.conversation(),
        instruction: MessageId(derived(input, 0)),
        by: Origin::Owner,
        text: text.into(),
        attachments: Vec::new(),
        order: None,
      };
      let mut events = vec![task::Event::from(instructed).into()];
      if let Some((held, at)) = withdrawn {
        events.push(task::Event::from(ActionWithdrawn { task: told.id, card: held.card, call: held.call, reason: WithdrawReason::Instructed }).into());
        events.push(skipped(told, held.call, at, SkipReason::Steered));
      }
      events.push(queued(told, 1));
      events
    });
    MessageId(derived(input, 0))
  }

  pub fn pause(&mut self, told: Told, reason: PauseReason) {
    self.decide(told.agent, |_| {
      let paused = TaskPaused { task: told.id, reason, by: Origin::Owner, detail: String::new(), order: None };
      vec![execution::Event::from(ExecutionSuspended { job: told.id.into(), execution: 1 }).into(), task::Event::from(paused).into()]
    });
  }

  pub fn resume(&mut self, told: Told, run: i32) {
    self.decide(told.agent, |_| {
      let resumed = TaskResumed { task: told.id, by: Origin::Owner, order: None };
      vec![task::Event::from(resumed).into(), queued(told, run), task::Event::from(TaskRunRequested { task: told.id }).into()]
    });
  }

  /// An execution is lost; the task returns to the queue, or waits with a notice.
  pub fn interrupt(&mut self, told: Told, losses: i32) {
    self.decide(told.agent, |_| {
      let mut events = vec![execution::Event::from(ExecutionLost { job: told.id.into(), execution: losses, reason: LossReason::LeaseExpired, losses }).into()];
      if losses > 2 {
        events.push(task::Event::from(TaskWaiting { task: told.id, reason: WaitReason::Notice }).into());
      }
      events
    });
  }

  pub fn checkpoint(&mut self, told: Told, call: CallId, text: &str) {
    self.decide(told.agent, |_| vec![task::Event::from(CheckpointRecorded { task: told.id, execution: 1, call, text: text.into() }).into()]);
  }

  pub fn deliver(&mut self, told: Told, call: CallId, key: &str, number: u32) -> OutputId {
    let output = output_id(told.id, 1, key);
    self.decide(told.agent, |_| {
      let delivered = OutputDelivered {
        output,
        task: told.id,
        conversation: main_of(told.agent),
        execution: 1,
        call,
        revision: 1,
        request_key: key.into(),
        file: file(number),
        source: format!("outputs/{key}.txt"),
        caption: "Here it is.".into(),
      };
      vec![task::Event::from(delivered).into()]
    });
    output
  }

  pub fn complete(&mut self, told: Told, result: &str) {
    self.decide(told.agent, |_| {
      let completed =
        TaskCompleted { task: told.id, asked_in: main_of(told.agent), author: Author::Owner, title: "done".into(), revision: 1, text: result.into() };
      vec![execution::Event::from(ExecutionFinished { job: told.id.into(), execution: 1 }).into(), task::Event::from(completed).into()]
    });
  }

  /// The result comes to its conversation, and it is its turn.
  pub fn report(&mut self, told: Told, result: &str) -> Turn {
    let conversation = main_of(told.agent);
    let input = self.decide(told.agent, |input| {
      let (message, reply) = (MessageId(derived(input, 0)), MessageId(derived(input, 1)));
      let admitted =
        ReportAdmitted { message, conversation, task: told.id, author: Author::Owner, title: "done".into(), revision: 1, text: result.into(), reply };
      vec![conversation::Event::from(admitted).into(), conversation::Event::from(ReplyRequested { job: message.into(), conversation, reply }).into()]
    });
    Turn { agent: told.agent, conversation, message: MessageId(derived(input, 0)), reply: MessageId(derived(input, 1)) }
  }

  pub fn fail_task(&mut self, told: Told, code: &str) {
    self.decide(told.agent, |_| {
      let failed = TaskFailed { task: told.id, revision: 1, code: code.into(), detail: String::new(), text: "as far as I came".into() };
      vec![execution::Event::from(ExecutionFinished { job: told.id.into(), execution: 1 }).into(), task::Event::from(failed).into()]
    });
  }

  pub fn stop_task(&mut self, told: Told, running: bool) {
    self.decide(told.agent, |_| {
      let mut events: Vec<Event> = Vec::new();
      if running {
        events.push(execution::Event::from(ExecutionStopped { job: told.id.into(), execution: 1 }).into());
      }
      events.push(task::Event::from(TaskStopped { task: told.id, by: Origin::Owner, order: None }).into());
      events
    });
  }
}

fn queued(told: Told, run: i32) -> Event {
  task::Event::from(TaskQueued { task: told.id, run }).into()
}

fn skipped(told: Told, call: CallId, at: (i32, i32), reason: SkipReason) -> Event {
  call::Event::from(CallSkipped { job: told.id.into(), call, step: at.0, index: at.1, tool: "pa_email_send".into(), reason }).into()
}

/// Every kind of thing that can happen to tasks, to the tasks of one agent.
pub fn every_kind(story: &mut Story, agent: AgentId) {
  let first = story.task(agent, "Compare the offers", "Compare the three offers and write a table.");
  story.begin_task(first, 1);
  story.step(first, 1, "I look at the files first.", &["pa_read_file", "pa_write_file"]);
  let read = story.tool(first, (1, 0), "pa_read_file", None);
  let note = story.tool(first, (1, 1), "pa_checkpoint", Some("kept"));
  story.returned(first, read, "three offers");
  story.checkpoint(first, note, "read all three");
  story.deliver(first, note, "table", 11);
  story.interrupt(first, 1);
  story.begin_task(first, 2);
  let held = story.hold_email(first, (2, 0));
  story.approve(first, held, None);
  story.begin_task(first, 3);
  let sending = story.begin_call(first, (2, 0), ("pa_email_send", Class::External, EMAIL), Some(held.card));
  story.unknown(first, sending);
  story.settle(first, sending, false);
  story.noted(first, sending);
  story.begin_task(first, 4);
  story.complete(first, "The second offer is the best.");
  let told = story.report(first, "The second offer is the best.");
  story.start(told, 1);
  story.finish(told, 1, "It is done: take the second one.", None);
  let second = story.task(agent, "Clean up", "Delete what is old.");
  story.begin_task(second, 1);
  let open = story.hold_email(second, (1, 0));
  story.instruct(second, "nothing younger than a year", Some((open, (1, 0))));
  story.begin_task(second, 2);
  let computer = Gate { kind: GateKind::Computer, target: "Mac · Mail".into(), scope: Some("mail@mac".into()), valid_until_ms: Some(Timestamp(9_000)) };
  let asked = story.hold(second, (2, 0), computer.clone(), r#"{"steps":[{"key":"cmd+q"}]}"#);
  story.approve(second, asked, Some("mail@mac"));
  story.begin_task(second, 3);
  let allowed = story.begin_call(second, (2, 1), ("pa_computer_act", Class::External, "{}"), Some(asked.card));
  story.returned(second, allowed, "done");
  let refused = story.hold(second, (3, 0), computer, "{}");
  story.reject(second, refused, (3, 0));
  story.pause(second, PauseReason::Asked);
  story.resume(second, 1);
  story.begin_task(second, 4);
  let broken = story.tool(second, (4, 0), "pa_read_file", None);
  story.call_failed(second, broken, "NOT_FOUND");
  story.fail_task(second, "INCOMPLETE");
  story.resume(second, 2);
  story.begin_task(second, 5);
  story.stop_task(second, true);
  let third = story.task(agent, "Wait", "Wait for me.");
  story.begin_task(third, 1);
  story.interrupt(third, 3);
  let fourth = story.task(agent, "Loop", "Go on and on.");
  story.begin_task(fourth, 1);
  story.pause(fourth, PauseReason::OutputLooped);
  let last = story.task(agent, "Ask", "Ask before you send.");
  story.begin_task(last, 1);
  story.hold_email(last, (1, 0));
}

/// The id of the entry that an event of the story made.
pub fn entry_of(story: &Story, decision: usize, part: usize) -> Uuid {
  story.decisions[decision].facts[part].0.id
}
