//! `pa verify`: the read model against the log.

use std::process::ExitCode;

use anyhow::Result;
use pa_pipeline::projector::verify;
use pa_projections::schema::Schemas;

use crate::config::Config;
use crate::{COULD_NOT_RUN, roles, say};

/// 0: equal. 1: one line for each difference. 2: it could not run.
pub(crate) async fn run(config: &Config) -> ExitCode {
  match differences(config).await {
    Ok(0) => ExitCode::SUCCESS,
    Ok(_) => ExitCode::FAILURE,
    Err(error) => {
      say(&format!("pa: could not verify: {error:#}"));
      ExitCode::from(COULD_NOT_RUN)
    }
  }
}

async fn differences(config: &Config) -> Result<usize> {
  super::with(config, async |storage, shared| {
    let differences = verify::verify(&roles::projector_parts(storage, shared), &Schemas::new(&storage.database)).await?;
    for difference in &differences {
      super::print(&difference.to_string())?;
    }
    if differences.is_empty() {
      super::print("equal")?;
    }
    Ok(differences.len())
  })
  .await
}
