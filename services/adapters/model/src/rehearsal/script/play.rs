//! Plays a scripted reply into a response.

use std::collections::VecDeque;
use std::io;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use tokio::sync::watch;

use super::Seen;
use super::reply::{Opening, Reply, Step, UsageReport};
use crate::rehearsal::frames;
use crate::rehearsal::line::Line;
use crate::rehearsal::server::event_stream;

/// Counts an answer as open for as long as it lives.
pub(super) struct Open(watch::Sender<usize>);

impl Open {
  pub(super) fn begin(open: &watch::Sender<usize>) -> Self {
    open.send_modify(|count| *count += 1);
    Self(open.clone())
  }
}

impl Drop for Open {
  fn drop(&mut self) {
    self.0.send_modify(|count| *count -= 1);
  }
}

pub(super) async fn play(mut reply: Reply, seen: &Seen, line: &Line, open: Open) -> Response {
  match std::mem::take(&mut reply.opening) {
    Opening::Stream => stream_of(reply, seen, open),
    Opening::Refuse { status, retry_after, body } => refuse(status, retry_after, body),
    Opening::Json(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
    Opening::HangUp => {
      line.break_it();
      StatusCode::OK.into_response()
    }
    Opening::Held(hold) => {
      hold.wait().await;
      stream_of(reply, seen, open)
    }
  }
}

fn refuse(status: u16, retry_after: Option<String>, body: String) -> Response {
  let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
  let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
  if let Some(value) = retry_after.and_then(|value| HeaderValue::try_from(value).ok()) {
    response.headers_mut().insert(header::RETRY_AFTER, value);
  }
  response
}

fn stream_of(reply: Reply, seen: &Seen, open: Open) -> Response {
  let model = seen.body["model"].as_str().unwrap_or_default().to_owned();
  let mut steps = VecDeque::from([Step::Raw(frames::chunk(&model, r#"{"role":"assistant","content":""}"#, None).into())]);
  let end = ending(&reply, &model, seen);
  steps.extend(reply.steps);
  steps.extend([Step::Raw(end.into()), Step::End]);
  let played = stream::unfold((steps, open), move |(mut steps, open)| {
    let model = model.clone();
    async move {
      loop {
        let bytes = match steps.pop_front()? {
          Step::Delta(delta) => Bytes::from(frames::chunk(&model, &delta, None)),
          Step::Raw(bytes) => Bytes::from(bytes),
          Step::Hold(hold) => {
            hold.wait().await;
            continue;
          }
          Step::Pause(time) => {
            tokio::time::sleep(time).await;
            continue;
          }
          Step::Cut => {
            // Lets the pieces before the cut reach the reader.
            tokio::task::yield_now().await;
            return Some((Err(io::Error::from(io::ErrorKind::ConnectionReset)), (VecDeque::new(), open)));
          }
          Step::End => return None,
        };
        return Some((Ok(bytes), (steps, open)));
      }
    }
  });
  event_stream(Body::from_stream(played))
}

fn ending(reply: &Reply, model: &str, seen: &Seen) -> String {
  let natural = if reply.has_calls() { "tool_calls" } else { "stop" };
  let reason = reply.finish.as_deref().unwrap_or(natural);
  let last_choice = format!(r#"[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]"#);
  let mut end = match &reply.usage {
    UsageReport::Counted => frames::event(model, &last_choice, "") + &frames::usage(model, &frames::counted(&seen.body, &said(reply))),
    UsageReport::Own(usage) => frames::event(model, &last_choice, "") + &frames::usage(model, usage),
    UsageReport::InLastChoice(usage) => frames::event(model, &last_choice, &format!(r#","usage":{usage}"#)),
    UsageReport::Never => frames::event(model, &last_choice, ""),
  };
  if !reply.without_done {
    end.push_str(frames::DONE);
  }
  end
}

fn said(reply: &Reply) -> String {
  reply.steps.iter().map(|step| if let Step::Delta(delta) = step { delta.as_str() } else { "" }).collect()
}
