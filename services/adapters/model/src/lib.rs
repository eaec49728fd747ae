//! pa-model
