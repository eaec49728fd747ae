//! Cuts a byte stream into whole event blocks for the event parser, within limits.
//!
//! Invariants
//! - A block ends with a blank line (LF, CRLF or CR); the end of the stream ends the last one too.
//! - A block is valid UTF-8: other bytes became U+FFFD.
//! - The parser gets one whole block at a time, so its work stays linear however the bytes arrive.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures::Stream;

/// Providers send a few hundred bytes an event; whole tool arguments in one event stay far below this.
pub(super) const EVENT_BYTES_MAX: usize = 1024 * 1024;
/// Reasoning is not kept but does arrive; this is some million tokens of it, each in an event of its own.
const STREAM_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Why no further block comes.
#[derive(Debug)]
pub(super) enum Fault<E> {
  Transport(E),
  Oversized(&'static str),
}

/// Where in a line the last byte was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
  Start,
  Inside,
  AfterReturn { blank: bool },
}

pub(super) struct Blocks<S> {
  source: S,
  /// The beginning of a block whose end has not arrived.
  partial: BytesMut,
  ready: VecDeque<Bytes>,
  line: Line,
  bytes: usize,
  ended: bool,
}

impl<S> Blocks<S> {
  pub(super) fn new(source: S) -> Self {
    Self { source, partial: BytesMut::new(), ready: VecDeque::new(), line: Line::Start, bytes: 0, ended: false }
  }

  fn accept<E>(&mut self, mut chunk: Bytes) -> Result<(), Fault<E>> {
    self.bytes += chunk.len();
    if self.bytes > STREAM_BYTES_MAX {
      return Err(Fault::Oversized("stream"));
    }
    while let Some(end) = self.block_end(&chunk) {
      let tail = chunk.split_to(end);
      let block = if self.partial.is_empty() {
        tail
      } else {
        self.partial.extend_from_slice(&tail);
        self.partial.split().freeze()
      };
      if block.len() > EVENT_BYTES_MAX {
        return Err(Fault::Oversized("event"));
      }
      self.ready.push_back(sound(block));
    }
    self.partial.extend_from_slice(&chunk);
    if self.partial.len() > EVENT_BYTES_MAX {
      return Err(Fault::Oversized("event"));
    }
    Ok(())
  }

  /// Finds how many bytes still belong to the current block, if its end is among them.
  fn block_end(&mut self, bytes: &[u8]) -> Option<usize> {
    for (at, byte) in bytes.iter().enumerate() {
      let (line, end) = match (self.line, byte) {
        (Line::AfterReturn { blank: true } | Line::Start, b'\n') => (Line::Start, Some(at + 1)),
        (Line::Start | Line::AfterReturn { .. }, b'\r') => (Line::AfterReturn { blank: true }, None),
        (Line::AfterReturn { blank: true }, _) => (Line::Start, Some(at)),
        (Line::Inside | Line::AfterReturn { blank: false }, b'\n') => (Line::Start, None),
        (Line::Inside, b'\r') => (Line::AfterReturn { blank: false }, None),
        (Line::Start | Line::Inside | Line::AfterReturn { blank: false }, _) => (Line::Inside, None),
      };
      self.line = line;
      if end.is_some() {
        return end;
      }
    }
    None
  }

  /// A server that ends right after its last line meant that line.
  fn last_block(&mut self) -> Option<Bytes> {
    self.ended = true;
    if self.partial.is_empty() {
      return None;
    }
    self.partial.extend_from_slice(b"\n\n");
    Some(sound(self.partial.split().freeze()))
  }
}

impl<S, E> Stream for Blocks<S>
where
  S: Stream<Item = Result<Bytes, E>> + Unpin,
{
  type Item = Result<Bytes, Fault<E>>;

  fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
    loop {
      if let Some(block) = self.ready.pop_front() {
        return Poll::Ready(Some(Ok(block)));
      }
      if self.ended {
        return Poll::Ready(None);
      }
      match ready!(Pin::new(&mut self.source).poll_next(cx)) {
        Some(Ok(chunk)) => {
          if let Err(fault) = self.accept(chunk) {
            return Poll::Ready(Some(Err(fault)));
          }
        }
        Some(Err(error)) => return Poll::Ready(Some(Err(Fault::Transport(error)))),
        None => return Poll::Ready(self.last_block().map(Ok)),
      }
    }
  }
}

impl<S: Unpin> Unpin for Blocks<S> {}

fn sound(block: Bytes) -> Bytes {
  if std::str::from_utf8(&block).is_ok() {
    return block;
  }
  String::from_utf8_lossy(&block).into_owned().into()
}

#[cfg(test)]
mod tests {
  use super::*;
  use eventsource_stream::EventStream;
  use futures::StreamExt as _;
  use futures::executor::block_on;
  use proptest::prelude::*;

  fn events(chunks: Vec<Vec<u8>>) -> Vec<String> {
    let source = futures::stream::iter(chunks.into_iter().map(|chunk| Ok::<_, std::io::Error>(Bytes::from(chunk))));
    block_on(EventStream::new(Blocks::new(source)).map(|event| event.expect("an event").data).collect())
  }

  #[test]
  fn every_line_end_and_comment_is_understood() {
    for stream in [
      ": hello\n\ndata: one\n\ndata: two\n\n",
      ": hello\r\n\r\ndata: one\r\n\r\ndata: two\r\n\r\n",
      "data: one\r\rdata: two\r\r",
      "\n\ndata: one\n\n\n\ndata: two",
      "data:one\n: in between\n\nevent: x\nid: 1\ndata:two\n\n",
    ] {
      assert_eq!(events(vec![stream.into()]), ["one", "two"], "{stream:?}");
      assert_eq!(events(stream.bytes().map(|byte| vec![byte]).collect()), ["one", "two"], "byte by byte: {stream:?}");
    }
  }

  /// Proves D28.
  #[test]
  fn bytes_that_are_no_utf8_are_replaced() {
    assert_eq!(events(vec![b"data: A\xffB\n\n".to_vec()]), ["A\u{fffd}B"]);
    assert_eq!(events(vec![b"data: \xe4\xbd".to_vec(), b"\xa0\n\n".to_vec()]), ["你"]);
  }

  #[test]
  fn an_event_over_the_limit_is_refused_before_it_is_whole() {
    let chunk = Bytes::from(vec![b'a'; EVENT_BYTES_MAX / 2 + 1]);
    let source = futures::stream::iter([Ok::<_, std::io::Error>(chunk.clone()), Ok(chunk)]).chain(futures::stream::pending());
    let first = block_on(Blocks::new(source).next());
    assert!(matches!(first, Some(Err(Fault::Oversized("event")))));
  }

  proptest! {
      #[test]
      fn any_split_gives_the_same_events(
          parts in prop::collection::vec(prop::sample::select(vec!["data: a", "data:你", ": c", "\n", "\r\n", "\r", "\n\n", "\r\n\r\n"]), 0..24),
          cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
      ) {
          let whole = parts.concat().into_bytes();
          let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).chain([0, whole.len()]).collect();
          at.sort_unstable();
          let split = at.windows(2).map(|pair| whole[pair[0]..pair[1]].to_vec()).filter(|chunk| !chunk.is_empty()).collect();
          prop_assert_eq!(events(split), events(vec![whole]));
      }
  }
}
