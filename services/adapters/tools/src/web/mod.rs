//! The web: pages (`fetch`) and search engines (`search`).
//!
//! What a page or an engine says is somebody else's: it comes back as parts of that origin, and never instructs (D30). The address that is connected to is the one that
//! was looked at (`address`): names are resolved by our own resolver, which gives out nothing else, and every redirect is a request of its own.

mod address;
mod body;
mod charset;
mod fetch;
mod page;
mod resolve;
mod search;
#[cfg(test)]
mod tests;

pub use address::{Allow, NotAnEntry};
pub use fetch::FetchTool;
pub use resolve::{Names, SystemNames};
pub use search::{Engine, NotOffered, SearchConfig, SearchTool, UnknownEngine};

/// How we introduce ourselves.
const USER_AGENT: &str = concat!("personal-agent/", env!("CARGO_PKG_VERSION"));
