//! How the rehearsal model starts, steers and carries out background tasks: by fixed words, so that everything can be tried without a key.
//!
//! It knows nothing but the request: how far it is follows from the calls that stand behind the last words of the user.

use serde_json::{Value, json};

use super::ask::{Ask, text_of};

/// A call of the rehearsal model.
pub(super) struct Call {
  pub(super) tool: &'static str,
  pub(super) arguments: Value,
}

/// What it says and calls.
pub(super) struct Turn {
  pub(super) text: String,
  pub(super) calls: Vec<Call>,
}

/// Steps of a task that was asked to be slow.
const SLOW_STEPS: usize = 20;
/// Characters of a title.
const TITLE_CHARS_MAX: usize = 60;
/// The file that a task writes when it is asked for one.
const FILE: &str = "/workspace/work/rehearsal.md";

/// What is asked of a task that exists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
  Instruct,
  Pause,
  Resume,
  Stop,
}

/// Words that begin an order, longer ones before those that they begin with.
const ORDERS: &[(&str, Order)] = &[
  ("tell the task", Order::Instruct),
  ("pause the task", Order::Pause),
  ("resume the task", Order::Resume),
  ("stop the task", Order::Stop),
  ("告诉任务", Order::Instruct),
  ("暂停任务", Order::Pause),
  ("继续任务", Order::Resume),
  ("停止任务", Order::Stop),
];

/// Words that begin a goal.
const STARTS: [&str; 4] = ["start a task:", "start a task", "开始任务：", "开始任务"];

/// The goal of a task that the user wants started.
pub(super) fn goal(words: &str) -> Option<&str> {
  let rest = STARTS.iter().find_map(|start| strip(words, start))?.trim_start_matches([':', '：', ' ']).trim();
  (!rest.is_empty()).then_some(rest)
}

/// Whether the words are an order about a task.
pub(super) fn is_order(words: &str) -> bool {
  order(words).is_some()
}

fn order(words: &str) -> Option<(Order, &str)> {
  ORDERS.iter().find_map(|(start, order)| Some((*order, strip(words, start)?.trim_matches([':', '：', ' ']))))
}

fn strip<'a>(words: &'a str, start: &str) -> Option<&'a str> {
  let words = words.trim();
  let head = words.get(..start.len())?;
  head.eq_ignore_ascii_case(start).then(|| &words[start.len()..])
}

/// What it does in place of an answer in words; `None` when a request is about no task.
pub(super) fn turn(body: &Value, ask: &Ask) -> Option<Turn> {
  if offers(body, "pa_finish") {
    return Some(work(body));
  }
  if let Some(result) = result(body, ask) {
    return Some(said(&result));
  }
  if let Some(goal) = goal(&ask.words).filter(|_| offers(body, "pa_task_start")) {
    return Some(start(body, ask, goal));
  }
  let (order, rest) = order(&ask.words).filter(|_| offers(body, "pa_task_read"))?;
  Some(steer(body, ask, order, rest))
}

/// The result that is to be told, as it stands between its marks.
fn result(body: &Value, ask: &Ask) -> Option<String> {
  let is_result = ask.system.contains("The last message is the result of a background task");
  let last = messages(body).iter().rfind(|message| message["role"] == "user").filter(|_| is_result)?;
  let text = text_of(&last["content"]);
  let inside = text.split_once(">>\n").and_then(|(_, rest)| rest.rsplit_once("<<end of material")).map(|(inside, _)| inside.trim_end().to_owned());
  Some(inside.unwrap_or(text))
}

fn start(body: &Value, ask: &Ask, goal: &str) -> Turn {
  match results(body).last() {
    None => {
      let title: String = goal.chars().take(TITLE_CHARS_MAX).collect();
      call(ask.in_language("I start it.", "我来开始。"), "pa_task_start", json!({ "request_key": "task", "title": title, "goal": goal }))
    }
    Some(result) if result.contains("STARTED") || result.contains("REPEATED") => {
      said(ask.in_language("The task has begun. Its result comes here by itself.", "任务已经开始，结果会自己出现在这里。"))
    }
    Some(result) => said(&format!("{} {result}", ask.in_language("The task could not be started:", "任务没能开始："))),
  }
}

/// Reads the task first, as everybody has to, and then does what is asked.
fn steer(body: &Value, ask: &Ask, order: Order, rest: &str) -> Turn {
  let tasks = listed(&ask.system);
  let named = tasks.iter().find(|(_, title)| !title.is_empty() && rest.to_lowercase().starts_with(&title.to_lowercase()));
  let Some((id, title)) = named.or(tasks.first()) else {
    return said(ask.in_language("There is no task.", "没有任务。"));
  };
  match results(body).len() {
    0 => call(ask.in_language("I look at it.", "我先看看。"), "pa_task_read", json!({ "task": id })),
    1 => {
      let instruction = rest.get(title.len()..).filter(|_| named.is_some()).unwrap_or(rest).trim_start_matches([':', '：', ',', '，', ' ']);
      let (tool, arguments) = match order {
        Order::Instruct => ("pa_task_instruct", json!({ "task": id, "instruction": instruction })),
        Order::Pause => ("pa_task_pause", json!({ "task": id })),
        Order::Resume => ("pa_task_resume", json!({ "task": id })),
        Order::Stop => ("pa_task_stop", json!({ "task": id })),
      };
      call("", tool, arguments)
    }
    _ => said(&format!("{}\n\n> {}", ask.in_language("The task says:", "任务的回答："), results(body).pop().unwrap_or_default())),
  }
}

/// One step of a task: notes, then a file if one is wanted, then the result.
fn work(body: &Value) -> Turn {
  let instructions: Vec<String> = messages(body).iter().filter(|message| message["role"] == "user").map(|message| text_of(&message["content"])).collect();
  let goal = instructions.first().cloned().unwrap_or_default();
  let added: Vec<&str> = instructions.iter().filter_map(|words| words.strip_prefix("New instruction:\n")).collect();
  let wanted = format!("{goal}\n{}", added.join("\n")).to_lowercase();
  let done = calls(body);
  let all = calls_of_all(body);
  let is_slow = ["slow", "慢"].iter().any(|word| wanted.contains(word));
  if is_slow && done.len() < SLOW_STEPS {
    let notes = format!("step {} of {SLOW_STEPS}", done.len() + 1);
    return call(&format!("I am at {notes}."), "pa_checkpoint", json!({ "notes": notes }));
  }
  if done.is_empty() {
    return call("I look at what is wanted.", "pa_checkpoint", json!({ "notes": "begun" }));
  }
  let wants_file = ["file", "deliver", "文件", "交付"].iter().any(|word| wanted.contains(word));
  if wants_file && offers(body, "pa_write_file") && !all.iter().any(|name| name == "pa_write_file") {
    return call("I write the file.", "pa_write_file", json!({ "path": FILE, "content": format!("# {goal}\n\nWritten by the rehearsal.\n") }));
  }
  if wants_file && offers(body, "pa_deliver") && !all.iter().any(|name| name == "pa_deliver") {
    return call("I hand it over.", "pa_deliver", json!({ "request_key": "file", "path": FILE, "caption": "From the rehearsal." }));
  }
  let mut result = format!("This is the rehearsal's result of the task:\n\n> {}", goal.replace('\n', "\n> "));
  for words in added {
    result = format!("{result}\n\nand what you added:\n\n> {}", words.replace('\n', "\n> "));
  }
  call("", "pa_finish", json!({ "result": result }))
}

fn said(text: &str) -> Turn {
  Turn { text: text.to_owned(), calls: Vec::new() }
}

fn call(text: &str, tool: &'static str, arguments: Value) -> Turn {
  Turn { text: text.to_owned(), calls: vec![Call { tool, arguments }] }
}

fn messages(body: &Value) -> &[Value] {
  body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The messages behind the user's last words.
fn since(body: &Value) -> &[Value] {
  let messages = messages(body);
  let last = messages.iter().rposition(|message| message["role"] == "user").map_or(0, |at| at + 1);
  &messages[last..]
}

fn results(body: &Value) -> Vec<String> {
  since(body).iter().filter(|message| message["role"] == "tool").map(|message| text_of(&message["content"])).collect()
}

/// The tools that were called since the user's last words.
fn calls(body: &Value) -> Vec<String> {
  names(since(body))
}

fn calls_of_all(body: &Value) -> Vec<String> {
  names(messages(body))
}

fn names(messages: &[Value]) -> Vec<String> {
  let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
  calls.filter_map(|call| call["function"]["name"].as_str().map(str::to_owned)).collect()
}

fn offers(body: &Value, tool: &str) -> bool {
  body["tools"].as_array().is_some_and(|tools| tools.iter().any(|offered| offered["function"]["name"] == tool))
}

/// Id and title of each task that the prompt lists.
fn listed(system: &str) -> Vec<(String, String)> {
  let task = |line: &str| {
    let (id, rest) = line.strip_prefix("- ")?.split_once(" \"")?;
    let (title, _) = rest.split_once("\": ")?;
    (id.len() == 36).then(|| (id.to_owned(), title.to_owned()))
  };
  system.lines().filter_map(task).collect()
}

#[cfg(test)]
mod tests {
  use super::*;

  const ID: &str = "019b0000-0000-7000-8000-000000000001";

  fn body(tools: &[&str], messages: &Value) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| json!({ "type": "function", "function": { "name": name } })).collect();
    json!({ "messages": messages, "tools": tools })
  }

  fn turn_of(body: &Value) -> Option<Turn> {
    turn(body, &Ask::read(body))
  }

  fn called(turn: &Turn) -> Vec<&'static str> {
    turn.calls.iter().map(|call| call.tool).collect()
  }

  #[test]
  fn a_goal_and_an_order_are_told_from_other_words() {
    assert_eq!(goal("Start a task: write it"), Some("write it"));
    assert_eq!(goal("开始任务：写一个文件"), Some("写一个文件"));
    assert_eq!(goal("start a task"), None);
    assert!(is_order("pause the task") && is_order("停止任务") && !is_order("pause, please"));
  }

  #[test]
  fn it_starts_a_task_once_and_says_so() {
    let words = json!({ "role": "user", "content": "start a task: write it" });
    let first = turn_of(&body(&["pa_task_start"], &json!([words]))).unwrap();
    assert_eq!(called(&first), ["pa_task_start"]);
    assert_eq!(first.calls[0].arguments["goal"], "write it");
    let result = json!({ "role": "tool", "content": "{\"result\":\"STARTED\"}" });
    let second = turn_of(&body(&["pa_task_start"], &json!([words, result]))).unwrap();
    assert!(second.calls.is_empty() && second.text.contains("has begun"));
    assert!(turn_of(&body(&[], &json!([words]))).is_none(), "without the tool it answers in words");
  }

  #[test]
  fn it_reads_a_task_before_it_steers_it() {
    let system = json!({ "role": "system", "content": format!("Rules.\n- {ID} \"Report\": running") });
    let words = json!({ "role": "user", "content": "tell the task: add a title" });
    let tools = ["pa_task_read", "pa_task_instruct"];
    let first = turn_of(&body(&tools, &json!([system, words]))).unwrap();
    assert_eq!((called(&first), first.calls[0].arguments["task"].as_str()), (vec!["pa_task_read"], Some(ID)));
    let result = json!({ "role": "tool", "content": "goal" });
    let second = turn_of(&body(&tools, &json!([system, words, result]))).unwrap();
    assert_eq!((called(&second), second.calls[0].arguments["instruction"].as_str()), (vec!["pa_task_instruct"], Some("add a title")));
  }

  #[test]
  fn a_task_comes_to_its_end_and_says_what_was_added() {
    let mut messages = vec![json!({ "role": "user", "content": "write a file" }), json!({ "role": "user", "content": "New instruction:\nin French" })];
    let tools = ["pa_finish", "pa_checkpoint", "pa_write_file", "pa_deliver"];
    let mut made = Vec::new();
    for _ in 0..10 {
      let turn = turn_of(&body(&tools, &json!(messages))).unwrap();
      let [call] = turn.calls.as_slice() else { panic!("one call") };
      made.push(call.tool);
      if call.tool == "pa_finish" {
        assert!(call.arguments["result"].as_str().unwrap().contains("in French"));
        break;
      }
      messages.push(json!({ "role": "assistant", "content": turn.text, "tool_calls": [{ "function": { "name": call.tool } }] }));
      messages.push(json!({ "role": "tool", "content": "done" }));
    }
    assert_eq!(made, ["pa_checkpoint", "pa_write_file", "pa_deliver", "pa_finish"]);
  }

  #[test]
  fn a_result_is_told_as_it_stands_between_its_marks() {
    let system = json!({ "role": "system", "content": "The last message is the result of a background task that the owner asked for." });
    let words = json!({ "role": "user", "content": "<<material ab: the result>>\n42\n<<end of material ab>>" });
    assert_eq!(turn_of(&body(&[], &json!([system, words]))).unwrap().text, "42");
  }
}
