//! All tests of the crate in one program: linking is what most of the time of many would go to.

mod common;
mod hashes;
mod hostile;
mod messages;
mod reductions;
mod trees;
mod words;
