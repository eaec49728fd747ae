//! What the schema serves.

use std::fs;
use std::path::Path;

/// Set to rewrite the committed schema from what the server serves.
const REWRITE: &str = "PA_WRITE_SCHEMA";

/// Proves that the committed schema, from which the page is typed, is the server's.
#[test]
fn the_schema_file_is_what_the_server_serves() {
  let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/read_model.graphql");
  let served = super::sdl();
  if option_env(REWRITE) {
    fs::write(&path, &served).unwrap();
  }
  let committed = fs::read_to_string(&path).unwrap();
  assert!(committed == served, "schemas/read_model.graphql is not what the server serves; run this test with {REWRITE}=1");
}

#[expect(clippy::disallowed_methods, reason = "a switch of this test alone, not configuration of the product")]
fn option_env(name: &str) -> bool {
  std::env::var(name).is_ok()
}
