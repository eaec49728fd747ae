//! Rebuilds the crate when a migration is added: the macro that embeds them can't see new files by itself.

fn main() {
  println!("cargo:rerun-if-changed=../../../migrations");
}
