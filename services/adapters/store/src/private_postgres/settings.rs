//! The server's configuration, with the reason for each line.

use std::fmt::Write as _;

use super::Config;
use super::postmaster::{Address, PORT};

/// For a person with `psql`, a backup, and the server's own superuser reserve.
pub(super) const CONNECTIONS_SPARE: u32 = 8;

/// The whole configuration file. It is written anew at each start; a person's own settings go into `local.conf` beside it.
pub(super) fn text(config: &Config, address: &Address) -> String {
  let mut text = String::from(
    "# Written by pa at each start: put your own settings into local.conf beside this file.\n\
     # Durability: what was acknowledged survives a power loss. pa refuses to run with these off.\n\
     fsync = on\n\
     full_page_writes = on\n\
     synchronous_commit = on\n\
     # Nobody but pa connects.\n",
  );
  let written = match address {
    Address::Socket { folder } => {
      write!(text, "listen_addresses = ''\nport = {PORT}\nunix_socket_directories = {}\nunix_socket_permissions = 0700\n", quoted(&folder.to_string_lossy()))
    }
    Address::Loopback { port } => write!(text, "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = ''\n"),
  };
  written.and_then(|()| writeln!(text, "max_connections = {}", config.connections)).expect("writing to a string does not fail");
  text.push_str(SMALL_MACHINE);
  text
}

/// Meant for a machine with two cores and 2 GB that also runs everything else.
const SMALL_MACHINE: &str = "\
# The hot set (recent rows, keys, leases) fits; the operating system caches the rest.
shared_buffers = 128MB
effective_cache_size = 512MB
work_mem = 4MB
maintenance_work_mem = 64MB
# Statements take well below the time it takes to compile or to spread them.
jit = off
max_parallel_workers_per_gather = 0
max_parallel_maintenance_workers = 0
# Nobody replicates from here: less is logged, and COPY into a table made in the same transaction is not logged at all.
wal_level = minimal
max_wal_senders = 0
# Bursts of appends must not force checkpoints; a checkpoint is spread out so that commits stay even.
wal_buffers = 16MB
min_wal_size = 128MB
max_wal_size = 1GB
checkpoint_timeout = 15min
checkpoint_completion_target = 0.9
# Most rows hold ciphertext, which does not compress.
wal_compression = off
default_toast_compression = lz4
# Nothing of what people write may reach the server's log: neither parameters nor the details of a violated constraint.
log_min_messages = warning
log_statement = none
log_error_verbosity = terse
log_parameter_max_length = 0
log_parameter_max_length_on_error = 0
log_line_prefix = '%m [%p] %a '
log_timezone = 'UTC'
timezone = 'UTC'
# A backend that was interrupted by the death of its client ends at once instead of finishing for nobody.
client_connection_check_interval = 5s
cluster_name = 'pa'
include = 'local.conf'
";

fn quoted(text: &str) -> String {
  format!("'{}'", text.replace('\'', "''"))
}
