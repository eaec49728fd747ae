//! pa-store
