//! All tests of the crate in one program: linking is what most of the time of many would go to.

mod allocation;
mod common;
mod forecast;
mod laws;
mod plans;
mod snitches;
mod vectors;
