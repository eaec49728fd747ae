//! How the clients of Kafka are set: every default that matters is written down, because several of them would lose or hide records.
//!
//! TLS and SASL are librdkafka's own, which knows OpenSSL as its only provider: the one exception to the product's single provider. Its SASL mechanisms here are
//! PLAIN, SCRAM and OAUTHBEARER by client credentials; Kerberos would need one more system library. Values are sealed, so nothing is compressed and no codec is linked.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use secrecy::{ExposeSecret, SecretString};

/// Bytes of one message, and of one request of messages, at most: a record of the largest size with its headers and Kafka's own frame. Kafka's default takes it.
pub(super) const MESSAGE_BYTES_MAX: usize = 1_000_000;
/// An append whose fate is not known after this is said to be unknown. Longer than a cluster takes to move a partition, shorter than a person waits.
pub(super) const DELIVERY_MAX: Duration = Duration::from_secs(30);
/// Kibibytes of appended records that wait for their acknowledgement at most; beyond it callers wait, which is the back-pressure of the log.
pub(super) const UNACKNOWLEDGED_KIB_MAX: u32 = 64 * 1024;

/// Where Kafka is, how to get in, and which topics are ours.
#[derive(Clone, Debug)]
pub struct Config {
  /// `HOST:PORT,…`, the same list that any Kafka client takes.
  pub brokers: String,
  /// In front of `inputs`, `events` and `stream`.
  pub prefix: String,
  /// How long the topic of inputs keeps them at least.
  pub inputs_kept: Duration,
  pub security: Security,
}

/// Encryption and sign-in; an empty text leaves a setting to its default.
#[derive(Clone, Debug, Default)]
pub struct Security {
  /// `plaintext`, `ssl`, `sasl_plaintext` or `sasl_ssl`; empty means `plaintext`.
  pub protocol: String,
  /// `PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`.
  pub mechanism: String,
  pub username: String,
  pub password: SecretString,
  /// Certificates that are trusted, as a PEM file; empty: the system's.
  pub ca_file: String,
  /// A certificate of our own and its key, as PEM files.
  pub certificate_file: String,
  pub key_file: String,
  pub key_password: SecretString,
}

const COMMON: &[(&str, &str)] = &[
  ("client.id", "personal-agent"),
  ("socket.timeout.ms", "10000"),
  ("socket.connection.setup.timeout.ms", "5000"),
  ("socket.keepalive.enable", "true"),
  ("socket.nagle.disable", "true"),
  ("connections.max.idle.ms", "0"),
  ("reconnect.backoff.ms", "100"),
  ("reconnect.backoff.max.ms", "1000"),
  ("retry.backoff.ms", "50"),
  ("retry.backoff.max.ms", "500"),
  ("topic.metadata.refresh.interval.ms", "60000"),
  ("metadata.max.age.ms", "180000"),
  ("client.dns.lookup", "use_all_dns_ips"),
  // A topic that is gone must not come back with a broker's defaults, which forget after seven days.
  ("allow.auto.create.topics", "false"),
  ("log.connection.close", "false"),
  ("statistics.interval.ms", "0"),
  ("enable.metrics.push", "false"),
];

const PRODUCER: &[(&str, &str)] = &[
  ("enable.idempotence", "true"),
  ("acks", "-1"),
  ("max.in.flight.requests.per.connection", "5"),
  ("retries", "2147483647"),
  ("request.timeout.ms", "10000"),
  // A person waits for each record. Under load what waits for its turn goes out together.
  ("linger.ms", "0"),
  ("batch.num.messages", "10000"),
  ("queue.buffering.backpressure.threshold", "1"),
  // Above what UNACKNOWLEDGED_KIB_MAX lets in: the queue itself is never full.
  ("queue.buffering.max.messages", "100000"),
  ("queue.buffering.max.kbytes", "262144"),
  ("compression.codec", "none"),
  ("delivery.report.only.error", "false"),
];

const CONSUMER: &[(&str, &str)] = &[
  // Partitions are assigned, never subscribed, and nothing is committed; the library assigns only to a consumer that has a name.
  ("group.id", "personal-agent-assigned"),
  ("enable.auto.commit", "false"),
  ("enable.auto.offset.store", "false"),
  // The default would silently go on at the end of a log that was cut.
  ("auto.offset.reset", "error"),
  // The default would wait for foreign transactions; we have none.
  ("isolation.level", "read_uncommitted"),
  ("check.crcs", "true"),
  ("fetch.min.bytes", "1"),
  // A partition that is assigned meanwhile waits so long for its first fetch.
  ("fetch.wait.max.ms", "100"),
  ("fetch.error.backoff.ms", "50"),
  // The default is a pause of a second whenever the local queue is full.
  ("fetch.queue.backoff.ms", "10"),
  ("fetch.max.bytes", "16777216"),
  ("max.partition.fetch.bytes", "1048576"),
  ("queued.min.messages", "5000"),
  // Of each partition; the default is 64 MiB.
  ("queued.max.messages.kbytes", "4096"),
];

/// What a client is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
  /// Topics, their settings, their ends.
  Control,
  Append,
  /// Follows the ends of partitions.
  Follow,
  /// Reads what lies further back, and wants to know when it has reached the end.
  History,
}

impl Config {
  /// The settings of a client.
  pub(super) fn client(&self, purpose: Purpose) -> ClientConfig {
    let mut client = ClientConfig::new();
    let mut set = |settings: &[(&str, &str)]| {
      for (key, value) in settings {
        client.set(*key, *value);
      }
    };
    set(COMMON);
    match purpose {
      Purpose::Control => {}
      Purpose::Append => set(PRODUCER),
      Purpose::Follow => {
        set(CONSUMER);
        set(&[("enable.partition.eof", "false")]);
      }
      Purpose::History => {
        set(CONSUMER);
        set(&[("enable.partition.eof", "true")]);
      }
    }
    client.set("bootstrap.servers", &self.brokers).set("message.max.bytes", MESSAGE_BYTES_MAX.to_string());
    if purpose == Purpose::Append {
      client.set("message.timeout.ms", DELIVERY_MAX.as_millis().to_string()).set("batch.size", MESSAGE_BYTES_MAX.to_string());
    }
    self.security.apply(&mut client);
    client.set_log_level(RDKafkaLogLevel::Info);
    client
  }
}

impl Security {
  fn apply(&self, client: &mut ClientConfig) {
    let protocol = if self.protocol.is_empty() { "plaintext" } else { &self.protocol };
    let settings = [
      ("security.protocol", protocol),
      ("sasl.mechanism", &self.mechanism),
      ("sasl.username", &self.username),
      ("sasl.password", self.password.expose_secret()),
      ("ssl.ca.location", &self.ca_file),
      ("ssl.certificate.location", &self.certificate_file),
      ("ssl.key.location", &self.key_file),
      ("ssl.key.password", self.key_password.expose_secret()),
    ];
    for (key, value) in settings.into_iter().filter(|(_, value)| !value.is_empty()) {
      client.set(key, value);
    }
  }
}
