//! The coordinator: statements meet the ring. For now a ring of one node: plans are bound, run on the shards that
//! own their keys, and their results put together.
#![forbid(unsafe_code)]

mod boot;
mod clock_reserve;
mod identity;
mod internal;

pub use boot::{BootError, Booted, boot, first_schema};
pub use clock_reserve::{ClockReserve, ReserveError};
pub use identity::{Identity, RELEASE_VERSION};
