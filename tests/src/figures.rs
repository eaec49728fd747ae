//! The bench measures every figure: a tiny run, whose numbers say nothing, prints a line for each with the fields that are promised.

use std::process::{Command, Stdio};

use serde_json::Value;

/// Every figure, by the name that it has in the bench's output.
const NAMES: [&str; 16] = [
  "append",
  "ingest",
  "replay",
  "project",
  "visible",
  "visible_half_load",
  "push",
  "push_half_load",
  "turn",
  "turn_half_load",
  "turns",
  "first_piece",
  "sockets",
  "restart",
  "memory",
  "growth",
];

#[test]
fn a_tiny_run_prints_a_whole_line_for_every_figure() {
  let mut command = Command::new("setpriv");
  command.args(["--pdeathsig", "TERM", "--", env!("CARGO_BIN_EXE_bench"), "--tiny", "--pa", env!("CARGO_BIN_EXE_pa-under-test")]);
  let output = command.stdin(Stdio::null()).output().expect("the bench can be started");
  let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
  assert!(output.status.success(), "the bench ended with {}:\n{out}\n{err}", output.status);
  let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
  for line in &lines {
    for field in ["name", "engine", "unit", "control", "ours", "ratio", "cpu_us_per_unit", "target", "met"] {
      assert!(line.get(field).is_some(), "{field} is missing: {line}");
    }
    assert_eq!(line["engine"], "postgres, fsync on");
    assert!(line["ours"].as_f64().is_some_and(|ours| ours > 0.0), "nothing was measured: {line}");
    assert!(line["target"].as_str().is_some_and(|target| !target.is_empty()), "no target: {line}");
  }
  let names: Vec<&str> = lines.iter().filter_map(|line| line["name"].as_str()).collect();
  let missing: Vec<&str> = NAMES.into_iter().filter(|name| !names.contains(name)).collect();
  assert!(missing.is_empty(), "no line for {missing:?} in\n{out}\n{err}");
}
