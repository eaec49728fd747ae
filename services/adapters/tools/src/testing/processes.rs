//! A tool that starts processes: a shell with a child, in a process group of their own.

use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use pa_domain::Origin;
use pa_domain::call::{Class, ResultPart};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::process::{Child, Command};

use crate::tool::arguments;
use crate::{Context, Error, Place, Tool};

/// Longer than any test waits.
const SECS_MAX: u32 = 600;
/// The shell waits for its child, so both are there until they are ended.
const SCRIPT: &str = "sleep \"$0\" & wait; echo done";

/// `pa_process_group`: as a command in the agent's computer.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessGroupTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
  secs: u32,
  #[serde(default)]
  mark: String,
}

/// A child and all that it starts in its group, ended when this is dropped.
struct Group {
  child: Child,
  id: Option<Pid>,
}

impl Group {
  fn start(secs: u32, mark: &str) -> std::io::Result<Self> {
    let child = Command::new("sh")
      .args(["-c", SCRIPT, &secs.to_string(), mark])
      .stdin(Stdio::null())
      .stdout(Stdio::null())
      .stderr(Stdio::null())
      .process_group(0)
      .kill_on_drop(true)
      .spawn()?;
    let id = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    Ok(Self { child, id })
  }
}

impl Drop for Group {
  fn drop(&mut self) {
    // A child that was waited for has no id any more, and its number may be another's by now.
    if let Some(group) = self.id.filter(|_| self.child.id().is_some()) {
      // That it ended by itself meanwhile is as good.
      killpg(group, Signal::SIGKILL).ok();
    }
  }
}

#[async_trait]
impl Tool for ProcessGroupTool {
  fn name(&self) -> &'static str {
    "pa_process_group"
  }

  fn description(&self) -> &'static str {
    "Starts processes that sleep, and returns when they are done."
  }

  fn parameters(&self) -> Value {
    json!({
      "type": "object",
      "properties": {
        "secs": { "type": "integer", "minimum": 0, "maximum": SECS_MAX, "description": "How long they sleep." },
        "mark": { "type": "string", "description": "A word by which they are found." },
      },
      "required": ["secs"],
      "additionalProperties": false,
    })
  }

  fn class(&self) -> Class {
    Class::Contained
  }

  fn time_limit(&self) -> Duration {
    Duration::from_secs(SECS_MAX.into())
  }

  fn places(&self) -> &'static [Place] {
    &[Place::Task]
  }

  async fn call(&self, _: &Context, given: &Map<String, Value>) -> Result<Vec<ResultPart>, Error> {
    let Arguments { secs, mark } = arguments(given)?;
    let failed = |error: std::io::Error| Error::Failed { code: "PROCESS_FAILED", reason: error.to_string() };
    let mut group = Group::start(secs.min(SECS_MAX), &mark).map_err(failed)?;
    let status = group.child.wait().await.map_err(failed)?;
    Ok(vec![ResultPart { origin: Origin::Tool, text: format!("ended: {status}"), blob: None }])
  }
}

#[cfg(test)]
mod tests {
  use std::fs;

  use pa_domain::{AgentId, CallId, ConversationId, JobId};
  use uuid::Uuid;

  use super::*;
  use crate::contract;

  fn context() -> Context {
    let id = Uuid::from_u128(1);
    Context { agent: AgentId(id), job: JobId(id), conversation: ConversationId(id), execution: 1, call: CallId(id) }
  }

  fn given(value: Value) -> Map<String, Value> {
    let Value::Object(given) = value else { panic!("an object") };
    given
  }

  /// All processes that live, each with its group; what has ended and was not waited for does not count.
  fn living() -> Vec<(i32, i32)> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<i32>().ok());
    let with_group = |id: i32| {
      let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
      let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
      (fields.next()? != "Z").then_some(())?;
      Some((id, fields.nth(1)?.parse().ok()?))
    };
    processes.filter_map(with_group).collect()
  }

  /// The group with two processes of which one has this word in its command line.
  fn group_of(mark: &str) -> Option<i32> {
    let living = living();
    let marked = |id: i32| fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains(mark));
    let (_, group) = living.iter().find(|(id, _)| marked(*id))?;
    (living.iter().filter(|(_, other)| other == group).count() == 2).then_some(*group)
  }

  async fn until<T>(look: impl Fn() -> Option<T>) -> T {
    let waited = async {
      loop {
        if let Some(found) = look() {
          return found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
      }
    };
    tokio::time::timeout(Duration::from_secs(60), waited).await.expect("within a minute")
  }

  /// Proves BB-11, for the tool's part: seen from outside.
  #[tokio::test]
  async fn a_call_that_is_dropped_takes_its_whole_group_with_it() {
    let mark = format!("mark-{}", std::process::id());
    let arguments = given(json!({"secs": 600, "mark": mark}));
    let context = context();
    let mut call = ProcessGroupTool.call(&context, &arguments);
    let group = tokio::select! {
      result = &mut call => panic!("{result:?}"),
      group = until(|| group_of(&mark)) => group,
    };
    drop(call);
    until(|| living().iter().all(|(_, other)| *other != group).then_some(())).await;
  }

  #[tokio::test]
  async fn a_group_that_ends_by_itself_is_a_result() {
    let parts = ProcessGroupTool.call(&context(), &given(json!({"secs": 0}))).await.unwrap();
    assert_eq!(parts[0].text, "ended: exit status: 0");
  }

  #[tokio::test]
  async fn it_keeps_the_contract() {
    contract::check(&ProcessGroupTool, &context()).await;
  }
}
