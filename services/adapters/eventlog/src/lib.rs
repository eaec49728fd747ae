//! pa-eventlog
