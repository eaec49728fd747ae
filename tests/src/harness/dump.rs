//! The log as `pa log export --open` writes it.

use serde_json::Value;

/// One record.
#[derive(Clone, Debug)]
pub(crate) struct Line {
  pub(crate) stream: String,
  pub(crate) partition: i64,
  pub(crate) offset: i64,
  /// Without context and version: `MessageAdmitted`.
  pub(crate) kind: String,
  pub(crate) id: String,
  pub(crate) agent: String,
  pub(crate) ordinal: i64,
  pub(crate) place: Value,
  /// Why it does not count, if it does not.
  pub(crate) void: Option<String>,
  pub(crate) body: Value,
  pub(crate) core: Value,
}

/// A whole log.
#[derive(Clone, Debug)]
pub(crate) struct Dump {
  pub(crate) text: String,
  pub(crate) lines: Vec<Line>,
}

impl Dump {
  pub(crate) fn parse(text: &str) -> Self {
    let lines = text.lines().map(|line| Line::of(&serde_json::from_str(line).unwrap_or_else(|error| panic!("no JSON ({error}): {line}")))).collect();
    Self { text: text.to_owned(), lines }
  }

  /// Events that count, in the order of their partition.
  pub(crate) fn events(&self) -> impl DoubleEndedIterator<Item = &Line> {
    self.lines.iter().filter(|line| line.stream == "pa.events" && line.void.is_none())
  }

  pub(crate) fn inputs(&self) -> impl Iterator<Item = &Line> {
    self.lines.iter().filter(|line| line.stream == "pa.inputs")
  }

  /// Events of one type.
  pub(crate) fn of(&self, kind: &str) -> Vec<&Line> {
    self.events().filter(|line| line.kind == kind).collect()
  }

  /// Types of an agent's events about one job or message, in order: what happened to it.
  pub(crate) fn story(&self, id: &str) -> Vec<&str> {
    let about = |line: &&Line| ["job", "message"].iter().any(|field| line.body[*field] == id) || line.body["reply_to"] == id;
    self.events().filter(about).map(|line| line.kind.as_str()).collect()
  }
}

impl Line {
  fn of(line: &Value) -> Self {
    let (headers, core) = (&line["headers"], &line["meta"]["core"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let full = text(&headers["ce_type"]);
    let kind = full.rsplit_once(".v").map_or(full.as_str(), |(name, _)| name);
    Self {
      stream: text(&line["stream"]),
      partition: line["partition"].as_i64().expect("a partition"),
      offset: line["offset"].as_i64().expect("an offset"),
      kind: kind.rsplit('.').next().unwrap_or_default().to_owned(),
      id: text(&headers["ce_id"]),
      agent: text(&core["agent"]),
      ordinal: core["ordinal"].as_i64().unwrap_or_default(),
      place: line["meta"]["place"].clone(),
      void: line["void"].as_str().map(str::to_owned),
      body: line["body"].clone(),
      core: core.clone(),
    }
  }

  pub(crate) fn number(&self, field: &str) -> i64 {
    self.place[field].as_i64().unwrap_or_else(|| panic!("{field} of {self:?}"))
  }

  /// A field of the body that is text.
  pub(crate) fn text(&self, field: &str) -> &str {
    self.body[field].as_str().unwrap_or_default()
  }
}
