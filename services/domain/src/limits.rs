//! Every limit of the rules, each with its reason.

/// Bytes of text in one message; longer text is refused with the hint to attach it as a file (D36).
pub const MESSAGE_TEXT_BYTES_MAX: usize = 262_144;
/// Files on one message: what a person attaches by hand, well below the record's size limit.
pub const ATTACHMENTS_MAX: usize = 20;
/// Open messages of one agent; beyond it commands are refused with `QUEUE_FULL` (design.md 4).
pub const OPEN_MESSAGES_MAX: usize = 500;
/// Events in one decision: readers hold an open decision in memory.
pub const DECISION_EVENTS_MAX: usize = 64;
/// Bytes of an agent's root as stored: it is loaded for every input of that agent.
pub const ROOT_BYTES_MAX: usize = 262_144;
/// Inputs held behind a quarantine; beyond it commands are refused.
pub const HELD_INPUTS_MAX: usize = 2_000;
/// Channel conversations that reply at the same time, beside the main one (D33).
pub const CHANNEL_REPLIES_MAX: usize = 4;
/// Losses of a reply's executions after which the owner gets a notice (REP-35, D3).
pub const REPLY_LOSSES_MAX: i32 = 2;
/// One reply attempt (D3, REP-33).
pub const REPLY_ATTEMPT_MILLIS: i64 = 4 * 60 * 1000;
/// Grace after a reply attempt's limit before the log itself ends the attempt of a worker that did not.
pub const REPLY_ATTEMPT_GRACE_MILLIS: i64 = 10 * 1000;
/// A permit counts from when its ask was sent (design.md 5).
pub const PERMIT_MILLIS: i64 = 30 * 1000;
/// Calls of one step: what a model asks for at once.
pub const CALLS_PER_STEP_MAX: usize = 32;
/// Bytes of the arguments of one step's calls, and of one call's canonical action: together with a text they fit a record.
pub const ARGUMENTS_BYTES_MAX: usize = 262_144;
/// Parts of a tool result.
pub const RESULT_PARTS_MAX: usize = 64;
/// Bytes of a tool result in a record; a longer one is a blob.
pub const RESULT_TEXT_BYTES_MAX: usize = 65_536;
/// The agent's name, characters.
pub const NAME_CHARS_MAX: usize = 64;
/// Concurrent tasks (RUN-12, RUN-13).
pub const CONCURRENCY_MAX: i32 = 8;
/// Bytes of an avatar image (CHN-7).
pub const AVATAR_BYTES_MAX: usize = 262_144;
/// Characters of a conversation's title or an author's name: what a platform shows.
pub const TITLE_CHARS_MAX: usize = 200;
/// Characters of a file's name, as file systems have it.
pub const FILE_NAME_CHARS_MAX: usize = 255;
/// Characters of a model's name or an avatar's reference.
pub const REFERENCE_CHARS_MAX: usize = 128;
/// Conversations that a root remembers; idle channel ones beyond it are forgotten, the longest idle first, and opened again by their next message.
pub const CONVERSATIONS_MAX: usize = 2_000;
/// Characters of a code that a worker or an observer names.
pub const CODE_CHARS_MAX: usize = 64;
/// Characters of a failure's detail, for the audit.
pub const DETAIL_CHARS_MAX: usize = 2_000;
/// Characters of what was seen of an input that can't be decided.
pub const QUARANTINE_DETAIL_CHARS_MAX: usize = 500;
/// The longest time limit of a tool: observers wait for it before they call an outcome unknown.
pub const CALL_LIMIT_MILLIS_MAX: i64 = 24 * 60 * 60 * 1000;
/// Tasks that run at once when nobody chose otherwise (RUN-12).
pub const CONCURRENCY_DEFAULT: i32 = 3;
/// Tasks of one agent that are queued, running, waiting or paused: more than anyone oversees, and the root counts them.
pub const TASKS_OPEN_MAX: usize = 200;
/// Losses after which a task still goes back to the queue by itself (RUN-17).
pub const TASK_RETURNS_MAX: i32 = 2;
/// Open cards of one task: a decision that ends them all says two things about each, and has at most 64 events.
pub const CARDS_MAX: usize = 16;
/// Rejections that a task remembers until the next instruction; each was a decision of the owner.
pub const REJECTIONS_MAX: usize = 1_000;
/// Calls of turns that a task remembers, so that a repeated one does nothing twice.
pub const ORDERS_MAX: usize = 1_000;
/// Files that a task hands over within one revision.
pub const OUTPUTS_MAX: usize = 1_000;
/// Bytes of a checkpoint: notes of a model for itself, which stand in every later request.
pub const CHECKPOINT_BYTES_MAX: usize = 32_768;
/// Characters of a request key, a file's source or an approval's scope.
pub const KEY_CHARS_MAX: usize = 256;
/// Bytes of what a card names as its target: all recipients and the subject of an email.
pub const TARGET_BYTES_MAX: usize = 16_384;
/// Characters of a result that is told in the agent's words; a longer one is posted unchanged (REP-26).
pub const RESULT_CHARS_MAX: usize = 8_000;
/// Characters of a caption.
pub const CAPTION_CHARS_MAX: usize = 2_000;
/// Steps of a task that are remembered with all their calls; of older ones only what is still open.
pub const STEPS_REMEMBERED: usize = 16;
