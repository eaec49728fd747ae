//! Logs in memory that are moved, whole, in pieces, and against resistance.

use std::sync::Arc;

use pa_domain::Timestamp;
use pa_store::clock::SystemIds;
use uuid::Uuid;

use super::*;
use crate::fence::Base;
use crate::meta::NO_INPUT;
use crate::port::Identity;
use crate::record::Record;
use crate::sim::{Plan, SimLog};
use crate::testing::Script;

/// A log with a script that writes it.
struct World {
  log: SimLog,
  script: Script,
}

impl World {
  /// Two partitions, five agents, a decision of one to three parts on each of twenty inputs, a void record, and a term in the middle.
  async fn new() -> Self {
    let mut world = Self { log: SimLog::new(2, true, Plan::none()), script: Script::new(true) };
    let mut next = [(1, 1, 0), (1, 1, 0)];
    for partition in 0..2 {
      let announced = world.script.announcement(1, Base { epoch: 0, seq: 0 }, 0);
      world.log.put(Stream::Events, partition, vec![announced]);
    }
    for n in 0..20 {
      let agent = u128::try_from(n % 5).unwrap();
      let partition = partition_of(Script::agent(agent), 2);
      let (epoch, seq, input) = &mut next[usize::from(partition)];
      let record = world.script.input(agent, 100 * i64::from(partition) + *input, &format!("text {n}")).await;
      world.log.put(Stream::Inputs, partition, vec![record]);
      let parts = usize::try_from(n % 3 + 1).unwrap();
      // The cause of a decision is the input at its position.
      let records = world.decision(agent, (*epoch, *seq), (100 * i64::from(partition) + *input, *input), parts).await;
      *seq += i64::try_from(parts).unwrap();
      *input += 1;
      world.log.put(Stream::Events, partition, records.clone());
      if n == 10 {
        // A second time, as a stale decider would: void.
        world.log.put(Stream::Events, partition, records);
        let announced = world.script.announcement(2, Base { epoch: *epoch, seq: *seq - 1 }, *input);
        world.log.put(Stream::Events, partition, vec![announced]);
        (*epoch, *seq) = (2, 1);
      }
    }
    world
  }

  async fn decision(&mut self, agent: u128, at: (i64, i64), (id, position): (i64, i64), parts: usize) -> Vec<Record> {
    let records = self.script.decision(agent, at, id, parts).await;
    let placed = |record: Record| {
      let meta = meta::decode(record.id, &record.meta).unwrap();
      let place = crate::meta::Place { input: position, ..meta.place };
      Record { meta: meta::encode(&meta::PaMeta::new(meta.core, meta.prevhash, place)).unwrap(), ..record }
    };
    records.into_iter().map(placed).collect()
  }

  async fn source(&self) -> Source<'_> {
    Source { log: &self.log, opener: Box::leak(Box::new(self.script.opener())), ends: Ends::of(&self.log).await.unwrap() }
  }

  /// Takes `to` and copies into it.
  async fn copy_into(&self, to: &SimLog) -> Result<Copied, Error> {
    let opener = self.script.opener();
    let (mut target, held) = Target::take(Arc::new(to.clone()), &opener, Timestamp(1), Uuid::from_u128(7), &SystemIds).await?;
    copy(&self.source().await, &mut target, &held, |_| ()).await
  }

  async fn tally(&self, log: &SimLog) -> Tally {
    Tally::of(log, &self.script.opener(), &Ends::of(log).await.unwrap()).await.unwrap()
  }
}

fn empty(partitions: Partition) -> SimLog {
  SimLog::new(partitions, true, Plan::none())
}

#[tokio::test(start_paused = true)]
async fn a_copy_with_other_partitions_has_every_agents_events_and_begins_with_no_inputs() {
  let world = World::new().await;
  for partitions in [1, 2, 5] {
    let to = empty(partitions);
    let copied = world.copy_into(&to).await.unwrap();
    let ends = Ends::of(&world.log).await.unwrap();
    assert_eq!(copied.undecided(&ends), [], "all inputs are decided");
    assert_eq!((copied.tally.agents.len(), copied.tally.events(), copied.written), (5, 39, 39));
    assert_eq!(world.tally(&to).await, copied.tally);
    assert_eq!(world.tally(&world.log).await.hash(), copied.tally.hash());
    let opener = world.script.opener();
    for partition in 0..partitions {
      let mut walk = Walk::new(&to, &opener, partition, to.end(Stream::Events, partition).await.unwrap());
      while let Some(decisions) = walk.next().await.unwrap() {
        for stored in decisions.iter().flatten() {
          assert_eq!(stored.meta().unwrap().place.input, NO_INPUT);
        }
      }
      assert_eq!((walk.next_input().0, walk.inputs_from().await.unwrap()), (0, 0), "the first new input is the next");
      assert!(walk.decisions().parts().is_empty(), "no decision is left open");
    }
  }
}

/// The copier dies between the parts of a decision, or its last records land after the next one has begun: the same log comes out.
#[tokio::test(start_paused = true)]
async fn a_copy_that_broke_off_goes_on_and_what_its_first_attempt_left_does_not_count() {
  let world = World::new().await;
  let whole = empty(3);
  let copied = world.copy_into(&whole).await.unwrap();
  for kept in [1, 2, 5, 9] {
    let to = empty(3);
    let mut late = Vec::new();
    for partition in 0..3 {
      let records = whole.read(Stream::Events, partition, 0, 1_000).await.unwrap();
      to.put(Stream::Events, partition, records.iter().take(kept).map(|stored| stored.record.clone()).collect());
      late.push(records.iter().skip(kept).map(|stored| stored.record.clone()).collect::<Vec<_>>());
    }
    let again = world.copy_into(&to).await.unwrap();
    assert!(again.written > 0 && again.written <= copied.written, "{kept}: {}", again.written);
    for (partition, records) in (0..).zip(late) {
      to.put(Stream::Events, partition, records);
    }
    assert_eq!(world.tally(&to).await, copied.tally, "after {kept} records");
  }
}

#[tokio::test(start_paused = true)]
async fn another_logs_events_in_the_target_are_refused() {
  let world = World::new().await;
  // The same agents with other events, and an agent that the source does not know.
  for agent in [1, 77] {
    let (to, mut other) = (empty(2), Script::new(true));
    let partition = partition_of(Script::agent(agent), 2);
    to.put(Stream::Events, partition, vec![other.announcement(1, Base { epoch: 0, seq: 0 }, 0)]);
    to.put(Stream::Events, partition, other.decision(agent, (1, 1), NO_INPUT, 1).await);
    let refused = world.copy_into(&to).await.unwrap_err();
    assert!(matches!(refused, Error::OtherHistory { agent: named } if named == Script::agent(agent)), "{refused}");
  }
  let used = World::new().await;
  assert!(matches!(world.copy_into(&used.log).await.unwrap_err(), Error::InUse));
}

#[tokio::test(start_paused = true)]
async fn inputs_that_are_not_decided_are_named_and_can_be_carried_over_once() {
  let world = World::new().await;
  let partition = partition_of(Script::agent(3), 2);
  let records = vec![world.script.input(3, 901, "late").await, world.script.input(3, 902, "later").await];
  world.log.put(Stream::Inputs, partition, records);
  let to = empty(5);
  let opener = world.script.opener();
  let (mut target, held) = Target::take(Arc::new(to.clone()), &opener, Timestamp(1), Uuid::from_u128(7), &SystemIds).await.unwrap();
  let source = world.source().await;
  let copied = copy(&source, &mut target, &held, |_| ()).await.unwrap();
  let end = world.log.end(Stream::Inputs, partition).await.unwrap();
  assert_eq!(copied.undecided(&source.ends), [(partition, end - 2, end)]);
  assert_eq!(carry(&source, &target, &copied.inputs_from).await.unwrap(), 2);
  assert_eq!(carry(&source, &target, &copied.inputs_from).await.unwrap(), 0, "they are there");
  let there = to.read(Stream::Inputs, partition_of(Script::agent(3), 5), 0, 10).await.unwrap();
  let ids: Vec<_> = there.iter().map(|stored| stored.record.id).collect();
  assert_eq!(ids, [Script::input_id(901), Script::input_id(902)]);
}

#[tokio::test(start_paused = true)]
async fn a_log_in_a_folder_reads_as_it_was_written() {
  let world = World::new().await;
  let folder = tempfile::tempdir().unwrap();
  let ends = Ends::of(&world.log).await.unwrap();
  for partition in 0..2 {
    for stream in [Stream::Inputs, Stream::Events] {
      let mut writer = ArchiveWriter::create(folder.path(), stream, partition).unwrap();
      for stored in world.log.read(stream, partition, 0, 1_000).await.unwrap().iter() {
        writer.write(stored).unwrap();
      }
      writer.finish().unwrap();
    }
  }
  let identity = Identity { kind: "sim".to_owned(), id: Uuid::from_u128(1), partitions: 2, sealed: true };
  let archive = Archive::new(folder.path(), identity, ends.clone());
  for partition in 0..2 {
    for stream in [Stream::Inputs, Stream::Events] {
      let there = world.log.read(stream, partition, 0, 1_000).await.unwrap();
      for from in [0, 3, 1] {
        let read = archive.read(stream, partition, from, 4).await.unwrap();
        let expected: Vec<_> = there.iter().filter(|stored| stored.position >= from).take(4).map(|stored| (stored.position, stored.record.clone())).collect();
        assert_eq!(read.iter().map(|stored| (stored.position, stored.record.clone())).collect::<Vec<_>>(), expected);
      }
    }
  }
  let opener = world.script.opener();
  assert_eq!(Tally::of(&archive, &opener, &ends).await.unwrap(), world.tally(&world.log).await);

  // A byte that was changed is another agent's hash, or no record at all.
  let path = folder.path().join(archive::file_name(Stream::Events, partition_of(Script::agent(0), 2)));
  let mut bytes = std::fs::read(&path).unwrap();
  *bytes.last_mut().unwrap() ^= 1;
  std::fs::write(&path, bytes).unwrap();
  let changed = Archive::new(folder.path(), Identity { kind: "sim".to_owned(), id: Uuid::from_u128(1), partitions: 2, sealed: true }, ends.clone());
  assert_eq!(Tally::of(&changed, &opener, &ends).await.unwrap().differing(&world.tally(&world.log).await).len(), 1);
}
