//! Conversations: what comes in, whose turn it is, and the owner's word.

mod admission;
mod stop_and_retry;
mod turns;
