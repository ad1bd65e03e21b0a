//! All tests of the crate in one program: linking is what most of the time of many would go to.

mod bti;
mod chunks;
mod read_and_write;
mod trie_builder;
