//! The simulator: the product's decider, log readers and folds in a world that a seed repeats, with everything going wrong that may go wrong.
//!
//! A run is a [`world`] of two or three processes over one log and one database in memory, on a clock that jumps. People write, stop, retry ([`client`]); the product's
//! workers and schedulers do what is asked for, over [`ports`] and [`tools`] in memory; [`watcher`] looks at what is shown; [`chaos`] crashes, stops, cuts, restores, sets clocks and
//! leaves inputs that nobody can open. When everything is healed it must settle, and the
//! [`oracle`] compares the log with all that the outside was told and did. [`mutants`] switches each guard of the protocol off: the oracle must notice. `cases` are
//! the traces of the model check by name. A failing seed is printed; `PA_SIM_SEED` runs one, `PA_SIM_SEEDS` another number of them.

mod cases;
mod chaos;
mod client;
mod clock;
mod gate;
mod model;
mod mutants;
mod oracle;
mod ports;
mod process;
mod record;
mod run;
mod store;
mod tools;
mod traps;
mod view;
mod watcher;
mod world;

use run::run;

/// Seeds of one ordinary run of the tests.
const SEEDS: u64 = 2_000;
/// A bug that many seeds find is not shown by all of them.
const FAILURES_SHOWN: usize = 10;
/// Seeds that found something once.
const FOUND: &[u64] = &[279, 426, 523, 791, 1249];

/// What a simulation runs of the product.
const SIMULATED: [&str; 7] =
  ["eventlog/src/pieces", "eventlog/src/reader", "eventlog/src/sim", "eventlog/src/tail", "src/agent", "src/decider", "src/scheduler"];

#[test]
fn a_seed_repeats_its_world() {
  for seed in FOUND.iter().copied().chain(0..24) {
    assert_eq!(run(seed).unwrap(), run(seed).unwrap(), "SEED={seed}");
  }
}

/// `select!` polls its branches in an order that no seed of ours decides, unless it is told to keep theirs.
#[test]
fn nothing_that_is_simulated_draws_lots_by_itself() {
  let services = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../services");
  let mut selects = 0;
  for folder in SIMULATED.map(|folder| services.join(if folder.starts_with("eventlog") { "adapters" } else { "pipeline" }).join(folder)) {
    for (file, text) in sources(&folder) {
      for (at, _) in text.match_indices("select! {") {
        selects += 1;
        assert!(text[at..].trim_start_matches("select! {").trim_start().starts_with("biased;"), "a select! in {} is not biased", file.display());
      }
    }
  }
  assert!(selects > 0, "there is no select! any more: the folders are other ones");
}

/// The sources below a folder, tests left out.
fn sources(folder: &std::path::Path) -> Vec<(std::path::PathBuf, String)> {
  let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
  let paths = entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.file_stem().is_some_and(|name| name != "tests"));
  let of = |path: std::path::PathBuf| {
    if path.is_dir() {
      return sources(&path);
    }
    let text = std::fs::read_to_string(&path).expect("a source");
    vec![(path, text)]
  };
  paths.flat_map(of).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "which seeds to run is said to the tests by the environment")]
fn every_seed_keeps_the_promises() {
  let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
  if let Some(seed) = number("PA_SIM_SEED") {
    let stats = run(seed).unwrap_or_else(|problem| panic!("SEED={seed}: {problem}"));
    println!("SEED={seed} {stats:?}");
    return;
  }
  let last = number("PA_SIM_SEEDS").unwrap_or(SEEDS);
  let threads = std::thread::available_parallelism().map_or(2, |threads| u64::try_from(threads.get()).expect("few"));
  let failed: Vec<String> = std::thread::scope(|scope| {
    let some = |first: u64| {
      scope.spawn(move || {
        let seeds = (first..last).step_by(usize::try_from(threads).expect("few"));
        let seeds = FOUND.iter().copied().filter(|seed| seed % threads == first).chain(seeds);
        seeds.filter_map(|seed| run(seed).err().map(|problem| format!("SEED={seed}: {problem}"))).take(FAILURES_SHOWN).collect::<Vec<_>>()
      })
    };
    let running: Vec<_> = (0..threads).map(some).collect();
    running.into_iter().flat_map(|thread| thread.join().expect("a simulation panicked")).collect()
  });
  assert!(failed.is_empty(), "{} seeds failed; PA_SIM_SEED=n runs one:\n{}", failed.len(), failed.join("\n"));
}
