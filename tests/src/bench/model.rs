//! A model that answers at once, on a thread of its own: nothing is parsed but the length of the request, so that it takes as little of the shared cores as it can.

use std::thread;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What every reply says.
pub(super) const ANSWER: &str = "This is the answer to what you said.";

/// An instant model, for as long as the bench runs.
pub(super) struct InstantModel {
  pub(super) base_url: String,
}

impl InstantModel {
  pub(super) fn start() -> Result<Self> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("bind the model's port")?;
    listener.set_nonblocking(true).context("prepare the model's port")?;
    let base_url = format!("http://{}/v1", listener.local_addr().context("find the model's port")?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("start the model's runtime")?;
    thread::Builder::new().name("bench-model".to_owned()).spawn(move || runtime.block_on(serve(listener))).context("start the model")?;
    Ok(Self { base_url })
  }
}

#[expect(clippy::disallowed_methods, reason = "connections end with the bench")]
async fn serve(listener: std::net::TcpListener) {
  let listener = TcpListener::from_std(listener).expect("the listener does not block");
  let answer: &'static [u8] = Box::leak(answer().into_boxed_slice());
  while let Ok((stream, _)) = listener.accept().await {
    tokio::spawn(async move {
      if let Err(error) = converse(stream, answer).await {
        eprintln!("bench: the model lost a connection: {error}");
      }
    });
  }
}

/// Answers requests until the client hangs up.
async fn converse(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
  stream.set_nodelay(true)?;
  let mut buffer: Vec<u8> = Vec::with_capacity(64 * 1024);
  loop {
    let whole = loop {
      if let Some(whole) = whole(&buffer).filter(|whole| *whole <= buffer.len()) {
        break whole;
      }
      if stream.read_buf(&mut buffer).await? == 0 {
        return Ok(());
      }
    };
    buffer.drain(..whole);
    stream.write_all(answer).await?;
  }
}

/// The length of the first request, once its head is there.
fn whole(buffer: &[u8]) -> Option<usize> {
  let head = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
  let text = std::str::from_utf8(&buffer[..head]).ok()?.to_ascii_lowercase();
  let length = text.lines().find_map(|line| line.strip_prefix("content-length:")).and_then(|length| length.trim().parse::<usize>().ok());
  Some(head + length.unwrap_or(0))
}

fn answer() -> Vec<u8> {
  let chunk = |delta: &str, finish: &str| {
    format!(
      "data: {{\"id\":\"a\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"instant\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )
  };
  let usage = "data: {\"id\":\"a\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"instant\",\"choices\":[],\"usage\":{\"prompt_tokens\":300,\"completion_tokens\":9,\"total_tokens\":309}}\n\n";
  let body = format!("{}{}{usage}data: [DONE]\n\n", chunk(&format!("{{\"role\":\"assistant\",\"content\":\"{ANSWER}\"}}"), "null"), chunk("{}", "\"stop\""));
  format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
