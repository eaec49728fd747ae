//! What the library makes of our settings: the values that are in force, not those that we wrote.

use std::time::Duration;

use secrecy::SecretString;

use crate::kafka::config::{Config, Purpose, Security};

fn config() -> Config {
  Config { brokers: "127.0.0.1:1".to_owned(), prefix: "pa.".to_owned(), inputs_kept: Duration::from_secs(1), security: Security::default() }
}

/// The settings of a client with the values that the library holds.
fn in_force(config: &Config, purpose: Purpose) -> impl Fn(&str) -> String + use<> {
  let native = config.client(purpose).create_native_config().expect("the library knows every setting");
  move |name| native.get(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_setting_that_we_write_is_in_force() {
  for purpose in [Purpose::Control, Purpose::Append, Purpose::Follow, Purpose::History] {
    let config = config();
    let (client, value) = (config.client(purpose), in_force(&config, purpose));
    let written = client.config_map();
    assert!(written.len() > 15, "{purpose:?} writes its settings down");
    for (name, wanted) in written {
      assert_eq!(value(name), wanted, "{purpose:?} {name}");
    }
  }
}

#[test]
fn an_append_is_idempotent_and_waits_for_all_in_sync_replicas() {
  let value = in_force(&config(), Purpose::Append);
  assert_eq!((value("enable.idempotence").as_str(), value("acks").as_str()), ("true", "-1"));
  assert_eq!((value("max.in.flight").as_str(), value("retries").as_str()), ("5", "2147483647"));
  assert_eq!((value("message.timeout.ms").as_str(), value("request.timeout.ms").as_str()), ("30000", "10000"));
  assert_eq!((value("linger.ms").as_str(), value("compression.codec").as_str()), ("0", "none"));
  assert_eq!((value("message.max.bytes").as_str(), value("batch.size").as_str()), ("1000000", "1000000"));
  // Left to their defaults, since to write them down is warned of: the order of a queue, and a guarantee that does not cover time-outs.
  assert_eq!((value("queuing.strategy").as_str(), value("enable.gapless.guarantee").as_str()), ("fifo", "false"));
  assert!(config().client(Purpose::Append).get("transactional.id").is_none(), "no transactions");
}

#[test]
fn a_reader_never_skips_silently_and_commits_nothing() {
  for (purpose, says_the_end) in [(Purpose::Follow, "false"), (Purpose::History, "true")] {
    let value = in_force(&config(), purpose);
    assert_eq!(value("auto.offset.reset"), "error");
    assert_eq!(value("isolation.level"), "read_uncommitted");
    assert_eq!((value("enable.auto.commit").as_str(), value("enable.auto.offset.store").as_str()), ("false", "false"));
    assert_eq!(value("allow.auto.create.topics"), "false");
    assert_eq!(value("enable.partition.eof"), says_the_end);
    assert_eq!((value("queued.max.messages.kbytes").as_str(), value("fetch.queue.backoff.ms").as_str()), ("4096", "10"));
    assert_eq!(value("fetch.wait.max.ms"), "100");
    assert_eq!(value("check.crcs"), "true");
  }
}

#[test]
fn encryption_and_sign_in_are_settings_and_the_password_is_not_printed() {
  let security = Security {
    protocol: "sasl_ssl".to_owned(),
    mechanism: "SCRAM-SHA-512".to_owned(),
    username: "pa".to_owned(),
    password: SecretString::from("planted-password"),
    ca_file: "/etc/ssl/certs/ca-certificates.crt".to_owned(),
    ..Security::default()
  };
  let config = Config { security, ..config() };
  let value = in_force(&config, Purpose::Append);
  assert_eq!(value("security.protocol"), "sasl_ssl");
  assert_eq!(value("sasl.mechanism"), "SCRAM-SHA-512");
  assert_eq!((value("sasl.username").as_str(), value("sasl.password").as_str()), ("pa", "planted-password"));
  assert_eq!(value("ssl.ca.location"), "/etc/ssl/certs/ca-certificates.crt");
  assert!(!format!("{config:?}").contains("planted"));
  assert!(!format!("{:?}", config.client(Purpose::Append)).contains("planted"));
  assert_eq!(in_force(&self::config(), Purpose::Append)("security.protocol"), "plaintext");
}

/// The library was built with what the settings promise.
#[test]
fn the_library_can_encrypt_and_sign_in() {
  let value = in_force(&config(), Purpose::Control);
  let built_with = value("builtin.features");
  for feature in ["ssl", "sasl_plain", "sasl_scram"] {
    assert!(built_with.split(',').any(|built| built == feature), "{feature} is not among {built_with}");
  }
}
