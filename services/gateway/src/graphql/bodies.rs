//! The bodies of a page of events: read from the log by position and opened, once a page, and only if somebody asks for them.

use std::collections::HashMap;
use std::sync::Arc;

use pa_domain::Event;
use pa_domain::event::BodyEncoder;
use pa_eventlog::opener::{self, Opened, Recorded};
use pa_eventlog::{LogError, Partition, Position, Stream};
use pa_projections::audit::Row;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::edge::Edge;

/// Records in one read: an agent's events of a page mostly stand close together.
const READ_RECORDS: usize = 64;

/// Where the events of a page stand, and their bodies once they were read.
pub(crate) struct Bodies {
  /// (partition, position, ordinal), by position.
  places: Vec<(Partition, Position, i64)>,
  read: OnceCell<HashMap<i64, Value>>,
}

/// A body that can't be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
  #[error(transparent)]
  Log(#[from] LogError),
  #[error(transparent)]
  Open(#[from] opener::Error),
  #[error("event {ordinal} is not where the read model says")]
  Missing { ordinal: i64 },
  #[error("event {ordinal} can't be written as JSON")]
  Json {
    ordinal: i64,
    #[source]
    source: serde_json::Error,
  },
}

impl super::env::Failure for Error {
  fn passes(&self) -> bool {
    match self {
      Self::Log(error) => error.passes(),
      Self::Open(error) => matches!(error, opener::Error::Keys(_)),
      Self::Missing { .. } | Self::Json { .. } => false,
    }
  }
}

impl Bodies {
  pub(crate) fn of_rows(rows: &[Row]) -> Self {
    let mut places: Vec<_> = rows.iter().map(|row| (row.partition, row.position, row.ordinal)).collect();
    places.sort_unstable();
    Self { places, read: OnceCell::new() }
  }

  /// The body of the event with this ordinal.
  pub(crate) async fn of(&self, edge: &Edge, ordinal: i64) -> Result<Value, Error> {
    let bodies = self.read.get_or_try_init(|| self.read(edge)).await?;
    bodies.get(&ordinal).cloned().ok_or(Error::Missing { ordinal })
  }

  /// The event of one line of the audit.
  pub(crate) async fn one(edge: &Edge, row: &Row) -> Result<Option<Arc<Recorded>>, Error> {
    let missing = Error::Missing { ordinal: row.ordinal };
    let batch = edge.log.read(Stream::Events, row.partition, row.position, 1).await?;
    let stored = batch.first().filter(|stored| stored.position == row.position).ok_or(missing)?;
    Ok(match edge.opener.event(stored).await? {
      Opened::Event(recorded) => Some(recorded),
      Opened::Erased | Opened::Unreadable(_) | Opened::Input(_) => None,
    })
  }

  async fn read(&self, edge: &Edge) -> Result<HashMap<i64, Value>, Error> {
    let mut bodies = HashMap::with_capacity(self.places.len());
    let mut batch: Arc<[_]> = Arc::new([]);
    for &(partition, position, ordinal) in &self.places {
      let found = |batch: &[Arc<pa_eventlog::Stored>]| batch.iter().find(|stored| stored.position == position).cloned();
      let stored = if let Some(stored) = found(&batch) {
        stored
      } else {
        batch = edge.log.read(Stream::Events, partition, position, READ_RECORDS).await?;
        found(&batch).ok_or(Error::Missing { ordinal })?
      };
      let body = match edge.opener.event(&stored).await? {
        Opened::Event(recorded) => as_json(&recorded.event).map_err(|source| Error::Json { ordinal, source })?,
        Opened::Erased => Value::Null,
        Opened::Unreadable(reason) => json!({ "unreadable": &*reason }),
        Opened::Input(_) => return Err(Error::Missing { ordinal }),
      };
      bodies.insert(ordinal, body);
    }
    Ok(bodies)
  }
}

struct AsJson;

impl BodyEncoder for AsJson {
  type Ok = Value;
  type Error = serde_json::Error;

  fn encode<T: Serialize>(self, _: &'static str, body: &T) -> Result<Value, Self::Error> {
    serde_json::to_value(body)
  }
}

fn as_json(event: &Event) -> Result<Value, serde_json::Error> {
  event.encode(AsJson)
}
