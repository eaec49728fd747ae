//! pa-gateway
