//! Sign-in by a link that works once, and sign-out.
//!
//! `GET` shows a button and consumes nothing, so that a link preview can't use the code up; `POST` consumes it: of any number at once exactly one gets the session.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use pa_store::ops::tokens::{self, Kind, NewToken, TokenHash};

use super::{Peer, Viewer, cookie, unavailable, watch};
use crate::edge::Edge;
use crate::http::answer::Refusal;
use crate::http::trace::TraceId;
use crate::limits::SESSION_MILLIS;

/// No token is longer; anything else needs no look-up.
const CODE_BYTES_MAX: usize = 200;
/// Of the browser's name in the list of sessions.
const LABEL_CHARS_MAX: usize = 120;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Language {
  English,
  Chinese,
}

impl Language {
  /// The first language of the header that we speak.
  fn of(headers: &HeaderMap) -> Self {
    let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first = accepted.split(',').map(str::trim).find(|tag| tag.starts_with("zh") || tag.starts_with("en"));
    if first.is_some_and(|tag| tag.starts_with("zh")) { Self::Chinese } else { Self::English }
  }

  fn tag(self) -> &'static str {
    match self {
      Self::English => "en",
      Self::Chinese => "zh-CN",
    }
  }

  fn pick(self, english: &'static str, chinese: &'static str) -> &'static str {
    match self {
      Self::English => english,
      Self::Chinese => chinese,
    }
  }
}

/// What the page says.
#[derive(Clone, Copy, Debug)]
enum Page {
  Button,
  Used,
  ForeignHost,
  Wait,
  Away,
}

impl Page {
  fn status(self) -> StatusCode {
    match self {
      Self::Button => StatusCode::OK,
      Self::Used => StatusCode::GONE,
      Self::ForeignHost => StatusCode::FORBIDDEN,
      Self::Wait => StatusCode::TOO_MANY_REQUESTS,
      Self::Away => StatusCode::SERVICE_UNAVAILABLE,
    }
  }

  fn text(self, language: Language) -> &'static str {
    match self {
      Self::Button => language.pick("This link signs this browser in, once.", "此链接可让此浏览器登录一次。"),
      Self::Used => language.pick(
        "This link has been used or has expired: it works once, and for an hour. For a new one run target/release/pa token link on the server, in the folder where you ran infra/up.",
        "此链接已使用或已过期：每个链接只能用一次，一小时内有效。要获取新链接，请在服务器上运行 infra/up 的文件夹中执行 target/release/pa token link。",
      ),
      Self::ForeignHost => language.pick(
        "This address is not the one that this server knows as its own. Open it under its own address, or set PA_PUBLIC_URL.",
        "此地址不是本服务器的已知地址。请使用其自身地址打开，或设置 PA_PUBLIC_URL。",
      ),
      Self::Wait => language.pick("Too many wrong links from this address. Wait a moment and try again.", "来自此地址的错误链接过多。请稍候再试。"),
      Self::Away => language.pick("The storage is away at the moment. The link still works; try again.", "存储暂时不可用。链接仍然有效，请重试。"),
    }
  }

  fn render(self, language: Language) -> Response {
    let button = match self {
      Self::Button | Self::Away => format!("<form method=\"post\"><button>{}</button></form>", language.pick("Sign in", "登录")),
      Self::Used | Self::ForeignHost | Self::Wait => String::new(),
    };
    let html = format!(
      "<!doctype html>\n<html lang=\"{}\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
       <meta name=\"color-scheme\" content=\"light dark\">\n<title>Personal Agent</title>\n<link rel=\"icon\" href=\"/icon.svg\">\n\
       <link rel=\"stylesheet\" href=\"/sign-in.css\">\n<main>\n<img src=\"/icon.svg\" alt=\"\">\n<h1>Personal Agent</h1>\n<p>{}</p>\n{button}\n</main>\n</html>\n",
      language.tag(),
      self.text(language),
    );
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'");
    (self.status(), [(header::CONTENT_SECURITY_POLICY, policy)], Html(html)).into_response()
  }
}

/// Shows the button, or says that the link is used up.
pub(crate) async fn show(State(edge): State<Edge>, Peer(peer): Peer, Path(code): Path<String>, headers: HeaderMap) -> Response {
  let language = Language::of(&headers);
  if !edge.places.ours_to_open(&headers) {
    return Page::ForeignHost.render(language);
  }
  let hash = TokenHash::of(&code);
  if edge.throttle.wait(peer, &hash.0, edge.clock.now()).is_some() {
    return Page::Wait.render(language);
  }
  let open = code.len() <= CODE_BYTES_MAX && tokens::is_open(&edge.pool, &code, Kind::SignIn).await.unwrap_or(true);
  if !open {
    edge.throttle.wrong(peer, edge.clock.now());
  }
  if open { Page::Button } else { Page::Used }.render(language)
}

/// Consumes the code and begins a session.
pub(crate) async fn enter(State(edge): State<Edge>, Peer(peer): Peer, trace: TraceId, Path(code): Path<String>, headers: HeaderMap) -> Response {
  let language = Language::of(&headers);
  if !edge.places.ours(&headers) {
    return Page::ForeignHost.render(language);
  }
  let hash = TokenHash::of(&code);
  if edge.throttle.wait(peer, &hash.0, edge.clock.now()).is_some() {
    return Page::Wait.render(language);
  }
  // In a task of its own: a browser that goes away between the two statements must not cost the code.
  let entering = edge.tasks.spawn(begin_session(edge.clone(), code, label(&headers)));
  match entering.await {
    Ok(Ok(Some(cookie))) => ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response(),
    Ok(Ok(None)) => {
      edge.throttle.wrong(peer, edge.clock.now());
      Page::Used.render(language)
    }
    Ok(Err(error)) => {
      tracing::warn!(error = &error as &dyn std::error::Error, "a sign-in code can't be looked at");
      Page::Away.render(language)
    }
    Err(_) => Refusal::Internal(trace).into_response(),
  }
}

async fn begin_session(edge: Edge, code: String, label: String) -> Result<Option<HeaderValue>, pa_store::Error> {
  if code.len() > CODE_BYTES_MAX {
    return Ok(None);
  }
  let Some(found) = tokens::consume(&edge.pool, &code, Kind::SignIn).await? else { return Ok(None) };
  let session = NewToken { account: found.account, kind: Kind::Session, label, lives_for_ms: Some(SESSION_MILLIS) };
  let token = tokens::create(&edge.pool, &session).await?;
  tracing::info!(account.id = %found.account, "signed in by a link");
  Ok(Some(cookie::set(&token, edge.places.is_secure())))
}

/// Ends the session: the cookie, and every socket that it opened.
pub(crate) async fn leave(State(edge): State<Edge>, viewer: Viewer) -> Result<Response, Refusal> {
  if viewer.kind == Kind::Session {
    tokens::revoke(&edge.pool, viewer.credential).await.map_err(unavailable)?;
    edge.sockets.revoke(&viewer.credential.0);
  }
  Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie::clear(edge.places.is_secure()))]).into_response())
}

/// Ends every session of the account, in every browser. Bearer tokens stay: they are replaced by `pa token reset`.
pub(crate) async fn leave_everywhere(State(edge): State<Edge>, viewer: Viewer) -> Result<Response, Refusal> {
  let ended = tokens::revoke_all(&edge.pool, viewer.account, Kind::Session).await.map_err(unavailable)?;
  tracing::info!(account.id = %viewer.account, sessions = ended, "signed out everywhere");
  // The sockets of this process end at once; other processes see it within two seconds.
  watch::look(&edge).await.map_err(unavailable)?;
  Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie::clear(edge.places.is_secure()))]).into_response())
}

/// Moves the end of a session that is used, and gives the cookie to send again.
pub(crate) async fn keep(edge: &Edge, viewer: &Viewer, headers: &HeaderMap) -> Option<HeaderValue> {
  if viewer.kind != Kind::Session || !edge.sessions.is_due(viewer.credential.0, edge.clock.now()) {
    return None;
  }
  let secure = edge.places.is_secure();
  match tokens::extend(&edge.pool, viewer.credential, SESSION_MILLIS).await {
    Ok(true) => cookie::session(headers, secure).map(|session| cookie::set(&session.into(), secure)),
    Ok(false) => None,
    Err(error) => {
      tracing::warn!(error = &error as &dyn std::error::Error, "a session's end was not moved");
      None
    }
  }
}

fn label(headers: &HeaderMap) -> String {
  let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("browser");
  agent.chars().take(LABEL_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
  use super::*;

  #[test]
  fn the_page_speaks_the_readers_language() {
    let of = |accepted: &'static str| Language::of(&[(header::ACCEPT_LANGUAGE, HeaderValue::from_static(accepted))].into_iter().collect());
    assert_eq!(of("zh-CN,zh;q=0.9,en;q=0.8"), Language::Chinese);
    assert_eq!(of("de, en;q=0.7, zh;q=0.3"), Language::English);
    assert_eq!(of("fr"), Language::English);
  }

  #[test]
  fn every_page_has_a_text_in_both_languages_and_only_two_have_a_button() {
    for page in [Page::Button, Page::Used, Page::ForeignHost, Page::Wait, Page::Away] {
      assert_ne!(page.text(Language::English), page.text(Language::Chinese));
      assert!(!page.text(Language::English).is_ascii() || page.text(Language::English).ends_with('.'));
    }
  }
}
