//! The names of the environment: a misspelt `PA_…` variable would otherwise be a setting that silently does nothing.

use anyhow::{Result, bail};

/// Names that belong to the scripts of `infra/`, to the tests and to building; `pa` lets them pass.
const OF_OTHERS: [&str; 10] = [
  "PA_UP_READY_SECS",
  "PA_STOP_SECS",
  "PA_TOOLS_DIR",
  "PA_PROVE_INSIDE",
  "PA_VECTORS",
  "PA_FAIL",
  "PA_GOLDEN",
  "PA_WRITE_SCHEMA",
  "PA_DEV_TARGET",
  "PA_KAFKA_HEAP",
];
const PREFIXES_OF_OTHERS: [&str; 3] = ["PA_SIM_", "PA_TEST_", "PA_BENCH_"];
/// Names of `config.default.toml`, which are checked when it is read.
const SECTIONS: &str = "PA__";
/// More differences than these are another word, not a slip.
const SLIPS_MAX: usize = 4;

/// Refuses a variable that `pa` does not know, and names the nearest one that it does.
pub(crate) fn check(names: impl Iterator<Item = String>, known: &[&str]) -> Result<()> {
  for name in names.filter(|name| name.starts_with("PA_") && !name.starts_with(SECTIONS)) {
    let passes = known.contains(&name.as_str()) || OF_OTHERS.contains(&name.as_str()) || PREFIXES_OF_OTHERS.iter().any(|prefix| name.starts_with(prefix));
    if !passes {
      match nearest(&name, known) {
        Some(meant) => bail!("there is no setting {name}: did you mean {meant}?"),
        None => bail!("there is no setting {name}: README.md lists them; unset it"),
      }
    }
  }
  Ok(())
}

/// A truth value, spelt in one of the usual ways.
pub(crate) fn truth(name: &str, value: &str) -> Result<bool> {
  match value {
    "1" | "true" | "yes" => Ok(true),
    "0" | "false" | "no" => Ok(false),
    _ => bail!("{name} must be 1 or 0"),
  }
}

fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
  known.iter().map(|known| (slips(name, known), *known)).filter(|(slips, _)| *slips <= SLIPS_MAX).min().map(|(_, known)| known)
}

/// Characters to insert, delete or exchange that make one word of the other.
fn slips(one: &str, other: &str) -> usize {
  let other: Vec<char> = other.chars().collect();
  let mut row: Vec<usize> = (0..=other.len()).collect();
  for (i, letter) in one.chars().enumerate() {
    let mut diagonal = row[0];
    row[0] = i + 1;
    for (j, its) in other.iter().enumerate() {
      let exchanged = diagonal + usize::from(letter != *its);
      diagonal = row[j + 1];
      row[j + 1] = exchanged.min(diagonal + 1).min(row[j] + 1);
    }
  }
  row[other.len()]
}

#[cfg(test)]
mod tests {
  use super::*;

  const KNOWN: [&str; 3] = ["PA_LISTEN", "PA_MODEL_NAME", "PA_MODEL_BASE_URL"];

  fn said_of(name: &str) -> String {
    check([name.to_owned()].into_iter(), &KNOWN).map_or_else(|error| error.to_string(), |()| String::new())
  }

  #[test]
  fn a_misspelt_setting_is_refused_with_the_one_that_was_meant() {
    assert_eq!(said_of("PA_MODLE_NAME"), "there is no setting PA_MODLE_NAME: did you mean PA_MODEL_NAME?");
    assert!(said_of("PA_MODEL_BASEURL").contains("PA_MODEL_BASE_URL"));
    assert!(said_of("PA_SOMETHING_ELSE_ALTOGETHER").contains("README.md"));
  }

  #[test]
  fn what_belongs_to_others_passes() {
    for name in ["PA_LISTEN", "PA_SIM_SEED", "PA_VECTORS", "PA_FAIL", "PA_UP_READY_SECS", "PA__LOG__PARTITIONS", "PATH", "PAGER"] {
      assert_eq!(said_of(name), "", "{name}");
    }
  }

  #[test]
  fn a_truth_value_is_one_or_it_is_refused() {
    assert!(truth("PA_ALLOW_INSECURE", "1").unwrap() && truth("PA_ALLOW_INSECURE", "true").unwrap());
    assert!(!truth("PA_ALLOW_INSECURE", "0").unwrap() && !truth("PA_ALLOW_INSECURE", "no").unwrap());
    assert_eq!(truth("PA_ALLOW_INSECURE", "maybe").unwrap_err().to_string(), "PA_ALLOW_INSECURE must be 1 or 0");
  }
}
