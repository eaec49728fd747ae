//! The worker's ports over a real Postgres: claims, leases, what observers see, and what a prompt is read from.

use std::sync::Arc;
use std::time::Duration;

use pa_blobs::Blobs;
use pa_domain::JobId;
use pa_domain::execution::JobKind;
use pa_eventlog::opener::Opener;
use pa_eventlog::seal::Keys;
use pa_eventlog::sim::{Plan, SimLog};
use pa_projections::commit::{Batch, PostgresStore, ReadStore as _};
use pa_projections::live::{Committed, Live};
use pa_projections::schema::{self, Indexes, Schemas};
use pa_projections::testing::story::{PARTITION, agent, main_of, mark};
use pa_projections::testing::{Decision, Story, tamper};
use pa_store::clock::{Ids as _, SystemClock, SystemIds};
use pa_store::keys::KeyRing;
use pa_store::lease::work;
use pa_store::testing::TestDb;
use pa_store::{ReadSchema, Role};
use pa_tools::OlderMessages as _;
use pa_workspace::Workspaces;
use tokio::time::timeout;
use uuid::Uuid;

use super::ports::holder;
use crate::agent::ports::{Claimed, History as _, WorkQueue};
use crate::agent::postgres::{HistoryParts, PostgresQueue, ReadHistory};

struct Model {
  db: TestDb,
  schema: ReadSchema,
  live: Live,
}

impl Model {
  async fn of(decisions: &[Decision]) -> Self {
    let db = TestDb::new().await;
    let schema = schema::current();
    Schemas::new(&db.database).create(&schema, Indexes::Now).await.unwrap();
    let store = PostgresStore::new(&db.database, &schema);
    let loaded = store.load(PARTITION, Uuid::from_u128(1)).await.unwrap();
    let mut batch = Batch::new(&loaded.parked);
    for decision in decisions {
      decision.add_to(&mut batch);
    }
    store.commit(PARTITION, &loaded.mark, &mark(decisions), &batch).await.unwrap();
    Self { db, schema, live: Live::local() }
  }

  fn queue(&self, node: u128) -> PostgresQueue {
    let reads = self.db.database.read_pool(Role::Gateway, &self.schema);
    PostgresQueue::new(JobKind::Reply, self.db.pool.clone(), reads, &self.live, holder(node, node), Arc::new(SystemClock))
  }

  fn history(&self, folder: &std::path::Path) -> ReadHistory {
    let keys: Arc<dyn Keys> = Arc::new(KeyRing::fixed());
    let log = Arc::new(SimLog::new(1, true, Plan::none()));
    let opener = Arc::new(Opener::new(Arc::clone(&keys), true));
    ReadHistory::new(HistoryParts {
      reads: self.db.database.read_pool(Role::Gateway, &self.schema),
      live: self.live.clone(),
      log,
      opener,
      blobs: Arc::new(Blobs::local(folder).unwrap()),
      workspaces: Arc::new(Workspaces::new(folder.join("workspaces"), None)),
      keys,
    })
  }

  async fn run_out(&self) {
    tamper(&self.db.database, &self.schema, "UPDATE ops.leases SET expires_at = clock_timestamp() - interval '1 second'").await;
  }
}

fn jobs(claimed: &[Claimed]) -> Vec<JobId> {
  sorted(claimed.iter().map(|claimed| claimed.job).collect())
}

/// Ids of so many asks.
fn asks(count: usize) -> Vec<Uuid> {
  (0..count).map(|_| SystemIds.new_id()).collect()
}

fn sorted(mut jobs: Vec<JobId>) -> Vec<JobId> {
  jobs.sort();
  jobs
}

/// Proves RUN-14, RUN-15.
#[tokio::test]
async fn two_processes_share_the_queue_and_a_lease_keeps_a_job_until_it_runs_out() {
  let mut story = Story::default();
  let mut turns = Vec::new();
  for number in 1..=3 {
    story.create(agent(number));
    turns.push(story.message(agent(number), "hello"));
  }
  let model = Model::of(&story.decisions).await;
  let (one, two) = (model.queue(1), model.queue(2));
  let first = one.claim(&asks(2)).await.unwrap();
  assert_eq!(jobs(&first), sorted(vec![turns[0].job(), turns[1].job()]), "those that wait longest");
  assert_eq!(jobs(&two.claim(&asks(10)).await.unwrap()), [turns[2].job()]);
  assert!(one.claim(&asks(10)).await.unwrap().is_empty());

  one.started(&[(turns[0].job(), 7)]).await.unwrap();
  assert_eq!(sorted(one.renew(&[turns[0].job(), turns[1].job(), turns[2].job()]).await.unwrap()), jobs(&first));

  assert!(two.run_out().await.unwrap().is_empty());
  model.run_out().await;
  let run_out = two.run_out().await.unwrap();
  assert_eq!(run_out.len(), 3);
  let seen = run_out.iter().find(|lease| lease.job == turns[0].job()).unwrap();
  assert_eq!((seen.execution, seen.ask), (Some(7), first.iter().find(|claimed| claimed.job == seen.job).map(|claimed| claimed.ask)));
  // Somebody claims one anew between two looks: it no longer counts as run out.
  assert_eq!(jobs(&two.claim(&asks(1)).await.unwrap()), [turns[0].job()]);
  let still: Vec<JobId> = two.still_run_out(run_out.clone()).await.unwrap().iter().map(|lease| lease.job).collect();
  assert!(!still.contains(&turns[0].job()) && still.len() == 2);
  one.forget(seen).await.unwrap();
  assert_eq!(two.renew(&[turns[0].job()]).await.unwrap(), [turns[0].job()], "a lease that was taken over is not forgotten");

  two.release(&[turns[0].job(), turns[2].job()]).await.unwrap();
  assert_eq!(two.renew(&[turns[0].job(), turns[2].job()]).await.unwrap(), []);
}

#[tokio::test]
async fn a_node_finds_what_its_earlier_life_left_behind() {
  let mut story = Story::default();
  story.create(agent(1));
  let turn = story.message(agent(1), "hello");
  story.start(turn, 1);
  let model = Model::of(&story.decisions).await;
  let earlier = model.queue(1);
  let reads = model.db.database.read_pool(Role::Gateway, &model.schema);
  let later = PostgresQueue::new(JobKind::Reply, model.db.pool.clone(), reads, &model.live, holder(1, 99), Arc::new(SystemClock));
  assert_eq!(
    later.abandoned().await.unwrap().iter().map(|job| (job.id, job.execution)).collect::<Vec<_>>(),
    [(turn.job(), 1)],
    "it runs, and no lease stands for it"
  );
  work::claim(&model.db.pool, "REPLY", holder(1, 1), &[(turn.job(), turn.agent)], &asks(1)).await.unwrap();
  earlier.started(&[(turn.job(), 1)]).await.unwrap();
  assert!(earlier.left_behind().await.unwrap().is_empty(), "its own");
  let left = later.left_behind().await.unwrap();
  assert_eq!((left.len(), left[0].execution), (1, Some(1)));
  assert_eq!(later.running(&[(turn.agent, turn.job())]).await.unwrap().len(), 1);
  assert!(later.abandoned().await.unwrap().is_empty());
  later.forget(&left[0]).await.unwrap();
  assert!(later.left_behind().await.unwrap().is_empty());
}

/// Proves RUN-18.
#[tokio::test]
async fn a_job_with_an_external_call_of_unknown_outcome_is_not_claimed() {
  let mut story = Story::default();
  story.create(agent(1));
  let turn = story.message(agent(1), "send it");
  story.start(turn, 1);
  let calls = story.calls(turn, 1, false);
  story.lose(turn, 1);
  let queue = Model::of(&story.decisions).await.queue(1);
  assert!(queue.claim(&asks(10)).await.unwrap().is_empty());
  assert!(queue.open_calls().await.unwrap().is_empty(), "it is said already that nobody knows");
  assert!(queue.job(turn.agent, turn.job()).await.unwrap().is_some());
  story.reconcile(turn, calls[0]);
  assert_eq!(jobs(&Model::of(&story.decisions).await.queue(1).claim(&asks(10)).await.unwrap()), [turn.job()]);
}

#[tokio::test]
async fn a_commit_that_changes_the_queue_wakes_a_worker() {
  let model = Model::of(&[]).await;
  let queue = model.queue(1);
  let woken = async {
    tokio::join!(queue.changed(), async {
      model.live.tell(Committed { partition: PARTITION, agents: vec![(agent(1), 1)], queue: true, timers: false });
    });
  };
  timeout(Duration::from_millis(500), woken).await.expect("woken well before its own next look");
}

#[tokio::test]
async fn a_prompt_is_read_from_a_read_model_that_is_new_enough() {
  let mut story = Story::default();
  story.create(agent(1));
  story.turn(agent(1), "how are you?", "fine");
  let turn = story.message(agent(1), "and now?");
  let model = Model::of(&story.decisions).await;
  let folder = std::env::temp_dir().join(format!("pa-agent-test-{}", SystemIds.new_id()));
  let history = model.history(&folder);
  assert!(history.reached(agent(1), story.ordinal(agent(1)), Duration::from_secs(1)).await.unwrap());
  assert!(!history.reached(agent(1), story.ordinal(agent(1)) + 1, Duration::from_millis(50)).await.unwrap());
  assert_eq!(history.settings(agent(1)).await.unwrap().unwrap().version, 1);
  let turns = history.turns(agent(1), turn.message, &mut |_| true).await.unwrap();
  let said: Vec<(&str, Option<&str>)> = turns.iter().map(|turn| (turn.message.text.as_str(), turn.reply.as_ref().map(|reply| reply.text.as_str()))).collect();
  assert_eq!(said, [("and now?", None), ("how are you?", Some("fine"))]);
  let page = history.page(agent(1), main_of(agent(1)), 10, None).await.unwrap();
  assert_eq!(
    page.messages.iter().map(|message| (message.author.as_str(), message.text.as_str())).collect::<Vec<_>>(),
    [("owner", "how are you?"), ("you", "fine"), ("owner", "and now?")]
  );

  let blob = history.keep(agent(1), "a long result".into()).await.unwrap();
  assert_eq!(history.file(agent(1), &blob, 100).await.unwrap().as_deref(), Some(b"a long result".as_slice()));
  assert_eq!(history.file(agent(1), &blob, 5).await.unwrap(), None, "larger than what is wanted");
  std::fs::remove_dir_all(&folder).unwrap();
}
