//! The reader over the log in memory: whole decisions, resuming, erased agents, changed logs.

use pa_domain::AgentId;
use uuid::Uuid;

use super::*;
use crate::fence::Base;
use crate::record::Record;
use crate::seal::{KeyState, Keys, KeysError};
use crate::sim::{Plan, SimLog};
use crate::testing::{Script, posted, settled};

const P: Partition = 0;

/// A log with one partition, and the script that fills it.
struct Bench {
  log: SimLog,
  script: Script,
}

impl Bench {
  fn new() -> Self {
    Self { log: SimLog::new(1, true, Plan::none()), script: Script::new(true) }
  }

  fn put(&self, records: Vec<Record>) {
    self.log.put(Stream::Events, P, records);
  }

  fn announce(&mut self, epoch: i64, base: (i64, i64)) {
    let record = self.script.announcement(epoch, Base { epoch: base.0, seq: base.1 }, 0);
    self.put(vec![record]);
  }

  async fn decide(&mut self, agent: u128, term: (i64, i64), input: Position, parts: usize) -> Vec<Record> {
    self.script.decision(agent, term, input, parts).await
  }

  fn reader(&self, state: FenceState) -> Reader {
    Reader::new(Arc::new(self.log.clone()), self.script.opener(), P, state)
  }

  async fn read(&self) -> Vec<Item> {
    self.reader(FenceState::START).poll().await.unwrap()
  }
}

/// What an item is, in a few letters.
fn told(item: &Item) -> String {
  match item {
    Item::Decision(decision) => format!("decided {}", decision.input),
    Item::Erased(head) => format!("erased {}", head.input),
    Item::Unreadable { head, .. } => format!("unreadable {}", head.input),
    Item::Announced(announced) => format!("epoch {}{}", announced.epoch, if announced.counts { "" } else { " stale" }),
    Item::Void(void) => format!("void {:?}", void.reason),
  }
}

fn story(items: &[Item]) -> Vec<String> {
  items.iter().map(told).collect()
}

#[tokio::test]
async fn whole_decisions_are_handed_on_with_their_events() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  let records = bench.decide(1, (1, 1), 0, 3).await;
  let chains: Vec<_> = records.iter().map(|record| Stored::new(0, record.clone())).collect();
  bench.put(records);
  let items = bench.read().await;
  assert_eq!(story(&items), ["epoch 1", "decided 0"]);
  let Item::Decision(decision) = &items[1] else { panic!() };
  assert_eq!((decision.agent, decision.cause, decision.first, decision.last, decision.parts), (Script::agent(1), Script::input_id(0), 1, 3, 3));
  assert_eq!(decision.events.iter().map(|event| event.core().ordinal).collect::<Vec<_>>(), [1, 2, 3]);
  assert_eq!(decision.events.iter().map(|event| event.core().part).collect::<Vec<_>>(), [1, 2, 3]);
  assert_eq!((decision.ordinal, decision.last_ordinal()), (1, 3));
  for (event, before) in decision.events[1..].iter().zip(&chains) {
    assert_eq!(event.meta.prevhash, meta::chain(before.meta().unwrap(), &before.record.type_name, &before.record.value));
  }
  let next = bench.decide(1, (1, 4), 1, 1).await;
  assert_eq!(Stored::new(4, next[0].clone()).meta().unwrap().prevhash, decision.chain(), "the chain goes on over decisions");
}

/// Case PR-02, at the reader: the term before decides input 0, and the new decider has to read that before its own announcement.
#[tokio::test]
async fn pr_02_what_landed_before_the_own_announcement_is_read_before_it() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  let in_flight = bench.decide(1, (1, 1), 0, 1).await;
  let mut reader = bench.reader(FenceState::START);
  reader.poll().await.unwrap();
  let base = reader.decisions().fence().base();
  bench.put(in_flight);
  let own = bench.script.announcement(2, base, 0);
  let id = own.id;
  bench.put(vec![own]);
  let items = reader.poll().await.unwrap();
  assert_eq!(story(&items), ["decided 0", "epoch 2 stale"]);
  assert!(matches!(&items[1], Item::Announced(announced) if announced.id == id), "it knows its announcement by id");
}

/// Case PR-03, at the reader: nothing torn of two decisions under one seq.
#[tokio::test]
async fn pr_03_no_decision_is_torn_from_two() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  let x = bench.script.decision_of(1, (1, 1), 0, &[settled("X"), settled("X")]).await.records;
  let y = bench.script.decision_of(1, (1, 1), 0, &[settled("Y"), settled("Y")]).await.records;
  bench.put(vec![x[0].clone()]);
  bench.announce(2, (1, 1));
  bench.put(y.clone());
  let again = bench.script.decision_of(1, (2, 1), 0, &[settled("Z"), settled("Z")]).await.records;
  bench.put(again);
  let items = bench.read().await;
  assert_eq!(story(&items), ["epoch 1", "void OpenAtAnnouncement", "epoch 2", "void OldEpoch", "void OldEpoch", "decided 0"]);
  let Item::Decision(decision) = &items[5] else { panic!() };
  assert!(decision.events.iter().all(|event| event.event == settled("Z")));
}

/// Case PR-05, at the reader: a decider sees its own records void after a gap, and the next term goes on.
#[tokio::test]
async fn pr_05_a_gap_is_told_to_whoever_wrote_after_it() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  bench.decide(1, (1, 1), 0, 1).await;
  let after_the_gap = bench.decide(1, (1, 2), 1, 1).await;
  let id = after_the_gap[0].id;
  bench.put(after_the_gap);
  let items = bench.read().await;
  assert_eq!(story(&items), ["epoch 1", "void Gap"]);
  assert!(matches!(&items[1], Item::Void(void) if void.id == id && (void.epoch, void.seq) == (1, 2)));
  bench.announce(2, (1, 0));
  let records = bench.script.decision_of(1, (2, 1), 0, &[settled("again")]).await.records;
  bench.put(records);
  assert_eq!(story(&bench.read().await), ["epoch 1", "void Gap", "epoch 2", "decided 0"]);
}

/// Case PR-08: a reader that stops between two parts resumes before the first.
#[tokio::test]
async fn pr_08_a_state_is_saved_before_an_open_decision() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  let first = bench.decide(1, (1, 1), 0, 1).await;
  let second = bench.decide(2, (1, 2), 1, 2).await;
  bench.put(first);
  bench.put(vec![second[0].clone()]);
  let mut reader = bench.reader(FenceState::START);
  assert_eq!(story(&reader.poll().await.unwrap()), ["epoch 1", "decided 0"]);
  assert_eq!(reader.position(), 3, "it has read the first part");
  let saved = reader.state();
  assert_eq!((saved.next_position, saved.epoch, saved.seq), (2, 1, 1));
  bench.put(vec![second[1].clone()]);
  assert_eq!(story(&reader.poll().await.unwrap()), ["decided 1"]);
  let mut resumed = bench.reader(saved);
  let items = resumed.poll().await.unwrap();
  assert_eq!(story(&items), ["decided 1"]);
  assert_eq!(items[0].decided().map(|head| (head.first, head.parts)), Some((2, 2)));
  assert_eq!(resumed.state(), reader.state());
}

/// Case PR-07 and PR-08 together: from every saved state a reader hands on the same as one that reads on.
#[tokio::test]
async fn pr_07_readers_from_every_saved_state_accept_the_same() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  for (agent, seq, input, parts) in [(1, 1, 0, 2), (2, 3, 1, 1), (1, 4, 2, 3)] {
    let records = bench.decide(agent, (1, seq), input, parts).await;
    bench.put(records);
  }
  let foreign = bench.script.decision_of(3, (9, 1), 3, &[settled("void"), settled("void")]).await.records;
  bench.put(foreign);
  bench.announce(2, (1, 6));
  let records = bench.decide(2, (2, 1), 3, 2).await;
  bench.put(records);
  let whole = story(&bench.read().await);
  for step in [1, 2, 3, 5] {
    let mut read = Vec::new();
    let mut state = FenceState::START;
    loop {
      let mut reader = bench.reader(state).with_records_max(step);
      let items = reader.poll().await.unwrap();
      if items.is_empty() {
        break;
      }
      read.extend(story(&items));
      state = reader.state();
    }
    assert_eq!(read, whole, "restarted after every {step} records");
  }
}

/// Case PR-11: a record with the same id in another history is noticed, since the whole record is hashed.
#[tokio::test]
async fn pr_11_a_history_that_grew_again_with_the_same_ids_is_noticed() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  let before = bench.script.decision_of(1, (1, 1), 0, &[settled("before")]).await.records;
  let after = bench.script.decision_of(1, (1, 1), 0, &[settled("after it was cut")]).await.records;
  assert_eq!(before[0].id, after[0].id);
  bench.put(before);
  let mut reader = bench.reader(FenceState::START);
  reader.poll().await.unwrap();
  let saved = reader.state();
  bench.log.cut(Stream::Events, P, 1);
  assert_eq!(bench.reader(saved).poll().await.unwrap_err().to_string(), "partition 0 ends at 1, before 2");
  bench.put(after);
  let error = bench.reader(saved).poll().await.unwrap_err();
  assert!(matches!(error, Error::Changed(LogChanged::History { position: 1, .. })), "{error}");
  assert!(!error.is_passing());
}

/// Case PR-12, at the reader: a cut announcement's decision is void.
#[tokio::test]
async fn pr_12_a_decision_of_a_cut_announcement_is_void() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  bench.announce(2, (1, 0));
  bench.log.cut(Stream::Events, P, 1);
  let records = bench.decide(1, (2, 1), 0, 1).await;
  bench.put(records);
  assert_eq!(story(&bench.read().await), ["epoch 1", "void UnannouncedEpoch"]);
}

/// Case PR-14: an erased agent makes no gap and no stop, and neither does an unknown type in a void record.
#[tokio::test]
async fn pr_14_erased_agents_and_void_records_of_unknown_types_stop_nothing() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  let mut unknown = bench.script.decision_of(3, (8, 1), 9, &[settled("void")]).await.records;
  unknown[0].type_name = "pa.future.SomethingHappened.v1".into();
  for (agent, seq, input) in [(1, 1, 0), (2, 2, 1), (1, 3, 2)] {
    let records = bench.decide(agent, (1, seq), input, 1).await;
    bench.put(records);
    bench.put(unknown.clone());
  }
  bench.script.keys.erase(Script::agent(1)).await.unwrap();
  let items = bench.read().await;
  let void = "void UnannouncedEpoch";
  assert_eq!(story(&items), ["epoch 1", "erased 0", void, "decided 1", void, "erased 2", void]);
  assert!(items[1].decided().is_some_and(|head| head.agent == Script::agent(1) && head.cause == Script::input_id(0)));
}

#[tokio::test]
async fn an_unknown_type_in_an_open_decision_that_is_voided_stops_nothing() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  let mut records = bench.script.decision_of(1, (1, 1), 0, &[settled("a"), settled("b")]).await.records;
  records[0].type_name = "pa.future.SomethingHappened.v1".into();
  bench.put(vec![records[0].clone()]);
  let mut reader = bench.reader(FenceState::START);
  assert_eq!(story(&reader.poll().await.unwrap()), ["epoch 1"]);
  bench.announce(2, (1, 1));
  assert_eq!(story(&reader.poll().await.unwrap()), ["void OpenAtAnnouncement", "epoch 2"]);
}

#[tokio::test]
async fn an_unknown_type_or_schema_that_counts_stops_the_partition_there() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  let first = bench.decide(2, (1, 1), 0, 1).await;
  bench.put(first);
  let mut unknown_type = bench.script.decision_of(1, (1, 2), 1, &[settled("x")]).await.records;
  unknown_type[0].type_name = "pa.future.SomethingHappened.v1".into();
  bench.put(unknown_type);
  let mut reader = bench.reader(FenceState::START);
  assert_eq!(story(&reader.poll().await.unwrap()), ["epoch 1", "decided 0"], "what came before is handed on");
  for _ in 0..2 {
    let error = reader.poll().await.unwrap_err();
    assert!(matches!(&error, Error::Stopped { position: 2, .. }), "{error}");
    assert!(!error.is_passing());
  }
  assert_eq!(reader.state().next_position, 2, "it did not move past it");

  let mut newer = Script::new(false).decision_of(1, (1, 2), 1, &[settled("x")]).await.records;
  let mut value = newer[0].value.to_vec();
  value[4] ^= 1;
  newer[0].value = value.into();
  let bench = Bench { log: SimLog::new(1, false, Plan::none()), script: Script::new(false) };
  let mut bench = bench;
  bench.announce(1, (0, 0));
  let first = bench.decide(2, (1, 1), 0, 1).await;
  bench.put(first);
  bench.put(newer);
  let mut reader = bench.reader(FenceState::START);
  reader.poll().await.unwrap();
  let error = reader.poll().await.unwrap_err();
  assert!(matches!(&error, Error::Stopped { source: opener::Error::Newer { .. }, .. }), "{error}");
}

#[tokio::test]
async fn a_known_record_that_does_not_open_concerns_its_agent_alone() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  let mut broken = bench.decide(1, (1, 1), 0, 2).await;
  let mut value = broken[1].value.to_vec();
  *value.last_mut().unwrap() ^= 1;
  broken[1].value = value.into();
  bench.put(broken);
  let fine = bench.decide(2, (1, 3), 1, 1).await;
  bench.put(fine);
  let mut clear = Script::new(false).decision_of(3, (1, 4), 2, &[settled("in clear")]).await.records;
  clear[0].source = "a stranger".into();
  bench.put(clear);
  let items = bench.read().await;
  assert_eq!(story(&items), ["epoch 1", "unreadable 0", "decided 1", "unreadable 2"]);
  let Item::Unreadable { head, position, reason } = &items[1] else { panic!() };
  assert_eq!((head.agent, *position), (Script::agent(1), 2));
  assert!(reason.contains("seal"), "{reason}");
}

/// Keys that are gone without an erasure.
struct NoKeys;

#[async_trait::async_trait]
impl Keys for NoKeys {
  async fn keys(&self, _: AgentId) -> Result<KeyState, KeysError> {
    Ok(KeyState::Missing)
  }

  fn cached(&self, _: AgentId) -> Option<Arc<pa_store::keys::AgentKeys>> {
    None
  }

  fn forget(&self, _: AgentId) {}
}

#[tokio::test]
async fn a_key_that_is_missing_without_an_erasure_stops_the_reader() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  let records = bench.decide(1, (1, 1), 0, 1).await;
  bench.put(records);
  let mut reader = Reader::new(Arc::new(bench.log.clone()), Arc::new(Opener::new(Arc::new(NoKeys), true)), P, FenceState::START);
  assert_eq!(story(&reader.poll().await.unwrap()), ["epoch 1"]);
  let error = reader.poll().await.unwrap_err();
  assert!(matches!(&error, Error::Stopped { source: opener::Error::MissingKey { keyid: 1, .. }, .. }), "{error}");
  assert!(!error.is_passing());
}

#[tokio::test]
async fn an_unsealed_log_is_read_in_clear() {
  let mut bench = Bench { log: SimLog::new(1, false, Plan::none()), script: Script::new(false) };
  bench.announce(1, (0, 0));
  let records = bench.script.decision_of(1, (1, 1), 0, &[posted("text to be found")]).await.records;
  assert!(records[0].value.windows(4).any(|bytes| bytes == b"text"));
  bench.put(records);
  assert_eq!(story(&bench.read().await), ["epoch 1", "decided 0"]);
}

#[tokio::test]
async fn a_sealed_log_shows_no_content() {
  let bench = Bench::new();
  let records = bench.script.decision_of(1, (1, 1), 0, &[posted("text to be found")]).await.records;
  assert!(!records[0].value.windows(4).any(|bytes| bytes == b"text"));
}

/// Case PR-04, at the reader: after a cut a running reader notices at its next reconnect.
#[tokio::test]
async fn pr_04_a_log_that_was_cut_while_away_is_noticed_at_the_reconnect() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  let records = bench.decide(1, (1, 1), 0, 1).await;
  bench.put(records);
  let mut reader = bench.reader(FenceState::START);
  reader.poll().await.unwrap();
  bench.log.set_away(true);
  assert!(reader.poll().await.unwrap_err().is_passing());
  bench.log.set_away(false);
  assert!(reader.poll().await.unwrap().is_empty(), "the same log: it goes on");
  bench.log.set_away(true);
  reader.poll().await.unwrap_err();
  bench.log.cut(Stream::Events, P, 1);
  bench.log.set_away(false);
  let error = reader.poll().await.unwrap_err();
  assert!(matches!(error, Error::Changed(LogChanged::Cut { next_position: 2, end: 1, .. })), "{error}");
}

#[tokio::test]
async fn another_log_under_the_same_name_is_noticed_at_the_reconnect() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  let mut reader = bench.reader(FenceState::START);
  reader.poll().await.unwrap();
  bench.log.set_away(true);
  reader.poll().await.unwrap_err();
  bench.log.replace();
  bench.log.set_away(false);
  assert!(matches!(reader.poll().await.unwrap_err(), Error::Changed(LogChanged::Identity { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_reader_hears_of_a_record_and_a_cancelled_one_loses_nothing() {
  let mut bench = Bench::new();
  bench.announce(1, (0, 0));
  let mut reader = bench.reader(FenceState::START);
  assert_eq!(story(&reader.next().await.unwrap()), ["epoch 1"]);
  let cancelled = tokio::time::timeout(std::time::Duration::from_secs(5), reader.next()).await;
  assert!(cancelled.is_err());
  let records = bench.decide(1, (1, 1), 0, 1).await;
  let (log, later) = (bench.log.clone(), std::time::Duration::from_millis(300));
  let (items, ()) = tokio::join!(reader.next(), async {
    tokio::time::sleep(later).await;
    log.put(Stream::Events, P, records);
  });
  assert_eq!(story(&items.unwrap()), ["decided 0"]);
}

#[test]
fn what_is_opened_is_opened_once() {
  let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
  runtime.block_on(async {
    let mut bench = Bench::new();
    bench.announce(1, (0, 0));
    let records = bench.decide(1, (1, 1), 0, 1).await;
    bench.put(records);
    let (first, second) = (bench.read().await, bench.read().await);
    let (Item::Decision(first), Item::Decision(second)) = (&first[1], &second[1]) else { panic!() };
    assert!(Arc::ptr_eq(&first.events[0], &second.events[0]), "all readers of a process share what one opened");
    assert_eq!(first.events[0].position, 1);
    assert_ne!(first.cause, Uuid::nil());
  });
}
