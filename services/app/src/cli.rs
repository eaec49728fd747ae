//! The command line: names by which people and scripts start things.

use clap::{Parser, Subcommand};
use uuid::Uuid;

/// Personal Agent: a self-hosted personal AI agent.
#[derive(Debug, Parser)]
#[command(name = "pa", version, about, propagate_version = true)]
pub struct Cli {
  /// Tools also say what they do beside their answer.
  #[arg(long, short, global = true)]
  pub verbose: bool,
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
  /// Build what this version keeps beside the log while another version serves: this one then starts at once.
  Migrate,
  /// Build the read schema afresh from the log.
  Rebuild {
    /// Only this agent's rows.
    #[arg(long, value_parser = agent_id)]
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
  /// Tokens and sign-in links; the owner's, if no account is named.
  Token {
    #[command(subcommand)]
    command: TokenCommand,
  },
  /// Write a backup into an empty folder, while pa runs or not; the master key is not in it.
  Backup { dir: std::path::PathBuf },
  /// Bring a backup back, into an empty data folder, database and log.
  Restore { dir: std::path::PathBuf },
  /// (not there yet) Find the usual mistakes.
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
  /// Print new records as they come, one JSON object a line, until it is interrupted.
  Tail(LogFilter),
  /// Print all records there are, one JSON object a line.
  Export(LogFilter),
  /// Copy the log to another engine, or into another number of partitions; the copy is this installation's log from then on.
  Copy {
    /// `postgres`, or `kafka://HOST:PORT,…/PREFIX`; without a prefix, that of `PA_KAFKA_PREFIX`.
    #[arg(long)]
    to: String,
    /// How many partitions the copy has; as many as the log, if it is not said.
    #[arg(long)]
    partitions: Option<u16>,
  },
}

/// Which records, and how much of them.
#[derive(Debug, clap::Args)]
pub struct LogFilter {
  /// Only this agent's records.
  #[arg(long, value_parser = agent_id)]
  pub agent: Option<Uuid>,
  /// With the opened body: content of conversations.
  #[arg(long)]
  pub open: bool,
}

/// An agent's id, which is its account's.
fn agent_id(text: &str) -> Result<Uuid, String> {
  text.trim().parse().map_err(|_| format!("not an agent id: {text} (`pa account list` shows them)"))
}

/// Accounts.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
  /// Add an account; prints its token, once, and a link that signs it in.
  Add { name: String },
  /// Print all accounts: id, role, name.
  List,
}

/// The ways in.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
  /// Print the owner's bearer token; those of other accounts are kept as hashes only.
  Show(OfAccount),
  /// Print a fresh sign-in link that works once, for an hour.
  Link(OfAccount),
  /// Replace the account's token and sign it out everywhere.
  Reset(OfAccount),
}

/// Whose.
#[derive(Debug, clap::Args)]
pub struct OfAccount {
  /// Another account than the owner's, by its name or id.
  #[arg(long, value_name = "NAME-OR-ID")]
  pub account: Option<String>,
}

#[cfg(test)]
mod tests {
  use clap::Parser as _;

  use super::*;

  #[test]
  fn what_is_no_agent_id_is_told_with_where_to_find_one() {
    for arguments in [&["pa", "log", "export", "--agent", "Ana"][..], &["pa", "rebuild", "--agent", "Ana"]] {
      let said = Cli::try_parse_from(arguments).unwrap_err().to_string();
      assert!(said.contains("not an agent id: Ana") && said.contains("pa account list"), "{said}");
    }
  }

  #[test]
  fn help_marks_what_is_not_there() {
    use clap::CommandFactory as _;
    let help = Cli::command().render_help().to_string();
    let line = help.lines().find(|line| line.trim_start().starts_with("doctor")).unwrap_or_default();
    assert!(line.contains("(not there yet)"), "{line}");
  }
}
