//! The addresses under which this process is itself: what `Host` and `Origin` are compared with.
//!
//! A cookie is sent by a browser to whoever a page points it at. So a request with a cookie counts only if its `Host` is one of ours (a name that was rebound to
//! our address isn't) and its `Origin`, where the browser sends one, is one of ours too.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, Uri, header};

use crate::config::ConfigError;

/// Our own addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
  public: String,
  secure: bool,
  /// Lower-case `host` or `host:port`, without the scheme's own port.
  public_authority: String,
  listen: Vec<String>,
  /// When every address of the machine is listened on: any address literal with this port is ours. A rebound name is never a literal.
  any_literal_port: Option<u16>,
}

impl Places {
  /// Our addresses, from the configured public URL and the bound address.
  pub fn new(public_url: Option<&str>, bound: SocketAddr) -> Result<Self, ConfigError> {
    let url = public_url.map_or_else(|| format!("http://{bound}"), str::to_owned);
    let (secure, public_authority) = split(&url).ok_or(ConfigError::PublicUrl { url: url.clone() })?;
    let mut listen = vec![without_port(&bound.to_string(), "80")];
    if bound.ip().is_loopback() || bound.ip().is_unspecified() {
      listen.extend(["localhost", "127.0.0.1", "[::1]"].map(|host| without_port(&format!("{host}:{}", bound.port()), "80")));
    }
    let public = url.trim_end_matches('/').to_owned();
    Ok(Self { public, secure, public_authority, listen, any_literal_port: bound.ip().is_unspecified().then_some(bound.port()) })
  }

  /// The public URL, without a slash at its end.
  pub fn public_url(&self) -> &str {
    &self.public
  }

  /// The outside uses https.
  pub fn is_secure(&self) -> bool {
    self.secure
  }

  /// The request names us as its host, and no foreign page sent it.
  pub fn ours(&self, headers: &HeaderMap) -> bool {
    if !self.ours_to_open(headers) {
      return false;
    }
    match headers.get(header::ORIGIN) {
      Some(origin) => origin.to_str().is_ok_and(|origin| self.is_origin(origin)),
      // Browsers send Origin with every POST and upgrade; where one does not, this header tells.
      None => headers.get("sec-fetch-site").is_none_or(|site| matches!(site.as_bytes(), b"same-origin" | b"none")),
    }
  }

  /// The request names us as its host; a link from anywhere may have led to it.
  pub fn ours_to_open(&self, headers: &HeaderMap) -> bool {
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).is_some_and(|host| self.is_host(host))
  }

  fn is_host(&self, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let own_port = if self.secure { "443" } else { "80" };
    without_port(&host, own_port) == self.public_authority || self.is_listened(&without_port(&host, "80"))
  }

  fn is_origin(&self, origin: &str) -> bool {
    let Some((secure, authority)) = split(origin) else { return false };
    (secure == self.secure && authority == self.public_authority) || (!secure && self.is_listened(&authority))
  }

  fn is_listened(&self, authority: &str) -> bool {
    self.listen.iter().any(|own| own == authority) || self.any_literal_port.is_some_and(|port| literal(authority).is_some_and(|(_, found)| found == port))
  }
}

/// An address literal with its port.
fn literal(authority: &str) -> Option<(IpAddr, u16)> {
  if let Ok(address) = authority.parse::<SocketAddr>() {
    return Some((address.ip(), address.port()));
  }
  authority.trim_matches(['[', ']']).parse().ok().map(|ip| (ip, 80))
}

/// (https, authority without the scheme's own port) of `http(s)://authority[/]`.
fn split(url: &str) -> Option<(bool, String)> {
  let uri: Uri = url.parse().ok()?;
  let secure = match uri.scheme_str()? {
    "https" => true,
    "http" => false,
    _ => return None,
  };
  let authority = uri.authority()?.as_str().to_ascii_lowercase();
  if authority.is_empty() || authority.contains('@') || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
    return None;
  }
  Some((secure, without_port(&authority, if secure { "443" } else { "80" })))
}

fn without_port(authority: &str, port: &str) -> String {
  authority.strip_suffix(port).and_then(|rest| rest.strip_suffix(':')).unwrap_or(authority).to_owned()
}

#[cfg(test)]
mod tests {
  use super::*;

  fn places(public_url: Option<&str>, bound: &str) -> Places {
    Places::new(public_url, bound.parse().unwrap()).unwrap()
  }

  fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
  }

  #[test]
  fn a_foreign_origin_or_a_rebound_name_is_not_ours() {
    let local = places(None, "127.0.0.1:8787");
    assert!(local.ours(&headers(&[("host", "127.0.0.1:8787")])));
    assert!(local.ours(&headers(&[("host", "localhost:8787"), ("origin", "http://localhost:8787")])));
    for (host, origin) in [
      ("127.0.0.1:8787", "http://evil.example"),
      ("127.0.0.1:8787", "null"),
      ("127.0.0.1:8787", "https://127.0.0.1:8787"),
      ("127.0.0.1:8787", "http://127.0.0.1:9999"),
      ("evil.example:8787", "http://evil.example:8787"),
    ] {
      assert!(!local.ours(&headers(&[("host", host), ("origin", origin)])), "{host} {origin}");
    }
    assert!(!local.ours(&headers(&[])));
    assert!(!local.ours(&headers(&[("host", "127.0.0.1:8787"), ("sec-fetch-site", "cross-site")])));
  }

  #[test]
  fn the_public_url_is_compared_with_its_scheme_and_without_its_own_port() {
    let public = places(Some("https://Agent.example"), "0.0.0.0:8787");
    assert!(public.is_secure());
    assert!(public.ours(&headers(&[("host", "agent.example"), ("origin", "https://agent.example")])));
    assert!(public.ours(&headers(&[("host", "agent.example:443"), ("origin", "https://agent.example:443")])));
    assert!(!public.ours(&headers(&[("host", "agent.example"), ("origin", "http://agent.example")])));
    assert!(!public.ours(&headers(&[("host", "agent.example:8443"), ("origin", "https://agent.example:8443")])));
  }

  #[test]
  fn on_all_addresses_any_literal_with_our_port_is_ours_and_no_name_is() {
    let open = places(None, "0.0.0.0:8787");
    assert!(open.ours(&headers(&[("host", "192.168.1.5:8787"), ("origin", "http://192.168.1.5:8787")])));
    assert!(open.ours(&headers(&[("host", "[fe80::1]:8787")])));
    assert!(!open.ours(&headers(&[("host", "192.168.1.5:8788")])));
    assert!(!open.ours(&headers(&[("host", "rebound.example:8787")])));
  }
}
