//! PR-01 to PR-06, PR-09, PR-15: takeovers, stale deciders, unknown fates.

use std::time::Duration;

use pa_domain::AgentId;
use pa_domain::ids::{INSTALLATION, derived};
use pa_domain::testing::inputs;
use pa_eventlog::Stream;
use pa_eventlog::reader::Item;
use pa_eventlog::sim::{Fate, Fault};
use tokio::time::{Instant, sleep, timeout};

use super::super::client::{Administrator, request, resolve};
use super::super::process::Roles;
use super::super::run::in_paused_time;
use super::super::traps::Moment;
use super::super::world::agent_in_after;
use super::{CALM, Stage, repeats, texts};

const TWO: [Roles; 2] = [Roles::DECIDER, Roles::DECIDER];
const CHECKPOINT: &str = "write a checkpoint";

/// A decider is stopped right before it writes its checkpoint; another takes over and writes its own; then the first one wakes and a third loads.
pub(in super::super) async fn pr_01() -> Result<(), String> {
  let mut stage = Stage::led_by_the_first(&[Roles::DECIDER, Roles::DECIDER, Roles::DECIDER]).await;
  let other = agent_in_after(stage.agent);
  stage.world.create(&mut rand::SeedableRng::seed_from_u64(2), other).await;
  stage.say("one").await;
  // The next checkpoint holds what changed since this one, and nothing of the other agent.
  let next_position = i64::try_from(stage.events().len()).expect("few");
  stage.until("a checkpoint is written", || stage.world.shared.database.copy().marks.get(&0).is_some_and(|mark| mark.next_position == next_position)).await;
  let first = stage.process(1);
  let gate = first.gate.clone();
  first.traps.set(Moment::Before, CHECKPOINT, move || gate.stop());
  stage.say("two").await;
  stage.until("the first is stopped", || first.gate.is_stopped()).await;
  stage.world.start(2).await;
  stage.leads(2).await;
  stage.agent = other;
  stage.say("to the other").await;
  sleep(Duration::from_secs(8)).await;
  first.gate.wake();
  sleep(Duration::from_millis(100)).await;
  stage.world.crash(2, Fate::Land);
  stage.world.start(3).await;
  stage.leads(3).await;
  stage.say("once more").await;
  stage.judge(CALM).await.map(drop)
}

/// More than a reader takes in before its decider has decided and sent.
const STALE: usize = 2 * pa_eventlog::reader::READ_RECORDS_MAX + 100;

/// Two deciders for one input: stale records and then the first one's decision land right before the second one's announcement. The announcement doesn't count (PR-13b), and nothing is
/// decided before it is read (PR-02).
pub(in super::super) async fn pr_02() -> Result<(), String> {
  let mut stage = Stage::led_by_the_first(&TWO).await;
  let (first, log) = (stage.process(1), stage.world.shared.log.clone());
  log.inject(Stream::Events, Fault::Held);
  let gate = first.gate.clone();
  first.traps.set(Moment::After, "events/pa.conversation.MessageAdmitted", move || gate.stop());
  stage.leave("once").await;
  stage.until("the first is stopped", || first.gate.is_stopped()).await;
  let second = stage.world.start(2).await;
  let stale = vec![stage.events()[1].record.clone(); STALE];
  second.traps.set(Moment::Before, "events/pa.log.EpochAnnounced", move || {
    log.put(Stream::Events, 0, stale);
    assert!(log.land_held());
  });
  stage.leads(2).await;
  let accepted = stage.judge(CALM).await?;
  if texts(&accepted) == ["once"] { Ok(()) } else { Err(format!("decided: {:?}", texts(&accepted))) }
}

#[test]
fn pr_01_a_foreign_checkpoint_is_neither_written_nor_loaded() {
  in_paused_time(pr_01()).unwrap();
}

#[test]
fn pr_02_and_13b_nothing_is_decided_before_the_own_announcement_is_read() {
  in_paused_time(pr_02()).unwrap();
}

/// The oracle sees to it that no (epoch, seq) has two records.
#[test]
fn pr_03_after_an_unknown_fate_a_used_seq_never_gets_other_bytes() {
  for fault in [Fault::Torn(1), Fault::LostAck, Fault::Lost, Fault::Late(Duration::from_secs(3))] {
    in_paused_time(async {
      let mut stage = Stage::led_by_the_first(&TWO).await;
      let epoch = stage.leads(1).await;
      stage.world.shared.log.inject(Stream::Events, fault);
      stage.say("whole").await;
      let accepted = stage.judge(CALM).await.unwrap();
      assert_eq!(texts(&accepted), ["whole"]);
      assert!(stage.leads(1).await > epoch, "{fault:?} ends the term");
    });
  }
}

#[test]
fn pr_04_what_is_lost_after_its_acknowledgement_is_decided_again_in_a_new_term() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    let (log, end) = (stage.world.shared.log.clone(), stage.events().len());
    stage.process(1).traps.set(Moment::After, "events/pa.conversation.MessageAdmitted", move || {
      log.cut(Stream::Events, 0, i64::try_from(end).unwrap());
    });
    let asked = Instant::now();
    stage.say("lost and found").await;
    assert!(asked.elapsed() < Duration::from_secs(10), "it took {:?}", asked.elapsed());
    assert_eq!(texts(&stage.judge(CALM).await.unwrap()), ["lost and found"]);
  });
}

/// A decision is lost after its acknowledgement, and the next one of the same term lands: its seq leaves out one.
pub(in super::super) async fn pr_05() -> Result<(), String> {
  let mut stage = Stage::led_by_the_first(&TWO).await;
  let (log, end) = (stage.world.shared.log.clone(), i64::try_from(stage.events().len()).expect("few"));
  let first = stage.process(1);
  first.traps.set(Moment::After, "events/pa.conversation.MessageAdmitted", move || log.cut(Stream::Events, 0, end));
  stage.leave("first").await;
  stage.until("the first is lost", || first.traps.is_empty()).await;
  stage.leave("second").await;
  let accepted = stage.judge(CALM).await?;
  if texts(&accepted) == ["first", "second"] { Ok(()) } else { Err(format!("decided: {:?}", texts(&accepted))) }
}

#[test]
fn pr_05_a_decider_that_reads_its_own_record_as_void_opens_a_new_term() {
  in_paused_time(pr_05()).unwrap();
}

#[test]
fn pr_06_a_row_restored_from_a_backup_never_gives_an_epoch_twice() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    let backup = stage.world.shared.database.copy();
    stage.world.crash(1, Fate::Land);
    stage.world.start(2).await;
    let second = stage.leads(2).await;
    stage.say("before the restore").await;
    stage.world.shared.database.restore(backup);
    stage.world.start(1).await;
    stage.say("after the restore").await;
    let accepted = stage.judge(CALM).await.unwrap();
    assert_eq!(texts(&accepted), ["before the restore", "after the restore"]);
    let epochs: Vec<i64> = accepted.items.iter().filter_map(|item| if let Item::Announced(announced) = item { Some(announced.epoch) } else { None }).collect();
    assert!(epochs.is_sorted_by(|one, next| one < next) && epochs.last() > Some(&second), "{epochs:?}");
  });
}

#[test]
fn pr_09_the_next_input_is_known_when_there_are_only_announcements() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    stage.say("one").await;
    stage.until("a checkpoint is written", || stage.world.shared.database.copy().marks.contains_key(&0)).await;
    for _ in 0..4 {
      stage.world.crash(1, Fate::Land);
      stage.world.start(1).await;
      stage.leads(1).await;
    }
    stage.say("two").await;
    let accepted = stage.judge(CALM).await.unwrap();
    assert_eq!(texts(&accepted), ["one", "two"]);
    assert_eq!(repeats(&accepted), 0);
  });
}

#[test]
fn pr_15_of_two_processes_of_one_node_the_later_one_decides_and_it_stays_so() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    let earlier = stage.process(1);
    let asked = Instant::now();
    stage.world.start(1).await;
    stage.leads(1).await;
    assert!(asked.elapsed() < Duration::from_secs(2), "a start takes back its node's row at once");
    stage.say("to the later one").await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(super::epoch_of(&earlier), None);
    let before = announcements(&stage);
    sleep(Duration::from_secs(120)).await;
    assert_eq!(announcements(&stage), before, "nobody takes it back and forth");
    stage.judge(CALM).await.unwrap();
  });
}

#[test]
fn pr_15_a_decider_that_wakes_stands_back() {
  in_paused_time(async {
    let mut stage = Stage::led_by_the_first(&TWO).await;
    let first = stage.process(1);
    first.gate.stop();
    stage.world.start(2).await;
    stage.leads(2).await;
    stage.say("meanwhile").await;
    first.gate.wake();
    stage.say("afterwards").await;
    sleep(Duration::from_secs(60)).await;
    let before = announcements(&stage);
    assert_eq!(super::epoch_of(&first), None);
    assert!(super::epoch_of(&stage.process(2)).is_some());
    sleep(Duration::from_secs(120)).await;
    assert_eq!(announcements(&stage), before);
    assert_eq!(texts(&stage.judge(CALM).await.unwrap()), ["meanwhile", "afterwards"]);
  });
}

/// What was routed is routed again when the state is built anew; for an account whose agent is gone there is nothing to do.
#[test]
fn an_erased_account_does_not_hold_up_the_installation_when_its_state_is_built_anew() {
  in_paused_time(async {
    let stage = Stage::new(&TWO).await;
    stage.world.start(1).await;
    Administrator { world: std::sync::Arc::clone(&stage.world), accounts: 6, seed: 3 }.live().await;
    assert!(!stage.world.record.all_erased().is_empty(), "some are erased");
    stage.world.crash(1, Fate::Land);
    stage.world.shared.database.restore(super::super::store::Rows::default());
    stage.world.start(1).await;
    let mut random = rand::SeedableRng::seed_from_u64(4);
    let add = request(INSTALLATION, "one more", inputs::add_account("One more"));
    timeout(Duration::from_secs(20), resolve(&stage.world, &mut random, &add)).await.expect("the installation's inputs are decided");
    stage.judge(CALM).await.unwrap();
  });
}

/// A disk without room for a new agent: what the installation decided waits for it, over a checkpoint and a death, and everybody else goes on in the same term.
#[test]
fn an_agent_that_cant_begin_holds_up_nobody_and_begins_when_it_can() {
  in_paused_time(async {
    let mut stage = Stage::new(&TWO).await;
    stage.agent = agent_in_after_of(INSTALLATION);
    stage.world.start(1).await;
    let part = pa_eventlog::meta::partition_of(INSTALLATION, super::super::world::PARTITIONS);
    let mut random = rand::SeedableRng::seed_from_u64(4);
    stage.world.create(&mut random, stage.agent).await;
    stage.world.shared.full.store(true, std::sync::atomic::Ordering::Relaxed);
    let added = resolve(&stage.world, &mut random, &request(INSTALLATION, "add", inputs::add_account("Ada"))).await;
    let account = AgentId(derived(added.input, 0));
    let begun = announced(&stage, part);
    for number in 0..20 {
      stage.say(&format!("meanwhile {number}")).await;
      sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(announced(&stage, part), begun, "the term goes on");
    stage.world.crash(1, Fate::Land);
    stage.world.start(1).await;
    stage.say("after a death").await;
    stage.world.shared.full.store(false, std::sync::atomic::Ordering::Relaxed);
    let hello = async {
      for again in 0_u64.. {
        let hello = request(account, format!("hello-{again}"), inputs::message("hello"));
        if resolve(&stage.world, &mut random, &hello).await.refused().is_none() {
          break;
        }
        sleep(Duration::from_secs(1)).await;
      }
    };
    timeout(Duration::from_secs(120), hello).await.expect("the agent begins");
    sleep(Duration::from_secs(12)).await;
    super::super::oracle::judge_log(&stage.world, CALM).await.unwrap();
  });
}

/// Another agent of the same partition.
fn agent_in_after_of(agent: AgentId) -> AgentId {
  use super::super::world::{PARTITIONS, agent_in};
  agent_in(pa_eventlog::meta::partition_of(agent, PARTITIONS))
}

fn announced(stage: &Stage, partition: pa_eventlog::Partition) -> usize {
  let records = stage.world.shared.log.records(Stream::Events, partition);
  records.iter().filter(|stored| stored.record.type_name.starts_with("pa.log.EpochAnnounced")).count()
}

/// An input that was on its way when its agent was erased comes after a restart: ordinals and chain go on behind the tombstone.
#[test]
fn a_late_input_of_an_erased_agent_goes_on_behind_its_tombstone() {
  for rests in [0, 12] {
    in_paused_time(async {
      let mut stage = Stage::led_by_the_first(&TWO).await;
      stage.say("hello").await;
      let (gone, other) = (stage.agent, agent_in_after(stage.agent));
      stage.world.create(&mut rand::SeedableRng::seed_from_u64(2), other).await;
      let late = stage.edge.prepare(&request(gone, "late", inputs::message("late"))).await.unwrap();
      let later = stage.edge.prepare(&request(gone, "later", inputs::message("later"))).await.unwrap();
      stage.world.record.erased(gone);
      stage.edge.append(&request(gone, "erase", inputs::erase("Ada"))).await.unwrap();
      stage.until("it is erased", || stage.world.is_erased(gone)).await;
      sleep(Duration::from_secs(rests)).await;
      stage.world.crash(1, Fate::Land);
      stage.world.start(2).await;
      stage.leads(2).await;
      assert!(stage.edge.append_prepared(&late).await);
      stage.agent = other;
      stage.say("of another").await;
      sleep(Duration::from_secs(rests)).await;
      stage.world.crash(2, Fate::Land);
      stage.world.start(1).await;
      stage.leads(1).await;
      assert!(stage.edge.append_prepared(&later).await);
      stage.say("of another again").await;
      stage.judge(CALM).await.unwrap();
      let ordinals: Vec<i64> =
        stage.events().iter().map(|stored| stored.meta().unwrap().core.clone()).filter(|core| core.agent == gone).map(|core| core.ordinal).collect();
      assert_eq!(ordinals, (1..=i64::try_from(ordinals.len()).unwrap()).collect::<Vec<_>>());
      assert!(ordinals.len() >= 8, "both late inputs were settled: {ordinals:?}");
    });
  }
}

/// Every announcement's fate is unknown for a while: the terms that come to nothing come ever more slowly.
#[test]
fn terms_that_decide_nothing_are_opened_ever_more_slowly() {
  in_paused_time(async {
    let mut stage = Stage::new(&TWO).await;
    for _ in 0..40 {
      stage.world.shared.log.inject(Stream::Events, Fault::LostAck);
    }
    stage.world.start(1).await;
    sleep(Duration::from_secs(5)).await;
    let announced = stage.world.shared.log.records(Stream::Events, 0).len() + stage.world.shared.log.records(Stream::Events, 1).len();
    assert!((4..=20).contains(&announced), "{announced} announcements in 5 s on two partitions");
    stage.leads(1).await;
    stage.world.create(&mut rand::SeedableRng::seed_from_u64(1), stage.agent).await;
    stage.say("at last").await;
    assert_eq!(texts(&stage.judge(CALM).await.unwrap()), ["at last"]);
  });
}

/// The lost acknowledgement of an append leaves its record twice; without a key only the input's id says so.
#[test]
fn a_message_without_a_key_that_stands_twice_is_admitted_once() {
  for restarts in [false, true] {
    in_paused_time(async {
      let mut stage = Stage::led_by_the_first(&TWO).await;
      let prepared = stage.edge.prepare(&request(stage.agent, "", inputs::message("once"))).await.unwrap();
      assert!(stage.edge.append_prepared(&prepared).await);
      if restarts {
        // Written down, and no longer in anybody's memory.
        sleep(Duration::from_secs(12)).await;
        stage.world.crash(1, Fate::Land);
        stage.world.start(1).await;
        stage.leads(1).await;
      }
      stage.world.shared.log.inject(Stream::Inputs, Fault::Duplicate);
      assert!(stage.edge.append_prepared(&prepared).await);
      stage.say("and another").await;
      let accepted = stage.judge(CALM).await.unwrap();
      assert_eq!(texts(&accepted), ["once", "and another"]);
      assert_eq!(repeats(&accepted), 2);
    });
  }
}

fn announcements(stage: &Stage) -> usize {
  stage.events().iter().filter(|stored| stored.record.type_name.starts_with("pa.log.EpochAnnounced")).count()
}
