//! `pa_edit_file`: exchanges a piece of a file for another, if it is clear which one is meant.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pa_domain::Origin;
use pa_domain::call::{Class, ResultPart};
use pa_workspace::{EDITED_BYTES_MAX, Workspaces};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{LIMIT, PATHS, failed, failed_to_write, part};
use crate::tool::arguments;
use crate::{Context, Error, Place, Tool};

/// The tool.
pub struct EditFileTool {
  workspaces: Arc<Workspaces>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
  path: String,
  old: String,
  new: String,
  #[serde(default)]
  all: bool,
}

impl EditFileTool {
  /// The tool over all workspaces.
  pub fn new(workspaces: Arc<Workspaces>) -> Self {
    Self { workspaces }
  }
}

#[async_trait]
impl Tool for EditFileTool {
  fn name(&self) -> &'static str {
    "pa_edit_file"
  }

  fn description(&self) -> &'static str {
    "Exchanges a piece of a text file of your workspace for another. The old piece must stand in the file exactly so, and only once, unless all is true. Read the file first."
  }

  fn parameters(&self) -> Value {
    json!({
      "type": "object",
      "properties": {
        "path": { "type": "string", "description": PATHS },
        "old": { "type": "string", "description": "The piece that is in the file now, with every space and line end; long enough to stand there once." },
        "new": { "type": "string", "description": "What shall stand there instead." },
        "all": { "type": "boolean", "description": "Exchange it wherever it stands; false when left out." },
      },
      "required": ["path", "old", "new"],
      "additionalProperties": false,
    })
  }

  fn class(&self) -> Class {
    Class::Contained
  }

  fn time_limit(&self) -> Duration {
    LIMIT
  }

  fn places(&self) -> &'static [Place] {
    &[Place::Task]
  }

  async fn call(&self, context: &Context, given: &Map<String, Value>) -> Result<Vec<ResultPart>, Error> {
    let Arguments { path, old, new, all } = arguments(given)?;
    if old.is_empty() || old == new {
      return Err(Error::Arguments { reason: "old must have something in it, and new must be something else".to_owned() });
    }
    let content = self.workspaces.read(context.agent, &path, EDITED_BYTES_MAX).await.map_err(|error| failed(&error))?;
    let Ok(text) = std::str::from_utf8(&content.bytes) else {
      return Err(Error::Failed { code: "FILE_NOT_TEXT", reason: format!("{} is no text in UTF-8, and can't be edited here", content.path) });
    };
    let count = occurrences(text, &old);
    if count == 0 || (count > 1 && !all) {
      return Err(unclear(text, &old, count));
    }
    let exchanged = text.replace(&old, &new);
    if exchanged.len() as u64 > EDITED_BYTES_MAX {
      return Err(Error::Failed { code: "FILE_TOO_LARGE", reason: format!("the file would have more than {EDITED_BYTES_MAX} bytes") });
    }
    let id = context.call.0.simple().to_string();
    let written = self.workspaces.write(context.agent, &path, Bytes::from(exchanged), Some(content.stamp), &id).await;
    let path = written.map_err(|error| failed_to_write(&error))?;
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    Ok(vec![part(Origin::Platform, format!("Exchanged {times}.")), part(Origin::Tool, path)])
  }
}

/// How often a piece stands in a text, also where it overlaps itself: then it is not clear which one is meant.
fn occurrences(text: &str, piece: &str) -> usize {
  let step = piece.chars().next().map_or(1, char::len_utf8);
  let (mut count, mut at) = (0, 0);
  while let Some(found) = text[at..].find(piece) {
    count += 1;
    at += found + step;
  }
  count
}

fn unclear(text: &str, old: &str, count: usize) -> Error {
  if count > 1 {
    let reason = format!("old stands there {count} times: give more of the text around it, or set all to true; nothing was changed");
    return Error::Failed { code: "EDIT_NOT_UNIQUE", reason };
  }
  let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
  let hint = if text.replace("\r\n", "\n").contains(&old.replace("\r\n", "\n")) {
    "it does with other line ends (\\r\\n against \\n)"
  } else if spaced(text).contains(&spaced(old)) {
    "it does with other spaces or line ends"
  } else {
    "read the file again"
  };
  Error::Failed { code: "EDIT_NOT_FOUND", reason: format!("old does not stand in the file exactly so: {hint}; nothing was changed") }
}
