//! What holds for all rules together.
