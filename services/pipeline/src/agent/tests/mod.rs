//! The agent stage over a log in memory, with time that tests own.

mod calls;
mod model;
mod ports;
mod postgres;
mod tasks;
mod turns;
mod world;

use model::{Line, ScriptedModel};
use ports::Rows;
use world::World;
