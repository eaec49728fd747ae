//! A server that answers as a test wants it, byte for byte.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// What is answered.
#[derive(Clone)]
pub(super) enum Answer {
  /// These bytes, then the end.
  Bytes(Vec<u8>),
  /// A piece for ever.
  Endless { head: String, piece: Vec<u8> },
  /// A byte now and then, for ever.
  Drip { head: String },
  /// Nothing.
  Silence,
}

type Handler = Arc<dyn Fn(&str) -> Answer + Send + Sync>;

pub(super) struct Server {
  pub(super) address: SocketAddr,
  requests: Arc<Mutex<Vec<String>>>,
  closed: Arc<Notify>,
  _serving: JoinSet<()>,
}

/// An answer with a body.
pub(super) fn page(headers: &str, body: impl AsRef<[u8]>) -> Answer {
  let body = body.as_ref();
  let head = format!("HTTP/1.1 200 OK\r\n{headers}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
  Answer::Bytes([head.as_bytes(), body].concat())
}

pub(super) fn status(status: &str, body: &str) -> Answer {
  Answer::Bytes(format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).into_bytes())
}

pub(super) fn redirect(location: &str) -> Answer {
  Answer::Bytes(format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes())
}

impl Server {
  pub(super) async fn at(ip: &str, handler: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
    let listener = TcpListener::bind((ip, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let closed = Arc::new(Notify::new());
    let handler: Handler = Arc::new(handler);
    let mut serving = JoinSet::new();
    serving.spawn(serve(listener, handler, Arc::clone(&requests), Arc::clone(&closed)));
    Self { address, requests, closed, _serving: serving }
  }

  pub(super) async fn new(handler: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
    Self::at("127.0.0.1", handler).await
  }

  pub(super) fn url(&self, path: &str) -> String {
    format!("http://{}{path}", self.address)
  }

  /// Heads and bodies of all requests so far.
  pub(super) fn requests(&self) -> Vec<String> {
    self.requests.lock().unwrap().clone()
  }

  /// Waits until a client has gone away.
  pub(super) async fn closed(&self) {
    self.closed.notified().await;
  }
}

async fn serve(listener: TcpListener, handler: Handler, requests: Arc<Mutex<Vec<String>>>, closed: Arc<Notify>) {
  let mut open = JoinSet::new();
  loop {
    let (stream, _) = listener.accept().await.unwrap();
    open.spawn(one(stream, Arc::clone(&handler), Arc::clone(&requests), Arc::clone(&closed)));
  }
}

async fn one(mut stream: TcpStream, handler: Handler, requests: Arc<Mutex<Vec<String>>>, closed: Arc<Notify>) {
  let Some(request) = request(&mut stream).await else { return };
  requests.lock().unwrap().push(request.clone());
  let answer = handler(&request);
  let (mut read, mut write) = stream.split();
  let gone = async {
    let mut bytes = [0; 64];
    while !matches!(read.read(&mut bytes).await, Ok(0) | Err(_)) {}
  };
  let answered = async {
    // A client that goes away meanwhile is what some tests are about.
    if send(&mut write, answer).await.is_err() {
      std::future::pending::<()>().await;
    }
    write.shutdown().await.ok();
  };
  tokio::select! {
    () = gone => closed.notify_one(),
    () = answered => {}
  }
}

async fn send(write: &mut (impl AsyncWrite + Unpin), answer: Answer) -> std::io::Result<()> {
  match answer {
    Answer::Bytes(bytes) => write.write_all(&bytes).await,
    Answer::Endless { head, piece } => {
      write.write_all(head.as_bytes()).await?;
      loop {
        write.write_all(&piece).await?;
      }
    }
    Answer::Drip { head } => {
      write.write_all(head.as_bytes()).await?;
      loop {
        write.write_all(b"x").await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
      }
    }
    Answer::Silence => std::future::pending().await,
  }
}

/// The head of a request, with its body when it has one.
async fn request(stream: &mut TcpStream) -> Option<String> {
  let mut bytes = Vec::new();
  loop {
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if let Some((head, body)) = text.split_once("\r\n\r\n") {
      let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:").map(|length| length.trim().parse().unwrap()));
      if body.len() >= length.unwrap_or(0) {
        return Some(text);
      }
    }
    let mut piece = [0; 4096];
    match stream.read(&mut piece).await {
      Ok(0) | Err(_) => return None,
      Ok(read) => bytes.extend_from_slice(&piece[..read]),
    }
  }
}
