//! What holds for all rules together.

mod oracle;
mod random;
mod random_tasks;
mod task_oracle;
mod whole;
