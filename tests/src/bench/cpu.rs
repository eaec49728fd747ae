//! CPU time and memory, from `/proc`.

use std::time::Duration;

use anyhow::{Context, Result};

/// Fields of `/proc/PID/stat` behind the command's name: state is 0.
const PARENT: usize = 1;
const USER: usize = 11;
const SYSTEM: usize = 12;
const CHILDREN_USER: usize = 13;
const CHILDREN_SYSTEM: usize = 14;

/// CPU time of this process.
pub(super) fn own() -> Result<Duration> {
  of(i32::try_from(std::process::id()).context("a process id")?)
}

/// CPU time of this process's threads with a name.
pub(super) fn threads_named(name: &str) -> Result<Duration> {
  let mut ticks = 0;
  for entry in std::fs::read_dir("/proc/self/task").context("list the threads")? {
    let path = entry.context("list the threads")?.path();
    let (Ok(comm), Ok(stat)) = (std::fs::read_to_string(path.join("comm")), std::fs::read_to_string(path.join("stat"))) else { continue };
    if comm.trim() == name {
      ticks += field(&stat, USER) + field(&stat, SYSTEM);
    }
  }
  Ok(of_ticks(ticks))
}

/// CPU time of a process with all its threads.
pub(super) fn of(pid: i32) -> Result<Duration> {
  let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("read the times of process {pid}"))?;
  Ok(of_ticks(field(&stat, USER) + field(&stat, SYSTEM)))
}

/// CPU time of a process, of its children, and of those of its children that have ended.
pub(super) fn of_family(pid: i32) -> Result<Duration> {
  let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("read the times of process {pid}"))?;
  let mut ticks: u64 = [USER, SYSTEM, CHILDREN_USER, CHILDREN_SYSTEM].iter().map(|at| field(&stat, *at)).sum();
  for entry in std::fs::read_dir("/proc").context("list the processes")?.flatten() {
    let Some(child) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{child}/stat")) else { continue };
    if field(&stat, PARENT) == u64::from(pid.unsigned_abs()) {
      ticks += field(&stat, USER) + field(&stat, SYSTEM);
    }
  }
  Ok(of_ticks(ticks))
}

/// Resident memory of a process in bytes.
pub(super) fn resident_bytes(pid: i32) -> Result<u64> {
  let status = std::fs::read_to_string(format!("/proc/{pid}/status")).with_context(|| format!("read the memory of process {pid}"))?;
  let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("a process has memory")?;
  let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().context("VmRSS is a number")?;
  Ok(kilobytes * 1024)
}

fn field(stat: &str, at: usize) -> u64 {
  let behind_name = stat.rfind(')').map_or("", |end| &stat[end + 1..]);
  behind_name.split_ascii_whitespace().nth(at).and_then(|value| value.parse().ok()).unwrap_or(0)
}

fn of_ticks(ticks: u64) -> Duration {
  // Linux counts in hundredths of a second, whatever the kernel's own clock is.
  Duration::from_millis(ticks * 10)
}
