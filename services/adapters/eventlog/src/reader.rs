//! (being written)
/// Content of a record, opened once.
#[derive(Clone, Debug)]
pub struct Opened;
