//! Collects every `<context>/<name>.v<version>.avsc` into one table; it reads no more of a schema than its record's name.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
  let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
  let mut files = Vec::new();
  for context in folders(&root) {
    println!("cargo::rerun-if-changed={}", context.display());
    for path in sorted(&context).into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "avsc")) {
      println!("cargo::rerun-if-changed={}", path.display());
      files.push(path);
    }
  }
  println!("cargo::rerun-if-changed={}", root.display());
  let mut table = String::from("&[\n");
  for path in &files {
    let entry = entry(path).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
    writeln!(table, "  {entry},").expect("a String takes everything");
  }
  table.push_str("]\n");
  let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("files.rs");
  fs::write(out, table).expect("the build folder is writable");
}

fn folders(root: &Path) -> Vec<PathBuf> {
  sorted(root).into_iter().filter(|path| path.is_dir() && !path.ends_with("src") && !path.ends_with("golden")).collect()
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
  let mut paths: Vec<PathBuf> = fs::read_dir(folder).expect("the folder exists").map(|entry| entry.expect("the folder is readable").path()).collect();
  paths.sort();
  paths
}

fn entry(path: &Path) -> Result<String, String> {
  let stem = path.file_stem().and_then(|stem| stem.to_str()).ok_or("the name is not UTF-8")?;
  let (name, version) = stem.rsplit_once(".v").ok_or("the name has no version")?;
  let version: u16 = version.parse().map_err(|_| "the version is not a number")?;
  let context = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).ok_or("it is in no folder")?;
  let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
  let schema: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
  let record = schema["name"].as_str().ok_or("the record has no name")?;
  let namespace = schema["namespace"].as_str().ok_or("the record has no namespace")?;
  let path = path.to_str().ok_or("the path is not UTF-8")?;
  Ok(format!("SchemaFile {{ context: {context:?}, name: {name:?}, version: {version}, type_name: \"{namespace}.{record}\", text: include_str!({path:?}) }}"))
}
