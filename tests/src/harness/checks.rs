//! What must be true of every log, and of every conversation with a person, whatever died on the way.

use std::collections::{BTreeMap, BTreeSet};

use super::{Dump, Message};

/// What the product owes for a message that it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Promise {
  /// No other message has this text.
  pub(crate) text: String,
  /// The product said that it took it; otherwise it may have it or not.
  pub(crate) accepted: bool,
}

/// Positions without gaps; epochs that only rise; each input decided exactly once; ordinals 1, 2, 3 … of each agent; one reply a job; one execution at a time.
pub(crate) fn check_log(dump: &Dump) {
  positions(dump);
  epochs(dump);
  decisions(dump);
  ordinals(dump);
  replies(dump);
}

fn positions(dump: &Dump) {
  let mut next: BTreeMap<(&str, i64), i64> = BTreeMap::new();
  for line in &dump.lines {
    let next = next.entry((line.stream.as_str(), line.partition)).or_insert(0);
    assert_eq!(line.offset, *next, "a gap in {} {}", line.stream, line.partition);
    *next += 1;
  }
}

fn epochs(dump: &Dump) {
  let mut last: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
  for line in dump.events() {
    let (epoch, seq) = (line.number("epoch"), line.number("seq"));
    let before = last.insert(line.partition, (epoch, seq)).unwrap_or((0, 0));
    if line.kind == "EpochAnnounced" {
      assert!(epoch > before.0 && seq == 0, "an announcement that raises nothing: {line:?}");
    } else {
      assert_eq!((epoch, seq), (before.0, before.1 + 1), "a record out of its term counts: {line:?}");
    }
  }
}

fn decisions(dump: &Dump) {
  let mut inputs: BTreeMap<i64, BTreeMap<i64, &str>> = BTreeMap::new();
  for line in dump.inputs() {
    inputs.entry(line.partition).or_default().insert(line.offset, line.id.as_str());
  }
  let mut decided: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
  // What was moved here was decided on inputs of another log.
  let here = |line: &&super::dump::Line| line.kind != "EpochAnnounced" && line.number("input") >= 0;
  for line in dump.events().filter(here).filter(|line| line.number("part") == 1 && line.place["held"] == false) {
    let position = line.number("input");
    let of_partition = decided.entry(line.partition).or_default();
    assert!(of_partition.last().is_none_or(|last| *last < position), "input {position} of partition {} was decided again or out of order", line.partition);
    of_partition.push(position);
    let cause = inputs.get(&line.partition).and_then(|inputs| inputs.get(&position));
    assert_eq!(cause.copied(), line.core["cause"].as_str(), "the decision on input {position} names another cause");
  }
  for (partition, inputs) in &inputs {
    let decided: BTreeSet<_> = decided.get(partition).into_iter().flatten().copied().collect();
    let missing: Vec<_> = inputs.keys().filter(|position| !decided.contains(position)).collect();
    assert!(missing.is_empty(), "inputs {missing:?} of partition {partition} were never decided");
  }
}

fn ordinals(dump: &Dump) {
  let mut last: BTreeMap<&str, i64> = BTreeMap::new();
  for line in dump.events().filter(|line| line.kind != "EpochAnnounced") {
    let last = last.entry(line.agent.as_str()).or_insert(0);
    assert_eq!(line.ordinal, *last + 1, "agent {} has a gap or a repeat", line.agent);
    *last = line.ordinal;
  }
}

fn replies(dump: &Dump) {
  let (mut running, mut highest): (BTreeMap<&str, i64>, BTreeMap<&str, i64>) = (BTreeMap::new(), BTreeMap::new());
  let mut posted = BTreeSet::new();
  for line in dump.events() {
    let job = line.text("job");
    let execution = line.body["execution"].as_i64().unwrap_or_default();
    match line.kind.as_str() {
      "ExecutionStarted" => {
        assert_eq!(running.insert(job, execution), None, "two executions of job {job} at once");
        assert_eq!(highest.insert(job, execution).unwrap_or(0) + 1, execution, "job {job} counts its executions wrongly");
      }
      "ExecutionLost" | "ExecutionYielded" | "ExecutionFailed" | "ExecutionStopped" | "ExecutionSuspended" | "ExecutionFinished" => {
        assert_eq!(running.remove(job), Some(execution), "an execution of job {job} ended that did not run");
      }
      "StepRecorded" | "CallStarted" => assert_eq!(running.get(job), Some(&execution), "{} of an execution that is over", line.kind),
      "ReplyPosted" => assert!(posted.insert(job), "job {job} was answered twice"),
      _ => {}
    }
  }
}

/// The conversation has every accepted message exactly once, in order, each answered once, or failed with exactly one notice.
pub(crate) fn check_promises(promises: &[Promise], messages: &[Message]) {
  let given: Vec<&Message> = messages.iter().filter(|message| message.role == "OWNER").collect();
  let shown: Vec<&str> = given.iter().map(|message| message.text.as_str()).collect();
  let expected: Vec<&str> =
    promises.iter().filter(|promise| promise.accepted || shown.contains(&promise.text.as_str())).map(|promise| promise.text.as_str()).collect();
  assert_eq!(shown, expected, "every accepted message once, in the order in which it was sent");
  for message in given {
    let to_it = |role: &str| messages.iter().filter(|entry| entry.role == role && entry.reply_to_id.as_ref() == Some(&message.id)).collect::<Vec<_>>();
    let posted: Vec<_> = to_it("AGENT").into_iter().filter(|reply| reply.status == "POSTED").collect();
    let notices = to_it("NOTICE");
    match message.status.as_str() {
      "ANSWERED" => assert_eq!((posted.len(), notices.len()), (1, 0), "{message:?}: {posted:?} {notices:?}"),
      "FAILED" => assert_eq!((posted.len(), notices.len()), (0, 1), "{message:?}: {posted:?} {notices:?}"),
      other => panic!("{} has no outcome: {other}", message.text),
    }
  }
  // Nothing answers what was never asked.
  let ids: BTreeSet<_> = messages.iter().map(|message| message.id.as_str()).collect();
  assert!(messages.iter().filter_map(|message| message.reply_to_id.as_deref()).all(|id| ids.contains(id)));
}
