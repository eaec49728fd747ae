//! Tests of all projections together.
