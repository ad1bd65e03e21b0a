//! What a machine should be changed in before a node runs on it: facts in, findings out.
//!
//! It opens no file: whoever asks hands in a [`Source`]. It changes nothing on the machine.
#![forbid(unsafe_code)]

mod baseline;
mod checks;
mod examine;
mod facts;
mod report;
mod source;
mod tree;

pub use baseline::{Baseline, Better, Change, Figure, percentile, timestamp};
pub use checks::{ALL, Check, Severity, markdown};
pub use examine::examine;
pub use facts::{
    Array, Card, Clock, Copies, Cpu, Device, Directory, Facts, Kernel, Limits, Memory, Mount,
    Network, NodeFacts, RingFacts, RingKeyspace, RingNode, Role,
};
pub use report::{Finding, Report};
pub use source::{ClockState, Source, Space};
pub use tree::{Tree, TreeError};
