//! How far a node is: nothing yet, asking before it takes part, or taking part.

use std::collections::BTreeSet;

use types::Address;

#[derive(Debug)]
pub(crate) enum Phase {
    /// Not started.
    Idle,
    Shadow(Shadow),
    Running,
}

/// A shadow round that is under way.
#[derive(Debug)]
pub(crate) struct Shadow {
    /// When it began, in nanoseconds.
    pub since: u64,
    /// When others were last asked.
    pub asked: u64,
    /// Whom to ask besides the seeds.
    pub peers: BTreeSet<Address>,
    /// Seeds that are in their own shadow round.
    pub waiting: BTreeSet<Address>,
}
