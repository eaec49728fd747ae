//! The log: the only way in for facts.
//!
//! [`record`] is the stored form, [`port`] the trait that every engine implements, [`fence`] the one function that says which records count, [`reader`] yields whole
//! decisions, [`compose`] and [`appender`] write. Only this crate knows Kafka and, with pa-schemas, Avro. Start with [`record`].

pub mod appender;
pub mod codec;
pub mod compose;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod export;
pub mod fence;
pub mod guards;
pub mod kafka;
pub mod meta;
pub mod moving;
pub mod opener;
pub mod pieces;
pub mod port;
pub mod postgres;
pub mod reader;
pub mod record;
pub mod seal;
#[cfg(any(test, feature = "testing"))]
pub mod sim;
pub mod tail;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use port::{AppendError, EventLog, Identity, LogError};
pub use record::{Partition, Position, Record, Stored, Stream};
