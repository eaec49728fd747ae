//! Accepts connections, each within limits, and lets them end when the process stops.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::rest;
use crate::limits::{CONNECTIONS_MAX, HEAD_WITHIN, STOP_WITHIN};

/// Between two tries of accepting when the process has no file left, for example.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Serves until `shutdown`; then takes no connection more, lets running requests end, and after a deadline drops what is left.
pub async fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken) {
  let connections = TaskTracker::new();
  let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
  // Dropped at the end of this function at the latest: whatever is still open then ends with it.
  let late = CancellationToken::new();
  let _ends = late.clone().drop_guard();
  loop {
    let accepted = tokio::select! {
        () = shutdown.cancelled() => break,
        accepted = accept(&listener, &places) => accepted,
    };
    let (stream, peer, place) = match accepted {
      Ok(accepted) => accepted,
      Err(error) => {
        tracing::warn!(%error, "a connection can't be accepted");
        sleep(ACCEPT_AGAIN_AFTER).await;
        continue;
      }
    };
    let connection = connection(stream, peer, router.clone(), connections.clone(), shutdown.clone());
    let late = late.clone();
    connections.spawn(async move {
      tokio::select! {
          () = connection => {}
          () = late.cancelled() => {}
      }
      drop(place);
    });
  }
  drop(listener);
  connections.close();
  if timeout(STOP_WITHIN, connections.wait()).await.is_err() {
    tracing::warn!(connections = connections.len(), "connections did not end in time and are dropped");
  }
}

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> std::io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
  // Beyond the limit connections wait in the operating system's queue.
  let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
  let (stream, peer) = listener.accept().await?;
  Ok((stream, peer, place))
}

async fn connection(stream: TcpStream, peer: SocketAddr, router: Router, rests: TaskTracker, shutdown: CancellationToken) {
  if let Err(error) = stream.set_nodelay(true) {
    tracing::debug!(%error, "small frames of a connection may be delayed");
  }
  let stopping = shutdown.clone();
  let service = service_fn(move |request: Request<Incoming>| answered(router.clone(), peer, request, rests.clone(), stopping.clone()));
  let serving = http1::Builder::new().timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).serve_connection(TokioIo::new(stream), service).with_upgrades();
  let mut serving = std::pin::pin!(serving);
  let ended = tokio::select! {
      ended = serving.as_mut() => ended,
      () = shutdown.cancelled() => {
          serving.as_mut().graceful_shutdown();
          serving.await
      }
  };
  if let Err(error) = ended {
    tracing::debug!(error = &error as &dyn std::error::Error, "a connection ended early");
  }
}

async fn answered(router: Router, peer: SocketAddr, request: Request<Incoming>, rests: TaskTracker, stop: CancellationToken) -> Result<Response, Infallible> {
  let (mut request, rest) = rest::lent(request);
  request.extensions_mut().insert(ConnectInfo(peer));
  let mut response = router.oneshot(request).await?;
  if let Some(body) = rest.settled(&mut response).await {
    // Without this the connection would be reset while the client still writes, and many clients would report that instead of the answer.
    rests.spawn(async move { stop.run_until_cancelled(rest::discard(body)).await });
  }
  Ok(response)
}
