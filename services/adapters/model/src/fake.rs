//! A model without a network, for tests that own time and order: a function gives each answer.

use async_trait::async_trait;

use crate::{Answer, Config, Delta, Error, Finish, Model, Pieces, Request, Usage};

type Respond = dyn Fn(&Request) -> Result<Answer, Error> + Send + Sync;

/// Answers each request by a function, at once, its text in one piece a line.
pub struct FakeModel {
  config: Config,
  respond: Box<Respond>,
}

impl FakeModel {
  /// Makes a model that answers as `respond` says.
  pub fn new(respond: impl Fn(&Request) -> Result<Answer, Error> + Send + Sync + 'static) -> Self {
    Self { config: Config::new("http://fake.invalid/v1", "fake"), respond: Box::new(respond) }
  }

  /// Makes a model that says the same to everybody.
  pub fn saying(text: impl Into<String>) -> Self {
    let text = text.into();
    Self::new(move |_| Ok(Answer::of_text(text.clone())))
  }

  /// Gives the model another configuration.
  #[must_use]
  pub fn with_config(self, config: Config) -> Self {
    Self { config, ..self }
  }
}

impl Answer {
  /// Makes a whole answer of plain text whose usage is not known.
  pub fn of_text(text: impl Into<String>) -> Self {
    Self {
      text: text.into(),
      calls: Vec::new(),
      finish: Finish::Stop,
      only_reasoning: false,
      calls_dropped: 0,
      usage: Usage::default(),
      model: None,
      attempts: 1,
    }
  }
}

#[async_trait]
impl Model for FakeModel {
  fn config(&self) -> &Config {
    &self.config
  }

  async fn stream(&self, request: &Request, pieces: &mut dyn Pieces) -> Result<Answer, Error> {
    let answer = (self.respond)(request)?;
    for line in answer.text.split_inclusive('\n') {
      pieces.take(Delta::Text(line.to_owned()));
    }
    Ok(answer)
  }
}
