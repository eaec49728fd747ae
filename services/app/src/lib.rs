//! Personal Agent as one program: configuration, the wiring of parts, roles, the command line. Nothing here has rules of its own.
//!
//! `up` runs everything in one process; `storage` opens what is kept; `wire` puts the parts together; `roles` starts the stages; `commands` are the tools.

pub mod cli;
mod commands;
pub mod config;
mod erasure;
mod files;
mod housekeeping;
mod log;
mod model;
mod observe;
mod owner;
mod readiness;
mod roles;
mod signals;
mod storage;
mod tools;
mod up;
mod variables;
mod wire;
mod workers;

use std::process::ExitCode;

use anyhow::{Context, Result};

use cli::{AccountCommand, Cli, Command, LogCommand, TokenCommand};
use signals::Interrupted;
use storage::NoData;

/// What the product calls itself.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Exit code of something that is not there yet, or that could not run at all.
const COULD_NOT_RUN: u8 = 2;

/// Runs one command to its end.
pub fn start(cli: Cli) -> ExitCode {
  run(cli).unwrap_or_else(|error| failed(&error))
}

/// Says once what went wrong.
fn failed(error: &anyhow::Error) -> ExitCode {
  if let Some(interrupted) = error.downcast_ref::<Interrupted>() {
    return ExitCode::from(interrupted.exit_code());
  }
  say(&format!("pa: {error:#}"));
  if error.is::<NoData>() { ExitCode::from(COULD_NOT_RUN) } else { ExitCode::FAILURE }
}

#[expect(clippy::print_stderr, reason = "the command line's own words")]
fn say(text: &str) {
  eprintln!("{text}");
}

fn run(cli: Cli) -> Result<ExitCode> {
  let config = config::Config::load()?;
  match cli.command {
    Command::Up | Command::Run { .. } => observe::start(&config.observe),
    _ => observe::start_tool(&config.observe, cli.verbose),
  }
  rustls::crypto::aws_lc_rs::default_provider().install_default().ok().context("another TLS provider was installed before ours")?;
  let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start the runtime")?;
  runtime.block_on(dispatch(cli.command, config))
}

async fn dispatch(command: Command, config: config::Config) -> Result<ExitCode> {
  match command {
    Command::Up => Box::pin(up::up(config)).await.map(|()| ExitCode::SUCCESS),
    Command::Run { roles } => Box::pin(up::run(config, roles)).await.map(|()| ExitCode::SUCCESS),
    Command::Rebuild { agent } => commands::rebuild::run(&config, agent).await,
    Command::Verify => Ok(commands::verify::run(&config).await),
    Command::Log { command: LogCommand::Tail(filter) } => commands::log::run(&config, &filter, true).await.map(|()| ExitCode::SUCCESS),
    Command::Log { command: LogCommand::Export(filter) } => commands::log::run(&config, &filter, false).await.map(|()| ExitCode::SUCCESS),
    Command::Account { command } => account(&config, command).await.map(|()| ExitCode::SUCCESS),
    Command::Token { command } => token(&config, command).await.map(|()| ExitCode::SUCCESS),
    Command::Migrate => commands::migrate::run(&config).await.map(|()| ExitCode::SUCCESS),
    Command::Log { command: LogCommand::Copy { to, partitions } } => commands::copy::run(&config, &to, partitions).await.map(|()| ExitCode::SUCCESS),
    Command::Backup { dir } => commands::backup::run(&config, &dir).await.map(|()| ExitCode::SUCCESS),
    Command::Restore { dir } => commands::restore::run(&config, &dir).await,
    Command::Doctor => Ok(not_there("`pa doctor`", "`/readyz` says what a running process waits for")),
  }
}

async fn account(config: &config::Config, command: AccountCommand) -> Result<()> {
  match command {
    AccountCommand::Add { name } => commands::account::add(config, &name).await,
    AccountCommand::List => commands::account::list(config).await,
  }
}

async fn token(config: &config::Config, command: TokenCommand) -> Result<()> {
  match command {
    TokenCommand::Show(of) => commands::token::show(config, of.account.as_deref()).await,
    TokenCommand::Link(of) => commands::token::link(config, of.account.as_deref()).await,
    TokenCommand::Reset(of) => commands::token::reset(config, of.account.as_deref()).await,
  }
}

fn not_there(what: &str, instead: &str) -> ExitCode {
  say(&format!("pa: {what} is not there yet; {instead}"));
  ExitCode::from(COULD_NOT_RUN)
}
