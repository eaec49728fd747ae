//! A keep-alive HTTP client that costs next to nothing, so that the cores belong to what is measured.

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Bytes of an answer at most.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One connection.
pub(super) struct Http {
  stream: TcpStream,
  host: String,
  buffer: Vec<u8>,
}

/// An answer with its body.
pub(super) struct Answer {
  pub(super) status: u16,
  pub(super) body: Vec<u8>,
}

impl Http {
  pub(super) async fn connect(host: &str) -> Result<Self> {
    let stream = TcpStream::connect(host).await.with_context(|| format!("connect to {host}"))?;
    stream.set_nodelay(true).context("send at once")?;
    Ok(Self { stream, host: host.to_owned(), buffer: Vec::with_capacity(8 * 1024) })
  }

  /// Posts a body with headers, each as `name: value\r\n`.
  pub(super) async fn post(&mut self, path: &str, headers: &str, body: &[u8]) -> Result<Answer> {
    let mut request = Vec::with_capacity(256 + headers.len() + body.len());
    request.extend_from_slice(format!("POST {path} HTTP/1.1\r\nhost: {}\r\n{headers}content-length: {}\r\n\r\n", self.host, body.len()).as_bytes());
    request.extend_from_slice(body);
    self.stream.write_all(&request).await.context("send a request")?;
    self.answer().await
  }

  pub(super) async fn get(&mut self, path: &str) -> Result<Answer> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.host);
    self.stream.write_all(request.as_bytes()).await.context("send a request")?;
    self.answer().await
  }

  async fn answer(&mut self) -> Result<Answer> {
    self.buffer.clear();
    let head = loop {
      if let Some(end) = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
        break end + 4;
      }
      self.more().await?;
    };
    let text = std::str::from_utf8(&self.buffer[..head]).context("a head is text")?.to_ascii_lowercase();
    let status = text.get(9..12).and_then(|status| status.parse().ok()).context("an answer has a status")?;
    let length: usize = match text.lines().find_map(|line| line.strip_prefix("content-length:")) {
      Some(length) => length.trim().parse().context("a length is a number")?,
      None if text.contains("transfer-encoding") => bail!("an answer in chunks is not understood"),
      None => 0,
    };
    ensure!(length <= ANSWER_BYTES_MAX, "an answer of {length} bytes");
    while self.buffer.len() < head + length {
      self.more().await?;
    }
    Ok(Answer { status, body: self.buffer[head..head + length].to_vec() })
  }

  async fn more(&mut self) -> Result<()> {
    let read = self.stream.read_buf(&mut self.buffer).await.context("read an answer")?;
    ensure!(read > 0, "the server hung up");
    Ok(())
  }
}
