//! The suite that every engine of the log passes.
