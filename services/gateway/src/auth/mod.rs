//! Who sends a request: the owner's or an account's bearer token, or a browser's session cookie.
//!
//! Invariants
//! - A token or cookie is looked up by its SHA-256 and appears in no log line, span or error.
//! - A cookie counts only under one of our own host names and from our own page ([`Places`]).
//! - Somebody else's data can't be named: every read and write takes the account from [`Viewer`].
//!
//! Read next: [`places`](self::places), then `sign_in.rs`.

mod cookie;
mod places;
mod sessions;
pub(crate) mod sign_in;
mod sockets;
mod throttle;
pub(crate) mod watch;

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use pa_domain::AgentId;
use pa_store::Disposition;
use pa_store::ops::tokens::{Found, Kind, TokenHash};
use tokio::time::{Instant, sleep};

use crate::edge::Edge;
use crate::http::answer::Refusal;
use crate::http::trace::TraceId;
use crate::limits::{STORAGE_AGAIN_AFTER, STORAGE_WITHIN};

pub use places::Places;
pub(crate) use sessions::Sessions;
pub(crate) use sockets::{Place, Sockets};
pub(crate) use throttle::Throttle;

/// Who may send requests as a bearer.
const BEARERS: [Kind; 2] = [Kind::Owner, Kind::Api];

/// Who is signed in, and by which credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Viewer {
  /// The account; its agent has the same id.
  pub account: AgentId,
  pub credential: TokenHash,
  pub kind: Kind,
}

impl From<Found> for Viewer {
  fn from(found: Found) -> Self {
    Self { account: found.account, credential: found.hash, kind: found.kind }
  }
}

/// What a request brings to prove who sends it.
pub(crate) enum Credential<'a> {
  Bearer(&'a str),
  Cookie(&'a str),
  None,
}

impl<'a> Credential<'a> {
  /// The credential in the headers. An `Authorization` header wins over a cookie, because a browser does not add it by itself.
  pub(crate) fn of(headers: &'a HeaderMap, places: &Places) -> Self {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
      return value.to_str().ok().and_then(bearer).map_or(Self::None, Self::Bearer);
    }
    cookie::session(headers, places.is_secure()).map_or(Self::None, Self::Cookie)
  }
}

/// The token of `Bearer …`.
pub(crate) fn bearer(value: &str) -> Option<&str> {
  let (scheme, token) = value.trim().split_once(' ')?;
  let token = token.trim();
  (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Looks up who sends these headers.
pub(crate) async fn viewer(edge: &Edge, headers: &HeaderMap, peer: IpAddr) -> Result<Viewer, Refusal> {
  match Credential::of(headers, &edge.places) {
    Credential::Bearer(token) => by_bearer(edge, token, peer).await,
    Credential::Cookie(session) => {
      if !edge.places.ours(headers) {
        return Err(Refusal::ForeignOrigin);
      }
      found(edge, session, &[Kind::Session]).await?.map(Viewer::from).ok_or(Refusal::Unauthenticated)
    }
    Credential::None => Err(Refusal::Unauthenticated),
  }
}

/// Looks up a bearer token; whoever guesses must wait.
pub(crate) async fn by_bearer(edge: &Edge, token: &str, peer: IpAddr) -> Result<Viewer, Refusal> {
  let hash = TokenHash::of(token);
  if let Some(wait) = edge.throttle.wait(peer, &hash.0, edge.clock.now()) {
    return Err(Refusal::TooManyTries { wait_secs: wait.as_secs() });
  }
  if let Some(found) = found(edge, token, &BEARERS).await? {
    edge.throttle.right(hash.0);
    return Ok(found.into());
  }
  edge.throttle.wrong(peer, edge.clock.now());
  metrics::counter!("pa_wrong_credentials_total").increment(1);
  Err(Refusal::Unauthenticated)
}

/// Looks a credential up, and waits a little for storage that is away.
async fn found(edge: &Edge, token: &str, kinds: &[Kind]) -> Result<Option<Found>, Refusal> {
  let deadline = Instant::now() + STORAGE_WITHIN;
  loop {
    match edge.tokens.find(&edge.pool, token, kinds).await {
      Ok(found) => return Ok(found),
      Err(error) if error.disposition() == Disposition::Fail || Instant::now() + STORAGE_AGAIN_AFTER >= deadline => return Err(unavailable(error)),
      Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "a credential is looked up again"),
    }
    sleep(STORAGE_AGAIN_AFTER).await;
  }
}

/// A credential can't be looked up now.
#[expect(clippy::needless_pass_by_value, reason = "made for map_err")]
pub(crate) fn unavailable(error: pa_store::Error) -> Refusal {
  tracing::warn!(error = &error as &dyn std::error::Error, "credentials can't be looked up");
  Refusal::Unavailable
}

/// The address that a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

impl<S: Sync> FromRequestParts<S> for Peer {
  type Rejection = std::convert::Infallible;

  async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
    let address = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    // Without a connection (a router called directly) everybody is one address.
    Ok(Self(address.unwrap_or(IpAddr::from([0, 0, 0, 0]))))
  }
}

impl<S: Sync> FromRequestParts<S> for TraceId {
  type Rejection = std::convert::Infallible;

  async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
    Ok(parts.extensions.get::<Self>().copied().unwrap_or_else(|| Self::of(&parts.headers)))
  }
}

impl FromRequestParts<Edge> for Viewer {
  type Rejection = Refusal;

  async fn from_request_parts(parts: &mut Parts, edge: &Edge) -> Result<Self, Refusal> {
    let Peer(peer) = Peer::from_request_parts(parts, edge).await.unwrap_or_else(|never| match never {});
    viewer(edge, &parts.headers, peer).await
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn a_bearer_is_read_whatever_the_case_of_its_scheme() {
    assert_eq!(bearer("Bearer pa_x"), Some("pa_x"));
    assert_eq!(bearer("bearer   pa_x "), Some("pa_x"));
    for wrong in ["", "Bearer", "Bearer ", "Basic eDp5", "pa_x"] {
      assert_eq!(bearer(wrong), None, "{wrong:?}");
    }
  }

  #[test]
  fn a_broken_authorization_header_does_not_fall_back_to_the_cookie() {
    let headers: HeaderMap =
      [(header::AUTHORIZATION, "Basic eDp5".parse().unwrap()), (header::COOKIE, "pa_session=pa_x".parse().unwrap())].into_iter().collect();
    let places = Places::new(None, ([127, 0, 0, 1], 1).into()).unwrap();
    assert!(matches!(Credential::of(&headers, &places), Credential::None));
  }
}
