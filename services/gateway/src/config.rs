//! What is configured about the edge.

use std::net::SocketAddr;

use crate::auth::Places;

/// The configuration of page, GraphQL, webhooks and files.
#[derive(Clone, Debug)]
pub struct Config {
  /// Where page, GraphQL and webhooks listen; port 0 takes a free one.
  pub listen: SocketAddr,
  /// How the outside reaches it, such as `https://agent.example.org`; unset: `http://` and the listen address.
  pub public_url: Option<String>,
  /// Allows to listen on an address that others reach without https.
  pub allow_insecure: bool,
}

/// A configuration that can't be served.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
  #[error("the public url {url:?} is not of the form http://host[:port] or https://host[:port]")]
  PublicUrl { url: String },
  #[error("{listen} is reachable from outside without https: set an https public url, or allow it explicitly")]
  Insecure { listen: SocketAddr },
}

impl Config {
  /// Checks everything that can be checked before a connection is made.
  pub fn validate(&self) -> Result<(), ConfigError> {
    let places = self.places(self.listen)?;
    if !self.listen.ip().is_loopback() && !places.is_secure() && !self.allow_insecure {
      return Err(ConfigError::Insecure { listen: self.listen });
    }
    Ok(())
  }

  /// Where the outside finds this process, which listens on `bound`.
  pub fn places(&self, bound: SocketAddr) -> Result<Places, ConfigError> {
    Places::new(self.public_url.as_deref(), bound)
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  fn config(listen: &str, public_url: Option<&str>, allow_insecure: bool) -> Config {
    Config { listen: listen.parse().unwrap(), public_url: public_url.map(str::to_owned), allow_insecure }
  }

  #[test]
  fn an_address_that_others_reach_needs_https_or_a_word() {
    assert!(config("127.0.0.1:8787", None, false).validate().is_ok());
    assert!(matches!(config("0.0.0.0:8787", None, false).validate(), Err(ConfigError::Insecure { .. })));
    assert!(matches!(config("0.0.0.0:8787", Some("http://a.example"), false).validate(), Err(ConfigError::Insecure { .. })));
    assert!(config("0.0.0.0:8787", Some("https://a.example"), false).validate().is_ok());
    assert!(config("0.0.0.0:8787", None, true).validate().is_ok());
  }

  #[test]
  fn a_public_url_is_scheme_and_host_only() {
    for wrong in ["a.example", "ftp://a.example", "https://a.example/path", "https://user@a.example", "https://", ""] {
      assert!(matches!(config("127.0.0.1:1", Some(wrong), false).validate(), Err(ConfigError::PublicUrl { .. })), "{wrong}");
    }
    assert!(config("127.0.0.1:1", Some("https://a.example/"), false).validate().is_ok());
  }
}
