//! Plans: with 100,000 rows no read of the page or of a worker goes through a whole table.

use pa_domain::execution::JobKind;
use pa_domain::{AgentId, Timestamp};
use sqlx::{AssertSqlSafe, Connection as _, PgPool};

use super::Model;
use crate::tasks::Window;
use crate::testing::story::{Story, agent, file, main_of};
use crate::testing::tasks::{Told, every_kind};
use crate::{audit, conversation, indicator, outputs, pending_actions, queue, settings, system, task_entries, tasks, timers, updates, usage};

/// Fills the tables with many agents' rows by copying those of one.
const COPIES: [&str; 13] = [
  "INSERT INTO entries SELECT md5('a' || n % 200)::uuid, md5('e' || n)::uuid, md5('c' || n % 200)::uuid, n, n, 'TEXT', 'OWNER', '', 'text', 'ANSWERED', n, NULL, NULL, false, 0, '', '', 0, 'OWNER', true, false FROM generate_series(1, 100000) n",
  "INSERT INTO audit SELECT md5('a' || n % 200)::uuid, n, 1, n, md5('i' || n)::uuid, 'pa.log.InputSettled.v1', n, 'owner', 'OWNER', md5('c' || n)::uuid, md5('c' || n)::uuid, n, md5('t' || n / 8)::uuid FROM generate_series(1, 100000) n",
  "INSERT INTO attachments SELECT md5('a' || n % 200)::uuid, md5('e' || n)::uuid, 0, 'f' || n, 'n', 't', 1, 's', 'b', 'OWNER' FROM generate_series(1, 100000) n",
  "INSERT INTO usage SELECT md5('a' || n % 200)::uuid, md5('e' || n)::uuid, 1, 1, 'm', 'FAST', 'STOP', 1, n, n, 1, 1, 1, 1, 1, 'USD', n, n FROM generate_series(1, 100000) n",
  "INSERT INTO jobs SELECT md5('a' || n % 200)::uuid, md5('j' || n)::uuid, 'REPLY', md5('c' || n)::uuid, md5('r' || n)::uuid, CASE WHEN n % 2 = 0 THEN 'RUNNING' ELSE 'CLAIMABLE' END, true, 1, n, n, n FROM generate_series(1, 100000) n",
  "INSERT INTO open_calls SELECT md5('a' || n % 200)::uuid, md5('o' || n)::uuid, md5('j' || n)::uuid, 1, 1, 0, 't', 'REPEATABLE', '{}', 1, n, false, n FROM generate_series(1, 100000) n",
  "INSERT INTO timers SELECT md5('a' || n % 200)::uuid, md5('t' || n)::uuid, 'ATTEMPT_LIMIT', n, NULL, n FROM generate_series(1, 100000) n",
  "INSERT INTO conversations SELECT md5('a' || n % 2000)::uuid, md5('c' || n)::uuid, 'CHANNEL', 't', 'c', n, n FROM generate_series(1, 100000) n",
  "INSERT INTO tasks SELECT md5('a' || n % 200)::uuid, md5('k' || n)::uuid, md5('c' || n)::uuid, md5('c' || n % 200)::uuid, 't', 'g', 'AGENT', n, n, 'COMPLETED', false, '', '', false, 1, 1, n, 0, 0, n, n, n, NULL, NULL, NULL FROM generate_series(1, 100000) n",
  "INSERT INTO task_entries SELECT md5('a' || n % 200)::uuid, md5('n' || n)::uuid, md5('k' || n % 2000)::uuid, n, n, 'WORDS', 'AGENT', 'POSTED', 'text', '', '', '', false, 0, n FROM generate_series(1, 100000) n",
  "INSERT INTO pending_actions SELECT md5('a' || n % 200)::uuid, md5('p' || n)::uuid, 'CARD', md5('k' || n)::uuid, md5('o' || n)::uuid, NULL, 't', 'EMAIL', 'x', NULL, NULL, '{}', 'APPROVED', '', n, n, n, n FROM generate_series(1, 100000) n",
  "INSERT INTO outputs SELECT md5('a' || n % 200)::uuid, md5('u' || n)::uuid, md5('k' || n)::uuid, md5('c' || n % 200)::uuid, n, n, '', 's', n FROM generate_series(1, 100000) n",
  "INSERT INTO agent_progress SELECT md5('a' || n)::uuid, n FROM generate_series(1, 100000) n",
];

async fn fill(model: &Model) {
  for copy in COPIES {
    sqlx::query(AssertSqlSafe(copy.replacen("INSERT INTO ", &format!("INSERT INTO {}.", model.schema.name()), 1))).execute(&model.db.pool).await.unwrap();
  }
  sqlx::query(
    "INSERT INTO ops.leases (kind, job, agent, node, process, claimed_at, expires_at) SELECT 'REPLY', md5('j' || n)::uuid, md5('a')::uuid, md5('n')::uuid, md5('p')::uuid, now(), now() \
     FROM generate_series(1, 50000) n",
  )
  .execute(&model.db.pool)
  .await
  .unwrap();
  sqlx::raw_sql(AssertSqlSafe(format!("SET search_path = {}, ops; ANALYZE", model.schema.name()))).execute(&model.db.pool).await.unwrap();
}

/// Every read once, through a pool whose server explains what it does.
async fn read_everything(pool: &PgPool) {
  let id = agent(1);
  let main = main_of(id);
  conversation::conversations(pool, id).await.unwrap();
  conversation::one(pool, id, None).await.unwrap();
  conversation::one(pool, id, Some(main)).await.unwrap();
  let page = conversation::page(pool, id, main, 50, None).await.unwrap();
  assert!(page.entries.len() > 4);
  conversation::page(pool, id, main, 50, Some(page.entries[2].place)).await.unwrap();
  let message = page.entries.iter().find(|entry| entry.reply.is_some()).unwrap();
  let ids: Vec<_> = page.entries.iter().map(|entry| entry.id).collect();
  conversation::entries(pool, id, &ids).await.unwrap();
  conversation::attachment(pool, id, &file(1).id).await.unwrap().unwrap();
  conversation::history(pool, id, *ids.last().unwrap(), |_| true).await.unwrap();
  updates::after(pool, id, 0, 500).await.unwrap();
  updates::after(pool, id, 20, 500).await.unwrap();
  settings::of(pool, id).await.unwrap().unwrap();
  indicator::of(pool, id).await.unwrap();
  let by_thing = audit::Filter { thing: Some(pa_domain::ThingId(message.id.0)), ..Default::default() };
  let by_type = audit::Filter { types: vec!["pa.conversation.MessageAdmitted".into()], ..Default::default() };
  let by_time = audit::Filter { since: Some(Timestamp(10)), until: Some(Timestamp(40)), ..Default::default() };
  for filter in [audit::Filter::default(), by_thing, by_type, by_time] {
    assert!(!audit::page(pool, id, &filter, 50, None).await.unwrap().rows.is_empty(), "{filter:?}");
  }
  assert_eq!(audit::places(pool, id, 3, 9).await.unwrap().len(), 6);
  assert!(audit::whole_decision(pool, id, 3).await.unwrap().is_some());
  assert!(audit::last_until(pool, id, Timestamp(40)).await.unwrap() > 0);
  assert_eq!(conversation::places_of(pool, id, &ids).await.unwrap().len(), ids.len());
  usage::of_job(pool, id, ids[0].into()).await.unwrap();
  for job in [None, Some(ids[0].into())] {
    usage::sum(pool, id, usage::Span { job, since: Some(Timestamp(10)), until: Some(Timestamp(40)) }).await.unwrap();
  }
  read_tasks(pool, id).await;
  queue::candidates(pool, JobKind::Reply, 20).await.unwrap();
  queue::job(pool, id, ids[0].into()).await.unwrap();
  queue::running(pool, &[(id, ids[0].into())]).await.unwrap();
  queue::running_without_lease(pool, JobKind::Reply, Timestamp(1_000), 20).await.unwrap();
  queue::open_calls(pool, id, ids[0].into()).await.unwrap();
  queue::open_calls_of_ended(pool, JobKind::Reply, 20).await.unwrap();
  timers::due(pool, Timestamp(1_000), 20).await.unwrap();
  timers::next_due(pool, Timestamp(1_000)).await.unwrap();
  system::progress(pool, id).await.unwrap();
  system::progress_of_many(pool, &[id]).await.unwrap();
}

async fn read_tasks(pool: &PgPool, id: AgentId) {
  let newest = tasks::page(pool, id, &[], Window::Last(50, None)).await.unwrap().rows;
  let (first, last) = (newest.first().unwrap(), newest.last().unwrap());
  for window in [Window::First(50, None), Window::First(50, Some(first.place)), Window::Last(50, Some(last.place))] {
    tasks::page(pool, id, &[tasks::Status::Running, tasks::Status::Completed], window).await.unwrap();
    outputs::page(pool, id, None, window).await.unwrap();
    outputs::page(pool, id, Some(first.id), window).await.unwrap();
  }
  tasks::one(pool, id, first.id).await.unwrap().unwrap();
  assert!(tasks::listed(pool, id, 50).await.unwrap().len() > 3);
  let entries = task_entries::page(pool, id, first.id, 50, None).await.unwrap().rows;
  task_entries::page(pool, id, first.id, 50, Some(entries[1].place)).await.unwrap();
  task_entries::one(pool, id, entries[0].id).await.unwrap().unwrap();
  let waiting = pending_actions::pending(pool, id).await.unwrap();
  pending_actions::one(pool, id, waiting[0].id).await.unwrap().unwrap();
}

/// The newest page of a task is as much work for 10,000 entries as for 10: what the server looks at does not grow.
///
/// Proves RUN-10.
#[tokio::test]
async fn a_task_of_ten_thousand_entries_opens_as_fast_as_one_of_ten() {
  let mut story = Story::default();
  story.create(agent(1));
  let (short, long) = (story.task(agent(1), "short", "a"), story.task(agent(1), "long", "b"));
  let model = Model::of(&story.decisions).await;
  let schema = model.schema.name();
  for (told, entries) in [(short, 60), (long, 10_000)] {
    let copy = format!(
      "INSERT INTO {schema}.task_entries SELECT $1, md5($2::text || n)::uuid, $2, 1000 + n, n, 'WORDS', 'AGENT', 'POSTED', repeat('word ', 40), '', '', '', false, 0, n \
       FROM generate_series(1, $3::bigint) n"
    );
    sqlx::query(AssertSqlSafe(copy)).bind(told.agent.0).bind(told.id.0).bind(entries).execute(&model.db.pool).await.unwrap();
  }
  sqlx::raw_sql(AssertSqlSafe(format!("VACUUM ANALYZE {schema}.task_entries"))).execute(&model.db.pool).await.unwrap();
  let pages = async |told: Told| {
    let plan =
      "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT id, body FROM task_entries WHERE agent = $1 AND task = $2 AND place < $3 ORDER BY place DESC LIMIT 51";
    let explained: serde_json::Value = sqlx::query_scalar(plan).bind(told.agent.0).bind(told.id.0).bind(i64::MAX).fetch_one(&model.pool).await.unwrap();
    let plan = &explained[0]["Plan"];
    plan["Shared Hit Blocks"].as_i64().unwrap() + plan["Shared Read Blocks"].as_i64().unwrap()
  };
  let (of_short, of_long) = (pages(short).await, pages(long).await);
  assert!(of_long <= of_short + 8, "{of_long} blocks for 10,000 entries, {of_short} for 60");
  let newest = task_entries::page(&model.pool, agent(1), long.id, 50, None).await.unwrap();
  assert_eq!((newest.rows.len(), newest.rows[49].place, newest.has_previous), (50, 11_000, true));
}

#[tokio::test]
async fn no_read_goes_through_a_whole_table() {
  let mut story = Story::default();
  story.create(agent(1));
  every_kind(&mut story, agent(1));
  for number in 0..40 {
    story.turn(agent(1), &format!("question {number}"), "answer");
  }
  story.admit(agent(1), "look", &[file(1)], true);
  let model = Model::of(&story.decisions).await;
  fill(&model).await;
  let scans = || async {
    sqlx::query_as::<_, (String, i64)>(
      "SELECT relname::text, seq_scan FROM pg_catalog.pg_stat_user_tables WHERE schemaname = $1 OR relname = 'leases' ORDER BY relname",
    )
    .bind(model.schema.name())
    .fetch_all(&model.db.pool)
    .await
    .unwrap()
  };
  // Connections report what they did when they end.
  let pool = model.db.database.read_pool(pa_store::Role::Gateway, &model.schema);
  let before = scans().await;
  // More than five times: a prepared statement may then get a plan that knows no values.
  for _ in 0..7 {
    read_everything(&pool).await;
  }
  pool.close().await;
  tokio::time::sleep(std::time::Duration::from_millis(1_200)).await;
  let after = scans().await;
  let small = ["settings", "indicator", "accounts", "parked", "projection_position", "rebuilt"];
  for ((table, before), (_, after)) in before.iter().zip(&after) {
    if !small.contains(&table.as_str()) {
      assert_eq!(before, after, "{table} was read from end to end");
    }
  }
  assert!(after.iter().any(|(table, _)| table == "entries"), "{after:?}");
  explains(&model).await;
}

/// The check above sees a read that does scan.
async fn explains(model: &Model) {
  let options = model.db.database.connect_options(pa_store::Role::Gateway, Some(&model.schema));
  let mut connection = sqlx::PgConnection::connect_with(&options).await.unwrap();
  let count = "SELECT seq_scan FROM pg_catalog.pg_stat_user_tables WHERE schemaname = $1 AND relname = 'entries'";
  let before: i64 = sqlx::query_scalar(count).bind(model.schema.name()).fetch_one(&model.db.pool).await.unwrap();
  sqlx::query("SELECT count(*) FROM entries WHERE body = 'nothing'").execute(&mut connection).await.unwrap();
  connection.close().await.unwrap();
  tokio::time::sleep(std::time::Duration::from_millis(1_200)).await;
  let after: i64 = sqlx::query_scalar(count).bind(model.schema.name()).fetch_one(&model.db.pool).await.unwrap();
  assert!(after > before);
}
