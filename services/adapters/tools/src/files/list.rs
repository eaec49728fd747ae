//! `pa_list_files`: what is in a folder.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pa_domain::Origin;
use pa_domain::call::{Class, ResultPart};
use pa_workspace::{Kind, Listing, Workspaces};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{LIMIT, PATHS, failed, part};
use crate::tool::arguments;
use crate::{Context, Error, Place, Tool};

/// Folders inside each other that one call looks into.
const DEPTH_MAX: u8 = 8;

/// The tool.
pub struct ListFilesTool {
  workspaces: Arc<Workspaces>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
  path: Option<String>,
  depth: Option<u8>,
}

impl ListFilesTool {
  /// The tool over all workspaces.
  pub fn new(workspaces: Arc<Workspaces>) -> Self {
    Self { workspaces }
  }
}

#[async_trait]
impl Tool for ListFilesTool {
  fn name(&self) -> &'static str {
    "pa_list_files"
  }

  fn description(&self) -> &'static str {
    "Lists a folder of your workspace, sorted by name, with sizes. Folders end in /. Links are named and not followed."
  }

  fn parameters(&self) -> Value {
    json!({
      "type": "object",
      "properties": {
        "path": { "type": "string", "description": format!("{PATHS} /workspace/work when left out.") },
        "depth": { "type": "integer", "minimum": 1, "maximum": DEPTH_MAX, "description": "How many folders inside each other to look into; 1 when left out." },
      },
      "additionalProperties": false,
    })
  }

  fn class(&self) -> Class {
    Class::Repeatable
  }

  fn time_limit(&self) -> Duration {
    LIMIT
  }

  fn places(&self) -> &'static [Place] {
    &[Place::Task]
  }

  async fn call(&self, context: &Context, given: &Map<String, Value>) -> Result<Vec<ResultPart>, Error> {
    let Arguments { path, depth } = arguments(given)?;
    let depth = usize::from(depth.unwrap_or(1).clamp(1, DEPTH_MAX));
    let listing = self.workspaces.list(context.agent, path.as_deref().unwrap_or("."), depth).await.map_err(|error| failed(&error))?;
    Ok(shown(&listing))
  }
}

fn shown(listing: &Listing) -> Vec<ResultPart> {
  let mut head = match listing.entries.len() {
    0 => "The folder is empty.".to_owned(),
    1 => "1 entry.".to_owned(),
    entries => format!("{entries} entries."),
  };
  if listing.is_cut {
    head.push_str(" There are more: list a folder further down.");
  }
  let mut text = format!("{}\n", listing.path);
  for entry in &listing.entries {
    match entry.kind {
      Kind::File { bytes } => writeln!(text, "{}  {bytes} bytes", entry.path),
      Kind::Folder => writeln!(text, "{}/", entry.path),
      Kind::Link => writeln!(text, "{}  (a link)", entry.path),
      Kind::Other => writeln!(text, "{}  (no plain file)", entry.path),
    }
    .expect("writing to a string does not fail");
  }
  vec![part(Origin::Platform, head), part(Origin::Tool, text)]
}
