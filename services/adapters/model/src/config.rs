//! What is configured about a model: where it is, what it can do, what it costs, how patient we are.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Effort, Error, Usage};

/// A common size that also small self-hosted models have; a larger window is configured.
const CONTEXT_TOKENS: u32 = 32_768;
const PER_MILLION: i128 = 1_000_000;

/// One model at one address.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
  /// Requests go to `{base_url}/chat/completions`.
  pub base_url: String,
  /// Without a key no Authorization header is sent.
  #[serde(default)]
  pub api_key: Option<SecretString>,
  pub name: String,
  /// How many tokens prompt and answer may have together.
  #[serde(default = "context_tokens")]
  pub context_tokens: u32,
  /// The most tokens of an answer; unset leaves it to the server.
  #[serde(default)]
  pub max_output_tokens: Option<u32>,
  #[serde(default)]
  pub output_limit_field: OutputLimitField,
  #[serde(default)]
  pub sees_pictures: bool,
  /// The efforts beside `fast` that the model offers.
  #[serde(default)]
  pub efforts: Vec<Effort>,
  /// What an effort adds to the request body. Without an entry `fast` adds nothing and the others `reasoning_effort`.
  #[serde(default)]
  pub effort_fields: BTreeMap<Effort, Map<String, Value>>,
  /// Fields that every request body gets, for what one provider alone knows.
  #[serde(default)]
  pub extra_fields: Map<String, Value>,
  #[serde(default)]
  pub prices: Option<Prices>,
  #[serde(default)]
  pub timeouts: Timeouts,
  #[serde(default)]
  pub retry: RetryLimits,
}

/// The name of the field that limits an answer; newer models of its inventor refuse the older name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputLimitField {
  #[default]
  MaxTokens,
  MaxCompletionTokens,
}

/// Prices in millionths of the currency for a million tokens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
  pub currency: String,
  pub input_micros: i64,
  pub output_micros: i64,
  /// Unset: cached input costs what other input costs.
  #[serde(default)]
  pub cached_micros: Option<i64>,
}

/// How long each stage of a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
  /// Holds for the whole client; a request can't change it.
  pub connect_ms: u64,
  /// From the request to the first piece: a long prompt on a small machine takes its time.
  pub first_byte_ms: u64,
  /// Between two pieces.
  pub idle_ms: u64,
  /// For the whole request, its retries included.
  pub total_ms: u64,
}

impl Default for Timeouts {
  fn default() -> Self {
    Self { connect_ms: 10_000, first_byte_ms: 120_000, idle_ms: 60_000, total_ms: 600_000 }
  }
}

/// How often and how slowly a request is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryLimits {
  /// Requests in all; a fifth rarely helps where four did not, and someone waits.
  pub attempts_max: u32,
  /// The longest first wait; it doubles with each attempt.
  pub first_wait_ms: u64,
  /// The longest wait of our own choice.
  pub wait_max_ms: u64,
  /// A server that asks for more patience than this gets the request back from the caller, later.
  pub retry_after_max_ms: u64,
}

impl Default for RetryLimits {
  fn default() -> Self {
    Self { attempts_max: 4, first_wait_ms: 500, wait_max_ms: 15_000, retry_after_max_ms: 60_000 }
  }
}

impl Config {
  /// Makes the configuration of a model with everything else at its default.
  pub fn new(base_url: impl Into<String>, name: impl Into<String>) -> Self {
    Self {
      base_url: base_url.into(),
      api_key: None,
      name: name.into(),
      context_tokens: CONTEXT_TOKENS,
      max_output_tokens: None,
      output_limit_field: OutputLimitField::default(),
      sees_pictures: false,
      efforts: Vec::new(),
      effort_fields: BTreeMap::new(),
      extra_fields: Map::new(),
      prices: None,
      timeouts: Timeouts::default(),
      retry: RetryLimits::default(),
    }
  }

  /// Returns the efforts that can be chosen, from the least up; `fast` is always there.
  pub fn efforts(&self) -> Vec<Effort> {
    let mut efforts = self.efforts.clone();
    efforts.push(Effort::Fast);
    efforts.sort_unstable();
    efforts.dedup();
    efforts
  }

  /// Returns the effort that a request really gets: the highest offered one that is not above the wish.
  pub fn effort_for(&self, wished: Effort) -> Effort {
    self.efforts.iter().copied().filter(|&offered| offered <= wished).max().unwrap_or(Effort::Fast)
  }

  /// Computes what a call cost, in millionths of the currency; `None` where a price or a count is not known.
  pub fn price_micros(&self, usage: &Usage) -> Option<i64> {
    let prices = self.prices.as_ref()?;
    let input = count(usage.input)?;
    let output = count(usage.output)?;
    let (cached, cached_price) = match prices.cached_micros {
      Some(price) => (count(usage.cached)?.min(input), i128::from(price)),
      None => (0, 0),
    };
    let sum = (input - cached) * i128::from(prices.input_micros) + cached * cached_price + output * i128::from(prices.output_micros);
    i64::try_from((sum + PER_MILLION / 2) / PER_MILLION).ok()
  }

  /// Finds what can't work before the first request is made.
  pub(crate) fn endpoint(&self) -> Result<Url, Error> {
    let refuse = |reason: &str| Error::Configuration { reason: reason.to_owned() };
    if self.name.trim().is_empty() {
      return Err(refuse("the model has no name"));
    }
    if self.context_tokens == 0 {
      return Err(refuse("the model's window is 0 tokens"));
    }
    let mut url = Url::parse(&self.base_url).map_err(|_| refuse("the base address is no URL"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
      return Err(refuse("the base address is not http or https"));
    }
    url.path_segments_mut().map_err(|()| refuse("the base address has no path"))?.pop_if_empty().extend(["chat", "completions"]);
    Ok(url)
  }
}

impl Timeouts {
  pub(crate) fn connect(self) -> Duration {
    Duration::from_millis(self.connect_ms)
  }

  pub(crate) fn first_byte(self) -> Duration {
    Duration::from_millis(self.first_byte_ms)
  }

  pub(crate) fn idle(self) -> Duration {
    Duration::from_millis(self.idle_ms)
  }

  pub(crate) fn total(self) -> Duration {
    Duration::from_millis(self.total_ms)
  }
}

/// Addresses can hold credentials in front of the host or in their query; neither is shown.
impl fmt::Debug for Config {
  fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let address =
      Url::parse(&self.base_url).map_or_else(|_| "not a URL".to_owned(), |url| format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or(""), url.path()));
    f.debug_struct("Config")
      .field("base_url", &address)
      .field("api_key", &self.api_key)
      .field("name", &self.name)
      .field("context_tokens", &self.context_tokens)
      .field("sees_pictures", &self.sees_pictures)
      .field("efforts", &self.efforts)
      .field("prices", &self.prices)
      .finish_non_exhaustive()
  }
}

fn count(tokens: Option<i64>) -> Option<i128> {
  tokens.filter(|&tokens| tokens >= 0).map(i128::from)
}

fn context_tokens() -> u32 {
  CONTEXT_TOKENS
}
