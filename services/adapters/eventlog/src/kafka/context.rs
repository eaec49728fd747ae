//! What librdkafka says, as our own log lines.

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;

/// The context of clients that only ask and read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quiet;

/// One line of the library. Lost connections are part of its life and it mends them itself, so they are no errors of ours.
pub(super) fn say(level: RDKafkaLogLevel, what: &str, message: &str) {
  match level {
    RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => tracing::error!(what, message, "kafka client"),
    RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning => tracing::info!(what, message, "kafka client"),
    RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info | RDKafkaLogLevel::Debug => tracing::debug!(what, message, "kafka client"),
  }
}

impl ClientContext for Quiet {
  fn log(&self, level: RDKafkaLogLevel, fac: &str, log_message: &str) {
    say(level, fac, log_message);
  }

  fn error(&self, error: KafkaError, reason: &str) {
    tracing::debug!(error = &error as &dyn std::error::Error, reason, "kafka client");
  }
}

impl ConsumerContext for Quiet {}
