//! Blobs as they lie there, sealed: for a backup and its way back. No key is needed, and nothing is opened.

use std::io;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use object_store::ObjectStoreExt as _;
use object_store::path::Path as Key;

use crate::{Blobs, Error, PARTS_AT_ONCE, error, give_up, sealed};

/// An agent's folder and a blob's name in it, as they stand in a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
  pub agent: String,
  pub name: String,
}

impl Place {
  /// Takes what can be the place of a blob and nothing else: it becomes part of a path.
  pub fn new(agent: &str, name: &str) -> Option<Self> {
    let is_agent = agent.len() == 32 && agent.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    (is_agent && sealed::BlobId::parse(name).is_some()).then(|| Self { agent: agent.to_owned(), name: name.to_owned() })
  }

  fn key(&self) -> Key {
    Key::from(format!("blobs/{}/{}", self.agent, self.name))
  }
}

impl Blobs {
  /// The places of all blobs, in no order. One that is entered or erased meanwhile may be missing.
  pub fn all(&self) -> BoxStream<'static, Result<Place, Error>> {
    let found = self.store.list(Some(&Key::from("blobs"))).map_err(|source| error::reading("blobs")(source));
    let place = |meta: object_store::ObjectMeta| {
      let parts: Vec<_> = meta.location.parts().map(|part| part.as_ref().to_owned()).collect();
      match parts.as_slice() {
        [_, agent, name] => Place::new(agent, name),
        _ => None,
      }
    };
    found.try_filter_map(move |meta| std::future::ready(Ok(place(meta)))).boxed()
  }

  /// A blob's sealed bytes; `None` when it is gone with its agent.
  pub async fn sealed(&self, place: &Place) -> Result<Option<BoxStream<'static, Result<Bytes, Error>>>, Error> {
    let name = place.name.clone();
    match self.store.get(&place.key()).await {
      Ok(found) => Ok(Some(found.into_stream().map_err(move |source| error::reading(&name)(source)).boxed())),
      Err(object_store::Error::NotFound { .. }) => Ok(None),
      Err(source) => Err(error::reading(&place.name)(source)),
    }
  }

  /// Enters sealed bytes as they are, durable when this returns.
  pub async fn enter_sealed(&self, place: &Place, mut bytes: impl Stream<Item = io::Result<Bytes>> + Unpin) -> Result<(), Error> {
    let mut writer = self.writer(&place.key()).await?;
    while let Some(piece) = bytes.next().await {
      let piece = match piece {
        Ok(piece) => piece,
        Err(source) => return Err(give_up(writer, Error::Upload { source }).await),
      };
      writer.wait_for_capacity(PARTS_AT_ONCE).await.map_err(error::writing("enter a blob"))?;
      writer.put(piece);
    }
    writer.finish().await.map_err(error::writing("enter a blob"))?;
    Ok(())
  }
}
