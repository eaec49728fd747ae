//! The other control tables. None of them decides anything: credentials let somebody in, the rest is bookkeeping at the edge.

pub mod kept;
pub mod leftovers;
pub mod log_identity;
pub mod moving;
pub mod nodes;
pub mod presence;
pub mod rate;
#[cfg(test)]
mod tests;
pub mod tokens;
pub mod uploads;
