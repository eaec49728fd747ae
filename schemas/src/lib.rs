//! pa-schemas
