//! The agent's tools: what a model may ask for, each with the class that says what may be done when its outcome is not known.
//!
//! A tool acts and reports; whether it may act now is decided in the log, and the worker that calls it holds the permit. Invariants:
//! - Dropping a call's future ends what the call does, except for what an external one has already sent.
//! - Every part of a result says where it comes from; text of tools and third parties never instructs (D30).
//! - A tool has a time limit of its own, and arguments that it doesn't understand are an error, never a guess.
//!
//! Next: `tool.rs`, then `history.rs` as an example. Every tool passes the suite in `contract.rs`.

#[cfg(any(test, feature = "testing"))]
pub mod contract;
mod files;
mod history;
mod registry;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tool;
mod web;

pub use files::{EditFileTool, ListFilesTool, ReadFileTool, WriteFileTool, media_type};
pub use history::{HistoryTool, OldMessage, OldPage, OlderMessages};
pub use pa_domain::canonical::{NotCanonical, canonical};
pub use registry::{Ambiguous, Tools};
pub use tool::{Context, Error, Place, Tool, arguments};
pub use web::{Allow, Engine, FetchTool, Names, NotAnEntry, NotOffered, SearchConfig, SearchTool, SystemNames, UnknownEngine};
