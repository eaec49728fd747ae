//! A Chromium of its own for each test, with a fresh profile; gone with the test.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use fantoccini::elements::Element;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::harness::{Product, eventually};

const CHROMIUM: &str = "/usr/bin/chromium";
const CHROMEDRIVER: &str = "/usr/bin/chromedriver";
/// A browser has half a dozen processes.
const BROWSERS_MAX: usize = 2;
const FLAGS: [&str; 9] = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];

static PLACES: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(BROWSERS_MAX));

/// A browser.
pub(super) struct Browser {
  pub(super) client: Client,
  driver: Child,
  profile: TempDir,
  _place: SemaphorePermit<'static>,
}

/// An entry as it is on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
  pub(super) id: String,
  pub(super) role: String,
  pub(super) status: String,
  pub(super) text: String,
}

impl Browser {
  /// A desktop browser that speaks English.
  pub(super) async fn start() -> Self {
    Self::with("en-US", &["--window-size=1280,900"], None).await
  }

  /// A browser that speaks a language, with flags of its own, and maybe the screen of a phone.
  pub(super) async fn with(language: &str, flags: &[&str], phone: Option<(u32, u32)>) -> Self {
    let place = PLACES.acquire().await.expect("it is never closed");
    let profile = tempfile::Builder::new().prefix("pa-chromium").tempdir().expect("a folder for the profile");
    let port = TcpListener::bind("127.0.0.1:0").await.expect("a free port").local_addr().expect("an address").port();
    let driver = Command::new("setpriv")
      .args(["--pdeathsig", "KILL", "--", CHROMEDRIVER, &format!("--port={port}")])
      .env("HOME", profile.path())
      .env("LANGUAGE", language)
      .stdin(Stdio::null())
      .stdout(Stdio::null())
      .stderr(Stdio::null())
      .process_group(0)
      .spawn()
      .expect("chromedriver is installed (package chromium-driver)");
    let mut arguments: Vec<String> = FLAGS.iter().chain(flags).map(|flag| (*flag).to_owned()).collect();
    arguments.push(format!("--lang={language}"));
    arguments.push(format!("--user-data-dir={}", profile.path().display()));
    let mut options = json!({ "binary": CHROMIUM, "args": arguments, "prefs": { "intl.accept_languages": language } });
    if let Some((width, height)) = phone {
      options["mobileEmulation"] = json!({ "deviceMetrics": { "width": width, "height": height, "pixelRatio": 2.0, "touch": true } });
    }
    let capabilities: Map<String, Value> = Map::from_iter([("goog:chromeOptions".to_owned(), options)]);
    let address = format!("http://127.0.0.1:{port}");
    let client =
      eventually("chromedriver answers", async || ClientBuilder::new(HttpConnector::new()).capabilities(capabilities.clone()).connect(&address).await.ok())
        .await;
    Self { client, driver, profile, _place: place }
  }

  /// Opens the sign-in link, presses its button and waits for the conversation.
  pub(super) async fn sign_in(&self, product: &Product) {
    self.client.goto(&product.sign_in).await.expect("the link opens");
    self.find("form button").await.click().await.expect("the button can be pressed");
    self.find("#composer").await;
  }

  /// Loads the page anew.
  pub(super) async fn reload(&self) {
    self.client.refresh().await.expect("the page loads");
    self.find("#composer").await;
  }

  /// Opens the page in another tab and goes there.
  pub(super) async fn open_tab(&self, url: &str) {
    let tab = self.client.new_window(true).await.expect("a tab opens");
    self.client.switch_to_window(tab.handle).await.expect("the tab is there");
    self.client.goto(url).await.expect("the page opens");
    self.find("#composer").await;
  }

  /// Goes to the tab that was opened as the n-th, from 0.
  pub(super) async fn go_to_tab(&self, n: usize) {
    let tabs = self.client.windows().await.expect("there are tabs");
    self.client.switch_to_window(tabs[n].clone()).await.expect("the tab is there");
  }

  /// The first element that a selector finds, once there is one.
  pub(super) async fn find(&self, selector: &str) -> Element {
    eventually(&format!("the page shows {selector}"), async || self.client.find(Locator::Css(selector)).await.ok()).await
  }

  /// Waits until a selector finds nothing.
  pub(super) async fn gone(&self, selector: &str) {
    eventually(&format!("{selector} is gone"), async || {
      let found = self.client.find_all(Locator::Css(selector)).await.ok()?;
      found.is_empty().then_some(())
    })
    .await;
  }

  pub(super) async fn click(&self, selector: &str) {
    eventually(&format!("{selector} can be pressed"), async || self.client.find(Locator::Css(selector)).await.ok()?.click().await.ok()).await;
  }

  /// Writes into the composer.
  pub(super) async fn write(&self, text: &str) {
    self.find("#composer").await.send_keys(text).await.expect("the composer takes text");
  }

  /// Writes and presses Enter.
  pub(super) async fn say(&self, text: &str) {
    self.write(&format!("{text}\u{e007}")).await;
  }

  /// Runs a script in the page.
  pub(super) async fn run(&self, script: &str) -> Value {
    self.client.execute(script, Vec::new()).await.expect("the script runs")
  }

  /// What the conversation shows, from top to bottom, messages on their way too.
  pub(super) async fn shown(&self) -> Vec<Shown> {
    let script = "return [...document.querySelectorAll('[data-testid=message],[data-testid=outgoing],[data-testid=notice]')].map((entry) => ({ \
      id: entry.dataset.message, role: entry.dataset.role ?? entry.dataset.testid, status: entry.dataset.status ?? entry.dataset.code ?? '', \
      text: (entry.querySelector('.bubble') ?? entry).innerText.trim() }))";
    let found = self.run(script).await;
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let entries = found.as_array().expect("a list").iter();
    entries.map(|entry| Shown { id: text(entry, "id"), role: text(entry, "role"), status: text(entry, "status"), text: text(entry, "text") }).collect()
  }

  /// Waits until the conversation is as wished; what it shows then.
  pub(super) async fn shows(&self, what: &str, wished: impl Fn(&[Shown]) -> bool) -> Vec<Shown> {
    let found = tokio::time::timeout(crate::harness::PATIENCE, async {
      loop {
        let shown = self.shown().await;
        if wished(&shown) {
          return shown;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
      }
    })
    .await;
    match found {
      Ok(shown) => shown,
      Err(late) => panic!("the page does not show {what} ({late}): {:#?}", self.shown().await),
    }
  }

  /// Waits until a message with this text is shown with a role and a status.
  pub(super) async fn shows_message(&self, role: &str, status: &str, text: &str) -> Vec<Shown> {
    let matches = |entry: &Shown| entry.role == role && entry.status == status && entry.text == text;
    self.shows(&format!("{role} {status} {text:?}"), |shown| shown.iter().any(matches)).await
  }

  /// The text of an element, once it has these words.
  pub(super) async fn says(&self, selector: &str, words: &str) {
    eventually(&format!("{selector} says {words:?}"), async || {
      let text = self.client.find(Locator::Css(selector)).await.ok()?.text().await.ok()?;
      text.contains(words).then_some(())
    })
    .await;
  }

  /// A style of an element as the browser computes it.
  pub(super) async fn style(&self, selector: &str, property: &str) -> String {
    self.find(selector).await.css_value(property).await.expect("a style")
  }

  /// Left edge, top edge, width and height of an element.
  pub(super) async fn place(&self, selector: &str) -> (f64, f64, f64, f64) {
    self.find(selector).await.rectangle().await.expect("a place")
  }
}

impl Drop for Browser {
  fn drop(&mut self) {
    // The driver and every process of its Chromium: they carry the profile's path, which nobody else has.
    let mark = self.profile.path().display().to_string();
    if self.driver.kill().is_ok() && self.driver.wait().is_err() {
      println!("chromedriver did not end");
    }
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
      let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
      let is_ours = fs::read(process.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&mark));
      if is_ours && kill(Pid::from_raw(pid), Signal::SIGKILL).is_err() {
        println!("a process of Chromium had ended already");
      }
    }
  }
}
