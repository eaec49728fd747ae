//! Every code that the rules write: why an input led to nothing, and what the product says in a conversation. They are strings in records; page and channel render them.

/// Why an input was settled without another fact.
pub mod reason {
  /// No text and no attachments.
  pub const TEXT_EMPTY: &str = "TEXT_EMPTY";
  /// More text than a message may have.
  pub const TEXT_TOO_LONG: &str = "TEXT_TOO_LONG";
  /// A given value isn't one that can be used.
  pub const VALUE_INVALID: &str = "VALUE_INVALID";
  /// What the input names isn't there.
  pub const NOT_FOUND: &str = "NOT_FOUND";
  /// Not for who asks, or not here.
  pub const NOT_ALLOWED: &str = "NOT_ALLOWED";
  /// It was made on a state that is no longer so.
  pub const STATE_CHANGED: &str = "STATE_CHANGED";
  /// Too many messages wait.
  pub const QUEUE_FULL: &str = "QUEUE_FULL";
  /// What is asked for is so already.
  pub const ALREADY_DONE: &str = "ALREADY_DONE";
  /// No input is held.
  pub const NO_QUARANTINE: &str = "NO_QUARANTINE";

  /// It isn't the job's turn, or nobody knows the job.
  pub const NOT_QUEUED: &str = "NOT_QUEUED";
  /// Another execution of the job runs.
  pub const ALREADY_RUNNING: &str = "ALREADY_RUNNING";
  /// The owner stopped the job.
  pub const STOPPED: &str = "STOPPED";
  /// The job is answered or has failed.
  pub const ENDED: &str = "ENDED";
  /// An external call is open: the job waits until its outcome is known (RUN-18).
  pub const WAITING_FOR_CALL: &str = "WAITING_FOR_CALL";
  /// It comes from another execution than the running one.
  pub const STALE_EXECUTION: &str = "STALE_EXECUTION";
  /// The step was recorded before; the first wins.
  pub const STEP_RECORDED: &str = "STEP_RECORDED";
  /// Not the step after the last one.
  pub const STEP_OUT_OF_ORDER: &str = "STEP_OUT_OF_ORDER";
  /// An instruction is newer than what the model saw, or a call is open.
  pub const FINISH_TOO_EARLY: &str = "FINISH_TOO_EARLY";

  /// No recorded step asks for this call.
  pub const NO_SUCH_CALL: &str = "NO_SUCH_CALL";
  /// This execution has started the call already: a permit is for one use.
  pub const CALL_STARTED: &str = "CALL_STARTED";
  /// An earlier execution started the call, and it can't be repeated.
  pub const CALL_OPEN: &str = "CALL_OPEN";
  /// The call's outcome is recorded.
  pub const CALL_SETTLED: &str = "CALL_SETTLED";
  /// An earlier call of the step isn't settled.
  pub const CALL_OUT_OF_ORDER: &str = "CALL_OUT_OF_ORDER";

  /// The task is paused.
  pub const PAUSED: &str = "PAUSED";
  /// The task waits, and nothing of it runs.
  pub const WAITING: &str = "WAITING";
  /// The call waits for the owner's decision.
  pub const CALL_HELD: &str = "CALL_HELD";
  /// A newer instruction came: what was begun before it isn't published (DEL-18).
  pub const STEERED: &str = "STEERED";
  /// The same request key was used with other arguments.
  pub const REQUEST_KEY_CONFLICT: &str = "REQUEST_KEY_CONFLICT";
  /// A task's model ended without a result; what it wrote last stands on the task.
  pub const INCOMPLETE: &str = "INCOMPLETE";
  /// The turn has not read the task as it is now (REP-3).
  pub const TASK_NOT_READ: &str = "TASK_NOT_READ";

  /// The timer was never set, was cancelled, or elapsed before.
  pub const NOT_SET: &str = "NOT_SET";
  /// The timer was set for another thing than the report says.
  pub const WRONG_THING: &str = "WRONG_THING";
}

/// What the product says in a conversation.
pub mod notice {
  /// The reply was interrupted too often (REP-35). Parameters: `losses`, `reason`.
  pub const REPLY_INTERRUPTED: &str = "REPLY_INTERRUPTED";
  /// A channel message came while too many wait. Parameter: `limit`.
  pub const QUEUE_FULL: &str = "QUEUE_FULL";
  /// A channel message was too long; it stands cut. Parameter: `limit`, in bytes.
  pub const TEXT_TOO_LONG: &str = "TEXT_TOO_LONG";
  /// A channel message had too many files; it stands with the first ones. Parameter: `limit`.
  pub const TOO_MANY_ATTACHMENTS: &str = "TOO_MANY_ATTACHMENTS";
  /// Nobody can tell whether an external call had its effect; the owner is asked. Parameters: `tool`, `call`.
  pub const CALL_UNKNOWN: &str = "CALL_UNKNOWN";
  /// A task was interrupted too often and waits for the owner (RUN-18). Parameters: `task`, `title`, `losses`.
  pub const TASK_INTERRUPTED: &str = "TASK_INTERRUPTED";
  /// A task failed. Parameters: `task`, `title`, `reason`.
  pub const TASK_FAILED: &str = "TASK_FAILED";
  /// A task repeated itself without end and was paused (RUN-24). Parameters: `task`, `title`.
  pub const TASK_LOOPED: &str = "TASK_LOOPED";
  /// The model refuses this request.
  pub const MODEL_REFUSED: &str = "MODEL_REFUSED";
  /// The model's service could not be reached, or gave no usable answer, within the tries that a request has.
  pub const MODEL_UNAVAILABLE: &str = "MODEL_UNAVAILABLE";
  /// The model's service does not take our key.
  pub const MODEL_UNAUTHORIZED: &str = "MODEL_UNAUTHORIZED";
  /// The account at the model's service has no credit.
  pub const MODEL_OUT_OF_CREDIT: &str = "MODEL_OUT_OF_CREDIT";
  /// The configured model or address is none.
  pub const MODEL_NOT_CONFIGURED: &str = "MODEL_NOT_CONFIGURED";
  /// The message is longer than the model's window, even without any history.
  pub const CONTEXT_TOO_LONG: &str = "CONTEXT_TOO_LONG";
  /// The model gave no words, also when it was asked for them alone.
  pub const MODEL_SAID_NOTHING: &str = "MODEL_SAID_NOTHING";
  /// The model went on and on without coming to an answer.
  pub const TOO_MANY_STEPS: &str = "TOO_MANY_STEPS";
  /// Something of our own is broken, or a worker reported a failure under a name that is none.
  pub const FAILED: &str = "FAILED";
}
