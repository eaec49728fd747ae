//! One statement for several callers who ask the same question about different keys at the same time.
//!
//! Nobody waits for company: the first caller reads at once, and whoever asks while a statement is under way shares the next one. Invariants:
//! - Every answer comes from a statement that began after its caller had asked.
//! - A reader that fails or goes away takes nobody along: those who shared its statement read by themselves.

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Who asks, and who reads.
pub struct Together<K, V> {
  waiting: Mutex<Vec<(K, oneshot::Sender<V>)>>,
  reading: tokio::sync::Mutex<()>,
  max: usize,
}

impl<K, V> std::fmt::Debug for Together<K, V> {
  fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    f.debug_struct("Together").field("waiting", &self.waiting.lock().len()).finish_non_exhaustive()
  }
}

impl<K: Clone, V> Together<K, V> {
  /// At most `max` keys go into one statement.
  pub fn new(max: usize) -> Self {
    Self { waiting: Mutex::default(), reading: tokio::sync::Mutex::default(), max }
  }

  /// Asks for one key. `read` answers several in the order in which they are given to it.
  ///
  /// # Errors
  /// What `read` says.
  pub async fn ask<E, F: Future<Output = Result<Vec<V>, E>>>(&self, key: K, read: impl Fn(Vec<K>) -> F) -> Result<Option<V>, E> {
    let (reply, mut answer) = oneshot::channel();
    self.waiting.lock().push((key.clone(), reply));
    loop {
      tokio::select! {
        biased;
        answered = &mut answer => {
          return match answered {
            Ok(answered) => Ok(Some(answered)),
            Err(_) => read(vec![key]).await.map(|mut answers| answers.pop()),
          };
        }
        _reading = self.reading.lock() => {
          let (keys, replies) = self.take();
          if keys.is_empty() {
            continue;
          }
          for (reply, answered) in replies.into_iter().zip(read(keys).await?) {
            // A caller that went away needs no answer.
            drop(reply.send(answered));
          }
        }
      }
    }
  }

  fn take(&self) -> (Vec<K>, Vec<oneshot::Sender<V>>) {
    let mut waiting = self.waiting.lock();
    let count = waiting.len().min(self.max);
    waiting.drain(..count).unzip()
  }
}

#[cfg(test)]
mod tests {
  use std::sync::atomic::{AtomicUsize, Ordering};

  use tokio::sync::Semaphore;

  use super::*;

  /// Doubles numbers when it may, and counts its statements.
  struct Numbers {
    together: Together<u32, u32>,
    statements: AtomicUsize,
    may: Semaphore,
    fails: AtomicUsize,
  }

  impl Numbers {
    fn new(fails: usize) -> Self {
      Self { together: Together::new(4), statements: AtomicUsize::new(0), may: Semaphore::new(0), fails: AtomicUsize::new(fails) }
    }

    async fn read(&self, keys: Vec<u32>) -> Result<Vec<u32>, String> {
      self.statements.fetch_add(1, Ordering::Relaxed);
      self.may.acquire().await.map_err(|error| error.to_string())?.forget();
      let failed = self.fails.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
      if failed { Err("away".to_owned()) } else { Ok(keys.into_iter().map(|key| 2 * key).collect()) }
    }

    async fn double(&self, key: u32) -> Result<Option<u32>, String> {
      self.together.ask(key, |keys| self.read(keys)).await
    }
  }

  #[tokio::test]
  async fn who_asks_while_others_read_shares_the_next_statement() {
    let numbers = Numbers::new(0);
    let release = async {
      tokio::task::yield_now().await;
      numbers.may.add_permits(10);
    };
    let (one, two, three, four, ()) = tokio::join!(numbers.double(1), numbers.double(2), numbers.double(3), numbers.double(4), release);
    assert_eq!([one, two, three, four], [Ok(Some(2)), Ok(Some(4)), Ok(Some(6)), Ok(Some(8))]);
    assert!(numbers.statements.load(Ordering::Relaxed) <= 2);
  }

  #[tokio::test]
  async fn one_that_fails_takes_nobody_along() {
    let numbers = Numbers::new(1);
    numbers.may.add_permits(10);
    let (one, two, three) = tokio::join!(numbers.double(1), numbers.double(2), numbers.double(3));
    assert_eq!([one, two, three].iter().filter(|answer| answer.is_err()).count(), 1);
  }

  #[tokio::test]
  async fn one_that_goes_away_takes_nobody_along() {
    let numbers = Numbers::new(0);
    let gone = async {
      tokio::select! {
        biased;
        _ = numbers.double(1) => panic!("nothing may be read yet"),
        () = tokio::task::yield_now() => {}
      }
      numbers.may.add_permits(10);
    };
    let ((), two) = tokio::join!(gone, numbers.double(2));
    assert_eq!(two, Ok(Some(4)));
  }
}
