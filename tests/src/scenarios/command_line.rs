//! The tools beside the running product: what they start they end, where nothing is they make nothing, and they let people in.

use serde_json::json;

use crate::harness::{Client, Model, Process, Setup, eventually};

/// A tool that has started the private Postgres ends it again, also when it is interrupted.
#[tokio::test]
async fn an_interrupted_tool_leaves_no_postgres_behind() {
  let mut product = Setup::private().await.start().await;
  product.terminate().await;
  assert!(product.setup.postmaster().is_none(), "a graceful stop ends Postgres");
  for (signal, code) in [(nix::sys::signal::Signal::SIGINT, 130), (nix::sys::signal::Signal::SIGTERM, 143)] {
    let mut tail = Process::start("pa log tail", &["log", "tail"], &product.setup.env_with(&[]));
    eventually("the tool's Postgres runs", async || product.setup.postmaster()).await;
    tail.signal(signal);
    assert_eq!(tail.dies().await.code(), Some(code), "{}", tail.log());
    assert!(product.setup.postmaster().is_none(), "{signal}: Postgres was left");
  }
  let exported = product.tool(&["log", "export"]);
  assert_eq!((exported.code, exported.err.as_str()), (Some(0), ""), "an answer, and nothing beside it");
  assert!(product.setup.postmaster().is_none());
}

/// A start that fails once Postgres is up, and one that is interrupted, end it again.
#[tokio::test]
async fn a_failed_start_leaves_no_postgres_behind() {
  let mut product = Setup::private().await.start().await;
  product.terminate().await;
  let other_key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
  for (name, value, word) in [("PA_MASTER_KEY", other_key, "master key"), ("PA__LOG__PARTITIONS", "4", "partition")] {
    product.launch(&[(name, value)]);
    let why = product.ready().await.unwrap_err();
    product.dies().await;
    assert_eq!(why.matches(word).count().min(1), 1, "{why}");
    assert_eq!(why.lines().filter(|line| line.starts_with("pa: ")).count(), 1, "it is said once: {why}");
    assert!(product.setup.postmaster().is_none(), "{name}: Postgres was left");
  }
  product.launch(&[]);
  eventually("its Postgres runs", async || product.setup.postmaster()).await;
  product.terminate().await;
  assert!(product.setup.postmaster().is_none(), "an interrupted start left its Postgres");
}

/// Tools never make a new installation.
#[tokio::test]
async fn a_tool_makes_nothing_where_nothing_is() {
  let product = Setup::private().await.stopped();
  let data = product.setup.data();
  for arguments in [&["verify"][..], &["log", "export"], &["rebuild"], &["token", "show"], &["token", "link"], &["account", "list"], &["account", "add", "Ana"]]
  {
    let tool = product.tool(arguments);
    assert_eq!(tool.code, Some(2), "{arguments:?}: {}", tool.err);
    assert!(tool.err.contains(&format!("no data in {}: set PA_DATA_DIR, or run infra/up", data.display())), "{arguments:?}: {}", tool.err);
    assert!(!data.exists(), "{arguments:?} made {}", data.display());
  }
}

/// The same with a database of one's own: nothing is made in an empty one.
#[tokio::test]
async fn a_tool_makes_nothing_in_an_empty_database() {
  let product = Setup::new().await.stopped();
  std::fs::create_dir(product.setup.data()).unwrap();
  sqlx::raw_sql("DROP SCHEMA IF EXISTS ops CASCADE").execute(product.setup.pool()).await.unwrap();
  let tool = product.tool(&["verify"]);
  assert_eq!(tool.code, Some(2), "{}", tool.err);
  assert!(tool.err.contains("no data in the database of PA_DATABASE_URL"), "{}", tool.err);
  let made: bool = sqlx::query_scalar("SELECT to_regclass('ops.log_identity') IS NOT NULL").fetch_one(product.setup.pool()).await.unwrap();
  assert!(!made);
}

/// Another person's account: a link for the page, a token for scripts, a name that nobody else has.
#[tokio::test]
async fn another_account_gets_a_link_and_a_name_of_its_own() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let added = product.tool(&["account", "add", "Ana"]);
  let value = |name: &str| added.out.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default().to_owned();
  let (account, token, link) = (value("account"), value("token"), value("sign-in"));
  assert!(link.starts_with(&format!("{}/sign-in/", product.url)), "{}{}", added.out, added.err);
  let ana = Client::new(&product.url, &token);
  assert_eq!(ana.ask("{ agent { id } }", json!({})).await["agent"]["id"], account.as_str());

  for (arguments, word) in [
    (&["account", "add", " ana "][..], "there is an account called Ana already"),
    (&["account", "add", ""], "a name has 1 to 64 characters"),
    (&["token", "show", "--account", "Ana"], "only its hash is kept"),
    (&["token", "link", "--account", "Nobody"], "there is no account \"Nobody\": `pa account list` shows them"),
    (&["log", "export", "--agent", "00000000-0000-7000-8000-000000000001"], "there is no agent 00000000-0000-7000-8000-000000000001"),
    (&["rebuild", "--agent", "00000000-0000-7000-8000-000000000001"], "there is no agent"),
  ] {
    let refused = product.tool(arguments);
    assert_eq!(refused.code, Some(1), "{arguments:?}: {}{}", refused.out, refused.err);
    assert!(refused.err.contains(word) && refused.err.lines().count() == 1, "{arguments:?}: {}", refused.err);
  }

  let listed = product.tool(&["account", "list"]);
  assert!(listed.out.lines().any(|line| line.starts_with(&account) && line.ends_with("Ana")), "{}{}", listed.out, listed.err);
  for whom in ["Ana", &account] {
    let link = product.tool(&["token", "link", "--account", whom]).out;
    assert!(link.starts_with(&format!("{}/sign-in/", product.url)), "{link}");
  }
  let reset = product.tool(&["token", "reset", "--account", "Ana"]);
  assert_eq!(reset.code, Some(0), "{}", reset.err);
  let again = Client::new(&product.url, reset.out.trim());
  assert_eq!(again.ask("{ agent { id } }", json!({})).await["agent"]["id"], account.as_str());
  let old = ana.http.post(format!("{}/graphql", product.url)).bearer_auth(&token).json(&json!({ "query": "{ agent { id } }" })).send().await.unwrap();
  assert_eq!(old.status(), 401, "the old token counts no more");
}

/// Nothing that needs the running product works without it, and it says so; what needs only files does.
#[tokio::test]
async fn a_tool_says_that_the_product_does_not_run() {
  let mut product = Setup::new().await.start().await;
  product.terminate().await;
  for arguments in [&["token", "link"][..], &["account", "add", "Ana"]] {
    let tool = product.tool(arguments);
    assert_eq!(tool.code, Some(1), "{arguments:?}: {}", tool.err);
    assert!(tool.err.contains("pa is not running: start it with infra/up (or `pa up`)"), "{}", tool.err);
  }
  let shown = product.tool(&["token", "show"]);
  assert_eq!((shown.code, shown.out.trim()), (Some(0), crate::harness::TOKEN), "{}", shown.err);
}
