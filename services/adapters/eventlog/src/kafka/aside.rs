//! Topics that are no database's log yet: filled by whoever moves a log here. And topics whose database is gone, looked at by whoever brings it back.

use std::sync::Arc;

use super::config::Purpose;
use super::produce::Producer;
use super::topics::Topics;
use super::{Config, KIND, KafkaLog, away, blocking, context};
use crate::port::{Identity, LogError};
use crate::record::Partition;

impl KafkaLog {
  /// Opens the topics under a prefix without asking a database whose they are, making them with `make` partitions if there are none; `None`: there are none, and none are to
  /// be made.
  ///
  /// # Errors
  /// [`LogError::Away`] when the cluster does not answer; [`LogError::Unusable`] when the topics are not as a log's must be.
  pub async fn aside(config: &Config, make: Option<Partition>, sealed: bool) -> Result<Option<Arc<Self>>, LogError> {
    let producer = Producer::start(config.client(Purpose::Append)).map_err(away)?;
    let admin = config.client(Purpose::Control).create_with_context(context::Quiet).map_err(away)?;
    let topics = Arc::new(Topics::new(config, admin));
    let looked = Arc::clone(&topics);
    let found = blocking(move || match (looked.look()?, make) {
      (None, Some(partitions)) => {
        looked.make(partitions)?;
        looked.look()?.map(Some).ok_or_else(|| LogError::Away("the new topics can't be seen yet".into()))
      }
      (found, _) => Ok(found),
    })
    .await?;
    let Some(found) = found else { return Ok(None) };
    let identity = Identity { kind: KIND.to_owned(), id: found.id, partitions: found.partitions, sealed };
    Self::start(config, producer, topics, identity, found.warnings).map(|log| Some(Arc::new(log)))
  }
}
