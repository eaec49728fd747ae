//! What comes back from a model: pieces while it writes, and the whole answer.

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
  /// The visible text, without reasoning.
  pub text: String,
  /// The calls, in the model's order, each whole. Empty unless `finish` is [`Finish::ToolCalls`].
  pub calls: Vec<ToolCall>,
  pub finish: Finish,
  /// The model thought and then said nothing: the caller asks once more, without tools, for the words.
  pub only_reasoning: bool,
  /// Calls that had begun when the answer was cut by its length or a filter; nobody can tell whether they were whole.
  pub calls_dropped: u32,
  pub usage: Usage,
  /// The model's name as the server reports it.
  pub model: Option<String>,
  /// How many requests this answer took.
  pub attempts: u32,
}

impl Answer {
  /// Says whether there is nothing to show and nothing to do.
  pub fn is_blank(&self) -> bool {
    self.calls.is_empty() && self.text.trim().is_empty()
  }
}

/// A tool call as the model made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
  pub id: String,
  pub name: String,
  /// A JSON object as text; `{}` for a call without arguments.
  pub arguments: String,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
  Stop,
  /// The answer is incomplete: the model's or our limit was reached.
  Length,
  ToolCalls,
  ContentFilter,
}

/// Tokens that a call took, as far as the server says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
  pub input: Option<i64>,
  pub output: Option<i64>,
  /// The part of `input` that came from the provider's cache.
  pub cached: Option<i64>,
  /// The part of `output` that was reasoning.
  pub reasoning: Option<i64>,
}

/// What happened to the text that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
  /// More visible text.
  Text(String),
  /// All text so far is void; the answer starts anew.
  Restarted,
}

/// Takes the pieces of an answer as they arrive. It must not block: the answer waits for it.
pub trait Pieces: Send {
  fn take(&mut self, delta: Delta);
}

impl<F: FnMut(Delta) + Send> Pieces for F {
  fn take(&mut self, delta: Delta) {
    self(delta);
  }
}

#[cfg(feature = "testing")]
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
