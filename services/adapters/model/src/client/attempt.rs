//! One attempt: a request goes out once, its response is read to the end.

use std::time::Duration;

use bytes::Bytes;
use eventsource_stream::{EventStream, EventStreamError};
use futures::{Stream, StreamExt as _};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Response};
use tokio::time::Instant;

use super::assembly::Assembly;
use super::blocks::{Blocks, EVENT_BYTES_MAX, Fault};
use super::refusal::{self, Redact};
use super::{ChatCompletions, Limits};
use crate::{Answer, Error, Phase};

/// The usage may follow the reason to finish; a server that then neither sends nor ends is not waited for longer.
const FINISH_GRACE: Duration = Duration::from_secs(2);
/// A response read to its end gives the connection back; the end usually comes along with the last event.
const DRAIN_GRACE: Duration = Duration::from_millis(20);
/// An error body is worth little patience.
const ERROR_BODY_GRACE: Duration = Duration::from_secs(5);

impl ChatCompletions {
  pub(super) async fn attempt(&self, body: Bytes, limits: Limits, assembly: &mut Assembly<'_>) -> Result<Answer, Error> {
    let mut request = reqwest::Request::new(Method::POST, self.endpoint.clone());
    request.headers_mut().clone_from(&self.headers);
    *request.body_mut() = Some(body.into());
    let first_by = Instant::now() + limits.timeouts.first_byte();
    let response = limits.before(first_by, Phase::FirstByte, self.http.execute(request)).await?.map_err(unreachable)?;
    let redact = Redact(self.config.api_key.as_ref());
    if !response.status().is_success() {
      return Err(read_refusal(response, limits, &redact).await);
    }
    if is_json(&response) {
      let whole = read_body(response, limits, first_by).await?;
      assembly.take(&whole, &redact)?;
      return assembly.finish();
    }
    let patience = Patience { limits, first_by };
    read_stream(response.bytes_stream(), patience, assembly, &redact).await?;
    assembly.finish()
  }
}

#[derive(Clone, Copy)]
struct Patience {
  limits: Limits,
  /// When the model must have begun. Servers confirm a request at once and then read the prompt for long, so only a piece that says
  /// something is a beginning.
  first_by: Instant,
}

impl Patience {
  fn next(self, assembly: &Assembly<'_>) -> (Instant, Phase) {
    if assembly.is_finished() {
      (Instant::now() + FINISH_GRACE, Phase::Idle)
    } else if assembly.has_begun() {
      (Instant::now() + self.limits.timeouts.idle(), Phase::Idle)
    } else {
      (self.first_by, Phase::FirstByte)
    }
  }
}

async fn read_stream<S>(bytes: S, patience: Patience, assembly: &mut Assembly<'_>, redact: &Redact<'_>) -> Result<(), Error>
where
  S: Stream<Item = reqwest::Result<Bytes>> + Unpin,
{
  let mut events = EventStream::new(Blocks::new(bytes));
  let limits = patience.limits;
  loop {
    let (until, phase) = patience.next(assembly);
    let event = match limits.before(until, phase, events.next()).await {
      Ok(Some(Ok(event))) => event,
      Ok(None) => return Ok(()),
      // Whatever happens after the model has finished changes nothing about its answer.
      Ok(Some(Err(_))) | Err(_) if assembly.is_finished() => return Ok(()),
      Ok(Some(Err(fault))) => return Err(broken(&fault)),
      Err(late) => return Err(late),
    };
    if event.data.trim() == "[DONE]" {
      drain(&mut events, limits).await;
      return Ok(());
    }
    assembly.take(event.data.as_bytes(), redact)?;
    if assembly.is_full() {
      return Ok(());
    }
  }
}

async fn drain<S: Stream + Unpin>(events: &mut S, limits: Limits) {
  let end = async { while events.next().await.is_some() {} };
  if limits.before(Instant::now() + DRAIN_GRACE, Phase::Idle, end).await.is_err() {
    tracing::debug!("model server keeps its response open after the end; the connection is not used again");
  }
}

async fn read_refusal(response: Response, limits: Limits, redact: &Redact<'_>) -> Error {
  let status = response.status();
  let headers = response.headers().clone();
  let read = read_start(response, refusal::BODY_BYTES_MAX);
  // The status says the most; a body that does not come is an empty one.
  let body = limits.before(Instant::now() + ERROR_BODY_GRACE, Phase::Idle, read).await.unwrap_or_default();
  refusal::with_status(status, &headers, &body, redact)
}

async fn read_start(response: Response, bytes_max: usize) -> Vec<u8> {
  let mut stream = response.bytes_stream();
  let mut body = Vec::new();
  while let Some(Ok(chunk)) = stream.next().await {
    let room = bytes_max - body.len();
    body.extend_from_slice(&chunk[..chunk.len().min(room)]);
    if body.len() == bytes_max {
      break;
    }
  }
  body
}

/// Reads the answer of a server that does not stream.
async fn read_body(response: Response, limits: Limits, first_by: Instant) -> Result<Vec<u8>, Error> {
  let mut stream = response.bytes_stream();
  let mut body = Vec::new();
  let (mut until, mut phase) = (first_by, Phase::FirstByte);
  while let Some(chunk) = limits.before(until, phase, stream.next()).await? {
    body.extend_from_slice(&chunk.map_err(|_| Error::Cut)?);
    if body.len() > EVENT_BYTES_MAX {
      return Err(Error::Oversized { what: "answer" });
    }
    (until, phase) = (Instant::now() + limits.timeouts.idle(), Phase::Idle);
  }
  Ok(body)
}

fn is_json(response: &Response) -> bool {
  let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
  content_type.is_some_and(|content_type| content_type.trim_start().to_ascii_lowercase().starts_with("application/json"))
}

fn unreachable(source: reqwest::Error) -> Error {
  if source.is_timeout() { Error::TimedOut { phase: Phase::Connect } } else { Error::Unreachable { source: source.without_url() } }
}

/// A connection that breaks after the response began has cut it.
fn broken(fault: &EventStreamError<Fault<reqwest::Error>>) -> Error {
  match fault {
    EventStreamError::Transport(Fault::Transport(_)) => Error::Cut,
    EventStreamError::Transport(Fault::Oversized(what)) => Error::Oversized { what },
    EventStreamError::Utf8(_) | EventStreamError::Parser(_) => Error::Malformed { what: "event" },
  }
}
