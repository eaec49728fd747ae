//! What happened outside: only what was permitted, once, after its permit, and never after it was given up.

use std::collections::HashMap;

use pa_domain::call::{CallStarted, Class, Event as CallEvent};
use pa_domain::{CallId, Event};
use pa_eventlog::Position;
use uuid::Uuid;

use super::super::tools::Effect;
use super::super::world::World;
use super::{Accepted, ensure};

struct Permit<'a> {
  started: &'a CallStarted,
  position: Position,
}

pub(in super::super) fn check(all: &[Accepted], world: &World) -> Result<(), String> {
  let mut permits: HashMap<Uuid, Permit<'_>> = HashMap::new();
  let mut given_up: HashMap<CallId, Position> = HashMap::new();
  for recorded in all.iter().flat_map(Accepted::decisions).flat_map(|decision| decision.events.iter()) {
    match &recorded.event {
      Event::Call(CallEvent::CallStarted(started)) => {
        permits.insert(recorded.core().cause, Permit { started, position: recorded.position });
      }
      Event::Call(CallEvent::CallUnknown(unknown)) => {
        given_up.entry(unknown.call).or_insert(recorded.position);
      }
      _ => {}
    }
  }
  let mut uses: HashMap<Uuid, u32> = HashMap::new();
  let mut happened: HashMap<CallId, u32> = HashMap::new();
  for effect in world.shared.tools.effects() {
    let Effect { call, execution, ask, class, .. } = effect;
    let Some(permit) = permits.get(&ask) else { return Err(format!("call {call} had an effect without a permit")) };
    ensure!((permit.started.call, permit.started.execution) == (call, execution), "call {call} had an effect on the permit of another");
    ensure!(permit.position < effect.log_end, "call {call} had its effect at {} before its permit at {}", effect.log_end, permit.position);
    *uses.entry(ask).or_default() += 1;
    ensure!(uses[&ask] == 1, "the permit of call {call} was used twice");
    if class != Class::Repeatable {
      *happened.entry(call).or_default() += 1;
      ensure!(happened[&call] == 1, "call {call} had its effect twice");
      let given_up = given_up.get(&call).copied().unwrap_or(Position::MAX);
      ensure!(effect.log_end <= given_up, "call {call} had its effect at {} after it was given up at {given_up}", effect.log_end);
    }
  }
  for (call, executed) in world.record.words() {
    let really = world.shared.tools.happened(call);
    ensure!(really == executed, "the owner said {executed} of call {call}, and in the end it is {really}");
  }
  Ok(())
}
