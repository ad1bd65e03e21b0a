//! Merkle trees as Cassandra builds them (`utils.MerkleTree`).
//!
//! A tree divides a range of tokens at midpoints, and has at each leaf the XOR of the hashes of its
//! partitions. A node above has the XOR of its two.
//!
//! A node of Cassandra divides evenly (`MerkleTree.init`), so a tree is a depth and a hash for each
//! leaf: 32 bytes, and a bit that says whether it has any partition. Nodes above are never stored.
//! Where a range has fewer tokens than the tree would have leaves, and in trees that came from
//! elsewhere, the ends of leaves are kept too: 8 bytes more each.
//!
//! ```text
//! i8 depth of the perfect tree below (126), i64 most leaves, i64 leaves, partitioner's class,
//! left, right, then nodes in preorder:
//!   inner  02, token, left, right
//!   leaf   01, length (0 or 32), hash
//! ```

mod codec;
mod depth;
mod difference;
mod error;
mod offsets;
mod shape;

pub use codec::{TREE_BYTES_MIN, TreeWriter};
pub use depth::TreeBudget;
pub use difference::{difference, difference_of_all};
pub use error::{NoDifference, OutOfRange, TreeError};

use std::cmp::Ordering;

use types::{Token, TokenRange};

use offsets::Offsets;
use shape::{Leaf, Shape};

/// Bytes of a partition's hash, and of a leaf.
pub const HASH_BYTES: usize = 32;
/// Depth of a tree that this node builds, at most: 128 MiB of hashes.
pub const DEPTH_MAX: u8 = 22;
/// Leaves that all trees of an answer may have together. A message of 128 MiB, Cassandra's largest,
/// has fewer, unless most are empty.
pub const LEAVES_MAX: usize = 1 << DEPTH_MAX;
/// Depth that a node may have: by then a range of any length has one token.
pub const NODE_DEPTH_MAX: u8 = 64;
/// The depth of a perfect tree that Cassandra writes into each of its own
/// (`MerkleTree.RECOMMENDED_DEPTH`); it limits nothing.
const HASH_DEPTH: i8 = 126;

/// A hash of one partition, or the XOR of several.
pub type Hash = [u8; HASH_BYTES];

/// Hashes of the partitions of a range.
#[derive(Clone, Debug)]
pub struct Tree {
    range: TokenRange,
    offsets: Offsets,
    hash_depth: i8,
    leaves_most: i64,
    /// Leaves as the tree says. One that was divided evenly says `2^depth`, even where the range is
    /// too short for as many.
    leaves_said: u32,
    shape: Shape,
    hashes: Vec<Hash>,
    /// A bit for each leaf: has it a partition? A leaf may have a hash of zeros.
    filled: Vec<u64>,
    /// Where the last partition went: the next is near.
    last: Leaf,
}

impl Tree {
    /// A tree without partitions, divided evenly into `2^depth` leaves, or as many as there are
    /// tokens.
    pub fn new(range: TokenRange, depth: u8) -> Self {
        assert!(depth <= DEPTH_MAX, "a tree of depth {depth}");
        let offsets = Offsets::of(range);
        let shape = Shape::even(offsets.length(), depth);
        let leaves = shape.leaf_count();
        let most = 1_u32 << depth;
        Self {
            range,
            offsets,
            hash_depth: HASH_DEPTH,
            leaves_most: most.into(),
            leaves_said: most,
            last: shape.leaf_at(0, offsets.length()),
            shape,
            hashes: vec![[0; HASH_BYTES]; leaves],
            filled: vec![0; leaves.div_ceil(64)],
        }
    }

    /// What it is of.
    pub fn range(&self) -> TokenRange {
        self.range
    }

    /// How many leaves it has.
    pub fn leaf_count(&self) -> usize {
        self.hashes.len()
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.hashes.capacity() * HASH_BYTES
            + self.filled.capacity() * size_of::<u64>()
            + self.shape.memory()
    }

    /// Adds the hash of a partition to the leaf that its token belongs to. Fast where tokens come
    /// in ascending order. [`Token::MIN`] is no partition's.
    ///
    /// # Errors
    /// If the token is not in the tree's range.
    pub fn add(&mut self, token: Token, hash: &Hash) -> Result<(), OutOfRange> {
        let offset = self.offsets.offset(token);
        let offset = offset.ok_or(OutOfRange { token, range: self.range })?;
        if !self.last.contains(offset) {
            self.last = self.shape.leaf_at(offset, self.offsets.length());
        }
        let leaf = self.last.index;
        if let Some(sum) = self.hashes.get_mut(leaf) {
            xor(sum, hash);
        }
        self.fill(leaf);
        Ok(())
    }

    /// Its leaves in the order of the range: what each is of, and its hash, if it has a partition.
    pub fn leaves(&self) -> impl Iterator<Item = (TokenRange, Option<&Hash>)> {
        self.shape.walk(self.offsets.length()).filter_map(|node| {
            let leaf = node.leaf()?;
            Some((self.part(leaf.from, leaf.to), self.hash(leaf.index)))
        })
    }

    /// The order in which Cassandra writes the trees of an answer (`TokenRangeComparator`): one
    /// that goes over the ring's end first, then by the end of the range.
    pub fn order(&self, other: &Self) -> Ordering {
        let key = |range: TokenRange| (range.left < range.right, range.right);
        key(self.range).cmp(&key(other.range))
    }

    /// A leaf's hash, if it has a partition.
    fn hash(&self, leaf: usize) -> Option<&Hash> {
        let bits = self.filled.get(leaf / 64).copied().unwrap_or(0);
        self.hashes.get(leaf).filter(|_| bits >> (leaf % 64) & 1 == 1)
    }

    fn fill(&mut self, leaf: usize) {
        if let Some(bits) = self.filled.get_mut(leaf / 64) {
            *bits |= 1 << (leaf % 64);
        }
    }

    /// The tokens between two offsets.
    fn part(&self, from: u64, to: u64) -> TokenRange {
        let left = if from == 0 { self.range.left } else { self.offsets.token(from) };
        let is_end = to == self.offsets.length();
        let right = if is_end { self.range.right } else { self.offsets.token(to) };
        TokenRange { left, right }
    }
}

/// As Cassandra compares them: all that is written.
impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        let head = |tree: &Self| (tree.range, tree.hash_depth, tree.leaves_most, tree.leaves_said);
        head(self) == head(other)
            && self.shape == other.shape
            && self.filled == other.filled
            && self.hashes == other.hashes
    }
}

impl Eq for Tree {}

fn xor(sum: &mut Hash, hash: &Hash) {
    for (byte, other) in sum.iter_mut().zip(hash) {
        *byte ^= other;
    }
}
