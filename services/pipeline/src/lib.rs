//! pa-pipeline
