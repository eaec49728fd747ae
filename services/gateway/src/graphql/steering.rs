//! What the owner asks of tasks and of actions: each is one input, and the rules decide.
//!
//! A decision is about the action that was shown: the action's id names exactly that content (D12). Of two decisions on one action the log takes the first; the other
//! one is told `STATE_CHANGED`.

use async_graphql::{ID, InputObject, Result, SimpleObject};
use pa_domain::call::{self, CallReconcileGiven};
use pa_domain::task::{self, ActionDecisionGiven, Decision, InstructionGiven, TaskPauseAsked, TaskResumeAsked, TaskStopAsked};
use pa_domain::{ActionId, Input, TaskId};
use pa_projections::pending_actions::{self, Kind};
use pa_projections::tasks;
use serde_json::json;
use uuid::Uuid;

use super::env::Env;
use super::mutation::{Concluded, concluded};
use super::types::action::Action;
use super::types::scalars::Position;
use super::types::task::Task;
use crate::requests::refusal::{UserError, UserErrorCode};
use crate::requests::submit::Asked;
use crate::requests::{attach, syntax};

#[derive(InputObject)]
pub(crate) struct InstructTaskInput {
  /// Names this request; sending it again has no second effect.
  request_key: String,
  task_id: ID,
  /// At most 262,144 bytes. May be empty with attachments.
  text: String,
  /// Ids of uploads, in the order in which they are shown.
  attachment_ids: Option<Vec<ID>>,
}

/// Names a task to act on.
#[derive(InputObject)]
pub(crate) struct TaskVerbInput {
  /// Names this request; sending it again has no second effect.
  request_key: String,
  task_id: ID,
}

/// The owner's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, async_graphql::Enum)]
pub(crate) enum ActionDecision {
  /// Carry out exactly this, once.
  ApproveOnce,
  /// Carry it out, and everything of its scope in this task without asking, until the task ends. Never for email.
  AllowForTask,
  /// Go on without it.
  Reject,
}

#[derive(InputObject)]
pub(crate) struct DecideActionInput {
  /// Names this request; sending it again has no second effect.
  request_key: String,
  action_id: ID,
  decision: ActionDecision,
}

/// What became of an action whose outcome nobody knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, async_graphql::Enum)]
pub(crate) enum ActionOutcome {
  Executed,
  NotExecuted,
}

#[derive(InputObject)]
pub(crate) struct ReconcileActionInput {
  /// Names this request; sending it again has no second effect.
  request_key: String,
  action_id: ID,
  outcome: ActionOutcome,
}

/// The answer to a mutation about a task.
#[derive(Default, SimpleObject)]
pub(crate) struct TaskPayload {
  /// The task; null when refused or not decided yet.
  task: Option<Task>,
  /// Where the decision stands in the log; null when refused or not decided yet.
  position: Option<Position>,
  /// False when the request was accepted but its decision was not read back in time; the same request key gets it later.
  decided: bool,
  user_errors: Vec<UserError>,
}

/// The answer to a mutation about an action.
#[derive(Default, SimpleObject)]
pub(crate) struct ActionPayload {
  /// The action; null when refused or not decided yet.
  action: Option<Action>,
  /// Where the decision stands in the log; null when refused or not decided yet.
  position: Option<Position>,
  /// False when the request was accepted but its decision was not read back in time; the same request key gets it later.
  decided: bool,
  user_errors: Vec<UserError>,
}

/// What can be asked of a task without further words.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verb {
  Stop,
  Pause,
  Resume,
}

impl TaskPayload {
  fn refused(error: UserError) -> Self {
    Self { decided: true, user_errors: vec![error], ..Self::default() }
  }
}

impl ActionPayload {
  fn refused(error: UserError) -> Self {
    Self { decided: true, user_errors: vec![error], ..Self::default() }
  }
}

// --- Tasks ---

pub(crate) async fn instruct(env: &Env, input: InstructTaskInput) -> Result<TaskPayload> {
  let ids = input.attachment_ids.unwrap_or_default();
  let checked = (|| {
    let key = syntax::request_key(input.request_key)?;
    Ok((key, syntax::task(&input.task_id)?, syntax::message_text(input.text, ids.len())?))
  })();
  let (key, task, text) = match checked {
    Ok(checked) => checked,
    Err(error) => return Ok(TaskPayload::refused(error)),
  };
  let Some(attachments) = attach::attached(&env.edge, &env.viewer, &ids).await.map_err(|error| env.failed(error))? else {
    return Ok(TaskPayload::refused(UserError::new(UserErrorCode::NotFound).at("attachmentIds")));
  };
  let files: Vec<&str> = attachments.iter().map(|file| file.id.as_str()).collect();
  let fields = json!({ "task": task, "text": text, "files": files });
  let given = task::Input::from(InstructionGiven { task, text, attachments, order: None });
  steered(env, Asked::new(&key, "instructTask", &fields, given.into()), task).await
}

pub(crate) async fn steer(env: &Env, verb: Verb, input: TaskVerbInput) -> Result<TaskPayload> {
  let checked = (|| Ok((syntax::request_key(input.request_key)?, syntax::task(&input.task_id)?)))();
  let (key, task) = match checked {
    Ok(checked) => checked,
    Err(error) => return Ok(TaskPayload::refused(error)),
  };
  let (name, given): (_, task::Input) = match verb {
    Verb::Stop => ("stopTask", TaskStopAsked { task, order: None }.into()),
    Verb::Pause => ("pauseTask", TaskPauseAsked { task, order: None }.into()),
    Verb::Resume => ("resumeTask", TaskResumeAsked { task, order: None }.into()),
  };
  steered(env, Asked::new(&key, name, &json!(task), given.into()), task).await
}

async fn steered(env: &Env, asked: Asked<'_>, task: TaskId) -> Result<TaskPayload> {
  Ok(match concluded(env, asked).await? {
    Concluded::At { ordinal, reached } => {
      let row = if reached { tasks::one(&env.edge.reads, env.viewer.account, task).await.map_err(|error| env.failed(error))? } else { None };
      TaskPayload { task: row.map(Task), position: Some(Position::of(ordinal)), decided: true, user_errors: Vec::new() }
    }
    Concluded::Refused(error) => TaskPayload::refused(error),
    Concluded::Undecided => TaskPayload::default(),
  })
}

// --- Actions ---

pub(crate) async fn decide(env: &Env, input: DecideActionInput) -> Result<ActionPayload> {
  let (key, id) = match action(input.request_key, &input.action_id) {
    Ok(checked) => checked,
    Err(error) => return Ok(ActionPayload::refused(error)),
  };
  let Some(row) = named(env, id, Kind::Card).await? else { return Ok(ActionPayload::refused(no_such_action())) };
  let decision = match input.decision {
    ActionDecision::ApproveOnce => Decision::ApproveOnce,
    ActionDecision::AllowForTask => Decision::AllowForTask,
    ActionDecision::Reject => Decision::Reject,
  };
  let given = task::Input::from(ActionDecisionGiven { task: row.job.into(), card: ActionId(id), decision });
  settled(env, Asked::new(&key, "decideAction", &json!({ "action": id, "decision": decision }), given.into()), id).await
}

pub(crate) async fn reconcile(env: &Env, input: ReconcileActionInput) -> Result<ActionPayload> {
  let (key, id) = match action(input.request_key, &input.action_id) {
    Ok(checked) => checked,
    Err(error) => return Ok(ActionPayload::refused(error)),
  };
  let Some(row) = named(env, id, Kind::Effect).await? else { return Ok(ActionPayload::refused(no_such_action())) };
  let executed = input.outcome == ActionOutcome::Executed;
  let given: Input = call::Input::from(CallReconcileGiven { job: row.job, call: row.call, executed }).into();
  settled(env, Asked::new(&key, "reconcileAction", &json!({ "action": id, "executed": executed }), given), id).await
}

fn action(key: String, id: &ID) -> std::result::Result<(String, Uuid), UserError> {
  Ok((syntax::request_key(key)?, Uuid::parse_str(id).map_err(|_| no_such_action())?))
}

fn no_such_action() -> UserError {
  UserError::new(UserErrorCode::NotFound).at("actionId")
}

/// The action of this kind; the input names its job, which only the row tells.
async fn named(env: &Env, id: Uuid, kind: Kind) -> Result<Option<pending_actions::Action>> {
  let row = pending_actions::one(&env.edge.reads, env.viewer.account, id).await.map_err(|error| env.failed(error))?;
  Ok(row.filter(|row| row.kind == kind))
}

async fn settled(env: &Env, asked: Asked<'_>, id: Uuid) -> Result<ActionPayload> {
  Ok(match concluded(env, asked).await? {
    Concluded::At { ordinal, reached } => {
      let row = if reached { pending_actions::one(&env.edge.reads, env.viewer.account, id).await.map_err(|error| env.failed(error))? } else { None };
      ActionPayload { action: row.map(Action::from), position: Some(Position::of(ordinal)), decided: true, user_errors: Vec::new() }
    }
    Concluded::Refused(error) => ActionPayload::refused(error),
    Concluded::Undecided => ActionPayload::default(),
  })
}
