//! What subscribers hear.

use std::sync::Arc;
use std::time::Duration;

use pa_domain::limits::MESSAGE_TEXT_BYTES_MAX;
use pa_domain::{AgentId, ConversationId, MessageId};
use tokio::time::timeout;
use uuid::Uuid;

use super::*;

const AGENT: AgentId = AgentId(Uuid::from_u128(1));
const REPLY: MessageId = MessageId(Uuid::from_u128(2));
const MAIN: ConversationId = ConversationId(Uuid::from_u128(3));

fn piece(attempt: i32, offset: i64, text: &str) -> Piece {
  Piece { message: REPLY, attempt, offset_utf16: offset, text: text.into() }
}

async fn hears(subscription: &mut Subscription) -> (i32, i64, String) {
  match timeout(Duration::from_secs(1), subscription.next()).await {
    Ok(Some(Heard::Piece(piece))) => (piece.attempt, piece.offset_utf16, piece.text.to_string()),
    other => panic!("no piece but {other:?}"),
  }
}

async fn hears_nothing(subscription: &mut Subscription) {
  assert!(timeout(Duration::from_millis(200), subscription.next()).await.is_err());
}

/// A page that is opened in the middle has the whole text so far.
#[tokio::test(start_paused = true)]
async fn who_comes_later_hears_the_whole_text_first() {
  let pieces = Pieces::new();
  pieces.publish(AGENT, &piece(1000, 0, "Hel"));
  pieces.publish(AGENT, &piece(1000, 3, "lo"));
  let mut later = pieces.subscribe(AGENT);
  assert_eq!(hears(&mut later).await, (1000, 0, "Hello".into()));
  pieces.publish(AGENT, &piece(1000, 5, "!"));
  assert_eq!(hears(&mut later).await, (1000, 5, "!".into()));
  hears_nothing(&mut later).await;
}

#[tokio::test(start_paused = true)]
async fn offsets_count_as_the_page_counts() {
  let pieces = Pieces::new();
  let mut subscription = pieces.subscribe(AGENT);
  pieces.publish(AGENT, &piece(1, 0, "你😀"));
  assert_eq!(hears(&mut subscription).await, (1, 0, "你😀".into()));
  pieces.publish(AGENT, &piece(1, 3, "x"));
  assert_eq!(hears(&mut subscription).await, (1, 3, "x".into()));
}

#[tokio::test(start_paused = true)]
async fn a_lower_attempt_is_ignored_and_a_higher_one_begins_anew() {
  let pieces = Pieces::new();
  let mut subscription = pieces.subscribe(AGENT);
  pieces.publish(AGENT, &piece(2, 0, "second"));
  pieces.publish(AGENT, &piece(1, 0, "first"));
  assert_eq!(hears(&mut subscription).await, (2, 0, "second".into()));
  pieces.publish(AGENT, &piece(3, 0, ""));
  assert_eq!(hears(&mut subscription).await, (3, 0, String::new()));
  pieces.publish(AGENT, &piece(3, 0, "third"));
  assert_eq!(hears(&mut subscription).await, (3, 0, "third".into()));
  assert_eq!(pieces.text_so_far(AGENT, REPLY).as_deref(), Some("third"));
}

#[tokio::test(start_paused = true)]
async fn a_piece_that_overlaps_adds_only_its_rest_and_one_behind_a_gap_waits_for_the_whole() {
  let pieces = Pieces::new();
  pieces.publish(AGENT, &piece(1, 0, "abc"));
  pieces.publish(AGENT, &piece(1, 1, "bcd"));
  assert_eq!(pieces.text_so_far(AGENT, REPLY).as_deref(), Some("abcd"));
  pieces.publish(AGENT, &piece(1, 9, "z"));
  assert_eq!(pieces.text_so_far(AGENT, REPLY).as_deref(), Some("abcd"));
  pieces.publish(AGENT, &piece(1, 0, "abcdefghiz"));
  assert_eq!(pieces.text_so_far(AGENT, REPLY).as_deref(), Some("abcdefghiz"));
}

#[tokio::test(start_paused = true)]
async fn an_ended_reply_is_not_brought_back_by_a_late_piece() {
  let pieces = Pieces::new();
  let mut subscription = pieces.subscribe(AGENT);
  pieces.publish(AGENT, &piece(1, 0, "text"));
  assert_eq!(hears(&mut subscription).await.2, "text");
  pieces.finish(AGENT, REPLY);
  pieces.publish(AGENT, &piece(1, 4, " late"));
  pieces.publish(AGENT, &piece(1, 0, "text late"));
  hears_nothing(&mut subscription).await;
  assert_eq!(pieces.text_so_far(AGENT, REPLY), None);
  // A retry of the stopped message has a higher attempt.
  pieces.publish(AGENT, &piece(2, 0, "again"));
  assert_eq!(hears(&mut subscription).await, (2, 0, "again".into()));
}

#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_hears_larger_pieces_and_misses_nothing() {
  let pieces = Pieces::new();
  let mut subscription = pieces.subscribe(AGENT);
  let mut whole = String::new();
  for n in 0..1_000_i64 {
    pieces.publish(AGENT, &piece(1, n, "x"));
    whole.push('x');
  }
  assert_eq!(hears(&mut subscription).await, (1, 0, whole));
}

#[tokio::test(start_paused = true)]
async fn the_first_piece_comes_at_once_and_the_next_at_a_pace() {
  let pieces = Pieces::new();
  let mut subscription = pieces.subscribe(AGENT);
  let begin = Instant::now();
  pieces.publish(AGENT, &piece(1, 0, "a"));
  hears(&mut subscription).await;
  assert_eq!(begin.elapsed(), Duration::ZERO);
  pieces.publish(AGENT, &piece(1, 1, "b"));
  hears(&mut subscription).await;
  assert_eq!(begin.elapsed(), Duration::from_millis(20));
}

#[test]
fn a_text_is_kept_up_to_the_size_of_a_message() {
  let pieces = Pieces::new();
  pieces.publish(AGENT, &piece(1, 0, &"é".repeat(MESSAGE_TEXT_BYTES_MAX)));
  assert_eq!(pieces.text_so_far(AGENT, REPLY).map(|text| text.len()), Some(MESSAGE_TEXT_BYTES_MAX));
}

#[tokio::test(start_paused = true)]
async fn agents_do_not_hear_each_other() {
  let pieces = Pieces::new();
  let mut stranger = pieces.subscribe(AgentId(Uuid::from_u128(17)));
  pieces.publish(AGENT, &piece(1, 0, "private"));
  pieces.step(AGENT, MAIN, Some("pa_history"));
  hears_nothing(&mut stranger).await;
}

#[tokio::test(start_paused = true)]
async fn a_step_is_named_until_it_is_over() {
  let pieces = Pieces::new();
  pieces.step(AGENT, MAIN, Some("pa_history"));
  let mut subscription = pieces.subscribe(AGENT);
  let named = |step: Option<&str>| Heard::Step(NamedStep { conversation: MAIN, step: step.map(Arc::from) });
  assert_eq!(subscription.next().await, Some(named(Some("pa_history"))));
  pieces.step(AGENT, MAIN, None);
  assert_eq!(subscription.next().await, Some(named(None)));
  // Nothing is under way: a newcomer hears nothing.
  hears_nothing(&mut pieces.subscribe(AGENT)).await;
}

#[tokio::test(start_paused = true)]
async fn a_text_whose_end_was_missed_goes_with_time() {
  let pieces = Pieces::new();
  pieces.publish(AGENT, &piece(1, 0, "text"));
  pieces.sweep(Instant::now() + Duration::from_secs(599));
  assert!(pieces.text_so_far(AGENT, REPLY).is_some());
  pieces.sweep(Instant::now() + Duration::from_secs(600));
  assert_eq!(pieces.text_so_far(AGENT, REPLY), None);
}

#[test]
fn nothing_is_kept_of_agents_without_replies_and_subscribers() {
  let pieces = Pieces::new();
  drop(pieces.subscribe(AGENT));
  pieces.publish(AGENT, &piece(1, 0, "text"));
  pieces.step(AGENT, MAIN, Some("pa_history"));
  pieces.step(AGENT, MAIN, None);
  pieces.finish(AGENT, REPLY);
  assert!(pieces.shards.iter().all(|shard| shard.lock().is_empty()));
}

/// Pieces of two processes over one log.
mod between_processes {
  use pa_store::clock::{SystemClock, SystemIds};
  use pa_store::keys::KeyRing;
  use tokio::time::sleep;

  use super::*;
  use crate::port::EventLog as _;
  use crate::sim::{Plan, SimLog};

  async fn process(log: &SimLog, number: u128) -> (Arc<Pieces>, CancellationToken, broadcast::Sender<Arc<Decision>>) {
    let link = Link {
      log: Arc::new(log.fork()),
      identity: log.identity().await.unwrap(),
      keys: Arc::new(KeyRing::fixed()),
      clock: Arc::new(SystemClock),
      ids: Arc::new(SystemIds),
      process: Uuid::from_u128(number),
    };
    let (pieces, stop) = (Pieces::new(), CancellationToken::new());
    let (decisions, followed) = broadcast::channel(4);
    #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
    tokio::spawn(Arc::clone(&pieces).run(followed, Some(link), stop.clone()));
    (pieces, stop, decisions)
  }

  #[tokio::test(start_paused = true)]
  async fn text_written_here_is_heard_there() {
    let log = SimLog::new(2, true, Plan::none());
    let (here, _stop, _decisions) = process(&log, 1).await;
    let (there, _stop2, _decisions2) = process(&log, 2).await;
    here.set_others(true);
    there.set_others(true);
    sleep(Duration::from_millis(10)).await;
    let mut heard = there.subscribe(AGENT);
    here.publish(AGENT, &piece(1, 0, "top "));
    here.publish(AGENT, &piece(1, 4, "secret"));
    here.step(AGENT, MAIN, Some("pa_history"));
    assert_eq!(hears(&mut heard).await, (1, 0, "top secret".into()));
    assert_eq!(heard.next().await, Some(Heard::Step(NamedStep { conversation: MAIN, step: Some("pa_history".into()) })));
    here.publish(AGENT, &piece(1, 10, "!"));
    assert_eq!(hears(&mut heard).await, (1, 10, "!".into()));
    let values: Vec<u8> = (0..2).flat_map(|part| log.records(crate::Stream::Pieces, part)).flat_map(|stored| stored.record.value.to_vec()).collect();
    assert!(!values.windows(6).any(|window| window == b"secret"), "what others hear is sealed on its way");
  }

  #[tokio::test(start_paused = true)]
  async fn who_joins_in_the_middle_has_the_whole_text_soon() {
    let log = SimLog::new(1, true, Plan::none());
    let (here, _stop, _decisions) = process(&log, 1).await;
    here.set_others(true);
    here.publish(AGENT, &piece(1, 0, "beginning "));
    sleep(Duration::from_secs(3)).await;
    let (there, _stop2, _decisions2) = process(&log, 2).await;
    there.set_others(true);
    sleep(Duration::from_millis(10)).await;
    here.publish(AGENT, &piece(1, 10, "end"));
    assert_eq!(hears(&mut there.subscribe(AGENT)).await, (1, 0, "beginning end".into()));
  }

  #[tokio::test(start_paused = true)]
  async fn alone_nothing_is_appended() {
    let log = SimLog::new(1, true, Plan::none());
    let (here, _stop, _decisions) = process(&log, 1).await;
    here.publish(AGENT, &piece(1, 0, "text"));
    sleep(Duration::from_secs(5)).await;
    assert!(log.records(crate::Stream::Pieces, 0).is_empty());
  }
}
