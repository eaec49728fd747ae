//! The tools that models are offered, as they are configured: files of the workspace, pages, a search engine.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use pa_tools::{Allow, EditFileTool, FetchTool, ListFilesTool, NotOffered, ReadFileTool, SearchConfig, SearchTool, Tool, WriteFileTool};
use pa_workspace::Workspaces;
use secrecy::SecretString;
use serde::Deserialize;

/// What is configured about tools.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tools {
  pub web: Web,
}

/// Pages and search.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Web {
  pub allow: Vec<String>,
  pub search: String,
  pub search_url: String,
  pub search_key: SecretString,
  pub search_key_file: String,
}

impl Web {
  /// Refuses what could only fail later. Without an engine there is no search, which is no mistake.
  pub(crate) fn validate(&self) -> Result<()> {
    Allow::parse(&self.allow).context("tools.web.allow")?;
    let search = self.search()?;
    match search.check() {
      Err(NotOffered::NoEngine) => {
        ensure!(self.search_url.is_empty(), "tools.web.search_url is set, but tools.web.search names no engine");
        Ok(())
      }
      Err(error) => Err(anyhow!("tools.web.search: {error}")),
      Ok(()) => Ok(()),
    }
  }

  fn search(&self) -> Result<SearchConfig> {
    let engine = match self.search.trim() {
      "" => None,
      name => Some(name.parse().map_err(|error| anyhow!("tools.web.search: {error}"))?),
    };
    Ok(SearchConfig { engine, base_url: self.search_url.clone(), api_key: self.search_key.clone() })
  }
}

/// The tools that need neither the log nor a computer.
pub(crate) fn offered(web: &Web, workspaces: &Arc<Workspaces>) -> Result<Vec<Arc<dyn Tool>>> {
  let fetch = FetchTool::new(Allow::parse(&web.allow).context("tools.web.allow")?).context("build the client for pages")?;
  let mut tools: Vec<Arc<dyn Tool>> = vec![
    Arc::new(ReadFileTool::new(Arc::clone(workspaces))),
    Arc::new(WriteFileTool::new(Arc::clone(workspaces))),
    Arc::new(EditFileTool::new(Arc::clone(workspaces))),
    Arc::new(ListFilesTool::new(Arc::clone(workspaces))),
    Arc::new(fetch),
  ];
  match SearchTool::new(&web.search()?) {
    Ok(search) => tools.push(Arc::new(search)),
    Err(reason) => tracing::info!(code = reason.code(), "the agent can't search the web: {reason}"),
  }
  Ok(tools)
}

#[cfg(test)]
mod tests {
  use pa_tools::Place;

  use super::*;

  fn web(search: &str, search_url: &str, key: &str, allow: &[&str]) -> Web {
    let allow = allow.iter().map(|entry| (*entry).to_owned()).collect();
    Web { allow, search: search.into(), search_url: search_url.into(), search_key: SecretString::from(key), search_key_file: String::new() }
  }

  fn names(web: &Web, place: Place) -> Vec<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    let tools = offered(web, &Arc::new(Workspaces::new(folder.path().to_owned(), None))).unwrap();
    tools.iter().filter(|tool| tool.places().contains(&place)).map(|tool| tool.name()).collect()
  }

  /// Proves CAP-4, CAP-34.
  #[tokio::test]
  async fn a_conversation_is_offered_the_web_and_a_task_its_files_too() {
    let searching = web("searxng", "http://search.lan", "", &[]);
    assert_eq!(names(&searching, Place::Conversation), ["pa_web_fetch", "pa_web_search"]);
    let files = ["pa_read_file", "pa_write_file", "pa_edit_file", "pa_list_files"];
    assert_eq!(names(&searching, Place::Task), [&files[..], &["pa_web_fetch", "pa_web_search"]].concat());
    assert_eq!(names(&web("", "", "", &[]), Place::Conversation), ["pa_web_fetch"], "without an engine there is no search");
  }

  #[test]
  fn what_could_only_fail_later_stops_the_start() {
    for (web, hint) in [
      (web("google", "", "", &[]), "brave, searxng or tavily"),
      (web("brave", "", "", &[]), "needs a key"),
      (web("searxng", "", "", &[]), "needs an address"),
      (web("searxng", "search.lan", "", &[]), "http://"),
      (web("", "http://search.lan", "", &[]), "names no engine"),
      (web("", "", "", &["10.0.0.0/99"]), "tools.web.allow"),
    ] {
      let error = format!("{:#}", web.validate().unwrap_err());
      assert!(error.contains(hint), "{error}");
    }
    let good = web("tavily", "", "tvly-planted", &["10.0.0.0/8", "wiki.lan"]);
    good.validate().unwrap();
    web("", "", "", &[]).validate().unwrap();
    assert!(!format!("{good:?}").contains("planted"));
  }
}
