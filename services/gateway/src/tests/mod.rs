//! The edge over real HTTP and sockets, against a real Postgres; the log is in memory, and a small decider and projector of this harness answer it.

mod bad_input;
mod credentials;
mod decider;
mod files;
mod mutations;
mod page;
mod past;
mod reads;
mod socket_client;
mod sockets;
mod tasks;
mod updates;
mod world;
