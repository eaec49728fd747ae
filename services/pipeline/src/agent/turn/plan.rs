//! How a recorded call is to be made, or why it can't be.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::CallId;
use pa_domain::call::{CallAsked, Class, Gate};
use pa_domain::execution::JobKind;
use pa_domain::limits::{ARGUMENTS_BYTES_MAX, TARGET_BYTES_MAX};
use pa_tools::{Context, Error, Place, Tool, canonical};
use serde_json::{Map, Value};

use super::{Execution, Turn};
use crate::agent::inner::{self, Audience, Inner};
use crate::agent::progress::{Call, CallState};

/// The one tool that a result is told with: what was said before.
const HISTORY: &str = "pa_history";

/// The limit of a call that is refused without being made.
const REFUSED_LIMIT: Duration = Duration::from_secs(1);

/// How a call is to be made.
#[derive(Clone)]
pub(super) enum Plan {
  Make {
    tool: Arc<dyn Tool>,
    arguments: Map<String, Value>,
  },
  /// It is the log's own.
  Inner {
    inner: Inner,
    arguments: Map<String, Value>,
  },
  /// It can't be made; the model is told why.
  Refuse {
    code: &'static str,
    why: String,
  },
}

/// A call that is to be asked for.
#[derive(Clone)]
pub(super) struct Planned {
  pub(super) id: CallId,
  pub(super) step: i32,
  pub(super) index: i32,
  pub(super) tool: String,
  pub(super) action: String,
  pub(super) class: Class,
  pub(super) limit: Duration,
  /// What a card would be about.
  pub(super) gate: Option<Gate>,
  /// The ordinal that its ask names as seen.
  pub(super) seen: i64,
  pub(super) plan: Plan,
}

impl Planned {
  pub(super) fn ask(&self, is: Execution) -> CallAsked {
    CallAsked {
      job: is.job,
      execution: is.execution,
      step: self.step,
      index: self.index,
      call: self.id,
      tool: self.tool.clone(),
      class: self.class,
      action: self.action.clone(),
      limit_millis: i64::try_from(self.limit.as_millis()).unwrap_or(i64::MAX),
      seen: self.seen,
      gate: self.gate.clone(),
    }
  }

  /// It is not made after all.
  fn refused(self, code: &'static str, why: String) -> Self {
    Self { class: Class::Repeatable, limit: REFUSED_LIMIT, gate: None, plan: Plan::Refuse { code, why }, ..self }
  }
}

/// The calls that go together: read-only ones that follow each other, or one other. `at` is the step and what its asks name as seen.
pub(super) async fn group(turn: &Turn, at: (i32, i64), open: &[Call]) -> Vec<Planned> {
  let may_be_asked = |call: &&Call| matches!(call.state, CallState::Unasked | CallState::Held | CallState::Started { class: Class::Repeatable, .. });
  let mut group: Vec<Planned> = Vec::new();
  for call in open.iter().take_while(may_be_asked) {
    let planned = gated(turn, plan(turn, at, call)).await;
    let goes_along = planned.class == Class::Repeatable;
    if goes_along || group.is_empty() {
      group.push(planned);
    }
    if !goes_along {
      break;
    }
  }
  group
}

fn plan(turn: &Turn, at: (i32, i64), call: &Call) -> Planned {
  let (step, seen) = at;
  let planned = |action: String, class, limit, plan| Planned {
    id: call.id,
    step,
    index: call.index,
    tool: call.tool.clone(),
    action,
    class,
    limit,
    gate: None,
    seen,
    plan,
  };
  let refused = |code, why: String| planned(call.arguments.clone(), Class::Repeatable, REFUSED_LIMIT, Plan::Refuse { code, why });
  let inner = Inner::of(&call.tool, turn.audience());
  let tool = turn.worker.tools.get(&call.tool).filter(|tool| offers(turn, tool.as_ref()));
  if inner.is_none() && tool.is_none() {
    return refused("TOOL_UNKNOWN", "There is no such tool here.".to_owned());
  }
  if inner == Some(Inner::Finish) {
    let wrong = inner::result_of(&call.arguments).err();
    let alone = || "The task ends with its result alone: call pa_finish by itself, once the results of all other calls are there.".to_owned();
    return refused("NOT_FINISHED", wrong.unwrap_or_else(alone));
  }
  let arguments = match serde_json::from_str::<Value>(&call.arguments) {
    Ok(Value::Object(arguments)) => arguments,
    Ok(_) => return refused("ARGUMENTS_INVALID", "The arguments must be a JSON object.".to_owned()),
    Err(error) => return refused("ARGUMENTS_INVALID", format!("The arguments are no JSON: {error}.")),
  };
  match (canonical(&Value::Object(arguments.clone())), inner, tool) {
    // Written in full, numbers can take more room than the model gave them.
    (Ok(action), ..) if action.len() > ARGUMENTS_BYTES_MAX => {
      refused("ARGUMENTS_INVALID", format!("The arguments are too long: they may have {ARGUMENTS_BYTES_MAX} bytes."))
    }
    (Ok(action), Some(inner), _) => planned(action, inner.class(), inner::LIMIT, Plan::Inner { inner, arguments }),
    (Ok(action), None, Some(tool)) => planned(action, tool.class(), tool.time_limit(), Plan::Make { tool: Arc::clone(tool), arguments }),
    (Ok(_), None, None) => refused("TOOL_UNKNOWN", "There is no such tool here.".to_owned()),
    (Err(error), ..) => refused("ARGUMENTS_INVALID", format!("The arguments can't be used: {error}.")),
  }
}

/// Whether a tool is offered where the turn is. What the log offers itself goes before. A turn that tells a result reads nothing outside: the result may hold words of third
/// parties, and an address that they name must not be asked with what the conversation holds.
pub(super) fn offers(turn: &Turn, tool: &dyn Tool) -> bool {
  let place = match turn.audience() {
    Audience::Owner | Audience::Person => Place::Conversation,
    Audience::Result => return tool.name() == HISTORY,
    Audience::Task => Place::Task,
  };
  tool.places().contains(&place) && Inner::of(tool.name(), turn.audience()).is_none()
}

/// An external call of a task says what its card is about. One that can't say so is not made.
async fn gated(turn: &Turn, planned: Planned) -> Planned {
  let Plan::Make { tool, arguments } = &planned.plan else { return planned };
  if turn.kind() != JobKind::Task || planned.class != Class::External {
    return planned;
  }
  match tool.gate(&context(turn.is, planned.id), arguments).await {
    Ok(Some(gate)) if !gate.target.trim().is_empty() && gate.target.len() <= TARGET_BYTES_MAX => Planned { gate: Some(gate), ..planned },
    Ok(_) => planned.refused("NOT_ALLOWED", "It can't be shown to the owner for approval, so it is not done.".to_owned()),
    Err(error @ Error::Arguments { .. }) => planned.refused("ARGUMENTS_INVALID", error.to_string()),
    Err(error) => planned.refused("NOT_ALLOWED", error.to_string()),
  }
}

/// For whom a call is made.
pub(super) fn context(is: Execution, call: CallId) -> Context {
  Context { agent: is.agent, job: is.job, conversation: is.conversation, execution: is.execution, call }
}
