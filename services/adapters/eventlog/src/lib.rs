//! The log: the only way in for facts.
//!
//! [`record`] is the stored form, [`port`] the trait that every engine implements, [`fence`] the one function that says which records count, [`reader`] yields whole
//! decisions. Only this crate knows Kafka and, with pa-schemas, Avro. Start with [`record`].

pub mod appender;
pub mod codec;
pub mod fence;
pub mod pieces;
pub mod port;
pub mod reader;
pub mod record;
pub mod seal;
pub mod sim;
pub mod tail;

pub use port::{AppendError, EventLog, Identity, LogError};
pub use record::{Partition, Position, Record, Stored, Stream};
