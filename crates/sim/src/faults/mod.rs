//! The disk-fault table: each kind of file meets each fault of a disk, in a simulated world, under
//! a node that is read, written to, flushed, compacted and started again. No answer may be wrong,
//! and what goes wrong is said.

mod cell;
mod report;

pub use cell::{Cell, Damage, FAULTS, FILES, Fault, Kind, Outcome, run};
pub use report::report;
