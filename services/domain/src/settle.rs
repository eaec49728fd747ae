//! Short forms for decisions that lead to no other fact.
