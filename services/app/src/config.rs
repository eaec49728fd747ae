//! The configuration: `config.default.toml`, then `PA__SECTION__KEY`, then the short `PA_*` names. Validated whole before the first connection.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use figment::Figment;
use figment::error::{Actual, Kind};
use figment::providers::{Env, Format, Serialized, Toml};
use pa_eventlog::kafka;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::tools::Tools;
use crate::variables;

const DEFAULTS: &str = include_str!("../config.default.toml");

/// All sections.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
  pub server: Server,
  pub data: Data,
  pub log: Log,
  pub kafka: Kafka,
  pub model: Model,
  pub rehearsal: Rehearsal,
  pub agent: Agent,
  pub tools: Tools,
  pub observe: Observe,
  #[cfg(feature = "testing")]
  #[serde(default)]
  pub testing: Testing,
}

/// What the program under test has beside the product.
#[cfg(feature = "testing")]
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Testing {
  /// Where effects happen; without it the tools for them are not offered.
  pub effects_url: String,
}

/// How the page is reached.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
  pub listen: String,
  pub public_url: String,
  pub allow_insecure: bool,
}

/// Where things are kept.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
  pub dir: PathBuf,
  pub shared_dir: PathBuf,
  pub database_url: SecretString,
  pub master_key: SecretString,
  pub master_key_file: String,
  pub owner_token: SecretString,
}

/// The log.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
  pub partitions: u16,
  pub sealed: bool,
  pub inputs_kept_days: u32,
}

/// Kafka as the log; without brokers the log is embedded.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kafka {
  pub brokers: String,
  pub prefix: String,
  pub security_protocol: String,
  pub sasl_mechanism: String,
  pub username: String,
  pub password: SecretString,
  pub password_file: String,
  pub ca_file: String,
  pub certificate_file: String,
  pub key_file: String,
  pub key_password: SecretString,
}

/// The model; an empty address means the rehearsal model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
  pub base_url: String,
  pub api_key: SecretString,
  pub api_key_file: String,
  pub name: String,
  pub context_tokens: i64,
  pub output_tokens_max: i64,
  pub sees_pictures: bool,
  pub efforts: Vec<pa_domain::settings::Effort>,
  pub price_input_micros: Option<i64>,
  pub price_cached_micros: Option<i64>,
  pub price_output_micros: Option<i64>,
  pub currency: String,
  pub history_percent: i64,
  pub first_byte_timeout_secs: u64,
  pub idle_timeout_secs: u64,
  pub total_timeout_secs: u64,
}

/// The built-in rehearsal model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rehearsal {
  pub pause_millis: u64,
}

/// Reply turns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
  pub replies_max: usize,
  pub tasks_max: usize,
}

/// Log lines.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observe {
  pub log: String,
  pub json: bool,
}

/// The short names of the outside contract, with the key that each sets.
const SHORT_NAMES: [(&str, &str); 15] = [
  ("PA_LISTEN", "server.listen"),
  ("PA_PUBLIC_URL", "server.public_url"),
  ("PA_ALLOW_INSECURE", "server.allow_insecure"),
  ("PA_DATA_DIR", "data.dir"),
  ("PA_DATABASE_URL", "data.database_url"),
  ("PA_KAFKA_BROKERS", "kafka.brokers"),
  ("PA_KAFKA_PREFIX", "kafka.prefix"),
  ("PA_MASTER_KEY", "data.master_key"),
  ("PA_MASTER_KEY_FILE", "data.master_key_file"),
  ("PA_OWNER_TOKEN", "data.owner_token"),
  ("PA_MODEL_BASE_URL", "model.base_url"),
  ("PA_MODEL_API_KEY", "model.api_key"),
  ("PA_MODEL_API_KEY_FILE", "model.api_key_file"),
  ("PA_MODEL_NAME", "model.name"),
  ("PA_LOG", "observe.log"),
];

impl Config {
  /// Reads and validates the configuration of this process.
  ///
  /// # Errors
  /// Names the key and what is wrong with it, never a secret's value.
  #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
  pub fn load() -> Result<Self> {
    let short = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    // A name that is not text is none of ours; an empty value counts as unset.
    let set = std::env::vars_os().filter(|(_, value)| !value.is_empty()).filter_map(|(name, _)| name.into_string().ok());
    variables::check(set, &SHORT_NAMES.map(|(name, _)| name))?;
    Self::from(Figment::new().merge(Toml::string(DEFAULTS)).merge(Env::prefixed("PA__").split("__")), short)
  }

  fn from(mut figment: Figment, short: impl Fn(&str) -> Option<String>) -> Result<Self> {
    for (name, key) in SHORT_NAMES {
      let Some(value) = short(name) else { continue };
      figment = match name {
        "PA_ALLOW_INSECURE" => figment.merge(Serialized::default(key, variables::truth(name, &value)?)),
        _ => figment.merge(Serialized::default(key, value)),
      };
    }
    let mut config: Self = figment.extract().map_err(|errors| anyhow!("the configuration can't be used: {}", complaints(errors)))?;
    config.model.api_key = from_file(config.model.api_key, &config.model.api_key_file).context("read the file of the model's key")?;
    config.data.master_key = from_file(config.data.master_key, &config.data.master_key_file).context("read the master key's file")?;
    config.kafka.password = from_file(config.kafka.password, &config.kafka.password_file).context("read the file of Kafka's password")?;
    let web = &mut config.tools.web;
    web.search_key = from_file(web.search_key.clone(), &web.search_key_file).context("read the file of the search engine's key")?;
    config.validate()?;
    Ok(config)
  }

  fn validate(&self) -> Result<()> {
    ensure!((1..=1024).contains(&self.log.partitions), "log.partitions must lie between 1 and 1024");
    self.kafka.validate()?;
    let model = &self.model;
    ensure!(model.base_url.is_empty() || !model.name.is_empty(), "PA_MODEL_BASE_URL is set without PA_MODEL_NAME: say which model to ask");
    ensure!(
      model.name.is_empty() || !model.base_url.is_empty(),
      "PA_MODEL_NAME is set without PA_MODEL_BASE_URL: say where the model is, or unset the name for the rehearsal model"
    );
    ensure!(
      model.base_url.is_empty() || model.base_url.starts_with("http://") || model.base_url.starts_with("https://"),
      "PA_MODEL_BASE_URL must begin with http:// or https://"
    );
    ensure!((1_024..=10_000_000).contains(&model.context_tokens), "model.context_tokens must lie between 1024 and 10000000");
    ensure!((64..model.context_tokens).contains(&model.output_tokens_max), "model.output_tokens_max must lie between 64 and model.context_tokens");
    ensure!((1..=90).contains(&model.history_percent), "model.history_percent must lie between 1 and 90");
    ensure!(self.agent.replies_max > 0, "agent.replies_max must be at least 1");
    ensure!(self.agent.tasks_max > 0, "agent.tasks_max must be at least 1");
    self.tools.web.validate()?;
    let owner_token = self.data.owner_token.expose_secret();
    ensure!(owner_token.is_empty() || owner_token.len() >= 16, "PA_OWNER_TOKEN must have at least 16 characters");
    self.edge()?.validate().map_err(|error| anyhow!("PA_LISTEN, PA_PUBLIC_URL or PA_ALLOW_INSECURE: {error}"))
  }

  /// Kafka as the log; `None`: the log is embedded.
  pub fn kafka(&self) -> Option<kafka::Config> {
    (!self.kafka.brokers.is_empty()).then(|| self.kafka_of(&self.kafka.brokers, &self.kafka.prefix))
  }

  /// A Kafka that is not the log's place yet, with the same ways in.
  ///
  /// # Errors
  /// No brokers, or a prefix that no topic can have.
  pub fn kafka_at(&self, brokers: &str, prefix: &str) -> Result<kafka::Config> {
    ensure!(!brokers.is_empty(), "kafka:// lacks its HOST:PORT");
    ensure!(!prefix.is_empty() && is_prefix(prefix), "the prefix {prefix:?} may hold letters, digits, points, dashes and underscores, 200 at most");
    Ok(self.kafka_of(brokers, prefix))
  }

  fn kafka_of(&self, brokers: &str, prefix: &str) -> kafka::Config {
    let kafka = &self.kafka;
    let security = kafka::Security {
      protocol: kafka.security_protocol.clone(),
      mechanism: kafka.sasl_mechanism.clone(),
      username: kafka.username.clone(),
      password: kafka.password.clone(),
      ca_file: kafka.ca_file.clone(),
      certificate_file: kafka.certificate_file.clone(),
      key_file: kafka.key_file.clone(),
      key_password: kafka.key_password.clone(),
    };
    let inputs_kept = Duration::from_secs(u64::from(self.log.inputs_kept_days) * 24 * 3600);
    kafka::Config { brokers: brokers.to_owned(), prefix: prefix.to_owned(), inputs_kept, security }
  }

  /// How the outside reaches this process.
  ///
  /// # Errors
  /// When the address is none.
  pub fn edge(&self) -> Result<pa_gateway::Config> {
    let public_url = Some(self.server.public_url.clone()).filter(|url| !url.is_empty());
    Ok(pa_gateway::Config { listen: self.listen()?, public_url, allow_insecure: self.server.allow_insecure })
  }

  /// The address to listen on.
  ///
  /// # Errors
  /// When it is not `ADDRESS:PORT`.
  pub fn listen(&self) -> Result<SocketAddr> {
    self.server.listen.parse().with_context(|| format!("PA_LISTEN={} is not ADDRESS:PORT", self.server.listen))
  }
}

/// What is wrong with which keys. Values are left out, because any of them may be a secret that was given under the wrong key or in the wrong form.
fn complaints(errors: figment::Error) -> String {
  let complaint = |error: figment::Error| {
    let key = error.path.join(".");
    match error.kind {
      Kind::InvalidType(actual, expected) if !matches!(actual, Actual::Str(_)) && expected.contains("string") => {
        let name = format!("PA__{}", error.path.join("__").to_uppercase());
        format!("{key} must be a text; what looks like a number or a truth value needs quotes of its own: {name}='\"…\"'")
      }
      Kind::InvalidType(_, expected) | Kind::InvalidValue(_, expected) | Kind::InvalidLength(_, expected) => format!("{key} must be {expected}"),
      Kind::UnknownVariant(_, known) => format!("{key} must be one of {}", known.join(", ")),
      Kind::UnknownField(field, known) => format!("{key} has no key {field}; it has {}", known.join(", ")),
      Kind::MissingField(field) => format!("{key} lacks {field}"),
      Kind::DuplicateField(field) => format!("{key} has {field} twice"),
      Kind::ISizeOutOfRange(_) | Kind::USizeOutOfRange(_) => format!("{key} is out of range"),
      Kind::Message(_) | Kind::Unsupported(_) | Kind::UnsupportedKey(..) => format!("{key} has a value that can't be used"),
    }
  };
  errors.into_iter().map(complaint).collect::<Vec<_>>().join("; ")
}

/// What Kafka takes in a topic's name, with room for ours behind it.
fn is_prefix(prefix: &str) -> bool {
  prefix.len() <= 200 && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

impl Kafka {
  fn validate(&self) -> Result<()> {
    ensure!(is_prefix(&self.prefix), "PA_KAFKA_PREFIX may hold letters, digits, points, dashes and underscores, 200 at most");
    let known = ["", "plaintext", "ssl", "sasl_plaintext", "sasl_ssl"];
    ensure!(known.contains(&self.security_protocol.as_str()), "kafka.security_protocol must be plaintext, ssl, sasl_plaintext or sasl_ssl");
    let signs_in = self.security_protocol.starts_with("sasl");
    ensure!(!signs_in || !self.sasl_mechanism.is_empty(), "kafka.sasl_mechanism is missing: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512");
    ensure!(signs_in || self.username.is_empty(), "kafka.username is set, but kafka.security_protocol does not sign in: choose sasl_ssl or sasl_plaintext");
    Ok(())
  }
}

fn from_file(value: SecretString, path: &str) -> Result<SecretString> {
  if path.is_empty() || !value.expose_secret().is_empty() {
    return Ok(value);
  }
  let text = std::fs::read_to_string(path).with_context(|| format!("read {path}"))?;
  Ok(SecretString::from(text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
  use figment::value::Value;

  use super::*;

  fn with(pairs: &'static [(&'static str, &'static str)]) -> Result<Config> {
    let short = move |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Config::from(Figment::new().merge(Toml::string(DEFAULTS)), short)
  }

  #[test]
  fn the_defaults_are_whole() {
    let config = with(&[]).unwrap();
    assert_eq!(config.server.listen, "127.0.0.1:8787");
    assert_eq!(config.log.partitions, 8);
    assert!(config.log.sealed);
  }

  #[test]
  fn a_base_without_a_name_stops_the_start() {
    let error = with(&[("PA_MODEL_BASE_URL", "http://127.0.0.1:1/v1")]).unwrap_err();
    assert!(error.to_string().contains("PA_MODEL_NAME"), "{error}");
  }

  #[test]
  fn a_name_without_a_base_stops_the_start() {
    let error = with(&[("PA_MODEL_NAME", "large")]).unwrap_err();
    assert!(error.to_string().contains("PA_MODEL_BASE_URL"), "{error}");
  }

  #[test]
  fn an_open_address_needs_https_or_a_clear_word() {
    assert!(with(&[("PA_ALLOW_INSECURE", "maybe")]).unwrap_err().to_string().contains("PA_ALLOW_INSECURE must be 1 or 0"));
    assert!(with(&[("PA_LISTEN", "0.0.0.0:80"), ("PA_ALLOW_INSECURE", "0")]).is_err());
    assert!(with(&[("PA_LISTEN", "0.0.0.0:80")]).unwrap_err().to_string().contains("PA_ALLOW_INSECURE"));
    assert!(with(&[("PA_LISTEN", "0.0.0.0:80"), ("PA_ALLOW_INSECURE", "1")]).is_ok());
    assert!(with(&[("PA_LISTEN", "0.0.0.0:80"), ("PA_PUBLIC_URL", "https://pa.example.org")]).is_ok());
    assert!(with(&[("PA_LISTEN", "nonsense")]).is_err());
    assert!(with(&[("PA_PUBLIC_URL", "https://pa.example.org/path")]).unwrap_err().to_string().contains("PA_PUBLIC_URL"));
  }

  /// A secret of digits alone is read as a number, which is no text.
  #[test]
  fn a_value_is_not_in_what_is_said_of_a_configuration_that_cant_be_used() {
    for (key, value) in [
      ("model.api_key", Value::from(7_423_918_465_u64)),
      ("data.owner_token", Value::from(-7_423_918_465_i64)),
      ("data.master_key", Value::from(7_423_918_465.5_f64)),
      ("data.database_url", Value::from(vec![7_423_918_465_u64])),
      ("log.partitions", Value::from("7423918465")),
      ("log.partitions", Value::from(7_423_918_465_u64)),
      ("log.sealed", Value::from("7423918465")),
      ("model.efforts", Value::from(vec!["7423918465"])),
    ] {
      let figment = Figment::new().merge(Toml::string(DEFAULTS)).merge(Serialized::default(key, value));
      let error = format!("{:#}", Config::from(figment, |_| None).unwrap_err());
      assert!(error.contains(key) && !error.contains("7423918465") && !error.contains("7.42"), "{error}");
    }
    let figment = Figment::new().merge(Toml::string(DEFAULTS)).merge(Serialized::default("model.api_key", 7));
    let error = format!("{:#}", Config::from(figment, |_| None).unwrap_err());
    assert!(error.contains("PA__MODEL__API_KEY='"), "it says how to write it: {error}");
  }

  #[test]
  fn kafka_is_the_log_when_brokers_are_named() {
    assert!(with(&[]).unwrap().kafka().is_none());
    let kafka = with(&[("PA_KAFKA_BROKERS", "one:9092,two:9092")]).unwrap().kafka().unwrap();
    assert_eq!((kafka.brokers.as_str(), kafka.prefix.as_str()), ("one:9092,two:9092", "pa."));
    assert_eq!(kafka.inputs_kept, Duration::from_secs(90 * 24 * 3600));
    let named = with(&[("PA_KAFKA_BROKERS", "one:9092"), ("PA_KAFKA_PREFIX", "mine-")]).unwrap().kafka().unwrap();
    assert_eq!(named.prefix, "mine-");
    assert!(with(&[("PA_KAFKA_BROKERS", "one:9092"), ("PA_KAFKA_PREFIX", "no spaces")]).unwrap_err().to_string().contains("PA_KAFKA_PREFIX"));
  }

  #[test]
  fn signing_in_to_kafka_needs_a_protocol_and_a_mechanism() {
    let set = |pairs: &[(&str, &str)]| {
      let defaults = Figment::new().merge(Toml::string(DEFAULTS));
      Config::from(pairs.iter().fold(defaults, |figment, (key, value)| figment.merge(Serialized::default(key, *value))), |_| None)
    };
    assert!(set(&[("kafka.security_protocol", "tls")]).unwrap_err().to_string().contains("security_protocol"));
    assert!(set(&[("kafka.security_protocol", "sasl_ssl")]).unwrap_err().to_string().contains("sasl_mechanism"));
    assert!(set(&[("kafka.username", "pa")]).unwrap_err().to_string().contains("sasl_ssl"));
    let all = [("kafka.security_protocol", "sasl_ssl"), ("kafka.sasl_mechanism", "SCRAM-SHA-512"), ("kafka.username", "pa"), ("kafka.password", "planted")];
    assert!(!format!("{:?}", set(&all).unwrap()).contains("planted"));
  }

  #[test]
  fn a_secret_is_not_in_what_debug_prints() {
    let config = with(&[("PA_MODEL_API_KEY", "sk-planted-secret"), ("PA_OWNER_TOKEN", "planted-owner-token")]).unwrap();
    assert!(!format!("{config:?}").contains("planted"));
  }
}
