//! An operation under way, as an operator sees it.

use std::collections::BTreeSet;

use env::Instant;

use super::kind::Kind;
use crate::ring::asked::Asked;
use crate::ring::harm::Harm;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The others are to see that a node is dead.
    AwaitDeath,
    /// A node comes in.
    Enter,
    /// A node leaves its place, or does something at its place.
    Act,
    /// A node that is dead is taken out.
    TakeOut,
    /// A node that was coming in is dead: the others are to forget it.
    BeForgotten,
    /// It was abandoned: the node is to be what it was.
    Stay,
}

/// An operation under way.
pub struct Work {
    /// What it is.
    pub kind: Kind,
    /// The node that comes in, leaves, or does something.
    pub node: usize,
    /// A node that is dead.
    pub gone: Option<usize>,
    /// How far it is.
    pub phase: Phase,
    /// The verb under way.
    pub asked: Option<Asked>,
    /// Not before that it is tried again.
    pub again_at: Option<Instant>,
    /// How often it was tried again.
    pub tries: u32,
    /// What is to go wrong, and when.
    pub harm: Option<(Harm, Instant)>,
    /// Where a node moves.
    pub token: i64,
    /// Which attempt it is, of all of a world.
    pub attempt: u64,
    /// Attempts of others that all nodes saw under way at the same time.
    pub together: BTreeSet<u64>,
}
