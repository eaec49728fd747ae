//! Tests of the running product: a real process, a real Postgres, a scripted model, a real browser.
//!
//! - `harness`: starts, kills and watches a product, and speaks to it as the outside does.
//! - `scenarios`: what the requirements ask for, from a mutation to what the page is shown.
//! - `crash`: processes die, at named places and at random; what was accepted stays.
//! - `nodes`: several nodes and brokers in network namespaces, whose cables are pulled.
//! - `browser`: the page in Chromium.
//! - `figures`: the bench measures every figure.

#[cfg(test)]
mod browser;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod figures;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod nodes;
#[cfg(test)]
mod scenarios;
