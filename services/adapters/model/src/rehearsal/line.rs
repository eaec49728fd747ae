//! A listener whose connections a handler can break before a byte of its response is out.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

pub(super) struct BreakableListener {
  inner: TcpListener,
  accepted: usize,
}

/// A connection that carries nothing any more once it is broken.
pub(super) struct BreakableStream {
  inner: TcpStream,
  line: Line,
}

/// One connection, as its handler knows it.
#[derive(Debug, Clone)]
pub(super) struct Line {
  /// Counts the listener's connections, from 1.
  pub(super) number: usize,
  broken: Arc<AtomicBool>,
}

impl BreakableListener {
  pub(super) fn new(inner: TcpListener) -> Self {
    Self { inner, accepted: 0 }
  }
}

impl Line {
  pub(super) fn break_it(&self) {
    self.broken.store(true, Ordering::SeqCst);
  }

  fn check(&self) -> io::Result<()> {
    if self.broken.load(Ordering::SeqCst) { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
  }
}

impl Listener for BreakableListener {
  type Io = BreakableStream;
  type Addr = SocketAddr;

  async fn accept(&mut self) -> (Self::Io, Self::Addr) {
    let (inner, address) = Listener::accept(&mut self.inner).await;
    self.accepted += 1;
    let line = Line { number: self.accepted, broken: Arc::default() };
    (BreakableStream { inner, line }, address)
  }

  fn local_addr(&self) -> io::Result<Self::Addr> {
    self.inner.local_addr()
  }
}

impl Connected<IncomingStream<'_, BreakableListener>> for Line {
  fn connect_info(stream: IncomingStream<'_, BreakableListener>) -> Self {
    stream.io().line.clone()
  }
}

impl AsyncRead for BreakableStream {
  fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
    self.line.check()?;
    Pin::new(&mut self.inner).poll_read(cx, buffer)
  }
}

impl AsyncWrite for BreakableStream {
  fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
    self.line.check()?;
    Pin::new(&mut self.inner).poll_write(cx, bytes)
  }

  fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    self.line.check()?;
    Pin::new(&mut self.inner).poll_flush(cx)
  }

  fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    Pin::new(&mut self.inner).poll_shutdown(cx)
  }
}
