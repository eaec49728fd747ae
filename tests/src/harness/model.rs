//! The scripted model of a test: the production protocol from a server in the test's own process.

use std::time::Duration;

use pa_model::rehearsal::{Hold, Options, Reply, Script, Seen, Server};
use serde_json::Value;
use tokio::net::TcpListener;

/// A scripted model and where it listens.
pub(crate) struct Model {
  pub(crate) script: Script,
  server: Server,
}

impl Model {
  /// A model that echoes: it answers every message at once with `re: ` and the message's own words.
  pub(crate) async fn echo() -> Self {
    let model = Self::silent().await;
    model.script.on(|seen| Some(Reply::text(&format!("re: {}", text_of_last(seen)))));
    model
  }

  /// A model without any rule: the plain rehearsal, without pauses.
  pub(crate) async fn silent() -> Self {
    Self::silent_at("127.0.0.1").await
  }

  /// The same, listening on this address.
  pub(crate) async fn silent_at(host: &str) -> Self {
    let listener = TcpListener::bind((host, 0)).await.expect("a free port");
    let script = Script::new();
    let options = Options { pause: Duration::ZERO, ..Options::default() };
    let server = Server::with_script(listener, options, script.clone()).expect("the scripted model starts");
    Self { script, server }
  }

  /// A model that answers with this reply what has these words, and echoes everything else.
  pub(crate) async fn with(words: &str, reply: Reply) -> Self {
    let model = Self::silent().await;
    model.script.on_words(words, reply);
    model.script.on(|seen| Some(Reply::text(&format!("re: {}", text_of_last(seen)))));
    model
  }

  /// A model that says `first` to what has these words, then waits for the hold, then says `rest`; it echoes everything else.
  pub(crate) async fn holding(words: &str, first: &str, rest: &str) -> (Self, Hold) {
    let hold = Hold::new();
    let model = Self::with(words, Reply::new().say(first).hold(&hold).say(rest)).await;
    (model, hold)
  }

  pub(crate) fn base_url(&self) -> String {
    self.server.base_url()
  }

  /// Requests whose last message of the user is exactly about these words.
  pub(crate) fn asked_about(&self, words: &str) -> Vec<Seen> {
    self.script.requests().into_iter().filter(|seen| text_of_last(seen) == words).collect()
  }
}

/// The words of the message that a request is to answer.
pub(crate) fn text_of_last(seen: &Seen) -> String {
  let last = seen.messages().iter().rfind(|message| message["role"] == "user");
  last.map(|message| words(&message["content"])).unwrap_or_default()
}

pub(crate) fn words(content: &Value) -> String {
  match content {
    Value::String(text) => text.clone(),
    Value::Array(parts) => parts.iter().find_map(|part| part["text"].as_str()).unwrap_or_default().to_owned(),
    _ => String::new(),
  }
}
