//! The checkpoint: what was read back, written down in one guarded transaction.

use pa_eventlog::guards::{self, Guard};
use pa_store::checkpoint::{Mark, Outcome, Scope};

use super::store::Write;
use super::term::{Term, part};
use super::{End, REPEAT_WINDOW_MILLIS};

impl Term {
  /// Writes everything since the last checkpoint. Only called when every own decision was read back, so that nothing unread gets in.
  pub(super) async fn write_checkpoint(&mut self, epoch: i64) -> Result<(), End> {
    let state = self.reader.state();
    let (keys, causes) = self.repeats.rows();
    let store = &self.parts.store;
    let write = Write {
      scope: Scope { part: part(self.partition), fold_version: store.fold_version() },
      process: store.process(),
      lease_epoch: epoch,
      expected: self.agents.checkpoint(),
      mark: Mark { next_input: self.next_input.0, next_position: state.next_position, epoch: state.epoch, seq: state.seq, last: state.last },
      things: self.agents.changes()?,
      keys,
      causes,
      keys_expire_before_ms: self.parts.clock.now().0 - REPEAT_WINDOW_MILLIS,
    };
    pa_store::fail_point!("decider.before_checkpoint");
    let written = store.write(write).await?;
    pa_store::fail_point!("decider.after_checkpoint");
    match written {
      Outcome::Written => {}
      Outcome::Moved | Outcome::LeaseLost if !guards::on(Guard::CheckpointGuard) => {}
      Outcome::LeaseLost => return Err(End::StepDown("the lease was lost before a checkpoint")),
      Outcome::Moved => return Err(End::new_term("another checkpoint stands than the one expected")),
    }
    self.agents.written(state.next_position);
    self.repeats.written();
    self.unwritten = 0;
    metrics::counter!("pa_decider_checkpoints_total").increment(1);
    Ok(())
  }
}
