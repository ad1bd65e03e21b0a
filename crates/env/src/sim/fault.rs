//! What a world can do to its nodes.

use std::rc::Rc;
use std::time::Duration;

use super::Inner;
use super::node::NodeId;

/// What fails of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// Reads, with EIO.
    Read,
    /// Writes, with EIO, after a part of the bytes.
    Write,
    /// Syncs, with EIO; what they covered is never written.
    Sync,
    /// Syncs of directories, with EIO; the names that they covered are never written.
    SyncNames,
    /// Writes that need space, with ENOSPC.
    Full,
}

/// A fault to arm, change (0 or `false` ends it) or do once. `one_in: n`: each time with
/// probability 1/n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Reads fail with EIO.
    ReadError {
        /// The node.
        node: NodeId,
        /// Once in so many reads.
        one_in: u64,
    },
    /// Writes fail with EIO, after writing a part.
    WriteError {
        /// The node.
        node: NodeId,
        /// Once in so many writes.
        one_in: u64,
    },
    /// Syncs fail with EIO, and what they covered is never written.
    SyncError {
        /// The node.
        node: NodeId,
        /// Once in so many syncs.
        one_in: u64,
    },
    /// Syncs succeed and do nothing.
    SyncLie {
        /// The node.
        node: NodeId,
        /// Once in so many syncs.
        one_in: u64,
    },
    /// From now on, or no more: one thing fails each time on every file whose path contains the
    /// text.
    File {
        /// The node.
        node: NodeId,
        /// Part of the path, and what fails.
        what: Option<(String, FileFault)>,
    },
    /// Writes that need space fail with ENOSPC.
    NoSpace {
        /// The node.
        node: NodeId,
        /// Whether the disk is full.
        on: bool,
    },
    /// Everything on the disk takes so many times longer.
    SlowDisk {
        /// The node.
        node: NodeId,
        /// 1 is healthy.
        factor: u64,
    },
    /// Flips one random bit, now, of a random file whose path contains the text (nothing happens if
    /// there is none).
    BitRot {
        /// The node.
        node: NodeId,
        /// Part of the path.
        path: String,
    },
    /// Sets the wall clock forward or back, now.
    ClockJump {
        /// The node.
        node: NodeId,
        /// By so many microseconds.
        micros: i64,
    },
    /// Nothing travels from these nodes to those until [`Fault::Heal`].
    Block {
        /// From.
        from: Vec<NodeId>,
        /// To.
        to: Vec<NodeId>,
    },
    /// Nothing travels between the two groups until [`Fault::Heal`].
    Partition {
        /// One group.
        a: Vec<NodeId>,
        /// The other.
        b: Vec<NodeId>,
    },
    /// Ends every block and partition.
    Heal,
    /// Packets are lost and sent again: bytes arrive up to a second late.
    Loss {
        /// Once in so many sends.
        one_in: u64,
    },
    /// Connections break.
    Reset {
        /// Once in so many sends.
        one_in: u64,
    },
    /// Another time for bytes to travel between two nodes, both ways.
    Latency {
        /// One node.
        a: NodeId,
        /// The other.
        b: NodeId,
        /// Shortest and longest.
        range: (Duration, Duration),
    },
}

pub(super) fn set(world: &Rc<Inner>, fault: Fault) {
    let disk = |id: NodeId, f: &dyn Fn(&super::disk::SimDisk)| {
        if let Some(node) = world.node(id) {
            f(&node.disk);
        }
    };
    match fault {
        Fault::ReadError { node, one_in } => disk(node, &|d| d.read_error.set(one_in)),
        Fault::WriteError { node, one_in } => disk(node, &|d| d.write_error.set(one_in)),
        Fault::SyncError { node, one_in } => disk(node, &|d| d.sync_error.set(one_in)),
        Fault::SyncLie { node, one_in } => disk(node, &|d| d.sync_lie.set(one_in)),
        Fault::File { node, what } => disk(node, &|d| {
            d.broken.replace(what.clone());
        }),
        Fault::NoSpace { node, on } => disk(node, &|d| d.no_space.set(on)),
        Fault::SlowDisk { node, factor } => disk(node, &|d| d.slow.set(factor.max(1))),
        Fault::BitRot { node, path } => disk(node, &|d| d.rot(world, &path)),
        Fault::ClockJump { node, micros } => {
            if let Some(node) = world.node(node) {
                world.fired("clock_jump");
                node.clock_offset.set(node.clock_offset.get().saturating_add(micros));
            }
        }
        Fault::Block { from, to } => world.net.block(&from, &to),
        Fault::Partition { a, b } => {
            world.net.block(&a, &b);
            world.net.block(&b, &a);
        }
        Fault::Heal => world.net.heal(),
        Fault::Loss { one_in } => world.net.loss.set(one_in),
        Fault::Reset { one_in } => world.net.reset.set(one_in),
        Fault::Latency { a, b, range } => world.net.set_latency(a, b, range),
    }
}
