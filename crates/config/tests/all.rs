//! All tests of the crate in one program: linking is what most of the time of many would go to.

mod config;
mod counted;
mod files;
mod golden;
