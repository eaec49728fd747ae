//! The parts of a batch's statement that every batch has: the position that it moves, the progress of its agents, and who is parked.

use std::collections::{BTreeMap, HashMap};

use pa_domain::AgentId;

use crate::commit::Mark;
use crate::commit::statement::{Argument, Statement, short};
use crate::live::HINT_CHANNEL;

/// An agent whose facts are skipped from an ordinal on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parking {
  pub partition: u16,
  pub from: i64,
  /// What failed, for the page; no content.
  pub error: String,
}

/// Bytes of an error that are kept; the whole of it is in the process's own log.
const ERROR_BYTES_MAX: usize = 1_000;

/// Moves the partition where it stands at the expected position; whoever comes second waits here for the row, and then finds it elsewhere.
const MOVE: &str = "UPDATE projection_position SET next_position = ?, epoch = ?, seq = ?, last = ? \
  WHERE part = ? AND next_position = ? AND epoch = ? AND seq = ? AND last = ? RETURNING part";

const PROGRESS: &str = "INSERT INTO agent_progress (agent, ordinal) SELECT u.* FROM committed, unnest(?, ?) AS u(agent, ordinal) \
  ON CONFLICT (agent) DO UPDATE SET ordinal = excluded.ordinal";

const PARK: &str = "INSERT INTO parked (agent, part, from_ordinal, error) SELECT u.* FROM committed, unnest(?, ?, ?, ?) AS u(agent, part, from_ordinal, error) \
  ON CONFLICT (agent) DO NOTHING";

pub(crate) fn moving<'a>(partition: u16, expected: &'a Mark, next: &'a Mark) -> Statement<'a> {
  let arguments = [
    Argument::Long(next.next_position),
    Argument::Long(next.epoch),
    Argument::Long(next.seq),
    Argument::Bytes(&next.last),
    Argument::Short(short(partition)),
    Argument::Long(expected.next_position),
    Argument::Long(expected.epoch),
    Argument::Long(expected.seq),
    Argument::Bytes(&expected.last),
  ];
  Statement::beginning(MOVE, arguments)
}

pub(crate) fn progress(statement: &mut Statement<'_>, progress: &HashMap<AgentId, i64>) {
  if progress.is_empty() {
    return;
  }
  let (agents, ordinals) = progress.iter().map(|(agent, ordinal)| (agent.0, *ordinal)).unzip();
  statement.part(PROGRESS, [Argument::Uuids(agents), Argument::Longs(ordinals)]);
}

pub(crate) fn parked<'a>(statement: &mut Statement<'a>, parked: &'a BTreeMap<AgentId, Parking>) {
  if parked.is_empty() {
    return;
  }
  let columns = [
    Argument::Uuids(parked.keys().map(|agent| agent.0).collect()),
    Argument::Shorts(parked.values().map(|parking| short(parking.partition)).collect()),
    Argument::Longs(parked.values().map(|parking| parking.from).collect()),
    Argument::texts(parked.values().map(|parking| cut(&parking.error))),
  ];
  statement.part(PARK, columns);
}

/// Ends a batch's statement; with `hint`, other processes are told that the partition moved.
pub(crate) fn end(statement: &mut Statement<'_>, partition: u16, hint: bool) {
  if hint {
    statement.end("SELECT count(*) FROM committed, pg_notify(?, ?::smallint::text)", [Argument::Text(HINT_CHANNEL), Argument::Short(short(partition))]);
  } else {
    statement.end("SELECT count(*) FROM committed", []);
  }
}

fn cut(text: &str) -> &str {
  &text[..text.floor_char_boundary(ERROR_BYTES_MAX)]
}
