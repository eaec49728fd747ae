//! Plans: with 100,000 rows no read of the page or of a worker goes through a whole table.

use pa_domain::Timestamp;
use pa_domain::execution::JobKind;
use sqlx::{AssertSqlSafe, Connection as _, PgPool};

use super::Model;
use crate::testing::story::{Story, agent, file, main_of};
use crate::{audit, conversation, indicator, queue, settings, system, timers, updates, usage};

/// Fills the tables with many agents' rows by copying those of one.
const COPIES: [&str; 9] = [
  "INSERT INTO entries SELECT md5('a' || n % 200)::uuid, md5('e' || n)::uuid, md5('c' || n % 200)::uuid, n, n, 'TEXT', 'OWNER', '', 'text', 'ANSWERED', n, NULL, NULL, false, 0, '', '', 0, 'OWNER', true, false FROM generate_series(1, 100000) n",
  "INSERT INTO audit SELECT md5('a' || n % 200)::uuid, n, 1, n, md5('i' || n)::uuid, 'pa.log.InputSettled.v1', n, 'owner', 'OWNER', md5('c' || n)::uuid, md5('c' || n)::uuid, n, md5('t' || n / 8)::uuid FROM generate_series(1, 100000) n",
  "INSERT INTO attachments SELECT md5('a' || n % 200)::uuid, md5('e' || n)::uuid, 0, 'f' || n, 'n', 't', 1, 's', 'b', 'OWNER' FROM generate_series(1, 100000) n",
  "INSERT INTO usage SELECT md5('a' || n % 200)::uuid, md5('e' || n)::uuid, 1, 1, 'm', 'FAST', 'STOP', 1, n, n, 1, 1, 1, 1, 1, 'USD', n, n FROM generate_series(1, 100000) n",
  "INSERT INTO jobs SELECT md5('a' || n % 200)::uuid, md5('j' || n)::uuid, 'REPLY', md5('c' || n)::uuid, md5('r' || n)::uuid, CASE WHEN n % 2 = 0 THEN 'RUNNING' ELSE 'CLAIMABLE' END, 1, n, n, n FROM generate_series(1, 100000) n",
  "INSERT INTO open_calls SELECT md5('a' || n % 200)::uuid, md5('o' || n)::uuid, md5('j' || n)::uuid, 1, 1, 0, 't', 'REPEATABLE', '{}', 1, n, false, n FROM generate_series(1, 100000) n",
  "INSERT INTO timers SELECT md5('a' || n % 200)::uuid, md5('t' || n)::uuid, 'ATTEMPT_LIMIT', n, NULL, n FROM generate_series(1, 100000) n",
  "INSERT INTO conversations SELECT md5('a' || n % 2000)::uuid, md5('c' || n)::uuid, 'CHANNEL', 't', 'c', n, n FROM generate_series(1, 100000) n",
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
  usage::of_job(pool, id, ids[0].into()).await.unwrap();
  queue::candidates(pool, JobKind::Reply, 20).await.unwrap();
  queue::job(pool, id, ids[0].into()).await.unwrap();
  queue::running(pool, &[(id, ids[0].into())]).await.unwrap();
  queue::running_without_lease(pool, Timestamp(1_000), 20).await.unwrap();
  queue::open_calls(pool, id, ids[0].into()).await.unwrap();
  queue::open_calls_of_ended(pool, 20).await.unwrap();
  timers::due(pool, Timestamp(1_000), 20).await.unwrap();
  timers::next_due(pool, Timestamp(1_000)).await.unwrap();
  system::progress(pool, id).await.unwrap();
  system::progress_of_many(pool, &[id]).await.unwrap();
}

#[tokio::test]
async fn no_read_goes_through_a_whole_table() {
  let mut story = Story::default();
  story.create(agent(1));
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
