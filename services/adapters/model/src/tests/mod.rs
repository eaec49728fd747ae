//! The model port against a scripted server, over real HTTP on loopback.

mod answers;
mod blackbox;
mod refusals;
mod rehearsal;
mod requests;
mod transport;

use secrecy::SecretString;
use tokio::net::TcpListener;

use crate::rehearsal::{Options, Reply, Script, Server};
use crate::{Answer, ChatCompletions, Config, Delta, Error, Message, Model as _, Request, RetryLimits};

const KEY: &str = "sk-very-secret-42";

/// A scripted server and a client of it.
struct Rig {
  script: Script,
  model: ChatCompletions,
  _server: Server,
}

/// What a request led to.
struct Outcome {
  result: Result<Answer, Error>,
  deltas: Vec<Delta>,
}

impl Rig {
  async fn new() -> Self {
    Self::configured(|_| ()).await
  }

  async fn configured(configure: impl FnOnce(&mut Config)) -> Self {
    let script = Script::new();
    let options = Options { pause: std::time::Duration::ZERO, ..Options::default() };
    let server = Server::with_script(listener().await, options, script.clone()).expect("serves");
    let mut config = Config { api_key: Some(SecretString::from(KEY)), ..server.config() };
    config.retry = RetryLimits { first_wait_ms: 1, wait_max_ms: 2, ..RetryLimits::default() };
    configure(&mut config);
    Self { script, model: ChatCompletions::new(config).expect("a client"), _server: server }
  }

  async fn ask(&self, request: Request) -> Outcome {
    ask(&self.model, request).await
  }

  /// Queues the reply and asks for it.
  async fn answer_of(&self, reply: Reply) -> Outcome {
    self.script.queue(reply);
    self.ask(said("hi")).await
  }
}

impl Outcome {
  fn answer(self) -> Answer {
    self.result.expect("an answer")
  }

  fn error(self) -> Error {
    self.result.expect_err("an error")
  }

  /// The text as a reader of the pieces sees it at the end.
  fn seen(&self) -> String {
    let mut text = String::new();
    for delta in &self.deltas {
      match delta {
        Delta::Text(piece) => text.push_str(piece),
        Delta::Restarted => text.clear(),
      }
    }
    text
  }
}

async fn ask(model: &ChatCompletions, request: Request) -> Outcome {
  let mut deltas = Vec::new();
  let result = model.stream(&request, &mut |delta| deltas.push(delta)).await;
  Outcome { result, deltas }
}

fn said(words: &str) -> Request {
  Request { messages: vec![Message::user(words)], ..Request::default() }
}

async fn listener() -> TcpListener {
  TcpListener::bind("127.0.0.1:0").await.expect("a port")
}
