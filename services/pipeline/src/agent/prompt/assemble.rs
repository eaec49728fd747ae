//! Puts a prompt together within the model's window.

use pa_domain::{Origin, Timestamp};
use pa_model::{Config, Message, Part, estimate_tokens};
use pa_projections::conversation::{EntryKind, Turn};
use pa_projections::settings::Settings;

use super::fence::quoted;
use super::files::{self, File};
use super::history::{self, MESSAGE_TOKENS, history_tokens_max, said};
use super::rules::{RESULT, RULES, VERSION, WORDS_WANTED};
use super::{Parts, clock, steps};
use crate::agent::ports::TaskLine;
use crate::agent::progress::Step;

/// The share of the window that is kept for the answer when the model's own limit isn't known.
const ANSWER_PERCENT: usize = 25;
/// Tokens kept for the answer at most when the model's own limit isn't known: a long one, and no more.
const ANSWER_TOKENS_MAX: usize = 4_096;
/// The share of the window that the files of one message may take.
const FILES_PERCENT: usize = 30;
/// The share of the window that one tool's result may take.
const RESULT_PERCENT: usize = 12;
/// Characters of the agent's name.
const NAME_CHARS_MAX: usize = 64;
/// Characters of a task's title.
const TITLE_CHARS_MAX: usize = 120;

/// What a prompt is made of.
pub(in crate::agent) struct Material<'a> {
  pub(in crate::agent) model: &'a Config,
  pub(in crate::agent) history_percent: u8,
  pub(in crate::agent) settings: Option<&'a Settings>,
  pub(in crate::agent) now: Timestamp,
  /// The message that is answered and the turns before it, newest first.
  pub(in crate::agent) turns: &'a [Turn],
  pub(in crate::agent) files: &'a [File],
  /// What goes on, and what ended lately.
  pub(in crate::agent) tasks: &'a [TaskLine],
  pub(in crate::agent) steps: &'a [Step],
  /// What the offered tools take of the window.
  pub(in crate::agent) tools_tokens: usize,
  /// The last answer had no words.
  pub(in crate::agent) words_wanted: bool,
}

/// A prompt with what it was made of.
pub(in crate::agent) struct Prompt {
  pub(in crate::agent) messages: Vec<Message>,
  pub(in crate::agent) parts: Parts,
  /// Of the platform's words in it.
  pub(in crate::agent) version: &'static str,
}

/// Puts a prompt together. The message itself is always whole: a model that can't take it says so.
pub(in crate::agent) fn assemble(material: &Material<'_>) -> Prompt {
  let mut parts = Parts::default();
  let window = material.model.context_tokens as usize;
  let system = system(material, &mut parts);
  let (message, earlier) = match material.turns.split_first() {
    Some((answered, earlier)) => (Some(&answered.message), earlier),
    None => (None, &[][..]),
  };
  let words = message.map_or_else(String::new, |message| message.text.clone());
  let done = steps::messages(material.steps, window * RESULT_PERCENT / 100, &mut parts);
  let taken = answer_tokens(material.model)
    + estimate_tokens(&system)
    + estimate_tokens(&words)
    + steps::tokens(&done)
    + material.tools_tokens
    + files::named_tokens(material.files)
    + MESSAGE_TOKENS * 4;
  let room = window.saturating_sub(taken);

  let before_files = parts.recorded().iter().map(|part| part.tokens).sum::<i64>();
  let files = files::message_parts(material.files, room.min(window * FILES_PERCENT / 100), &mut parts);
  let file_tokens = usize::try_from(parts.recorded().iter().map(|part| part.tokens).sum::<i64>() - before_files).unwrap_or_default();
  let history_room = room.saturating_sub(file_tokens).min(history_tokens_max(material.model.context_tokens, material.history_percent));

  let mut messages = vec![Message::System(system)];
  messages.extend(history::messages(earlier, history_room, &mut parts));
  if let Some(message) = message {
    let mut without_files = message.clone();
    without_files.attachments.clear();
    let words = said(&without_files);
    parts.add("message", history::origin(message), &words);
    let words = (!words.is_empty()).then_some(Part::Text(words));
    messages.push(Message::User(words.into_iter().chain(files).collect()));
  }
  messages.extend(done);
  Prompt { messages, parts, version: VERSION }
}

fn system(material: &Material<'_>, parts: &mut Parts) -> String {
  parts.add("platform-rules", Origin::Platform, RULES);
  let mut system = named_and_clocked(RULES, material.settings, material.now, parts);
  if material.turns.first().is_some_and(|answered| answered.message.kind == EntryKind::Report) {
    parts.add("result-rules", Origin::Platform, RESULT);
    system = format!("{system}\n\n{RESULT}");
  }
  if !material.tasks.is_empty() {
    let lines: Vec<String> = material.tasks.iter().map(task_line).collect();
    let tasks = format!("The owner's tasks, active ones first, then those that ended lately:\n{}", lines.join("\n"));
    parts.add("tasks", Origin::Agent, &tasks);
    system = format!("{system}\n\n{tasks}");
  }
  if material.words_wanted {
    parts.add("words-wanted", Origin::Platform, WORDS_WANTED);
    system = format!("{system}\n\n{WORDS_WANTED}");
  }
  system
}

/// A task in a list: its id, its title, how far it is.
pub(in crate::agent) fn task_line(task: &TaskLine) -> String {
  format!("- {} {}: {}", task.id, quoted(&task.title, TITLE_CHARS_MAX), task.state)
}

/// The rules, with the agent's name and the time behind them.
pub(super) fn named_and_clocked(rules: &str, settings: Option<&Settings>, now: Timestamp, parts: &mut Parts) -> String {
  let (name, zone) = settings.map_or(("", ""), |settings| (settings.name.as_str(), settings.time_zone.as_str()));
  let clock = clock::line(now, zone);
  let mut system = rules.to_owned();
  if !name.is_empty() {
    let named = format!("The owner calls you {}.", quoted(name, NAME_CHARS_MAX));
    parts.add("name", Origin::Owner, &named);
    system = format!("{system}\n\n{named}");
  }
  parts.add("clock", Origin::Platform, &clock);
  format!("{system}\n\n{clock}")
}

pub(super) fn answer_tokens(model: &Config) -> usize {
  let window = model.context_tokens as usize;
  let wished = model.max_output_tokens.map_or((window * ANSWER_PERCENT / 100).min(ANSWER_TOKENS_MAX), |tokens| tokens as usize);
  // A configured limit that is larger than half the window would leave no room for the question.
  wished.min(window / 2)
}
