//! pa-tests
