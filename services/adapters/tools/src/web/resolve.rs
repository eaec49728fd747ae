//! The resolver of fetches: it gives out only addresses that may be reached, and the client connects to nothing else.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Allow;

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 16;

/// Finds the addresses of names.
#[async_trait]
pub trait Names: Send + Sync + 'static {
  /// The addresses of a host.
  ///
  /// # Errors
  /// It has none, or nobody can say.
  async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The machine's own resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNames;

#[async_trait]
impl Names for SystemNames {
  async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
  }
}

/// An address must not be reached.
#[derive(Debug, thiserror::Error)]
#[error("{host} is at {address}, which is {what}")]
pub(super) struct Refused {
  pub(super) host: String,
  pub(super) address: IpAddr,
  pub(super) what: &'static str,
}

/// Gives out the addresses of a name that may be reached.
pub(super) struct Checked {
  pub(super) names: Arc<dyn Names>,
  pub(super) allow: Arc<Allow>,
}

impl Resolve for Checked {
  fn resolve(&self, name: Name) -> Resolving {
    let (names, allow) = (Arc::clone(&self.names), Arc::clone(&self.allow));
    Box::pin(async move {
      let host = name.as_str().to_owned();
      let found = names.lookup(&host).await?;
      let mut refused = None;
      let mut reachable = Vec::new();
      for address in found {
        match allow.refusal(&host, address) {
          None => reachable.push(SocketAddr::new(address, 0)),
          Some(what) => refused = Some(Refused { host: host.clone(), address, what }),
        }
      }
      match refused {
        Some(refused) if reachable.is_empty() => Err(refused.into()),
        _ => Ok(Box::new(reachable.into_iter().take(ADDRESSES_MAX)) as Addrs),
      }
    })
  }
}
