//! Makes sure that there is a page to embed: without a build of services/web a plain one says so.

use std::path::Path;
use std::{fs, io};

const NOT_BUILT: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Personal Agent</title>
<p>The page was not built into this program. Build it with <code>npm run build</code> in <code>services/web</code>, then build the program again.</p>
</html>
"#;

fn main() -> io::Result<()> {
  let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/dist");
  if !dist.join("index.html").exists() {
    fs::create_dir_all(&dist)?;
    fs::write(dist.join("index.html"), NOT_BUILT)?;
  }
  println!("cargo::rerun-if-changed=../web/dist");
  println!("cargo::rerun-if-changed=build.rs");
  Ok(())
}
