//! `updates`: every change of an agent after a position, then each one as it happens.
//!
//! Invariants
//! - Attached first, read afterwards: nothing falls between the backlog and the live part.
//! - A change comes once, in the order of its ordinal; its cursor covers everything before it, and of changes with one ordinal only the last has that ordinal as
//!   its cursor.
//! - Nothing is queued for a slow reader: it reads from the read model when it is ready. More than 500 rows behind, it is told to read afresh; so is whoever is
//!   ahead of the history.
//! - Subscriptions of one agent share what one of them reads.
//!
//! Read next: `feed.rs`, then `live.rs`.

mod feed;
mod live;

pub(crate) use feed::Feeds;
pub(crate) use live::{Count, Live};
