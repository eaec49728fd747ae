//! Requests between being sent and landing. One process's requests to one partition land in the order in which they were sent, late ones excepted.

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Fault;
use crate::record::{Partition, Position, Record, Stream};

/// When a request lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
  At(Instant),
  WhenTold,
}

pub(super) struct Request {
  pub(super) process: u32,
  pub(super) stream: Stream,
  pub(super) partition: Partition,
  pub(super) records: Vec<Record>,
  /// Positions left out before it.
  pub(super) gap: Position,
  /// How often it lands.
  pub(super) times: u8,
  pub(super) reply: Option<oneshot::Sender<Vec<Position>>>,
  when: When,
  late: bool,
}

impl Request {
  pub(super) fn new(process: u32, stream: Stream, partition: Partition, mut records: Vec<Record>, fault: Fault, when: When) -> Self {
    let (mut gap, mut times, mut late) = (0, 1, false);
    let mut when = when;
    match fault {
      Fault::None | Fault::LostAck | Fault::Refused => {}
      Fault::Lost => times = 0,
      Fault::Late(after) => {
        late = true;
        if let When::At(at) = &mut when {
          *at += after;
        }
      }
      Fault::Held => {
        late = true;
        when = When::WhenTold;
      }
      Fault::Duplicate => times = 2,
      Fault::Gap(left_out) => gap = left_out,
      Fault::Torn(landing) => records.truncate(landing),
    }
    Self { process, stream, partition, records, gap, times, reply: None, when, late }
  }
}

/// All requests in flight, in the order in which they were sent.
#[derive(Default)]
pub(super) struct InFlight {
  requests: Vec<Request>,
}

impl InFlight {
  /// Sends a request: until when its caller waits, and how it hears, if it does.
  pub(super) fn send(&mut self, mut request: Request, fault: Fault) -> (Instant, Option<oneshot::Receiver<Vec<Position>>>) {
    let before = self.requests.iter().filter(|other| other.follows(&request)).filter_map(Request::at).max();
    let caller_waits_until = match (&mut request.when, request.late) {
      (When::At(at), false) => {
        *at = before.map_or(*at, |before| before.max(*at));
        *at
      }
      // A late request's caller gives up at once.
      (When::At(_) | When::WhenTold, _) => Instant::now(),
    };
    let acknowledged = match fault {
      Fault::None | Fault::Duplicate | Fault::Gap(_) => true,
      Fault::LostAck | Fault::Lost | Fault::Late(_) | Fault::Held | Fault::Torn(_) | Fault::Refused => false,
    };
    let receiver = acknowledged.then(|| {
      let (sender, receiver) = oneshot::channel();
      request.reply = Some(sender);
      receiver
    });
    self.requests.push(request);
    (caller_waits_until, receiver)
  }

  /// Takes what lands by `now`, in the order of landing.
  pub(super) fn take_due(&mut self, now: Instant) -> Vec<Request> {
    if !self.requests.iter().any(|request| request.at().is_some_and(|at| at <= now)) {
      return Vec::new();
    }
    let (mut due, rest): (Vec<_>, Vec<_>) = self.requests.drain(..).partition(|request| request.at().is_some_and(|at| at <= now));
    self.requests = rest;
    // A stable sort: what lands at one instant lands in the order of sending.
    due.sort_by_key(Request::at);
    due
  }

  pub(super) fn take_held(&mut self) -> Option<Request> {
    let at = self.requests.iter().position(|request| request.when == When::WhenTold)?;
    Some(self.requests.remove(at))
  }

  /// When something lands in a lane next.
  pub(super) fn next_due(&self, stream: Stream, partition: Partition) -> Option<Instant> {
    self.requests.iter().filter(|request| (request.stream, request.partition) == (stream, partition)).filter_map(Request::at).min()
  }

  pub(super) fn drop_of(&mut self, process: u32) {
    self.requests.retain(|request| request.process != process);
  }
}

impl Request {
  fn at(&self) -> Option<Instant> {
    match self.when {
      When::At(at) => Some(at),
      When::WhenTold => None,
    }
  }

  /// Whether `later` must not land before this one.
  fn follows(&self, later: &Self) -> bool {
    !self.late && (self.process, self.stream, self.partition) == (later.process, later.stream, later.partition)
  }
}
