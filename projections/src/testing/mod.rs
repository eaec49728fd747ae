//! An example log for tests, benches and the simulator: decisions with everything in them that a projection shows.

pub mod story;

pub use story::{Decision, Story, Turn, everything};
