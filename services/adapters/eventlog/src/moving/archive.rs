//! A log in a folder: one file for each partition of events and inputs.
//!
//! `PALOG1` and a line feed, then records, each behind its length in 4 bytes: position (8) · id (16) · type, source (each behind 2 bytes of length) · trace (2 bytes of
//! length, 0: none) · `pa-meta`, value (each behind 4 bytes of length). Numbers are big-endian. What is sealed stays sealed. The format is permanent.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::port::{AppendError, EventLog, Identity, LogError};
use crate::record::{Partition, Position, Record, Stored, Stream};

use super::{Ends, Error};

const MAGIC: &[u8; 7] = b"PALOG1\n";
/// A record with its headers; anything longer is no record of ours.
const FRAME_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The name of a partition's file in its folder.
pub fn file_name(stream: Stream, partition: Partition) -> String {
  format!("{}-{partition:05}.log", stream.name())
}

/// Writes one partition's file.
pub struct ArchiveWriter {
  path: PathBuf,
  out: BufWriter<File>,
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
  let path = path.display().to_string();
  move |source| Error::File { doing, path, source }
}

impl ArchiveWriter {
  /// Begins a file that is not there yet.
  ///
  /// # Errors
  /// It is there, or can't be made.
  pub fn create(folder: &Path, stream: Stream, partition: Partition) -> Result<Self, Error> {
    let path = folder.join(file_name(stream, partition));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed("create", &path))?;
    let mut out = BufWriter::new(file);
    out.write_all(MAGIC).map_err(failed("write", &path))?;
    Ok(Self { path, out })
  }

  /// Writes the next record.
  ///
  /// # Errors
  /// The disk's.
  pub fn write(&mut self, stored: &Stored) -> Result<(), Error> {
    let bytes = encode(stored);
    self.out.write_all(&length(&bytes)).and_then(|()| self.out.write_all(&bytes)).map_err(failed("write", &self.path))
  }

  /// Makes the file durable.
  ///
  /// # Errors
  /// The disk's.
  pub fn finish(self) -> Result<(), Error> {
    let Self { path, out } = self;
    out.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all()).map_err(failed("write", &path))
  }
}

fn length(bytes: &[u8]) -> [u8; 4] {
  u32::try_from(bytes.len()).expect("records are far below 4 GiB").to_be_bytes()
}

fn encode(stored: &Stored) -> Vec<u8> {
  let record = &stored.record;
  let mut bytes = Vec::with_capacity(record.size_bytes() + 32);
  let short = |bytes: &mut Vec<u8>, text: &str| {
    bytes.extend_from_slice(&u16::try_from(text.len()).expect("names are short").to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
  };
  bytes.extend_from_slice(&stored.position.to_be_bytes());
  bytes.extend_from_slice(record.id.as_bytes());
  short(&mut bytes, &record.type_name);
  short(&mut bytes, &record.source);
  short(&mut bytes, record.traceparent.as_deref().unwrap_or_default());
  for long in [&record.meta, &record.value] {
    bytes.extend_from_slice(&length(long));
    bytes.extend_from_slice(long);
  }
  bytes
}

fn decode(bytes: &[u8]) -> Option<Stored> {
  let (position, rest) = bytes.split_first_chunk::<8>()?;
  let (id, rest) = rest.split_first_chunk::<16>()?;
  let (type_name, rest) = take_short(rest)?;
  let (source, rest) = take_short(rest)?;
  let (trace, rest) = take_short(rest)?;
  let (meta, rest) = take_long(rest)?;
  let (value, rest) = take_long(rest)?;
  let record = Record {
    id: Uuid::from_bytes(*id),
    type_name: type_name.into(),
    source: source.into(),
    traceparent: Some(trace).filter(|trace| !trace.is_empty()).map(Arc::from),
    meta: Bytes::copy_from_slice(meta),
    value: Bytes::copy_from_slice(value),
  };
  rest.is_empty().then(|| Stored::new(i64::from_be_bytes(*position), record))
}

fn take_short(bytes: &[u8]) -> Option<(&str, &[u8])> {
  let (length, rest) = bytes.split_first_chunk::<2>()?;
  let (text, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
  Some((std::str::from_utf8(text).ok()?, rest))
}

fn take_long(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
  let (length, rest) = bytes.split_first_chunk::<4>()?;
  rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

/// The log in a folder, for reading. Readers that go on where they stopped don't begin the file anew.
pub struct Archive {
  folder: PathBuf,
  identity: Identity,
  ends: Ends,
  cursors: Mutex<HashMap<(Stream, Partition), Cursor>>,
}

struct Cursor {
  file: BufReader<File>,
  path: PathBuf,
  /// Everything before it was handed out.
  next: Position,
}

impl Archive {
  /// The log of `identity` that [`ArchiveWriter`] wrote into `folder`, up to its ends.
  pub fn new(folder: &Path, identity: Identity, ends: Ends) -> Self {
    Self { folder: folder.to_owned(), identity, ends, cursors: Mutex::default() }
  }

  fn read_some(&self, stream: Stream, partition: Partition, from: Position, max: usize) -> Result<Vec<Arc<Stored>>, Error> {
    let taken = self.cursors.lock().remove(&(stream, partition)).filter(|cursor| cursor.next <= from);
    let mut cursor = match taken {
      Some(cursor) => cursor,
      None => Cursor::open(&self.folder.join(file_name(stream, partition)))?,
    };
    let mut read = Vec::new();
    while read.len() < max
      && let Some(stored) = cursor.next_record()?
    {
      if stored.position >= from {
        read.push(stored);
      }
    }
    cursor.next = read.last().map_or(from, |last| last.position + 1);
    self.cursors.lock().insert((stream, partition), cursor);
    Ok(read)
  }
}

impl Cursor {
  fn open(path: &Path) -> Result<Self, Error> {
    let mut file = BufReader::new(File::open(path).map_err(failed("open", path))?);
    let mut magic = [0; MAGIC.len()];
    match file.read_exact(&mut magic) {
      Ok(()) if magic == *MAGIC => Ok(Self { file, path: path.to_owned(), next: 0 }),
      Ok(()) => Err(malformed(path, "it begins otherwise")),
      Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(malformed(path, "it is too short")),
      Err(error) => Err(failed("read", path)(error)),
    }
  }

  fn next_record(&mut self) -> Result<Option<Arc<Stored>>, Error> {
    let mut length = [0; 4];
    match self.file.read_exact(&mut length) {
      Ok(()) => {}
      Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
      Err(error) => return Err(failed("read", &self.path)(error)),
    }
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > FRAME_BYTES_MAX {
      return Err(malformed(&self.path, "a record that is too long"));
    }
    let mut bytes = vec![0; length];
    self.file.read_exact(&mut bytes).map_err(failed("read", &self.path))?;
    decode(&bytes).map(|stored| Some(Arc::new(stored))).ok_or_else(|| malformed(&self.path, "a record that can't be taken apart"))
  }
}

fn malformed(path: &Path, what: &'static str) -> Error {
  Error::Malformed { path: path.display().to_string(), what }
}

#[async_trait]
impl EventLog for Archive {
  async fn append(&self, stream: Stream, partition: Partition, _records: Vec<Record>) -> Result<Vec<Position>, AppendError> {
    Err(AppendError::Refused { stream: stream.name(), partition, reason: "a log in a folder is for reading".to_owned() })
  }

  async fn read(&self, stream: Stream, partition: Partition, from: Position, max: usize) -> Result<Arc<[Arc<Stored>]>, LogError> {
    if stream == Stream::Pieces || from >= self.ends.end(stream, partition) {
      return Ok(Arc::from([]));
    }
    // A disk of this machine, and a command that does nothing else.
    self.read_some(stream, partition, from, max).map(Arc::from).map_err(|error| LogError::Unusable(error.to_string()))
  }

  async fn wait(&self, _stream: Stream, _partition: Partition, _from: Position) {
    std::future::pending::<()>().await;
  }

  async fn end(&self, stream: Stream, partition: Partition) -> Result<Position, LogError> {
    Ok(self.ends.end(stream, partition))
  }

  async fn identity(&self) -> Result<Identity, LogError> {
    Ok(self.identity.clone())
  }
}
