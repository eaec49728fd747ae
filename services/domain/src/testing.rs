//! Given, when, then: for tests of the rules.
