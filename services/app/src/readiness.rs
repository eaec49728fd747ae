//! When a process is ready: its deciders lead or wait for another process, its projector and tail are caught up.

use std::time::Duration;

use pa_eventlog::{Partition, tail};
use pa_gateway::Readiness;
use pa_pipeline::{decider, projector};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How often what is watched is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Follows deciders and tail, and keeps the reasons up to date, until `stop`.
pub(crate) async fn follow(
  readiness: Readiness,
  deciders: Vec<(Partition, watch::Receiver<decider::Status>)>,
  tails: Vec<watch::Receiver<tail::Status>>,
  projector: Option<projector::Status>,
  stop: CancellationToken,
) {
  let mut pause = LOOK_EVERY;
  while !stop.is_cancelled() {
    let mut ready = true;
    for (partition, status) in &deciders {
      let reason = match &*status.borrow() {
        decider::Status::Leading(_) | decider::Status::Waiting => None,
        decider::Status::CatchingUp => Some("the decider reads up to the end of the log".to_owned()),
        decider::Status::Failing(why) => Some(why.clone()),
      };
      ready &= tell(&readiness, &format!("decider {partition}"), reason);
    }
    for (partition, status) in tails.iter().enumerate() {
      let reason = match &*status.borrow() {
        tail::Status::Following => None,
        tail::Status::Starting => Some("the log's tail is on its way to the end".to_owned()),
        tail::Status::Away => Some("the log is away".to_owned()),
        tail::Status::Stopped(why) => Some(why.clone()),
      };
      ready &= tell(&readiness, &format!("log {partition}"), reason);
    }
    let behind = projector.as_ref().map(projector::Status::reasons_to_wait).unwrap_or_default();
    ready &= tell(&readiness, "read model", (!behind.is_empty()).then(|| behind.join("; ")));
    pause = if ready { Duration::from_millis(500) } else { pause.min(LOOK_EVERY) };
    tokio::select! {
      () = tokio::time::sleep(pause) => {}
      () = stop.cancelled() => {}
    }
  }
}

fn tell(readiness: &Readiness, part: &str, reason: Option<String>) -> bool {
  match reason {
    None => {
      readiness.ready(part);
      true
    }
    Some(reason) => {
      readiness.not_ready(part, reason);
      false
    }
  }
}
