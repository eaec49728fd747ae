//! Where the read model lives: a schema named by everything that decides its content.
//!
//! The name is a hash of all table files and fold versions, so a binary reads and writes only what it would have built itself, and the switch to another shape is the
//! start of another binary. Nothing here is ever migrated: what does not fit is built anew from the log. Next: [`Schemas`].

mod exchange;
mod schemas;
mod snapshot;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use pa_store::ReadSchema;

pub use exchange::Exchange;
pub use schemas::{Lock, Schemas};
pub use snapshot::{Snapshot, TableHash};

use crate::commit::Projection;
use crate::{accounts, audit, conversation, indicator, outputs, pending_actions, queue, settings, system, task_entries, tasks, timers, usage};

/// A folder with its fold version and its tables, in the order in which they are made and hashed.
const FOLDERS: &[(&str, u32, &str)] = &[
  ("system", 1, system::TABLES),
  folder::<accounts::Rows>(),
  folder::<audit::Rows>(),
  folder::<conversation::Rows>(),
  folder::<indicator::Rows>(),
  folder::<outputs::Rows>(),
  folder::<pending_actions::Rows>(),
  folder::<queue::Rows>(),
  folder::<settings::Rows>(),
  folder::<task_entries::Rows>(),
  folder::<tasks::Rows>(),
  folder::<timers::Rows>(),
  folder::<usage::Rows>(),
];

/// Tables with the rest of their primary key behind `agent`.
pub const TABLES: &[(&str, &str)] = &[
  ("agent_progress", "ordinal"),
  ("parked", "from_ordinal"),
  ("accounts", "id"),
  ("audit", "ordinal"),
  ("conversations", "id"),
  ("entries", "id"),
  ("attachments", "entry, idx"),
  ("indicator", "changed"),
  ("outputs", "id"),
  ("pending_actions", "id"),
  ("jobs", "id"),
  ("open_calls", "id"),
  ("settings", "changed"),
  ("task_entries", "id"),
  ("tasks", "id"),
  ("timers", "id"),
  ("usage", "job, step"),
];

/// One deletion for each table that holds rows of agents.
pub(crate) const ERASURES: &[&str] = &[
  "DELETE FROM agent_progress t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM parked t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM accounts t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM audit t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM conversations t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM entries t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM attachments t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM indicator t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM outputs t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM pending_actions t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM jobs t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM open_calls t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM settings t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM task_entries t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM tasks t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM timers t USING committed WHERE t.agent = ANY(?)",
  "DELETE FROM usage t USING committed WHERE t.agent = ANY(?)",
];

/// Hexadecimal digits of the hash in the name: enough that two shapes never share one.
const HASH_DIGITS: usize = 12;

const fn folder<P: Projection>() -> (&'static str, u32, &'static str) {
  (P::NAME, P::FOLD_VERSION, P::TABLES)
}

static CURRENT: LazyLock<ReadSchema> = LazyLock::new(|| {
  let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
  for (name, version, tables) in FOLDERS {
    context.update(format!("{name}\n{version}\n{}\n", tables.len()).as_bytes());
    context.update(tables.as_bytes());
  }
  match pa_store::fail::generation() {
    0 => {}
    later => context.update(&later.to_be_bytes()),
  }
  let hash = hex::encode(context.finish().as_ref());
  ReadSchema::new(&format!("read_{}", &hash[..HASH_DIGITS])).expect("a prefix and hexadecimal digits are a name")
});

/// Whether a schema gets its secondary indexes with its tables or after it was filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexes {
  Now,
  Later,
}

/// The schema of this binary.
pub fn current() -> ReadSchema {
  CURRENT.clone()
}

/// Every statement of the table files.
fn statements() -> impl Iterator<Item = &'static str> {
  FOLDERS
    .iter()
    .flat_map(|(_, _, tables)| tables.split_inclusive(";\n").map(|statement| statement.trim().trim_end_matches(';')).filter(|text| !text.is_empty()))
}

fn is_index(statement: &str) -> bool {
  statement.lines().find(|line| !line.is_empty() && !line.starts_with("--")).is_some_and(|line| line.starts_with("CREATE INDEX"))
}
