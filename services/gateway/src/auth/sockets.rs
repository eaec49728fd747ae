//! The open sockets: how many an account has, and which ones a sign-out must end.

use std::collections::HashMap;
use std::sync::Arc;

use pa_domain::AgentId;
use pa_store::ops::tokens::TokenHash;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::limits::SOCKETS_PER_ACCOUNT_MAX;

type Hash = [u8; 32];

/// Every open socket by its account and the credential that opened it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sockets(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
  by_account: HashMap<AgentId, usize>,
  by_credential: HashMap<Hash, (usize, CancellationToken)>,
}

/// A socket's place; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
  sockets: Sockets,
  account: AgentId,
  credential: Hash,
  /// The credential no longer holds.
  pub(crate) revoked: CancellationToken,
}

impl Sockets {
  /// A place for one more socket, unless the account has too many.
  pub(crate) fn enter(&self, account: AgentId, credential: Hash) -> Option<Place> {
    let mut state = self.0.lock();
    let count = state.by_account.entry(account).or_default();
    if *count >= SOCKETS_PER_ACCOUNT_MAX {
      return None;
    }
    *count += 1;
    let (users, revoked) = state.by_credential.entry(credential).or_default();
    *users += 1;
    let revoked = revoked.clone();
    Some(Place { sockets: self.clone(), account, credential, revoked })
  }

  /// Ends every socket that this credential opened.
  pub(crate) fn revoke(&self, credential: &Hash) {
    if let Some((_, revoked)) = self.0.lock().by_credential.get(credential) {
      revoked.cancel();
    }
  }

  /// Every credential that has an open socket.
  pub(crate) fn credentials(&self) -> Vec<TokenHash> {
    self.0.lock().by_credential.keys().copied().map(TokenHash).collect()
  }

  #[cfg(test)]
  fn is_empty(&self) -> bool {
    let state = self.0.lock();
    state.by_account.is_empty() && state.by_credential.is_empty()
  }
}

impl Drop for Place {
  fn drop(&mut self) {
    let mut state = self.sockets.0.lock();
    if let Some(count) = state.by_account.get_mut(&self.account) {
      *count -= 1;
      if *count == 0 {
        state.by_account.remove(&self.account);
      }
    }
    if let Some((users, _)) = state.by_credential.get_mut(&self.credential) {
      *users -= 1;
      if *users == 0 {
        state.by_credential.remove(&self.credential);
      }
    }
  }
}

#[cfg(test)]
mod tests {
  use uuid::Uuid;

  use super::*;

  const ACCOUNT: AgentId = AgentId(Uuid::from_u128(1));

  #[test]
  fn an_account_has_a_limited_number_of_sockets_and_gets_places_back() {
    let sockets = Sockets::default();
    let mut places: Vec<Place> = (0..SOCKETS_PER_ACCOUNT_MAX).map(|_| sockets.enter(ACCOUNT, [1; 32]).unwrap()).collect();
    assert!(sockets.enter(ACCOUNT, [1; 32]).is_none());
    assert!(sockets.enter(AgentId(Uuid::from_u128(2)), [2; 32]).is_some());
    places.pop();
    assert!(sockets.enter(ACCOUNT, [1; 32]).is_some());
    drop(places);
    assert!(sockets.is_empty());
  }

  #[test]
  fn a_sign_out_ends_the_sockets_of_that_session_only() {
    let sockets = Sockets::default();
    let (ended, other) = (sockets.enter(ACCOUNT, [1; 32]).unwrap(), sockets.enter(ACCOUNT, [2; 32]).unwrap());
    sockets.revoke(&[1; 32]);
    assert!(ended.revoked.is_cancelled());
    assert!(!other.revoked.is_cancelled());
  }
}
