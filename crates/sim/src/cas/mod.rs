//! Worlds of conditional statements: few keys, many clients at each, serial reads and plain ones;
//! the histories must be linearizable, partition by partition.

mod check;
mod clients;
mod fresh;
mod model;
mod statement;

pub use clients::Cas;
