//! Whether the input log still holds what was decided: a log that was cut and grew again is noticed, and what stands there now is decided (PR-13).

use std::collections::BTreeMap;

use pa_eventlog::fence::{Agreement, NextInput, Progress};
use pa_eventlog::{Partition, Position, Stream};
use uuid::Uuid;

use super::repeats::Repeats;
use super::term::part;
use super::{End, Parts};

/// Positions compared in one round.
const ROUND: i64 = 1_000;
/// Records of one read of a round.
const READ: usize = 1_000;

/// The position from which inputs are to be decided: `next`, or the lowest below it whose record is missing or another one than was decided there.
pub(super) async fn inputs_from(parts: &Parts, partition: Partition, next: NextInput, repeats: &Repeats) -> Result<Position, End> {
  let first = parts.log.read(Stream::Inputs, partition, 0, 1).await?.first().map_or(0, |stored| stored.position);
  let mut search = Agreement::new(next, first);
  let mut below = next.0;
  loop {
    let low = (below - ROUND).max(0);
    let mut decided: BTreeMap<Position, Uuid> =
      parts.store.causes_below(part(partition), below, ROUND).await?.into_iter().filter(|(position, _)| *position >= low).collect();
    decided.extend(repeats.causes().range(low..below).map(|(position, cause)| (*position, *cause)));
    let present = present(parts, partition, low, below).await?;
    match search.compare(low, &decided, &present) {
      Progress::Done => return Ok(search.inputs_from()),
      Progress::Below(position) => below = position,
    }
  }
}

async fn present(parts: &Parts, partition: Partition, low: Position, below: Position) -> Result<BTreeMap<Position, Uuid>, End> {
  let mut present = BTreeMap::new();
  let mut from = low;
  while from < below {
    let batch = parts.log.read(Stream::Inputs, partition, from, READ).await?;
    let Some(last) = batch.last() else { break };
    from = last.position + 1;
    present.extend(batch.iter().filter(|stored| stored.position < below).map(|stored| (stored.position, stored.record.id)));
  }
  Ok(present)
}
