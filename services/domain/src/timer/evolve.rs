//! What the root remembers of timers: those that run.

use super::Event;
use crate::state::Root;

pub(crate) fn evolve(root: &mut Root, event: &Event) {
  match event {
    Event::TimerSet(set) => {
      root.timers.insert(set.timer, set.clone());
    }
    Event::TimerCancelled(cancelled) => {
      root.timers.remove(&cancelled.timer);
    }
    Event::TimerElapsed(elapsed) => {
      root.timers.remove(&elapsed.timer);
    }
  }
}
