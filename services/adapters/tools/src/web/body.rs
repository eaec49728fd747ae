//! The body of an answer: as many bytes as are taken, unpacked no further than that.

use std::io::Read as _;

use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;

/// Bytes that are taken of a body, packed and unpacked: more than any text that a person reads.
pub(super) const BODY_BYTES_MAX: usize = 5 * 1024 * 1024;

/// What came.
#[derive(Debug)]
pub(super) struct Body {
  pub(super) bytes: Bytes,
  /// There was more.
  pub(super) is_cut: bool,
}

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
  #[error("the answer broke off")]
  BrokeOff(#[source] reqwest::Error),
  #[error("the answer is packed in a way that was not asked for")]
  UnknownPacking,
  #[error("the answer can't be unpacked")]
  Damaged(#[source] std::io::Error),
}

/// Reads the body of an answer.
pub(super) async fn read(mut response: Response) -> Result<Body, Error> {
  let packing = response.headers().get_all(CONTENT_ENCODING).iter().map(|value| value.to_str().unwrap_or("?").trim().to_ascii_lowercase());
  let packing: Vec<_> = packing.filter(|packing| !packing.is_empty() && packing != "identity").collect();
  let mut bytes = BytesMut::new();
  let mut is_cut = false;
  while let Some(piece) = response.chunk().await.map_err(|error| Error::BrokeOff(error.without_url()))? {
    let room = BODY_BYTES_MAX - bytes.len();
    bytes.extend_from_slice(&piece[..piece.len().min(room)]);
    if piece.len() > room {
      is_cut = true;
      break;
    }
  }
  match packing.iter().map(String::as_str).collect::<Vec<_>>()[..] {
    [] => Ok(Body { bytes: bytes.freeze(), is_cut }),
    ["gzip" | "x-gzip"] => unpacked(&bytes, is_cut),
    _ => Err(Error::UnknownPacking),
  }
}

fn unpacked(packed: &[u8], is_cut: bool) -> Result<Body, Error> {
  let mut bytes = Vec::new();
  let read = MultiGzDecoder::new(packed).take(BODY_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
  match read {
    Ok(_) => {}
    // What was cut off can't be whole.
    Err(_) if is_cut && !bytes.is_empty() => {}
    Err(error) => return Err(Error::Damaged(error)),
  }
  let is_cut = is_cut || bytes.len() > BODY_BYTES_MAX;
  bytes.truncate(BODY_BYTES_MAX);
  Ok(Body { bytes: bytes.into(), is_cut })
}
