//! The model port over OpenAI-compatible chat completions.
//!
//! One HTTP client for the life of the process, its connections kept alive; a request is written once and sent as often as its
//! retries need. `attempt.rs` reads one response, `assembly.rs` builds the answer from it.

mod assembly;
mod attempt;
mod backoff;
mod blocks;
mod body;
mod calls;
mod chunk;
mod refusal;

#[cfg(test)]
pub(crate) use assembly::TEXT_BYTES_MAX;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Url, redirect};
use secrecy::ExposeSecret as _;
use tokio::time::Instant;

use crate::{Answer, Config, Delta, Disposition, Error, Model, Phase, Pieces, Request, Timeouts};
use assembly::Assembly;

/// Kept-alive connections; more turns than this at once are rare, and further ones open and close their own.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// Shorter than what proxies close after, so that a request seldom meets a dead connection.
const IDLE_CONNECTION_TIME: Duration = Duration::from_secs(55);
/// For servers that move a path; more hops are a loop.
const REDIRECTS_MAX: usize = 2;

/// A model behind a server that speaks OpenAI-compatible chat completions.
pub struct ChatCompletions {
  config: Config,
  http: Client,
  endpoint: Url,
  headers: HeaderMap,
}

impl ChatCompletions {
  /// Checks the configuration and builds the client; nothing is sent.
  pub fn new(config: Config) -> Result<Self, Error> {
    let endpoint = config.endpoint()?;
    let mut http = Client::builder()
      .connect_timeout(config.timeouts.connect())
      .pool_idle_timeout(IDLE_CONNECTION_TIME)
      .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
      .tcp_nodelay(true)
      .http1_only()
      .user_agent(concat!("personal-agent/", env!("CARGO_PKG_VERSION")))
      .redirect(same_host_only());
    if is_loopback(&endpoint) {
      // A proxy can't reach our own machine's loopback.
      http = http.no_proxy();
    }
    let http = http.build().map_err(|source| Error::BuildFailed { source: source.without_url() })?;
    let headers = headers(&config)?;
    Ok(Self { config, http, endpoint, headers })
  }

  /// Tries until there is an answer, a lasting refusal, or no time.
  async fn answer(&self, body: Bytes, request: &Request, pieces: &mut dyn Pieces) -> Result<Answer, Error> {
    let limits = Limits::of(request, &self.config);
    let retry = self.config.retry;
    let mut attempt = 1;
    loop {
      let mut assembly = Assembly::new(pieces);
      let error = match self.attempt(body.clone(), limits, &mut assembly).await {
        Ok(answer) => {
          return Ok(Answer { attempts: attempt, ..answer });
        }
        Err(error) => error,
      };
      let shown = assembly.shown;
      metrics::counter!("pa_model_attempts_failed_total", "code" => error.code()).increment(1);
      let Disposition::Retry { after } = error.disposition() else {
        return Err(error);
      };
      let asked_too_much = after.is_some_and(|after| after > Duration::from_millis(retry.retry_after_max_ms));
      let wait = backoff::wait(retry, attempt, after, &mut rand::rng());
      if attempt >= retry.attempts_max || asked_too_much || Instant::now() + wait >= limits.ends_at {
        return Err(error);
      }
      tracing::warn!(model = %self.config.name, attempt, code = error.code(), wait_ms = wait.as_millis(), "model request is tried again");
      tokio::time::sleep(wait).await;
      if shown {
        pieces.take(Delta::Restarted);
      }
      attempt += 1;
    }
  }
}

#[async_trait]
impl Model for ChatCompletions {
  fn config(&self) -> &Config {
    &self.config
  }

  async fn stream(&self, request: &Request, pieces: &mut dyn Pieces) -> Result<Answer, Error> {
    let body = body::write(&self.config, request)?;
    let outcome = self.answer(body, request, pieces).await;
    let code = outcome.as_ref().map_or_else(Error::code, |_| "ok");
    metrics::counter!("pa_model_requests_total", "code" => code).increment(1);
    outcome
  }
}

/// How long one attempt may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
  timeouts: Timeouts,
  ends_at: Instant,
}

impl Limits {
  fn of(request: &Request, config: &Config) -> Self {
    let timeouts = request.timeouts.unwrap_or(config.timeouts);
    let own = Instant::now() + timeouts.total();
    Self { timeouts, ends_at: request.deadline.map_or(own, |deadline| deadline.min(own)) }
  }

  /// Waits for something that has to come before `until`, and says which time ran out.
  async fn before<T>(self, until: Instant, phase: Phase, work: impl Future<Output = T>) -> Result<T, Error> {
    let (until, phase) = if until < self.ends_at { (until, phase) } else { (self.ends_at, Phase::Total) };
    tokio::time::timeout_at(until, work).await.map_err(|_| Error::TimedOut { phase })
  }
}

fn headers(config: &Config) -> Result<HeaderMap, Error> {
  let mut headers = HeaderMap::new();
  headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
  headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
  if let Some(key) = config.api_key.as_ref().filter(|key| !key.expose_secret().is_empty()) {
    let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose_secret().trim()))
      .map_err(|_| Error::Configuration { reason: "the key has characters that no header can have".to_owned() })?;
    value.set_sensitive(true);
    headers.insert(AUTHORIZATION, value);
  }
  Ok(headers)
}

/// The prompt is private: another host never gets it.
fn same_host_only() -> redirect::Policy {
  redirect::Policy::custom(|attempt| {
    let origin = attempt.previous().first().map(Url::origin);
    if origin == Some(attempt.url().origin()) && attempt.previous().len() <= REDIRECTS_MAX { attempt.follow() } else { attempt.stop() }
  })
}

fn is_loopback(url: &Url) -> bool {
  let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
  host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
