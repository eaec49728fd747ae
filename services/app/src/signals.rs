//! The signals that ask a process to end, heard from its first moment on, so that whatever it has started by then is ended with it.

use std::fmt;

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a shell adds to a signal's number to make an exit code of it.
const SIGNALLED: u8 = 128;

/// SIGTERM and SIGINT. One that comes while nobody waits is not lost.
pub(crate) struct Signals {
  term: Signal,
  interrupt: Signal,
}

/// The process was asked to end before its work was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted {
  signal: u8,
}

impl Signals {
  /// Listens from now on; the signals no longer end the process by themselves.
  pub(crate) fn listen() -> Result<Self> {
    let term = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    Ok(Self { term, interrupt })
  }

  /// Waits for the next one.
  pub(crate) async fn next(&mut self) -> Interrupted {
    let kind = tokio::select! {
      _ = self.term.recv() => SignalKind::terminate(),
      _ = self.interrupt.recv() => SignalKind::interrupt(),
    };
    Interrupted { signal: u8::try_from(kind.as_raw_value()).expect("signals of Linux have small numbers") }
  }
}

impl Interrupted {
  /// The exit code by which a shell recognises it.
  pub(crate) fn exit_code(self) -> u8 {
    SIGNALLED + self.signal
  }
}

impl fmt::Display for Interrupted {
  fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "ended by signal {}", self.signal)
  }
}

impl std::error::Error for Interrupted {}
