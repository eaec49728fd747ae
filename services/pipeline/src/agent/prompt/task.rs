//! The prompt of a task: rules, title, time and notes; every instruction word for word; the newest steps, each call with its result; and for each step that no longer
//! fits one line, by which the model can have it shown again.
//!
//! Steps leave from the oldest on, whole, and several at once, so that the beginning of a prompt stays the same for many requests.

use pa_domain::conversation::Author;
use pa_domain::{Origin, Timestamp};
use pa_model::{Config, Message, estimate_tokens};
use pa_projections::settings::Settings;

use super::assemble::{Prompt, answer_tokens, named_and_clocked};
use super::fence::{fenced, quoted};
use super::history::MESSAGE_TOKENS;
use super::task_rules::{RULES, TASK_VERSION, WORDS};
use super::{Parts, steps};
use crate::agent::progress::{CallState, Progress, REVISION, Step};
use crate::agent::told::{Note, Told};

/// The share of the window that one tool's result may take.
const RESULT_PERCENT: usize = 12;
/// The share of the window that the lines about steps which were left out may take.
const INDEX_PERCENT: usize = 10;
/// Of the room for steps, the share that is filled again after some were left out.
const KEPT_PERCENT: usize = 50;
/// The room for steps at the first try: all that is left of the window. A model that finds it too long gets a quarter each time.
const FULL_PERCENT: usize = 40;
/// Characters of what a line tells of a step's words, of a call's arguments and of its result.
const SNIPPET_CHARS: usize = 60;
/// Characters of a title.
const TITLE_CHARS_MAX: usize = 200;

/// What a task's prompt is made of.
pub(in crate::agent) struct TaskMaterial<'a> {
  pub(in crate::agent) model: &'a Config,
  /// As the configuration has it; less after the model found the prompt too long.
  pub(in crate::agent) room_percent: u8,
  pub(in crate::agent) settings: Option<&'a Settings>,
  pub(in crate::agent) now: Timestamp,
  pub(in crate::agent) progress: &'a Progress,
  /// Where the files of the instructions are.
  pub(in crate::agent) staged: &'a [String],
  /// What the model is told once.
  pub(in crate::agent) note: Option<&'a str>,
  pub(in crate::agent) tools_tokens: usize,
  /// It shall write the result now, without tools.
  pub(in crate::agent) words_wanted: bool,
}

/// One thing that the model sees, with its place in the log.
enum Item<'a> {
  Note(&'a Note),
  Step(Vec<Message>, Parts),
}

/// Puts a task's prompt together.
pub(in crate::agent) fn assemble_task(material: &TaskMaterial<'_>) -> Prompt {
  let mut parts = Parts::default();
  let window = material.model.context_tokens as usize;
  let told = material.progress.told.as_ref();
  let system = system(material, told, &mut parts);
  let steps = &material.progress.steps;
  let made: Vec<(Vec<Message>, Parts)> = steps.iter().map(|step| of_step(step, window * RESULT_PERCENT / 100)).collect();
  let sizes: Vec<usize> = made.iter().map(|(messages, _)| steps::tokens(messages)).collect();
  let notes_tokens: usize = told.iter().flat_map(|told| &told.notes).map(|(_, note)| estimate_tokens(words_of(note)) + MESSAGE_TOKENS * 2).sum();
  let taken = answer_tokens(material.model) + estimate_tokens(&system) + notes_tokens + material.tools_tokens + MESSAGE_TOKENS * 4;
  let all = window.saturating_sub(taken + window * INDEX_PERCENT / 100);
  let room = all * usize::from(material.room_percent.min(100)).min(FULL_PERCENT) / FULL_PERCENT;
  let first_kept = first_kept(&sizes, room);

  let mut items: Vec<((i64, bool), Item<'_>)> =
    told.iter().flat_map(|told| &told.notes).map(|(ordinal, note)| (place_of(*ordinal, note, steps), Item::Note(note))).collect();
  for (step, (messages, of_step)) in steps.iter().zip(made).skip(first_kept) {
    items.push(((step.ordinal, false), Item::Step(messages, of_step)));
  }
  items.sort_by_key(|(place, _)| *place);
  let index = index(&steps[..first_kept], window * INDEX_PERCENT / 100);
  let mut messages = vec![Message::System(system)];
  let mut index = (!index.is_empty()).then_some(index);
  for (place, (_, item)) in items.into_iter().enumerate() {
    if let Some(index) = index.take_if(|_| place > 0) {
      parts.add("left-out", Origin::Platform, &index);
      messages.push(Message::user(index));
    }
    push(&mut messages, item, (place == 0, told), &mut parts);
  }
  if let Some(index) = index {
    parts.add("left-out", Origin::Platform, &index);
    messages.push(Message::user(index));
  }
  end(&mut messages, material, &mut parts);
  parts.add(format!("{REVISION}{}", told.map_or(0, |told| told.revision)), Origin::Platform, "");
  Prompt { messages, parts, version: TASK_VERSION }
}

fn system(material: &TaskMaterial<'_>, told: Option<&Told>, parts: &mut Parts) -> String {
  parts.add("task-rules", Origin::Platform, RULES);
  let mut system = named_and_clocked(RULES, material.settings, material.now, parts);
  let Some(told) = told else { return system };
  system = format!("{system}\n\nThe task is called {}.", quoted(&told.title, TITLE_CHARS_MAX));
  if told.author == Author::Person {
    system.push_str(" It was asked for by somebody who is not the owner: its goal says what to find out, and nothing more is allowed.");
  }
  if !material.staged.is_empty() {
    // Their names are whatever their senders chose.
    let names = format!("- {}", material.staged.join("\n- "));
    let files = format!("Files that came with the instructions:\n{}", fenced("paths of files", &names));
    parts.add("files", Origin::ThirdParty, &files);
    system = format!("{system}\n\n{files}");
  }
  if !told.delivered.is_empty() {
    let names: Vec<String> = told.delivered.iter().map(|name| quoted(name, TITLE_CHARS_MAX)).collect();
    let delivered = format!("Handed over since the last instruction: {}.", names.join(", "));
    parts.add("delivered", Origin::Platform, &delivered);
    system = format!("{system}\n\n{delivered}");
  }
  if let Some(checkpoint) = &told.checkpoint {
    let notes = format!("Your notes, as you kept them last:\n{}", fenced("your own notes", checkpoint));
    parts.add("checkpoint", Origin::Agent, &notes);
    system = format!("{system}\n\n{notes}");
  }
  system
}

fn words_of(note: &Note) -> &str {
  match note {
    Note::Instruction { text, .. } | Note::Result(text) => text,
    Note::Ended(how) => how,
  }
}

/// Where a note stands: an instruction behind every step that was made without knowing it, so that it is the model's next concern; anything else by its ordinal.
fn place_of(ordinal: i64, note: &Note, steps: &[Step]) -> (i64, bool) {
  let unaware = || steps.iter().filter(|step| step.knew < ordinal).map(|step| step.ordinal).max();
  match note {
    Note::Instruction { .. } => (unaware().map_or(ordinal, |step| step.max(ordinal)), true),
    Note::Result(_) | Note::Ended(_) => (ordinal, true),
  }
}

/// A step as messages: what it wrote and asked for, and each result.
fn of_step(step: &Step, result_tokens_max: usize) -> (Vec<Message>, Parts) {
  let mut parts = Parts::default();
  if step.calls.is_empty() {
    parts.gather("steps", Origin::Agent, &step.text);
    let said = (!step.text.trim().is_empty()).then(|| Message::Assistant { text: step.text.clone(), calls: Vec::new() });
    return (said.into_iter().collect(), parts);
  }
  (steps::messages(std::slice::from_ref(step), result_tokens_max, &mut parts), parts)
}

fn push(messages: &mut Vec<Message>, item: Item<'_>, at: (bool, Option<&Told>), parts: &mut Parts) {
  let (is_goal, told) = at;
  let is_persons = told.is_some_and(|told| told.author == Author::Person);
  match item {
    Item::Note(Note::Instruction { text, by, .. }) => {
      parts.gather("instructions", *by, text);
      let words = if is_persons { fenced("what somebody who is not the owner asks for", text) } else { text.clone() };
      messages.push(Message::user(if is_goal { words } else { format!("New instruction:\n{words}") }));
    }
    Item::Note(Note::Result(text)) => {
      parts.gather("results-before", Origin::Agent, text);
      messages.push(Message::Assistant { text: text.clone(), calls: Vec::new() });
      messages.push(Message::user("That was the result of this task so far. What follows came after it."));
    }
    Item::Note(Note::Ended(how)) => messages.push(Message::user(format!("The task {how}. What follows came after that."))),
    Item::Step(step, of_step) => {
      parts.take_in(of_step);
      messages.extend(step);
    }
  }
}

/// The last word of the prompt: somebody else's than the model's.
fn end(messages: &mut Vec<Message>, material: &TaskMaterial<'_>, parts: &mut Parts) {
  let note = if material.words_wanted {
    Some(WORDS)
  } else {
    material.note.or_else(|| matches!(messages.last(), Some(Message::Assistant { .. })).then_some("The task is not ended yet. Go on with it."))
  };
  if let Some(note) = note {
    parts.add("note", Origin::Platform, note);
    messages.push(Message::user(note));
  }
}

/// The first step that is shown. Whenever the room is exceeded, so many leave that the others fill a part of it.
fn first_kept(sizes: &[usize], room: usize) -> usize {
  let (mut first, mut filled) = (0, 0);
  for (place, size) in sizes.iter().enumerate() {
    filled += size;
    if filled > room {
      // The newest step stays whatever it takes.
      while first < place && filled > room * KEPT_PERCENT / 100 {
        filled -= sizes[first];
        first += 1;
      }
    }
  }
  first
}

/// A line for each step that was left out; of many the oldest are named together.
fn index(steps: &[Step], tokens_max: usize) -> String {
  let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return String::new() };
  let mut lines: Vec<String> = Vec::new();
  let mut left = tokens_max;
  let mut oldest = last.step + 1;
  for step in steps.iter().rev() {
    let line = line(step);
    let tokens = estimate_tokens(&line);
    if tokens > left {
      break;
    }
    left -= tokens;
    oldest = step.step;
    lines.push(line);
  }
  if oldest > first.step {
    lines.push(format!("- steps {} to {}", first.step, oldest - 1));
  }
  lines.reverse();
  format!("Earlier steps of this task are not shown any more. pa_history with the number of the step shows one again:\n{}", lines.join("\n"))
}

fn line(step: &Step) -> String {
  let snippet = |text: &str| quoted(&text.split_whitespace().collect::<Vec<_>>().join(" "), SNIPPET_CHARS);
  let mut line = format!("- step {}:", step.step);
  if !step.text.trim().is_empty() {
    line = format!("{line} {}", snippet(&step.text));
  }
  for call in &step.calls {
    let result = match &call.state {
      CallState::Returned(parts) => parts.first().map_or_else(|| "done".to_owned(), |part| snippet(&part.text)),
      CallState::Failed { code, .. } => format!("failed {}", quoted(code, SNIPPET_CHARS)),
      CallState::Skipped(_) => "not done".to_owned(),
      CallState::Unasked | CallState::Held | CallState::Started { .. } => "open".to_owned(),
      CallState::Unknown { .. } => "not known".to_owned(),
      CallState::Reconciled { executed, .. } => if *executed { "done" } else { "not done" }.to_owned(),
    };
    line = format!("{line} {} {} → {result};", call.tool, snippet(&call.arguments));
  }
  line
}
