//! All tests of the crate in one program: linking is what most of the time of many would go to.

mod bound;
mod common;
mod corpus;
mod ddl;
mod laws;
mod modify;
mod modify_golden;
mod modify_lists;
mod modify_many;
mod modify_verdicts;
#[path = "select/main.rs"]
mod select;
mod shape;
