//! SELECT against the answers of a real Cassandra, and laws of slices and pages.

mod golden;
mod indexed;
mod json;
mod laws;
mod limits;
mod recorded;
mod tokens;
mod world;
