//! Counters in the worlds of whole nodes: two tables like those of plain writes, whose counters all
//! clients may add to at once, and a model that tells from a counter's value which additions it
//! holds.

mod clients;
mod history;
mod statement;

pub use clients::{Counters, operate};
