//! `pa_write_file`: a file, whole.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pa_domain::Origin;
use pa_domain::call::{Class, ResultPart};
use pa_workspace::Workspaces;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{LIMIT, PATHS, failed_to_write, part};
use crate::tool::arguments;
use crate::{Context, Error, Place, Tool};

/// The tool.
pub struct WriteFileTool {
  workspaces: Arc<Workspaces>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
  path: String,
  content: String,
}

impl WriteFileTool {
  /// The tool over all workspaces.
  pub fn new(workspaces: Arc<Workspaces>) -> Self {
    Self { workspaces }
  }
}

#[async_trait]
impl Tool for WriteFileTool {
  fn name(&self) -> &'static str {
    "pa_write_file"
  }

  fn description(&self) -> &'static str {
    "Writes a text file of your workspace, whole; a file that is there is replaced. Folders on the way are made. Only below /workspace/work, /workspace/outputs and \
     /workspace/scratch. To change part of a file use pa_edit_file."
  }

  fn parameters(&self) -> Value {
    json!({
      "type": "object",
      "properties": {
        "path": { "type": "string", "description": PATHS },
        "content": { "type": "string", "description": "All that shall be in the file." },
      },
      "required": ["path", "content"],
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
    let Arguments { path, content } = arguments(given)?;
    let bytes = content.len();
    let id = context.call.0.simple().to_string();
    let path = self.workspaces.write(context.agent, &path, Bytes::from(content), None, &id).await.map_err(|error| failed_to_write(&error))?;
    Ok(vec![part(Origin::Platform, format!("Written: {bytes} bytes.")), part(Origin::Tool, path)])
  }
}
