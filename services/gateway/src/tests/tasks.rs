//! Tasks and actions at the edge: what a page reads, what it asks for, who sees it, and what is told to whoever comes second.

use pa_domain::account::Role;
use pa_domain::call::{CallAsked, CallOutcomeReported, Class, Gate, GateKind, Outcome};
use pa_domain::conversation::Author;
use pa_domain::execution::{ExecutionAsked, JobKind, ModelCall, StepReported, ToolCall};
use pa_domain::settings::Effort;
use pa_domain::task::{DeliveryAsked, TaskStartAsked};
use pa_domain::{AgentId, ConversationId, Origin, TaskId, Timestamp, call, execution, ids, task};
use serde_json::{Value, json};
use uuid::Uuid;

use super::world::World;

const EMAIL: &str = r#"{"body":"The numbers are in.","subject":"Numbers","to":["kim@example.org"]}"#;
const ACTION: &str = "id taskId taskTitle kind state gate tool target content scope";

/// A task of the owner, as the log has it.
struct Told<'a> {
  world: &'a World,
  agent: AgentId,
  id: TaskId,
  execution: i32,
  step: i32,
}

impl World {
  /// Starts a task as a turn's order would.
  async fn task(&self, agent: AgentId, number: u128, title: &str) -> Told<'_> {
    let id = TaskId(Uuid::from_u128(0x7a5c_0000 + number));
    let asked = TaskStartAsked {
      task: id,
      conversation: ConversationId(Uuid::nil()),
      author: Author::Owner,
      title: title.to_owned(),
      goal: format!("{title}, please."),
      attachments: Vec::new(),
      order: None,
    };
    let decision = self.decided(agent, task::Input::from(asked).into(), Origin::Owner).await;
    self.reached(&json!(decision.ordinal.to_string())).await;
    Told { world: self, agent, id, execution: 0, step: 0 }
  }

  async fn verb_of(&self, verb: &str, key: &str, task: TaskId) -> Value {
    let query =
      format!("mutation($input: TaskVerbInput!) {{ {verb}(input: $input) {{ task {{ id state reason }} position decided userErrors {{ code field }} }} }}");
    let answer = self.ask(&query, json!({ "input": { "requestKey": key, "taskId": task } })).await;
    assert!(answer["errors"].is_null(), "{answer}");
    answer["data"][verb].clone()
  }

  async fn decide(&self, token: &str, key: &str, action: &Value, decision: &str) -> Value {
    let query = format!(
      "mutation($input: DecideActionInput!) {{ decideAction(input: $input) {{ action {{ {ACTION} }} position decided userErrors {{ code field }} }} }}"
    );
    let answer = self.asked_by(token, &query, json!({ "input": { "requestKey": key, "actionId": action, "decision": decision } })).await;
    assert!(answer["errors"].is_null(), "{answer}");
    answer["data"]["decideAction"].clone()
  }

  async fn pending(&self, token: &str) -> Value {
    self.asked_by(token, &format!("{{ pendingActions {{ {ACTION} }} }}"), json!({})).await["data"]["pendingActions"].clone()
  }
}

impl Told<'_> {
  async fn decided(&self, input: pa_domain::Input) -> std::sync::Arc<pa_eventlog::reader::Decision> {
    let decision = self.world.decided(self.agent, input, Origin::Agent).await;
    self.world.reached(&json!(decision.ordinal.to_string())).await;
    decision
  }

  async fn begin(&mut self) {
    self.execution += 1;
    self.decided(execution::Input::from(ExecutionAsked { job: self.id.into(), kind: JobKind::Task }).into()).await;
  }

  /// A step that asks for one call of a tool, and that call's ask.
  async fn ask(&mut self, tool: &str, class: Class, action: &str, gate: Option<Gate>) -> pa_domain::CallId {
    self.step += 1;
    let calls = vec![ToolCall { provider_id: "c".into(), tool: tool.into(), arguments: action.into() }];
    let (job, execution, step) = (self.id.into(), self.execution, self.step);
    self.decided(execution::Input::from(StepReported { job, execution, step, model_call: model_call(), text: format!("step {step}"), calls }).into()).await;
    self.ask_again(tool, class, action, gate).await
  }

  async fn ask_again(&self, tool: &str, class: Class, action: &str, gate: Option<Gate>) -> pa_domain::CallId {
    let (job, execution, step) = (self.id.into(), self.execution, self.step);
    let call = ids::call(job, step, 0);
    let asked = CallAsked { job, execution, step, index: 0, call, tool: tool.into(), class, action: action.into(), limit_millis: 1_000, seen: i64::MAX, gate };
    self.decided(call::Input::from(asked).into()).await;
    call
  }

  async fn ask_email(&mut self) {
    self.ask("pa_email_send", Class::External, EMAIL, Some(email())).await;
  }

  async fn report(&self, call: pa_domain::CallId, outcome: Outcome) {
    let reported = CallOutcomeReported { job: self.id.into(), execution: self.execution, call, outcome, code: String::new(), parts: Vec::new() };
    self.decided(call::Input::from(reported).into()).await;
  }
}

fn email() -> Gate {
  Gate { kind: GateKind::Email, target: "kim@example.org · Numbers".into(), scope: None, valid_until_ms: None }
}

fn model_call() -> ModelCall {
  ModelCall {
    model: "rehearsal".into(),
    effort: Effort::Fast,
    prompt_version: "1".into(),
    parts: Vec::new(),
    tools: Vec::new(),
    finish: "TOOL_CALLS".into(),
    attempts: 1,
    started_ms: Timestamp(0),
    ended_ms: Timestamp(1),
    input_tokens: Some(7),
    output_tokens: None,
    cached_tokens: None,
    reasoning_tokens: None,
    price_micros: Some(12),
    currency: Some("USD".into()),
  }
}

/// Proves RUN-5, RUN-8, RUN-10.
#[tokio::test]
async fn a_task_is_read_with_its_entries_in_order_and_by_pages() {
  let world = World::new().await;
  let mut told = world.task(world.owner, 1, "Compare the offers").await;
  told.begin().await;
  let call = told.ask("pa_read_file", Class::Repeatable, r#"{"path":"offers.md"}"#, None).await;
  told.report(call, Outcome::Returned).await;
  let instruct = "mutation($input: InstructTaskInput!) { instructTask(input: $input) { task { state instructions } decided userErrors { code } } }";
  let instructed = world.ask(instruct, json!({ "input": { "requestKey": "i", "taskId": told.id, "text": "and the third" } })).await;
  assert_eq!(instructed["data"]["instructTask"]["task"], json!({ "state": "RUNNING", "instructions": 1 }), "{instructed}");
  let query = "query($id: ID!, $last: Int, $before: String) { task(id: $id) { title goal state run usage { steps inputTokens uncountedSteps unpricedSteps costs { currency micros } } \
    entries(last: $last, before: $before) { pageInfo { hasPreviousPage startCursor } nodes { kind origin status tool action text(limit: 6) length } } } }";
  let task = world.ask(query, json!({ "id": told.id, "last": 2 })).await["data"]["task"].clone();
  assert_eq!(
    (&task["title"], &task["goal"], &task["state"], &task["run"]),
    (&json!("Compare the offers"), &json!("Compare the offers, please."), &json!("RUNNING"), &json!(1))
  );
  let usage = json!({ "steps": 1, "inputTokens": 7, "uncountedSteps": 1, "unpricedSteps": 0, "costs": [{ "currency": "USD", "micros": 12 }] });
  assert_eq!(task["usage"], usage);
  let newest = &task["entries"]["nodes"];
  assert_eq!(
    newest[0],
    json!({ "kind": "TOOL", "origin": "AGENT", "status": "RETURNED", "tool": "pa_read_file", "action": "{\"path\":\"offers.md\"}", "text": "", "length": 0 })
  );
  assert_eq!(newest[1], json!({ "kind": "INSTRUCTION", "origin": "OWNER", "status": "POSTED", "tool": null, "action": null, "text": "and th", "length": 13 }));
  let older = world.ask(query, json!({ "id": told.id, "before": task["entries"]["pageInfo"]["startCursor"] })).await["data"]["task"]["entries"].clone();
  let kinds: Vec<_> = older["nodes"].as_array().unwrap().iter().map(|node| node["kind"].clone()).collect();
  assert_eq!((kinds, &older["pageInfo"]["hasPreviousPage"]), (vec![json!("GOAL"), json!("WORDS")], &json!(false)));
  let list = "query($filter: TaskFilter, $last: Int) { tasks(filter: $filter, last: $last) { pageInfo { hasPreviousPage } nodes { title } } }";
  world.task(world.owner, 2, "Second").await;
  let tasks = world.ask(list, json!({ "last": 1 })).await["data"]["tasks"].clone();
  assert_eq!(tasks, json!({ "pageInfo": { "hasPreviousPage": true }, "nodes": [{ "title": "Second" }] }));
  let queued = world.ask(list, json!({ "filter": { "states": ["QUEUED"] } })).await["data"]["tasks"]["nodes"].clone();
  assert_eq!(queued, json!([{ "title": "Second" }]));
  let past = world.ask("query($id: ID!) { task(id: $id, asOf: { position: \"3\" }) { title } }", json!({ "id": told.id })).await;
  assert_eq!((&past["data"], &past["errors"][0]["extensions"]["code"]), (&Value::Null, &json!("NOT_YET")), "{past}");
  let both = world.ask("{ tasks(first: 1, last: 1) { nodes { id } } }", json!({})).await;
  assert_eq!(both["errors"][0]["extensions"]["code"], "VALUE_INVALID");
}

/// Proves USE-14, USE-15, BB-42 at the edge: a card shows the whole action; of two decisions at once one counts, and the other is told so.
#[tokio::test]
async fn of_two_tabs_that_decide_at_once_one_counts() {
  let world = World::new().await;
  let mut told = world.task(world.owner, 1, "Send the numbers").await;
  told.begin().await;
  told.ask_email().await;
  let cards = world.pending(&world.token).await;
  let card = &cards[0];
  let content: Value = serde_json::from_str(EMAIL).unwrap();
  assert_eq!(
    (&card["content"], &card["target"], &card["gate"], &card["kind"]),
    (&content, &json!("kim@example.org · Numbers"), &json!("EMAIL"), &json!("APPROVAL"))
  );
  assert_eq!(
    (&card["state"], &card["taskId"], &card["taskTitle"], &card["scope"]),
    (&json!("PENDING"), &json!(told.id), &json!("Send the numbers"), &Value::Null)
  );
  let id = &card["id"];
  let (one, two) = tokio::join!(world.decide(&world.token, "tab 1", id, "APPROVE_ONCE"), world.decide(&world.token, "tab 2", id, "REJECT"));
  let (winner, loser) = if one["userErrors"] == json!([]) { (one, two) } else { (two, one) };
  assert_eq!((&winner["decided"], &winner["userErrors"]), (&json!(true), &json!([])));
  assert_eq!((&loser["decided"], &loser["action"], &loser["userErrors"][0]["code"]), (&json!(true), &Value::Null, &json!("STATE_CHANGED")));
  assert_eq!(world.pending(&world.token).await, json!([]));
  // Asked again under its key, the first gets its decision again, and so does the second.
  let (key, decision) = if winner["action"]["state"] == "APPROVED" { ("tab 1", "APPROVE_ONCE") } else { ("tab 2", "REJECT") };
  assert_eq!(world.decide(&world.token, key, id, decision).await["action"], winner["action"]);
  let (key, decision) = if key == "tab 1" { ("tab 2", "REJECT") } else { ("tab 1", "APPROVE_ONCE") };
  assert_eq!(world.decide(&world.token, key, id, decision).await["userErrors"][0]["code"], "STATE_CHANGED");
}

/// Proves USE-17.
#[tokio::test]
async fn an_email_is_never_allowed_for_a_whole_task() {
  let world = World::new().await;
  let mut told = world.task(world.owner, 1, "Send").await;
  told.begin().await;
  told.ask_email().await;
  let id = world.pending(&world.token).await[0]["id"].clone();
  assert_eq!(world.decide(&world.token, "k", &id, "ALLOW_FOR_TASK").await["userErrors"][0]["code"], "NOT_ALLOWED");
  assert_eq!(world.pending(&world.token).await[0]["id"], id);
}

/// Proves USE-23, USE-24.
#[tokio::test]
async fn an_unknown_outcome_waits_for_the_owners_word_and_takes_one() {
  let world = World::new().await;
  let mut told = world.task(world.owner, 1, "Send").await;
  told.begin().await;
  told.ask_email().await;
  let card = world.pending(&world.token).await[0]["id"].clone();
  world.decide(&world.token, "yes", &card, "APPROVE_ONCE").await;
  told.begin().await;
  let call = told.ask_again("pa_email_send", Class::External, EMAIL, Some(email())).await;
  assert_eq!(world.pending(&world.token).await, json!([]), "what is under way asks for nothing");
  told.report(call, Outcome::Unknown).await;
  let effect = world.pending(&world.token).await[0].clone();
  assert_eq!((&effect["id"], &effect["kind"], &effect["state"], &effect["gate"]), (&json!(call), &json!("EFFECT"), &json!("UNKNOWN"), &json!("EMAIL")));
  assert_eq!(effect["content"]["subject"], "Numbers");
  assert_eq!(world.ask("{ indicator { needsInput running } }", json!({})).await["data"]["indicator"], json!({ "needsInput": true, "running": false }));
  let query = "mutation($input: ReconcileActionInput!) { reconcileAction(input: $input) { action { state } decided userErrors { code } } }";
  let reconcile = async |key: &str, id: &Value| {
    let answer = world.ask(query, json!({ "input": { "requestKey": key, "actionId": id, "outcome": "NOT_EXECUTED" } })).await;
    answer["data"]["reconcileAction"].clone()
  };
  assert_eq!(reconcile("r0", &card).await["userErrors"][0]["code"], "NOT_FOUND", "a card is decided, not reconciled");
  assert_eq!(reconcile("r1", &json!(call)).await, json!({ "action": { "state": "RECONCILED" }, "decided": true, "userErrors": [] }));
  assert_eq!(reconcile("r1", &json!(call)).await["action"]["state"], "RECONCILED");
  assert_eq!(reconcile("r2", &json!(call)).await["userErrors"][0]["code"], "STATE_CHANGED");
  assert_eq!(world.pending(&world.token).await, json!([]));
}

#[tokio::test]
async fn a_task_is_paused_resumed_and_stopped_and_refusals_are_told() {
  let world = World::new().await;
  let mut told = world.task(world.owner, 1, "Compare").await;
  told.begin().await;
  let paused = world.verb_of("pauseTask", "p", told.id).await;
  assert_eq!((&paused["task"]["state"], &paused["task"]["reason"], &paused["userErrors"]), (&json!("PAUSED"), &json!("ASKED"), &json!([])));
  assert_eq!(world.verb_of("pauseTask", "p", told.id).await["task"], paused["task"], "the same request");
  let again = world.verb_of("pauseTask", "p2", told.id).await;
  assert_eq!((&again["decided"], &again["userErrors"]), (&json!(true), &json!([])), "it is so already");
  assert_eq!(world.verb_of("resumeTask", "r", told.id).await["task"]["state"], "QUEUED");
  assert_eq!(world.verb_of("stopTask", "s", told.id).await["task"]["state"], "STOPPED");
  let late = world.verb_of("pauseTask", "p3", told.id).await;
  assert_eq!((&late["task"], &late["userErrors"][0]["code"]), (&Value::Null, &json!("STATE_CHANGED")));
  assert_eq!(world.verb_of("stopTask", "p", told.id).await["userErrors"][0]["code"], "REQUEST_KEY_CONFLICT");
  let nobody = world.verb_of("stopTask", "s2", TaskId(Uuid::from_u128(9))).await;
  assert_eq!(nobody["userErrors"][0]["code"], "NOT_FOUND");
}

/// Nobody sees or changes anything of another's tasks.
#[tokio::test]
async fn nobody_reaches_anothers_tasks() {
  let world = World::new().await;
  let mut told = world.task(world.owner, 1, "Secret").await;
  told.begin().await;
  told.ask_email().await;
  let card = world.pending(&world.token).await[0]["id"].clone();
  let other = world.account("Eve", Role::Member).await;
  let eve = world.bearer(other).await;
  let query = "query($id: ID!, $card: ID!) { task(id: $id) { title } taskEntry(id: $id) { text } tasks { nodes { id } } pendingActions { id } outputs(taskId: $id) { nodes { id } } \
    usage(of: $card) { steps } all: usage { steps } }";
  let seen = world.asked_by(&eve, query, json!({ "id": told.id, "card": told.id })).await;
  let nothing = json!({ "task": null, "taskEntry": null, "tasks": { "nodes": [] }, "pendingActions": [], "outputs": { "nodes": [] }, "usage": { "steps": 0 }, "all": { "steps": 0 } });
  assert_eq!(seen["data"], nothing, "{seen}");
  assert_eq!(world.decide(&eve, "k", &card, "APPROVE_ONCE").await["userErrors"][0]["code"], "NOT_FOUND");
  let stop = "mutation($input: TaskVerbInput!) { stopTask(input: $input) { task { id } userErrors { code } } }";
  let stopped = world.asked_by(&eve, stop, json!({ "input": { "requestKey": "k", "taskId": told.id } })).await;
  assert_eq!(stopped["data"]["stopTask"], json!({ "task": null, "userErrors": [{ "code": "NOT_FOUND" }] }));
  assert_eq!(world.pending(&world.token).await[0]["id"], card, "and nothing came of it");
}

/// Proves DEL-3, DEL-4: a delivered file is a message of the conversation and an output, and both name the same file.
#[tokio::test]
async fn what_a_task_does_is_pushed_as_it_happens() {
  let world = World::new().await;
  let position = world.ask("{ agent { position } }", json!({})).await["data"]["agent"]["position"].clone();
  let mut socket = world.updates(position).await;
  let mut told = world.task(world.owner, 1, "Report").await;
  let started = socket.until(|change| change["__typename"] == "TaskUpserted").await.pop().unwrap();
  assert_eq!((&started["change"]["task"]["title"], &started["change"]["task"]["state"]), (&json!("Report"), &json!("QUEUED")));
  told.begin().await;
  socket.until(|change| change["task"]["state"] == "RUNNING").await;
  let call = told.ask("pa_deliver", Class::Repeatable, "{}", None).await;
  socket.until(|change| change["entry"]["kind"] == "TOOL").await;
  let file = pa_domain::conversation::FileRef {
    id: Uuid::from_u128(0xf11e).to_string(),
    name: "report.txt".into(),
    media_type: "text/plain".into(),
    size_bytes: 5,
    sha256: "ab".repeat(32),
    blob: "blob".into(),
    origin: Origin::Agent,
  };
  let asked = DeliveryAsked {
    task: told.id,
    execution: told.execution,
    call,
    request_key: "report-1".into(),
    file,
    source: "outputs/report.txt".into(),
    caption: "The report.".into(),
  };
  told.decided(task::Input::from(asked).into()).await;
  let output = socket.until(|change| change["__typename"] == "OutputUpserted").await;
  let message = output.iter().find(|update| update["change"]["__typename"] == "MessageUpserted").expect("the file stands in the conversation");
  assert_eq!(message["change"]["message"]["text"], "The report.");
  let shown = world
    .ask("{ outputs { nodes { id file { id name url } caption taskTitle } } conversation { messages { nodes { id attachments { id } } } } }", json!({}))
    .await;
  let output = &shown["data"]["outputs"]["nodes"][0];
  let message = &shown["data"]["conversation"]["messages"]["nodes"][0];
  assert_eq!((&output["id"], &output["file"]["id"]), (&message["id"], &message["attachments"][0]["id"]), "{shown}");
  told.report(call, Outcome::Returned).await;
  told.ask_email().await;
  let pending = socket.until(|change| change["__typename"] == "ActionUpserted").await.pop().unwrap();
  assert_eq!(pending["change"]["action"]["state"], "PENDING");
  let id = world.pending(&world.token).await[0]["id"].clone();
  world.decide(&world.token, "no", &id, "REJECT").await;
  socket.until(|change| change["action"]["state"] == "REJECTED").await;
}

/// A conversation of a task is reached by its task, and stays out of the list.
///
/// Proves RUN-6.
#[tokio::test]
async fn task_conversations_stay_out_of_the_list() {
  let world = World::new().await;
  let told = world.task(world.owner, 1, "Report").await;
  let list = world.ask("{ conversations { kind } }", json!({})).await;
  assert_eq!(list["data"]["conversations"], json!([{ "kind": "MAIN" }]));
  let task = world.ask("query($id: ID!) { task(id: $id) { conversationId askedInId } conversation { id } }", json!({ "id": told.id })).await["data"].clone();
  assert_eq!(task["task"]["askedInId"], task["conversation"]["id"]);
  assert_eq!(task["task"]["conversationId"], json!(ids::conversation_of(told.id)));
}
