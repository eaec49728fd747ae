//! A child process with everything it says, and the signals that end or stop it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{eventually, within};

/// The product with fail points.
const PROGRAM: &str = env!("CARGO_BIN_EXE_pa-under-test");
/// Lines that are kept of what a process says.
const LINES_MAX: usize = 5_000;
/// Looks for the end of what an ended process said.
const LAST_WORDS_LOOKS: usize = 50;
/// Lines that a failed test prints.
const LINES_SHOWN: usize = 250;

/// What a process has said, on both of its streams.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<VecDeque<String>>>);

impl Said {
  fn add(&self, line: String) {
    let mut lines = self.0.lock().expect("no thread panics while it holds this lock");
    if lines.len() == LINES_MAX {
      lines.pop_front();
    }
    lines.push_back(line);
  }

  fn lines(&self) -> Vec<String> {
    self.0.lock().expect("no thread panics while it holds this lock").iter().cloned().collect()
  }

  fn listen(&self, stream: impl Read + Send + 'static) -> thread::JoinHandle<()> {
    let said = self.clone();
    thread::spawn(move || BufReader::new(stream).lines().map_while(Result::ok).for_each(|line| said.add(line)))
  }
}

/// A running product.
pub(crate) struct Process {
  name: String,
  child: Child,
  said: Said,
  listeners: Vec<thread::JoinHandle<()>>,
}

/// A tool of the command line that has ended.
pub(crate) struct Tool {
  pub(crate) code: Option<i32>,
  pub(crate) out: String,
  pub(crate) err: String,
}

/// The program's command line, behind a program that starts it, if there is one; it dies with the thread that starts it, so that a test that is killed leaves nothing
/// behind.
fn command(behind: &[String], arguments: &[&str], env: &[(String, String)]) -> Command {
  let line: Vec<&str> = behind.iter().map(String::as_str).chain(["setpriv", "--pdeathsig", "KILL", "--", PROGRAM]).collect();
  let mut command = Command::new(line[0]);
  command.args(&line[1..]).args(arguments);
  // Nothing of the developer's own settings gets in.
  command.env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("RUST_BACKTRACE", "1");
  command.envs(env.iter().map(|(name, value)| (name.as_str(), value.as_str()))).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
  command
}

/// Runs a tool of the command line to its end.
pub(crate) fn run(arguments: &[&str], env: &[(String, String)]) -> Tool {
  let output = command(&[], arguments, env).output().expect("the program under test can be started");
  let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
  Tool { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

impl Process {
  /// Starts the program.
  pub(crate) fn start(name: &str, arguments: &[&str], env: &[(String, String)]) -> Self {
    Self::start_behind(&[], name, arguments, env)
  }

  /// Starts the program by another one, which gives its place to it.
  pub(crate) fn start_behind(behind: &[String], name: &str, arguments: &[&str], env: &[(String, String)]) -> Self {
    let mut child = command(behind, arguments, env).spawn().expect("the program under test can be started");
    let said = Said::default();
    let listeners = vec![said.listen(child.stdout.take().expect("it is piped")), said.listen(child.stderr.take().expect("it is piped"))];
    Self { name: name.to_owned(), child, said, listeners }
  }

  /// The value of a line `name=value` that it printed.
  pub(crate) fn printed(&self, name: &str) -> Option<String> {
    self.said.lines().iter().find_map(|line| line.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
  }

  /// Waits for a line `name=value`; the value.
  pub(crate) async fn prints(&mut self, name: &str) -> Result<String, String> {
    within(super::PATIENCE * 2, &format!("{} prints {name}=", self.name), async || {
      if let Some(value) = self.printed(name) {
        return Some(Ok(value));
      }
      self.ended().map(|status| Err(format!("{} ended with {status} before it printed {name}=:\n{}", self.name, self.log())))
    })
    .await
  }

  /// Waits until it says something with these words.
  pub(crate) async fn says(&self, words: &str) {
    eventually(&format!("{} says {words:?}", self.name), async || self.log().contains(words).then_some(())).await;
  }

  /// Everything that it said.
  pub(crate) fn log(&self) -> String {
    self.said.lines().join("\n")
  }

  /// Its status if it has ended.
  pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
    self.child.try_wait().expect("the child is ours")
  }

  /// Waits for its end.
  pub(crate) async fn dies(&mut self) -> ExitStatus {
    let name = self.name.clone();
    let status = eventually(&format!("{name} ends"), async || self.ended()).await;
    // Its last words are still on their way; a child that it leaves behind may hold the stream open.
    for _ in 0..LAST_WORDS_LOOKS {
      if self.listeners.iter().all(thread::JoinHandle::is_finished) {
        break;
      }
      tokio::time::sleep(super::LOOK_EVERY).await;
    }
    status
  }

  /// Sends a signal.
  pub(crate) fn signal(&mut self, signal: Signal) {
    if self.ended().is_none() {
      kill(self.pid(), signal).expect("the child is ours");
    }
  }

  pub(crate) fn pid(&self) -> Pid {
    Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"))
  }

  /// Kills it as a power cut would, and waits until it is gone.
  pub(crate) fn kill9(&mut self) {
    self.child.kill().expect("the child is ours");
    self.child.wait().expect("the child is ours");
  }

  /// Asks it to end and waits until it has.
  pub(crate) async fn terminate(&mut self) -> ExitStatus {
    self.signal(Signal::SIGTERM);
    self.dies().await
  }
}

impl Drop for Process {
  fn drop(&mut self) {
    if self.ended().is_none() {
      self.kill9();
    }
    if thread::panicking() {
      let lines = self.said.lines();
      println!("--- {} said ---\n{}\n---", self.name, lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n"));
    }
  }
}
