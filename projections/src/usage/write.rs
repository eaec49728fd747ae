//! Lines of usage by job and step, and the statement that writes them. A step is recorded once; the first line stays.

use uuid::Uuid;

use super::fold::UsageRow;
use crate::code::Code as _;
use crate::commit::merged::Merged;
use crate::commit::{Argument, Parts};

/// What a batch adds to the usage.
#[derive(Debug, Default)]
pub struct Rows {
  pub(crate) rows: Merged<(Uuid, i32), UsageRow>,
}

const ADD: &str = "INSERT INTO usage (agent, job, step, execution, model, effort, finish, attempts, started_ms, ended_ms, input_tokens, output_tokens, cached_tokens, \
  reasoning_tokens, price_micros, currency, at_ms, changed) SELECT u.* FROM committed, unnest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
  AS u(agent, job, step, execution, model, effort, finish, attempts, started_ms, ended_ms, input_tokens, output_tokens, cached_tokens, reasoning_tokens, price_micros, \
  currency, at_ms, changed) ON CONFLICT (agent, job, step) DO NOTHING";

impl Rows {
  pub(crate) fn statements<'a>(&'a self, parts: &mut Parts<'a>) {
    if self.rows.is_empty() {
      return;
    }
    let of = || self.rows.iter().map(|(_, _, row)| row);
    let columns = [
      Argument::Uuids(self.rows.iter().map(|(agent, _, _)| agent.0).collect()),
      Argument::Uuids(of().map(|row| row.job.0).collect()),
      Argument::Ints(of().map(|row| row.step).collect()),
      Argument::Ints(of().map(|row| row.execution).collect()),
      Argument::texts(of().map(|row| row.model.as_str())),
      Argument::texts(of().map(|row| row.effort.code())),
      Argument::texts(of().map(|row| row.finish.as_str())),
      Argument::Ints(of().map(|row| row.attempts).collect()),
      Argument::Longs(of().map(|row| row.started.0).collect()),
      Argument::Longs(of().map(|row| row.ended.0).collect()),
      Argument::OptionalLongs(of().map(|row| row.input_tokens).collect()),
      Argument::OptionalLongs(of().map(|row| row.output_tokens).collect()),
      Argument::OptionalLongs(of().map(|row| row.cached_tokens).collect()),
      Argument::OptionalLongs(of().map(|row| row.reasoning_tokens).collect()),
      Argument::OptionalLongs(of().map(|row| row.price_micros).collect()),
      Argument::optional_texts(of().map(|row| row.currency.as_deref())),
      Argument::Longs(of().map(|row| row.at.0).collect()),
      Argument::Longs(of().map(|row| row.changed).collect()),
    ];
    parts.part(ADD, columns);
  }
}
