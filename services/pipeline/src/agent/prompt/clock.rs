//! The time as the prompt says it: in the owner's zone (RUN-26).

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use pa_domain::Timestamp;

/// The line that says the time; an unknown zone is said to be unknown.
pub(super) fn line(now: Timestamp, zone: &str) -> String {
  let utc: DateTime<Utc> = DateTime::from_timestamp_millis(now.0).unwrap_or_default();
  match zone.parse::<Tz>() {
    Ok(tz) => {
      let local = utc.with_timezone(&tz);
      format!("It is now {}, in the owner's time zone {} (UTC{}).", local.format("%Y-%m-%d %H:%M, %A"), tz.name(), local.format("%:z"))
    }
    Err(_) => format!("It is now {} UTC. The owner's time zone is not known.", utc.format("%Y-%m-%d %H:%M, %A")),
  }
}
