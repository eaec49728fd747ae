//! Given, when, then: for tests of the rules, here and in other crates. As pure as the rules.
//!
//! ```
//! use pa_domain::testing::{TestAgent, inputs};
//! let mut agent = TestAgent::alive();
//! let job = agent.when(inputs::message("hello")).message();
//! agent.when(inputs::ask(job)).then_types(&["ExecutionStarted", "TimerSet"]);
//! ```

mod agent;
mod decided;
pub mod inputs;
pub mod tasks;

pub use agent::{TestAgent, given, input_id};
pub use decided::Decided;
