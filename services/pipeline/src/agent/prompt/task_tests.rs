//! A task's prompt: every instruction word for word, every call beside its result, and a line for each step that is no longer shown.

use std::collections::BTreeSet;

use pa_domain::call::ResultPart;
use pa_domain::conversation::Author;
use pa_domain::{CallId, JobId, Origin, Timestamp};
use pa_model::{Config, Message, estimate_tokens};
use uuid::Uuid;

use super::steps::tokens;
use super::task::{TaskMaterial, assemble_task};
use super::{NOT_DONE, Prompt};
use crate::agent::progress::{Call, CallState, Progress, Step};
use crate::agent::told::{Note, Status, Told};

const WINDOW: u32 = 8_000;

fn instruction(text: &str) -> Note {
  Note::Instruction { text: text.to_owned(), files: Vec::new(), by: Origin::Owner }
}

fn told(notes: Vec<(i64, Note)>) -> Told {
  let revision = notes.iter().filter(|(_, note)| matches!(note, Note::Instruction { .. })).map(|(ordinal, _)| *ordinal).max().unwrap();
  Told {
    title: "Report".to_owned(),
    author: Author::Owner,
    notes,
    checkpoint: Some("half way".to_owned()),
    delivered: vec!["draft.md".to_owned()],
    revision,
    since: revision,
    status: Status::AtWork,
  }
}

/// A step with two calls, whose results are long.
fn step(number: i32, ordinal: i64) -> Step {
  let call = |index: i32| Call {
    id: CallId(Uuid::from_u128(u128::try_from(number * 10 + index).unwrap())),
    index,
    tool: "pa_read_file".to_owned(),
    arguments: format!("{{\"path\":\"/workspace/work/{number}-{index}.txt\"}}"),
    state: CallState::Returned(vec![ResultPart { origin: Origin::Tool, text: format!("content {number}-{index} ").repeat(60), blob: None }]),
  };
  Step { step: number, ordinal, knew: ordinal - 1, text: format!("I read file {number}."), calls: vec![call(0), call(1)] }
}

/// A task with an instruction after every tenth step.
fn long(steps: i32) -> Progress {
  let mut progress = Progress::new(JobId(Uuid::from_u128(1)));
  let mut notes = vec![(1, instruction("The goal: sum up all files — exactly."))];
  for number in 1..=steps {
    progress.steps.push(step(number, i64::from(number) * 10));
    if number % 10 == 0 {
      notes.push((i64::from(number) * 10 + 5, instruction(&format!("Instruction № {number}: «keep these words»\n  and this line."))));
    }
  }
  progress.told = Some(told(notes));
  progress
}

fn prompt(progress: &Progress, words_wanted: bool) -> Prompt {
  prompt_in(WINDOW, progress, words_wanted)
}

fn prompt_in(window: u32, progress: &Progress, words_wanted: bool) -> Prompt {
  let model = Config { context_tokens: window, ..Config::new("http://fake.invalid/v1", "fake") };
  assemble_task(&TaskMaterial {
    model: &model,
    room_percent: 40,
    settings: None,
    now: Timestamp(0),
    progress,
    staged: &["/workspace/work/inputs/a/list.csv".to_owned()],
    note: None,
    tools_tokens: 0,
    words_wanted,
  })
}

fn text_of(message: &Message) -> String {
  match message {
    Message::System(text) | Message::Assistant { text, .. } | Message::Tool { text, .. } => text.clone(),
    Message::User(parts) => parts.iter().map(|part| if let pa_model::Part::Text(text) = part { text.as_str() } else { "(picture)" }).collect(),
  }
}

fn whole(prompt: &Prompt) -> String {
  prompt.messages.iter().map(text_of).collect::<Vec<_>>().join("\n")
}

/// Proves RUN-26: the time, the goal, the updates, the notes and the history are in every request.
#[test]
fn a_request_has_goal_updates_notes_and_time() {
  let prompt = prompt(&long(10), false);
  let text = whole(&prompt);
  for wanted in ["1970-01-01 00:00", "The goal: sum up all files — exactly.", "Instruction № 10", "half way", "draft.md", "list.csv", "content 10-1"] {
    assert!(text.contains(wanted), "{wanted}");
  }
  assert!(prompt.parts.recorded().iter().any(|part| part.name == "revision:105"), "the record says which instruction the model knew");
}

/// After so many compactions that almost nothing is left, every instruction of the owner stands there word for word.
#[test]
fn no_compaction_takes_a_word_of_an_instruction() {
  for steps in [30, 60, 100, 200] {
    let text = whole(&prompt(&long(steps), false));
    assert!(text.contains("The goal: sum up all files — exactly."));
    for number in (10..=steps).step_by(10) {
      assert!(text.contains(&format!("Instruction № {number}: «keep these words»\n  and this line.")), "{number} of {steps}");
    }
  }
}

#[test]
fn every_call_stands_beside_its_result_and_what_left_has_a_line() {
  let progress = long(24);
  let prompt = prompt_in(2 * WINDOW, &progress, false);
  let (mut asked, mut answered) = (Vec::new(), Vec::new());
  for message in &prompt.messages {
    match message {
      Message::Assistant { calls, .. } => {
        assert_eq!(asked, answered, "all results of a step before the next one");
        asked.extend(calls.iter().map(|call| call.id.clone()));
      }
      Message::Tool { call_id, .. } => answered.push(call_id.clone()),
      Message::System(_) | Message::User(_) => assert_eq!(asked, answered),
    }
  }
  assert_eq!(asked, answered);
  let shown: BTreeSet<i32> = asked.iter().map(|id| id.split('_').nth(1).unwrap().parse().unwrap()).collect();
  let text = whole(&prompt);
  for step in &progress.steps {
    let line = text.contains(&format!("- step {}:", step.step));
    assert!(shown.contains(&step.step) != line, "step {} is shown or has a line, and not both", step.step);
  }
  assert!(shown.contains(&24) && !shown.contains(&1), "{shown:?}");
}

#[test]
fn a_prompt_stays_within_the_window() {
  for steps in [1, 20, 60, 120] {
    let prompt = prompt(&long(steps), false);
    let users: usize = prompt.messages.iter().filter(|message| matches!(message, Message::User(_))).map(|message| estimate_tokens(&text_of(message))).sum();
    let all = tokens(&prompt.messages) + users;
    assert!(all <= WINDOW as usize, "{all} tokens of {steps} steps");
  }
}

/// The beginning of a prompt stays the same for many requests: steps leave several at once.
#[test]
fn steps_leave_several_at_once() {
  let first_shown = |steps: i32| {
    let prompt = prompt(&long(steps), false);
    prompt.messages.iter().find_map(|message| if let Message::Assistant { calls, .. } = message { calls.first().map(|call| call.id.clone()) } else { None })
  };
  let first: BTreeSet<_> = (11..=29).map(first_shown).collect();
  assert!(first.len() < 12, "{first:?}");
}

#[test]
fn of_very_many_steps_the_oldest_share_a_line() {
  let text = whole(&prompt(&long(600), false));
  assert!(text.contains("- steps 1 to "), "{}", &text[..200]);
}

#[test]
fn a_model_that_stopped_is_told_what_is_wanted() {
  let mut progress = long(3);
  progress.steps.push(Step { step: 4, ordinal: 40, knew: 1, text: "I am done, I think.".to_owned(), calls: Vec::new() });
  let last = |prompt: &Prompt| text_of(prompt.messages.last().unwrap());
  assert!(last(&prompt(&progress, true)).contains(NOT_DONE));
  assert!(last(&prompt(&progress, false)).contains("Go on"), "an answer of the model is never the last word");
}

/// What came while a step was being made is read after that step.
#[test]
fn an_instruction_stands_behind_the_step_that_did_not_know_it() {
  let mut progress = long(1);
  progress.told = Some(told(vec![(1, instruction("Goal.")), (5, instruction("And this."))]));
  progress.steps[0].knew = 1;
  let prompt = prompt(&progress, false);
  assert_eq!(text_of(prompt.messages.last().unwrap()), "New instruction:\nAnd this.");
  progress.steps[0].knew = 5;
  assert!(text_of(prompt_in(WINDOW, &progress, false).messages.last().unwrap()).contains("content 1-1"));
}
