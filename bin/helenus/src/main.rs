//! The node: composition only.
#![forbid(unsafe_code)]
fn main() {}
