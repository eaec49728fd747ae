//! The parts of a batch's statement that every batch has: the position that it moves, the progress of its agents, and who is parked.

use std::collections::{BTreeMap, HashMap};

use pa_domain::AgentId;

use crate::commit::statement::{Argument, Parts, Statement, short};
use crate::commit::{Before, Mark};
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

/// No agent of a batch stands elsewhere than the batch takes for granted: at an ordinal, or parked where there is none.
macro_rules! in_order {
  () => {
    "NOT EXISTS (SELECT FROM unnest(?, ?) AS b(agent, ordinal) LEFT JOIN agent_progress a ON a.agent = b.agent LEFT JOIN parked k ON k.agent = b.agent \
     WHERE CASE WHEN b.ordinal IS NULL THEN k.agent IS NULL ELSE k.agent IS NOT NULL OR coalesce(a.ordinal, 0) <> b.ordinal END)"
  };
}

/// Moves the partition where it stands at the expected position; whoever comes second waits here for the row, and then finds it elsewhere.
const MOVE: &str = concat!(
  "WITH committed AS (UPDATE projection_position SET next_position = ?, epoch = ?, seq = ?, last = ? \
  WHERE part = ? AND next_position = ? AND epoch = ? AND seq = ? AND last = ? AND ",
  in_order!(),
  " RETURNING part)"
);

/// Moves several partitions if every one of them stands at the expected position: the rows are held first, in the order of partitions, so that two who move the same
/// ones can't wait for each other.
const MOVE_ALL: &str = concat!(
  "WITH held AS MATERIALIZED (SELECT p.part FROM unnest(?, ?, ?, ?, ?) AS w(part, next_position, epoch, seq, last) \
  JOIN projection_position p ON p.part = w.part AND p.next_position = w.next_position AND p.epoch = w.epoch AND p.seq = w.seq AND p.last = w.last \
  ORDER BY p.part FOR UPDATE OF p), \
  committed AS MATERIALIZED (SELECT 1 AS one FROM held HAVING count(*) = ? AND ",
  in_order!(),
  "), \
  moved AS (UPDATE projection_position p SET next_position = w.next_position, epoch = w.epoch, seq = w.seq, last = w.last \
  FROM committed, unnest(?, ?, ?, ?, ?) AS w(part, next_position, epoch, seq, last) WHERE p.part = w.part)"
);

const COUNT: &str = "SELECT count(*) FROM committed";

const PROGRESS: &str = "INSERT INTO agent_progress (agent, ordinal) SELECT u.* FROM committed, unnest(?, ?) AS u(agent, ordinal) \
  ON CONFLICT (agent) DO UPDATE SET ordinal = excluded.ordinal";

const PARK: &str = "INSERT INTO parked (agent, part, from_ordinal, error) SELECT u.* FROM committed, unnest(?, ?, ?, ?) AS u(agent, part, from_ordinal, error) \
  ON CONFLICT (agent) DO NOTHING";

/// A partition's way from one position to the next.
#[derive(Clone, Debug)]
pub(crate) struct Move {
  pub(crate) partition: u16,
  pub(crate) expected: Mark,
  pub(crate) next: Mark,
  /// What the batch takes for granted of its agents.
  pub(crate) before: Vec<(AgentId, Before)>,
}

pub(crate) fn moving<'a>(moves: &[Move]) -> Statement<'a> {
  let [one] = moves else {
    let expected = columns(moves, |one| &one.expected);
    let next = columns(moves, |one| &one.next);
    return Statement::beginning(MOVE_ALL, expected.into_iter().chain([Argument::Long(moves.len() as i64)]).chain(before(moves)).chain(next));
  };
  let arguments = [
    Argument::Long(one.next.next_position),
    Argument::Long(one.next.epoch),
    Argument::Long(one.next.seq),
    Argument::Bytes(one.next.last.to_vec()),
    Argument::Short(short(one.partition)),
    Argument::Long(one.expected.next_position),
    Argument::Long(one.expected.epoch),
    Argument::Long(one.expected.seq),
    Argument::Bytes(one.expected.last.to_vec()),
  ];
  Statement::beginning(MOVE, arguments.into_iter().chain(before(moves)))
}

fn before<'a>(moves: &[Move]) -> [Argument<'a>; 2] {
  let ordinal = |before: &Before| match before {
    Before::At(ordinal) => Some(*ordinal),
    Before::Parked => None,
  };
  let (agents, ordinals) = moves.iter().flat_map(|one| &one.before).map(|(agent, before)| (agent.0, ordinal(before))).unzip();
  [Argument::Uuids(agents), Argument::OptionalLongs(ordinals)]
}

fn columns<'a>(moves: &[Move], mark: impl Fn(&Move) -> &Mark) -> [Argument<'a>; 5] {
  let of = || moves.iter().map(&mark);
  [
    Argument::Shorts(moves.iter().map(|one| short(one.partition)).collect()),
    Argument::Longs(of().map(|mark| mark.next_position).collect()),
    Argument::Longs(of().map(|mark| mark.epoch).collect()),
    Argument::Longs(of().map(|mark| mark.seq).collect()),
    Argument::ByteStrings(of().map(|mark| mark.last.to_vec()).collect()),
  ]
}

pub(crate) fn progress(parts: &mut Parts<'_>, progress: &HashMap<AgentId, i64>) {
  if progress.is_empty() {
    return;
  }
  let (agents, ordinals) = progress.iter().map(|(agent, ordinal)| (agent.0, *ordinal)).unzip();
  parts.part(PROGRESS, [Argument::Uuids(agents), Argument::Longs(ordinals)]);
}

pub(crate) fn parked<'a>(parts: &mut Parts<'a>, parked: &'a BTreeMap<AgentId, Parking>) {
  if parked.is_empty() {
    return;
  }
  let columns = [
    Argument::Uuids(parked.keys().map(|agent| agent.0).collect()),
    Argument::Shorts(parked.values().map(|parking| short(parking.partition)).collect()),
    Argument::Longs(parked.values().map(|parking| parking.from).collect()),
    Argument::texts(parked.values().map(|parking| cut(&parking.error))),
  ];
  parts.part(PARK, columns);
}

/// Ends a batch's statement; with `hint`, other processes are told that a partition moved.
pub(crate) fn end(statement: Statement<'_>, hint: Option<u16>) -> Statement<'_> {
  match hint {
    Some(partition) => {
      statement.end("SELECT count(*) FROM committed, pg_notify(?, ?::smallint::text)", [Argument::Text(HINT_CHANNEL), Argument::Short(short(partition))])
    }
    None => statement.end(COUNT, []),
  }
}

/// The same rows with no condition on any position, for a copy that nobody else writes.
pub(crate) fn unguarded(parts: Parts<'_>) -> Statement<'_> {
  Statement::beginning("WITH committed AS (SELECT 1::bigint AS one)", []).with(parts).end(COUNT, [])
}

fn cut(text: &str) -> &str {
  &text[..text.floor_char_boundary(ERROR_BYTES_MAX)]
}
