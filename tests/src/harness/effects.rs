//! The outside world of a test: a server that takes effects and accepts them, refuses them, never answers, or drops the line after it has accepted.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::eventually;

/// What the outside does with an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
  Accepts,
  Refuses,
  /// It takes the effect and never answers.
  Hangs,
  /// It takes the effect, and the line breaks before its answer.
  Drops,
}

/// A server of effects; it ends when this is dropped.
pub(crate) struct Effects {
  shared: Arc<Shared>,
  address: std::net::SocketAddr,
  serving: JoinHandle<()>,
}

struct Shared {
  outside: Mutex<Outside>,
  /// What happened: effects that were taken, in order.
  taken: Mutex<Vec<Value>>,
}

impl Drop for Effects {
  fn drop(&mut self) {
    self.serving.abort();
  }
}

impl Effects {
  pub(crate) async fn start(outside: Outside) -> Self {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let shared = Arc::new(Shared { outside: Mutex::new(outside), taken: Mutex::default() });
    let serving = Arc::clone(&shared);
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's own server")]
    let serving = tokio::spawn(async move {
      while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&serving)));
      }
    });
    Self { shared, address, serving }
  }

  pub(crate) fn url(&self) -> String {
    format!("http://{}", self.address)
  }

  pub(crate) fn becomes(&self, outside: Outside) {
    *self.shared.outside.lock() = outside;
  }

  /// The effects that happened.
  pub(crate) fn taken(&self) -> Vec<Value> {
    self.shared.taken.lock().clone()
  }

  /// Waits until so many effects have happened.
  pub(crate) async fn reached(&self, count: usize) {
    eventually(&format!("{count} effects"), async || (self.taken().len() >= count).then_some(())).await;
  }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
  let Some(effect) = request(&mut stream).await else { return };
  let outside = *shared.outside.lock();
  if outside != Outside::Refuses {
    shared.taken.lock().push(effect);
  }
  let answer: &[u8] = match outside {
    Outside::Accepts => b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    Outside::Refuses => b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    Outside::Drops => return,
    Outside::Hangs => {
      tokio::time::sleep(Duration::from_secs(600)).await;
      return;
    }
  };
  if let Err(error) = stream.write_all(answer).await {
    eprintln!("the product did not wait for the answer of an effect: {error}");
  }
}

/// The body of one request.
async fn request(stream: &mut TcpStream) -> Option<Value> {
  let mut bytes = Vec::new();
  loop {
    let mut piece = [0_u8; 4_096];
    let read = stream.read(&mut piece).await.ok().filter(|read| *read > 0)?;
    bytes.extend_from_slice(&piece[..read]);
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length: usize = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())?;
    if bytes.len() >= end + 4 + length {
      return serde_json::from_slice(&bytes[end + 4..end + 4 + length]).ok();
    }
  }
}
