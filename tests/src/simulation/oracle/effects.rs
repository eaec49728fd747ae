//! What happened outside: only what was permitted, once, after its permit, and never after it was given up.

use std::collections::HashMap;

use pa_domain::call::{Class, Event as CallEvent};
use pa_domain::{CallId, Event};
use pa_eventlog::Position;

use super::super::tools::Effect;
use super::super::world::World;
use super::{Accepted, ensure};

pub(in super::super) fn check(all: &[Accepted], world: &World) -> Result<(), String> {
  let mut permits: HashMap<(CallId, i32), Position> = HashMap::new();
  let mut given_up: HashMap<CallId, Position> = HashMap::new();
  for recorded in all.iter().flat_map(Accepted::decisions).flat_map(|decision| decision.events.iter()) {
    match &recorded.event {
      Event::Call(CallEvent::CallStarted(started)) => {
        let other = permits.insert((started.call, started.execution), recorded.position);
        ensure!(other.is_none(), "call {} is permitted twice to execution {}", started.call, started.execution);
      }
      Event::Call(CallEvent::CallUnknown(unknown)) => {
        given_up.entry(unknown.call).or_insert(recorded.position);
      }
      _ => {}
    }
  }
  let mut uses: HashMap<(CallId, i32), u32> = HashMap::new();
  let mut happened: HashMap<CallId, u32> = HashMap::new();
  for Effect { call, execution, class, log_end } in world.shared.ledger.effects() {
    let Some(permit) = permits.get(&(call, execution)) else { return Err(format!("call {call} had an effect without a permit")) };
    ensure!(*permit < log_end, "call {call} had its effect at {log_end} before its permit at {permit}");
    *uses.entry((call, execution)).or_default() += 1;
    ensure!(uses[&(call, execution)] == 1, "the permit of call {call} was used twice");
    if class != Class::Repeatable {
      *happened.entry(call).or_default() += 1;
      ensure!(happened[&call] == 1, "call {call} had its effect twice");
      let given_up = given_up.get(&call).copied().unwrap_or(Position::MAX);
      ensure!(log_end <= given_up, "call {call} had its effect at {log_end} after it was given up at {given_up}");
    }
  }
  for (call, executed) in world.record.words() {
    let really = world.shared.ledger.happened(call);
    ensure!(really == executed, "the owner said {executed} of call {call}, and in the end it is {really}");
  }
  Ok(())
}
