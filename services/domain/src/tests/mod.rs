//! What holds for all rules together.

mod oracle;
mod random;
mod whole;
