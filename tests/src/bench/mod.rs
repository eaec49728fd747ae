//! The bench: what the product does beside what a rival would do, in the same run, on the same machine and the same Postgres.
//!
//! Every figure is one JSON line: `{name, engine, unit, control, ours, ratio, cpu_us_per_unit, target, met, …}`. Controls are interleaved with ours (control, ours,
//! control, ours …) and the medians count; the pair ratios' worst is there too. The log is the embedded one on a private Postgres of the bench's own, with `fsync` and
//! `synchronous_commit` on, which is asserted, or with `--log kafka` a real Apache Kafka; the same figures are measured on both, beside controls on the same engine. Nothing
//! here fails for a slow number: the bench prints, people judge.
//!
//! What is measured in the bench's own process (append, ingest, replay, project) runs the crates as the product links them; all else (visible, push, first piece, turn,
//! sockets, restart, memory, growth) runs the release build of `pa` and speaks to it from outside. The model is a scripted one in the bench's process: its CPU is never counted as ours,
//! but it and the clients share the machine's cores with us, as a rival's would.
//!
//! `line` prints and compares, `measure` has rounds and medians, `server` is the Postgres, `engine` the log, `raw` the control, `product` the program under measure.

mod append;
mod client;
mod cpu;
mod engine;
mod first_piece;
mod growth;
mod http;
mod ingest;
mod latency;
mod line;
mod measure;
mod memory;
mod million;
mod model;
mod options;
mod product;
mod project;
mod raw;
mod replay;
mod restart;
mod samples;
mod server;
mod socket;
mod sockets;
mod traffic;
mod turns;

use std::process::ExitCode;

use anyhow::{Context, Result};
use futures::future::LocalBoxFuture;
use tokio::signal::unix::{SignalKind, signal};

use engine::Engine;
use line::Printer;
use options::Options;
use server::Server;

/// Where a figure runs and what it prints with.
struct Bench {
  options: Options,
  server: Server,
  printer: Printer,
}

type Figure = for<'b> fn(&'b mut Bench) -> LocalBoxFuture<'b, Result<()>>;

/// The figures in the order in which they run; some come out of one run together. The first ones need no product.
const FIGURES: &[(&[&str], Figure)] = &[
  (&["append"], |bench| Box::pin(append::run(bench))),
  (&["ingest"], |bench| Box::pin(ingest::run(bench))),
  (&["replay"], |bench| Box::pin(replay::run(bench))),
  (&["project"], |bench| Box::pin(project::run(bench))),
  (&["visible", "push", "turn", "turns"], |bench| Box::pin(turns::run(bench))),
  (&["first_piece"], |bench| Box::pin(first_piece::run(bench))),
  (&["sockets"], |bench| Box::pin(sockets::run(bench))),
  (&["restart"], |bench| Box::pin(restart::run(bench))),
  (&["memory"], |bench| Box::pin(memory::run(bench))),
  (&["growth"], |bench| Box::pin(growth::run(bench))),
];

/// What takes so long that it runs only when it is asked for by name.
const BY_NAME: &[(&[&str], Figure)] = &[(&["million"], |bench| Box::pin(million::run(bench)))];

/// Runs what the command line asks for.
pub(crate) fn main() -> ExitCode {
  let ran = tokio::runtime::Builder::new_multi_thread()
    .thread_name("bench")
    .enable_all()
    .build()
    .context("start the runtime")
    .and_then(|runtime| runtime.block_on(run()));
  match ran {
    Ok(()) => ExitCode::SUCCESS,
    Err(error) => {
      eprintln!("bench: {error:#}");
      ExitCode::FAILURE
    }
  }
}

async fn run() -> Result<()> {
  let options = Options::parse(&FIGURES.iter().chain(BY_NAME).flat_map(|(names, _)| names.iter().copied()))?;
  let server = Server::start(options.statements, Engine::start(&options.log)?).await?;
  let printer = Printer::new(server.engine(), options.compare.as_deref())?;
  eprintln!("bench: {}", server.description().await?);
  let mut bench = Bench { options, server, printer };
  tokio::select! {
    ran = figures(&mut bench) => ran?,
    stopped = stopped() => stopped?,
  }
  bench.server.stop().await
}

/// Returns when somebody wants the bench to end; its Postgres ends with it.
async fn stopped() -> Result<()> {
  let mut terminated = signal(SignalKind::terminate()).context("listen for a termination")?;
  tokio::select! {
    interrupted = tokio::signal::ctrl_c() => interrupted.context("listen for an interrupt"),
    _ = terminated.recv() => Ok(()),
  }
}

async fn figures(bench: &mut Bench) -> Result<()> {
  for (names, figure) in FIGURES.iter().chain(BY_NAME) {
    let by_name = BY_NAME.iter().any(|(others, _)| others == names);
    if names.iter().any(|name| bench.options.names(name) || (!by_name && bench.options.wants(name))) {
      let names = names.join(", ");
      eprintln!("bench: {names} …");
      bench.server.forget_statements().await?;
      figure(bench).await.with_context(|| format!("measure {names}"))?;
      bench.server.print_statements().await?;
    }
  }
  Ok(())
}
