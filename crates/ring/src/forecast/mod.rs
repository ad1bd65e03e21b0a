//! What a ring would be after a change, and what it withstands: for an operator who asks before
//! anything moves.
//!
//! - `ownership`: what part of the ring each node replicates.
//! - `newcomer`: the tokens that a node would have that joins.
//! - `resized`: the same nodes with another number of tokens.
//! - `failures`: how likely it is that replicas are missing when nodes or racks fail.
//!
//! All of it computes on rings that are made up. What moves between two of them is the matter of
//! who moves it: see `topology` in crate `cluster`.

mod dice;
mod failures;
mod newcomer;
mod ownership;
mod resized;

pub use failures::{Chance, FAILED_MAX, Failures, Loss, Unit};
pub use newcomer::{Chosen, choose_tokens};
pub use resized::{ResizeError, Resized, resized};
