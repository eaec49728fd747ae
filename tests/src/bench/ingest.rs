//! ingest: requests whose body is in the log when they are answered, beside the same handler with a raw append.
//!
//! Both sides: axum on two threads of its own, a handler that checks an HMAC-SHA256 over the body and awaits the append; 64 keep-alive connections, each with one
//! request under way. The control appends finished bytes of the same size; ours makes an input of the body: id, metadata, hashed key, sealed value. (The mutation
//! `sendMessage` awaits the decision too; `visible` is that whole way, in the product.)
//!
//! The control verifies the same signature with the same library in the same handler, finds its partition by the same hash, and awaits the same durability; it appends one
//! record that was finished before, without looking at the body, where a rival would at least have to carry the body over: it does less than a rival could, never more. Clients
//! run beside it in this process for both, and only the CPU of the serving threads is counted (on Kafka without those of the client library, for both).

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use aws_lc_rs::hmac;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use hdrhistogram::Histogram;
use pa_domain::conversation::{Input as ConversationInput, MessageGiven};
use pa_domain::{Input, Origin};
use pa_eventlog::appender::{Appender, Submission};
use pa_store::clock::{SystemClock, SystemIds};
use pa_store::keys::KeyRing;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::http::Http;
use super::line::Line;
use super::measure::{Pairs, Round, histogram, median, quantile, record};
use super::raw::{Finished, RawLog};
use super::samples::{Author, PARTITIONS, agent};
use super::{Bench, cpu};

const CONNECTIONS: u128 = 64;
const TEXT_BYTES: usize = 600;
const RATIO_MIN: f64 = 0.8;
/// Milliseconds that ours may add at the 99th percentile.
const P99_MORE_MAX: f64 = 5.0;
/// Linux keeps 15 characters of a thread's name.
const SERVING: &str = "bench-serving";
const SECRET: &[u8] = b"a webhook's shared secret";

enum Side {
  Raw { log: RawLog, finished: Finished },
  Ours { appender: Appender },
}

struct Handler {
  key: hmac::Key,
  side: Side,
}

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
  let (rival, own) = (bench.server.fresh().await?, bench.server.fresh().await?);
  // Pools belong to the runtime that uses them.
  let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_name(SERVING).enable_all().build().context("start a runtime")?;
  let record = Author::new(1, 1).await?.compose()?.remove(0);
  let (raw, ours) = runtime
    .spawn(async move {
      let log = RawLog::open(&rival, PARTITIONS).await?;
      let finished = log.finish(vec![record]);
      let raw = serve(Side::Raw { log, finished }).await?;
      let log = own.open_log(PARTITIONS).await?;
      let appender = Appender::connect(log, Arc::new(KeyRing::fixed()), Arc::new(SystemClock), Arc::new(SystemIds), "pa/gateway").await?;
      let ours = serve(Side::Ours { appender }).await?;
      Ok::<_, anyhow::Error>((raw, ours))
    })
    .await
    .context("a server panicked")??;
  let (mut pairs, mut slow_control, mut slow_ours) = (Pairs::default(), Vec::new(), Vec::new());
  for _ in 0..bench.options.pairs() {
    let (control, latencies) = round(bench, &raw).await?;
    slow_control.push(quantile(&latencies, 0.99));
    let (ours, latencies) = round(bench, &ours).await?;
    slow_ours.push(quantile(&latencies, 0.99));
    pairs.push(control, ours);
  }
  runtime.shutdown_background();
  let (ratio, slow_control, slow_ours) = (pairs.ratio(), median(slow_control.into_iter()), median(slow_ours.into_iter()));
  let line = Line::new("ingest", "requests/s", median(pairs.ours.iter().map(Round::per_second)))
    .control(median(pairs.control.iter().map(Round::per_second)))
    .ratio(ratio)
    .cpu(median(pairs.ours.iter().map(Round::cpu_us)))
    .target(format!("ratio ≥ {RATIO_MIN}, p99 ≤ control p99 + {P99_MORE_MAX} ms"), ratio >= RATIO_MIN && slow_ours <= slow_control + P99_MORE_MAX)
    .also("worst_ratio", pairs.worst())
    .also("p99_ms", slow_ours)
    .also("p99_ms_control", slow_control)
    .also("cpu_us_control", median(pairs.control.iter().map(Round::cpu_us)));
  bench.printer.print(&line)
}

#[expect(clippy::disallowed_methods, reason = "it ends with the runtime that serves")]
async fn serve(side: Side) -> Result<String> {
  let listener = TcpListener::bind("127.0.0.1:0").await.context("bind a port")?;
  let address = listener.local_addr().context("find the port")?.to_string();
  let handler = Arc::new(Handler { key: hmac::Key::new(hmac::HMAC_SHA256, SECRET), side });
  let router = Router::new().route("/hook", post(hook)).with_state(handler);
  tokio::spawn(async move {
    if let Err(error) = axum::serve(listener, router).await {
      eprintln!("bench: serving ended: {error}");
    }
  });
  Ok(address)
}

async fn hook(State(handler): State<Arc<Handler>>, headers: HeaderMap, body: Bytes) -> StatusCode {
  let signature = headers.get("x-signature").and_then(|value| hex::decode(value.as_bytes()).ok()).unwrap_or_default();
  if hmac::verify(&handler.key, &body, &signature).is_err() {
    return StatusCode::UNAUTHORIZED;
  }
  // The first bytes name the sender, as an address does.
  let Some(number) = body.get(..4).and_then(|bytes| std::str::from_utf8(bytes).ok()?.trim().parse().ok()) else { return StatusCode::BAD_REQUEST };
  let appended = match &handler.side {
    Side::Raw { log, finished } => log.append(partition(number), finished.clone()).await.map(|_| ()),
    Side::Ours { appender } => submit(appender, number, &headers, body).await,
  };
  match appended {
    Ok(()) => StatusCode::ACCEPTED,
    Err(error) => {
      eprintln!("bench: an append failed: {error:#}");
      StatusCode::INTERNAL_SERVER_ERROR
    }
  }
}

fn partition(number: u128) -> u16 {
  pa_eventlog::meta::partition_of(agent(number), PARTITIONS)
}

async fn submit(appender: &Appender, number: u128, headers: &HeaderMap, body: Bytes) -> Result<()> {
  let key = headers.get("x-key").and_then(|value| value.to_str().ok()).context("a request has a key")?;
  let text = String::from_utf8(body.to_vec()).context("a body is text")?;
  let input = Input::from(ConversationInput::from(MessageGiven { conversation: None, text, attachments: Vec::new() }));
  let submission = Submission {
    agent: agent(number),
    input,
    producer: "connection",
    key: Some(key),
    content: None,
    actor: "owner",
    origin: Origin::Owner,
    cause: None,
    correlation: None,
    traceparent: None,
  };
  appender.submit(submission).await.map(|_| ()).context("append an input")
}

async fn round(bench: &Bench, address: &str) -> Result<(Round, Histogram<u64>)> {
  bench.server.settle().await?;
  let (begun, own) = (Instant::now(), cpu::threads_named(SERVING)?);
  let mut callers = JoinSet::new();
  for number in 0..CONNECTIONS {
    callers.spawn(call(address.to_owned(), number, begun + bench.options.round()));
  }
  let (mut units, mut all) = (0, histogram());
  while let Some(called) = callers.join_next().await {
    let latencies = called.context("a caller panicked")??;
    units += latencies.len();
    all.add(latencies).context("add up latencies")?;
  }
  Ok((Round { units, wall: begun.elapsed(), cpu: cpu::threads_named(SERVING)?.saturating_sub(own), ..Round::default() }, all))
}

async fn call(address: String, number: u128, end: Instant) -> Result<Histogram<u64>> {
  let mut http = Http::connect(&address).await?;
  let body = format!("{number:<4}{}", "a message from outside ".chars().cycle().take(TEXT_BYTES).collect::<String>());
  let signature = hex::encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), body.as_bytes()));
  let mut latencies = histogram();
  while Instant::now() < end {
    let headers = format!("x-signature: {signature}\r\nx-key: {number}-{}\r\ncontent-type: text/plain\r\n", latencies.len());
    let begun = Instant::now();
    let answer = http.post("/hook", &headers, body.as_bytes()).await?;
    record(&mut latencies, begun.elapsed());
    ensure!(answer.status == 202, "the handler answered {}", answer.status);
  }
  if latencies.is_empty() {
    bail!("a caller got no answer in time");
  }
  Ok(latencies)
}
