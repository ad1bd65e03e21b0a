//! How deep a tree is to be (`ValidationManager.createMerkleTrees`).
//!
//! The more partitions a range has, the more leaves, up to what the coordinator's memory allows: it
//! holds a tree of each replica. Trees of different depths compare, so that nodes need not agree.

use super::DEPTH_MAX;

/// Bytes that a leaf takes in a JVM: what `MerkleTree.estimatedMaxDepthForBytes` measures of 5.0.9
/// and 4.1.10 with compressed pointers. It is a JVM's memory that the coordinator has to have.
const JVM_LEAF_BYTES: u64 = 80;
/// Bytes that an inner node takes there.
const JVM_INNER_BYTES: u64 = 120;

/// The memory that trees may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeBudget {
    /// For all trees of a job, in bytes (`repair_session_space`). From 2 GiB on Cassandra's own
    /// count overflows; ours does not.
    pub session_space: u64,
    /// Replicas of the keyspace in all data centres.
    pub replication_factor: u32,
    /// The depth of a tree at most (`repair_session_max_tree_depth`).
    pub depth_max: u8,
}

impl TreeBudget {
    /// The depth of the tree of a range that has so many of all partitions of the job.
    pub fn depth(&self, partitions: u64, all_partitions: u64) -> u8 {
        if partitions == 0 || all_partitions == 0 {
            return 0;
        }
        let available = self.session_space / u64::from(self.replication_factor.max(1));
        let share = partitions as f64 / all_partitions as f64;
        // to an `int`, as Java's casts do
        let bytes = (share * available as f64).clamp(1.0, f64::from(i32::MAX)) as u64;
        let depth = u64::BITS - (partitions - 1).leading_zeros();
        let most = depth_of_bytes(bytes).min(self.depth_max).min(DEPTH_MAX);
        depth.min(most.into()) as u8
    }
}

/// The depth of a tree that fits, at least 1 (`MerkleTree.estimatedMaxDepthForBytes`).
pub(super) fn depth_of_bytes(bytes: u64) -> u8 {
    let nodes = (bytes + JVM_INNER_BYTES) / (JVM_LEAF_BYTES + JVM_INNER_BYTES);
    nodes.max(1).ilog2().max(1) as u8
}
