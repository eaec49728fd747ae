//! A model that says what a test wants, when the test wants it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use pa_model::{Answer, Config, Delta, Error, Finish, Message, Model, Part, Pieces, Request, ToolCall, Usage};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// What the model does with one request.
pub(super) enum Line {
  Say(&'static str),
  Answer(Answer),
  Fail(Error),
  /// Says this much, and then nothing for ever.
  Hang(&'static str),
  /// Says these texts, and waits to be released between them.
  Hold(&'static [&'static str], Arc<Notify>),
  /// Says the first text, begins anew, says the second.
  Restart(&'static str, &'static str),
}

pub(super) struct ScriptedModel {
  config: Config,
  lines: Mutex<VecDeque<Line>>,
  requests: Mutex<Vec<Request>>,
  open: AtomicUsize,
  moved: Notify,
}

/// Counts a request as open until it is dropped or done.
struct Open<'m>(&'m ScriptedModel);

impl Drop for Open<'_> {
  fn drop(&mut self) {
    self.0.open.fetch_sub(1, Ordering::SeqCst);
    self.0.moved.notify_waiters();
  }
}

impl ScriptedModel {
  pub(super) fn new(lines: impl IntoIterator<Item = Line>) -> Arc<Self> {
    Self::with_config(Config::new("http://fake.invalid/v1", "scripted"), lines)
  }

  pub(super) fn with_config(config: Config, lines: impl IntoIterator<Item = Line>) -> Arc<Self> {
    Arc::new(Self { config, lines: Mutex::new(lines.into_iter().collect()), requests: Mutex::default(), open: AtomicUsize::new(0), moved: Notify::new() })
  }

  pub(super) fn requests(&self) -> Vec<Request> {
    self.requests.lock().clone()
  }

  /// Waits until so many requests have come.
  pub(super) async fn reached(&self, count: usize) {
    self.until(|| self.requests.lock().len() >= count).await;
  }

  /// Waits until no request is open.
  pub(super) async fn idle(&self) {
    self.until(|| self.open.load(Ordering::SeqCst) == 0).await;
  }

  async fn until(&self, is_so: impl Fn() -> bool) {
    loop {
      let moved = self.moved.notified();
      if is_so() {
        return;
      }
      moved.await;
    }
  }
}

#[async_trait]
impl Model for ScriptedModel {
  fn config(&self) -> &Config {
    &self.config
  }

  async fn stream(&self, request: &Request, pieces: &mut dyn Pieces) -> Result<Answer, Error> {
    self.open.fetch_add(1, Ordering::SeqCst);
    let _open = Open(self);
    self.requests.lock().push(request.clone());
    self.moved.notify_waiters();
    let line = self.lines.lock().pop_front().expect("the test has a line for each request");
    let mut say = |text: &str| text.split_inclusive(' ').for_each(|word| pieces.take(Delta::Text(word.to_owned())));
    match line {
      Line::Say(text) => {
        say(text);
        Ok(Answer::of_text(text))
      }
      Line::Answer(answer) => {
        say(&answer.text);
        Ok(answer)
      }
      Line::Fail(error) => Err(error),
      Line::Hang(text) => {
        say(text);
        std::future::pending().await
      }
      Line::Hold(texts, released) => {
        for (number, text) in texts.iter().enumerate() {
          if number > 0 {
            released.notified().await;
          }
          text.split_inclusive(' ').for_each(|word| pieces.take(Delta::Text(word.to_owned())));
        }
        Ok(Answer::of_text(texts.concat()))
      }
      Line::Restart(first, second) => {
        say(first);
        pieces.take(Delta::Restarted);
        second.split_inclusive(' ').for_each(|word| pieces.take(Delta::Text(word.to_owned())));
        Ok(Answer::of_text(second))
      }
    }
  }
}

/// An answer that asks for these calls: name and arguments.
pub(super) fn calling(calls: &[(&str, &str)]) -> Line {
  let call =
    |(number, (name, arguments)): (usize, &(&str, &str))| ToolCall { id: format!("c{number}"), name: (*name).to_owned(), arguments: (*arguments).to_owned() };
  Line::Answer(Answer { calls: calls.iter().enumerate().map(call).collect(), finish: Finish::ToolCalls, ..Answer::of_text("I look.") })
}

/// An answer that ended like this.
pub(super) fn ended(text: &str, finish: Finish) -> Line {
  Line::Answer(Answer { finish, usage: Usage { input: Some(7), output: Some(3), cached: None, reasoning: None }, ..Answer::of_text(text) })
}

/// Everything that a request says, as one text.
pub(super) fn text_of(request: &Request) -> String {
  let of = |message: &Message| match message {
    Message::System(text) | Message::Assistant { text, .. } | Message::Tool { text, .. } => text.clone(),
    Message::User(parts) => parts.iter().map(|part| if let Part::Text(text) = part { text.as_str() } else { "(picture)" }).collect::<Vec<_>>().join("\n"),
  };
  request.messages.iter().map(of).collect::<Vec<_>>().join("\n")
}

/// The results of tools in a request, in order.
pub(super) fn results_of(request: &Request) -> Vec<String> {
  let of = |message: &Message| if let Message::Tool { text, .. } = message { Some(text.clone()) } else { None };
  request.messages.iter().filter_map(of).collect()
}
