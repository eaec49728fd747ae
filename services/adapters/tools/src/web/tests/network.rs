//! Which addresses are connected to, in a network namespace of the test's own: there public addresses are this machine's, and nothing else can be reached.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::server::{Answer, Server, page, redirect};
use super::{Book, call};
use crate::Error;
use crate::web::{Allow, FetchTool};

/// Set inside of the namespace.
const INSIDE: &str = "PA_TEST_NETWORK";
/// Addresses that count as public, and such that do not.
const ADDRESSES: &str = "8.8.4.4/32 9.9.9.9/32 10.0.0.5/32 100.64.0.5/32 169.254.169.254/32";
const SETUP: &str =
  "ip link set lo up && for address in $ADDRESSES; do ip address add $address dev lo || exit 1; done && exec \"$0\" --exact \"$1\" --nocapture";

/// Ways into a network namespace: as root, as root of a user namespace, which is not allowed everywhere, and by sudo.
const WAYS_IN: [&[&str]; 3] = [&["unshare", "--net"], &["unshare", "--map-root-user", "--net"], &["sudo", "-n", "unshare", "--net"]];

fn can_run(way: &[&str]) -> bool {
  Command::new(way[0]).args(&way[1..]).arg("true").output().is_ok_and(|output| output.status.success())
}

/// Runs a test again inside of a namespace; there, runs the work.
fn in_a_network_of_its_own(test: &str, work: impl Future<Output = ()>) {
  if std::env::var_os(INSIDE).is_some() {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
    return;
  }
  let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
  let program = std::env::current_exe().unwrap();
  let way = WAYS_IN.iter().find(|way| can_run(way)).expect("root, user namespaces or sudo; unshare of util-linux");
  let environment = [format!("ADDRESSES={ADDRESSES}"), format!("{INSIDE}=1")];
  let mut command = Command::new(way[0]);
  command.args(&way[1..]).arg("env").args(environment).args(["sh", "-c", SETUP]).arg(program).arg(name);
  let output = command.output().unwrap();
  let said = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
  assert!(output.status.success() && said.contains("1 passed"), "this needs ip of iproute2: {said}");
}

fn tool(book: &Arc<Book>, allow: &[&str]) -> FetchTool {
  let allow: Vec<String> = allow.iter().map(|entry| (*entry).to_owned()).collect();
  FetchTool::with(Arc::clone(book) as _, Allow::parse(&allow).unwrap(), Duration::from_secs(60)).unwrap()
}

fn text(body: &'static str) -> impl Fn(&str) -> Answer + Send + Sync + 'static {
  move |_| page("Content-Type: text/plain", body)
}

async fn refused(tool: &FetchTool, url: &str) -> String {
  match call(tool, json!({"url": url})).await {
    Err(Error::Failed { code: "WEB_ADDRESS_REFUSED", reason }) => reason,
    other => panic!("{url}: {other:?}"),
  }
}

/// Proves CAP-4.
#[test]
fn public_addresses_are_reached_and_no_others() {
  in_a_network_of_its_own("public_addresses_are_reached_and_no_others", async {
    let public = Server::at("8.8.4.4", text("public")).await;
    let book = Arc::new(Book::default());
    book.add("public.test", &[&["8.8.4.4"]]);
    let fetched = call(&tool(&book, &[]), json!({"url": format!("http://public.test:{}/", public.address.port())})).await.unwrap();
    assert!(fetched[1].text.ends_with("public"));
    let fetched = call(&tool(&book, &[]), json!({"url": public.url("/")})).await.unwrap();
    assert!(fetched[0].text.starts_with("From 8.8.4.4: status 200"));
    for inside in ["127.0.0.1", "10.0.0.5", "100.64.0.5", "169.254.169.254"] {
      let secret = Server::at(inside, text("secret")).await;
      let port = secret.address.port();
      book.add("inside.test", &[&[inside]]);
      assert!(refused(&tool(&book, &[]), &format!("http://inside.test:{port}/")).await.contains(inside));
      assert!(refused(&tool(&book, &[]), &secret.url("/")).await.contains(inside));
      assert_eq!(secret.requests().len(), 0, "{inside}");
      let fetched = call(&tool(&book, &[inside]), json!({"url": secret.url("/")})).await.unwrap();
      assert!(fetched[1].text.ends_with("secret"), "what is allowed is reached");
      let fetched = call(&tool(&book, &["inside.test"]), json!({"url": format!("http://inside.test:{port}/")})).await.unwrap();
      assert!(fetched[1].text.ends_with("secret"), "what is allowed is reached");
    }
    let local = Server::at("127.0.0.1", text("secret")).await;
    let port = local.address.port();
    for host in ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]", "[::1]", "[64:ff9b::7f00:1]", "0.0.0.0", "127.0.0.1."] {
      refused(&tool(&book, &[]), &format!("http://{host}:{port}/")).await;
    }
    assert_eq!(local.requests().len(), 0);
  });
}

/// Proves CAP-4.
#[test]
fn every_redirect_is_looked_at_again() {
  in_a_network_of_its_own("every_redirect_is_looked_at_again", async {
    let secret = Server::at("10.0.0.5", text("secret")).await;
    let port = secret.address.port();
    let public = Server::at("9.9.9.9", move |request| match request.split(' ').nth(1) {
      Some("/number") => redirect(&format!("http://{}:{port}/", u32::from(std::net::Ipv4Addr::new(10, 0, 0, 5)))),
      Some("/mapped") => redirect(&format!("http://[::ffff:10.0.0.5]:{port}/")),
      Some("/name") => redirect(&format!("http://inside.test:{port}/")),
      Some("/relative") => redirect(&format!("//10.0.0.5:{port}/")),
      Some("/again") => redirect("/address"),
      _ => redirect(&format!("http://10.0.0.5:{port}/")),
    })
    .await;
    let book = Arc::new(Book::default());
    book.add("inside.test", &[&["10.0.0.5"]]);
    for path in ["/address", "/number", "/mapped", "/name", "/relative", "/again"] {
      assert!(refused(&tool(&book, &[]), &public.url(path)).await.contains("redirected to"), "{path}");
    }
    assert_eq!(secret.requests().len(), 0);
  });
}

/// Proves CAP-4.
#[test]
fn a_name_that_changes_its_address_is_connected_to_where_it_was_looked_at() {
  in_a_network_of_its_own("a_name_that_changes_its_address_is_connected_to_where_it_was_looked_at", async {
    let public =
      Server::at("8.8.4.4", |request| if request.starts_with("GET /first") { redirect("/second") } else { page("Content-Type: text/plain", "public") }).await;
    let port = public.address.port();
    // The same port at the other address: only the address decides.
    let listener = tokio::net::TcpListener::bind(("10.0.0.5", port)).await.unwrap();
    let book = Arc::new(Book::default());
    let url = |path: &str| format!("http://rebound.test:{port}{path}");

    book.add("rebound.test", &[&["8.8.4.4"], &["10.0.0.5"]]);
    let fetched = call(&tool(&book, &[]), json!({"url": url("/")})).await.unwrap();
    assert!(fetched[1].text.ends_with("public"));
    assert_eq!(book.asked(), 1, "what was looked at is what was connected to: nobody asked again");

    book.add("rebound.test", &[&["8.8.4.4"], &["10.0.0.5"]]);
    assert!(refused(&tool(&book, &[]), &url("/first")).await.contains("10.0.0.5"));

    book.add("rebound.test", &[&["10.0.0.5", "8.8.4.4"]]);
    let fetched = call(&tool(&book, &[]), json!({"url": url("/")})).await.unwrap();
    assert!(fetched[1].text.ends_with("public"), "of several addresses only public ones are tried");
    let connected = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(connected.is_err(), "nobody came to the inner address");
  });
}
