//! memory: what `pa up` with all roles and one agent keeps resident after a minute of rest; Postgres is not counted.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::time::sleep;

use super::line::Line;
use super::model::InstantModel;
use super::product::Home;
use super::{Bench, cpu};

const TARGET_MB: f64 = 60.0;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
  let model = InstantModel::start()?;
  let home = Home::new(bench, &model.base_url).await?;
  let product = home.start().await?;
  let (begun, own, postgres) = (Instant::now(), product.cpu()?, bench.server.cpu()?);
  let rest = Duration::from_secs(bench.options.of(1, 30, 60));
  sleep(rest).await;
  let megabytes = cpu::resident_bytes(product.pid()?)? as f64 / 1e6;
  let percent = |used: Duration| used.as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0;
  let line = Line::new("memory", "MB resident", megabytes)
    .target(format!("≤ {TARGET_MB} MB after {} s idle, all roles, 1 agent", rest.as_secs()), megabytes <= TARGET_MB)
    .also("idle_cpu_percent", percent(product.cpu()?.saturating_sub(own)))
    .also("idle_postgres_cpu_percent", percent(bench.server.cpu()?.saturating_sub(postgres)));
  bench.printer.print(&line)
}
