//! How far is the read model, and does it stand still for somebody?
//!
//! The position of every partition, the progress of every agent, and who is parked. These rows are moved by the batch itself, not by a fold.

mod read;
#[cfg(test)]
mod tests;
pub(crate) mod write;

pub use read::{Parked, PartitionRow, Rebuilt, parked, partitions, progress, progress_of_many, rebuilt};
pub use write::Parking;

/// The tables of this folder.
pub(crate) const TABLES: &str = include_str!("tables.sql");
