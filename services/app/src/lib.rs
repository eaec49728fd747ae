//! pa
