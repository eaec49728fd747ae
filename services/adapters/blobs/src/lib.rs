//! pa-blobs
