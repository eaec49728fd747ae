//! The model port: one streamed answer of a language model, over OpenAI-compatible chat completions, and the rehearsal model that
//! stands in when no model is configured.
//!
//! Invariants
//! - Reasoning never leaves this crate: neither as a piece nor in an answer.
//! - An answer is whole or an error. A stream that was cut gives neither text nor a tool call to act on.
//! - The key is in no error, no log line and no `Debug` output.
//! - What is unknown (usage, price) stays unknown and is never 0.
//!
//! Read next: `request.rs` and `answer.rs` for what goes in and out, `client/mod.rs` for how.

mod answer;
mod client;
mod config;
mod error;
mod estimate;
pub mod rehearsal;
mod request;
#[cfg(test)]
mod tests;
mod thinking;

pub use answer::{Answer, Delta, Finish, Pieces, ToolCall, Usage};
pub use client::ChatCompletions;
pub use config::{Config, OutputLimitField, Prices, RetryLimits, Timeouts};
pub use error::{Disposition, Error, Phase};
pub use estimate::{PICTURE_TOKENS, estimate_tokens};
pub use pa_domain::lenient_json::lenient_json;
pub use request::{Effort, Message, Part, Request, Tool};

/// A language model that answers one request, piece by piece.
///
/// A model request is repeatable: it changes nothing outside. Dropping the returned future gives the request up and closes
/// its connection.
#[async_trait::async_trait]
pub trait Model: Send + Sync {
  /// Returns what is configured about the model: window, efforts, prices, whether it sees pictures.
  fn config(&self) -> &Config;

  /// Answers the request. Visible text goes to `pieces` as it arrives; the whole answer comes back at the end.
  async fn stream(&self, request: &Request, pieces: &mut dyn Pieces) -> Result<Answer, Error>;
}
