//! pa-domain
