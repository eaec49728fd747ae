//! pa-projections
