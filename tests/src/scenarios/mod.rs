//! What the requirements ask for, proven on a running product. The files mirror the headings of the requirements.
//!
//! Every scenario ends with [`sound`]: the log keeps its own rules and the read model is what the log says.

mod bad_input;
mod command_line;
mod effects;
mod history;
mod intake;
mod isolation;
mod kafka;
mod kafka_topics;
mod model_trouble;
mod moving;
mod operations;
mod replies;
mod runtime;
mod settings;
mod several_nodes;
mod sidebar;
mod storage_trouble;
mod subscriptions;
mod tasks;
mod use_the_module;
mod web;

use crate::harness::{Dump, Product, check_log};

/// The log keeps its rules, and the read model is what it says.
fn sound(product: &Product) -> Dump {
  let dump = product.dump();
  check_log(&dump);
  product.verify();
  dump
}
