//! The command line: names by which people and scripts start things.

use clap::{Parser, Subcommand};
use uuid::Uuid;

/// Personal Agent: a self-hosted personal AI agent.
#[derive(Debug, Parser)]
#[command(name = "pa", version, about, propagate_version = true)]
pub struct Cli {
  #[command(subcommand)]
  pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
  /// Run all roles in the foreground; owns the data folder.
  Up,
  /// Run some roles beside other processes; needs `PA_DATABASE_URL`.
  Run {
    /// Comma-separated: gateway, decider, projector, agent, scheduler.
    #[arg(long = "role", value_delimiter = ',', required = true)]
    roles: Vec<RoleName>,
  },
  /// Build this binary's read schema while another one serves.
  Migrate,
  /// Build the read schema afresh from the log.
  Rebuild {
    /// Only this agent's rows.
    #[arg(long)]
    agent: Option<Uuid>,
  },
  /// Compare the read model with the log: 0 equal, 1 with one line a difference, 2 could not run.
  Verify,
  /// Read the log.
  Log {
    #[command(subcommand)]
    command: LogCommand,
  },
  /// Accounts.
  Account {
    #[command(subcommand)]
    command: AccountCommand,
  },
  /// The owner's token and sign-in links.
  Token {
    #[command(subcommand)]
    command: TokenCommand,
  },
  /// Write an online backup to a folder.
  Backup { dir: std::path::PathBuf },
  /// Restore a backup.
  Restore { dir: std::path::PathBuf },
  /// Find the usual mistakes.
  Doctor,
}

/// A role that a process may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum)]
pub enum RoleName {
  Gateway,
  Decider,
  Projector,
  Agent,
  Scheduler,
}

impl RoleName {
  /// Every role, in the order in which they start.
  pub const ALL: [Self; 5] = [Self::Decider, Self::Projector, Self::Agent, Self::Scheduler, Self::Gateway];

  /// The name as the command line and the system page write it.
  pub fn name(self) -> &'static str {
    match self {
      Self::Gateway => "gateway",
      Self::Decider => "decider",
      Self::Projector => "projector",
      Self::Agent => "agent",
      Self::Scheduler => "scheduler",
    }
  }
}

/// Reading and copying the log.
#[derive(Debug, Subcommand)]
pub enum LogCommand {
  /// Print records as they come, one JSON object a line.
  Tail(LogFilter),
  /// Print all records there are, one JSON object a line.
  Export(LogFilter),
  /// Copy the log to another engine.
  Copy {
    #[arg(long)]
    to: String,
  },
}

/// Which records, and how much of them.
#[derive(Debug, clap::Args)]
pub struct LogFilter {
  /// Only this agent's records.
  #[arg(long)]
  pub agent: Option<Uuid>,
  /// With the opened body: content of conversations.
  #[arg(long)]
  pub open: bool,
}

/// Accounts.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
  /// Add an account; prints its token once.
  Add { name: String },
}

/// The owner's ways in.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
  /// Print the owner's bearer token.
  Show,
  /// Print a fresh sign-in link that works once.
  Link,
  /// Replace the owner's token and sign everybody of that account out.
  Reset,
}
