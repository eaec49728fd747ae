//! pa-workspace
