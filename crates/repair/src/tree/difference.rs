//! What two trees differ in (`MerkleTree.difference`).
//!
//! Cassandra goes down where hashes of inner nodes differ, and so computes all of them first. Here
//! one pass goes to the leaves, and forgets what it found below nodes that turn out to be equal.

use std::collections::BTreeMap;

use types::TokenRange;

use super::error::NoDifference;
use super::offsets::middle;
use super::{HASH_BYTES, Hash, NODE_DEPTH_MAX, Tree, xor};

/// The largest ranges that two trees of the same range differ in, in Cassandra's order: a whole
/// half of a node comes behind the parts of the other half. They need not have the same depth.
///
/// # Errors
/// If they are of different ranges.
pub fn difference(a: &Tree, b: &Tree) -> Result<Vec<TokenRange>, NoDifference> {
    if a.range != b.range {
        return Err(NoDifference(a.range));
    }
    let mut pass = Pass { a: Side::new(a), b: Side::new(b), found: Vec::new() };
    let length = a.offsets.length();
    if pass.visit(0, length, 0).2 == Differs::Wholly {
        pass.found.push((0, length));
    }
    Ok(pass.found.iter().map(|(from, to)| a.part(*from, *to)).collect())
}

/// The same of all trees of two answers (`MerkleTrees.difference`), in the order that Cassandra has
/// trees in.
///
/// # Errors
/// If a tree's range is not among the other's.
pub fn difference_of_all(a: &[Tree], b: &[Tree]) -> Result<Vec<TokenRange>, NoDifference> {
    let others: BTreeMap<TokenRange, &Tree> = b.iter().map(|tree| (tree.range, tree)).collect();
    let mut trees: Vec<&Tree> = a.iter().collect();
    trees.sort_by(|tree, other| tree.order(other));
    let mut found = Vec::new();
    for tree in trees {
        let other = others.get(&tree.range).ok_or(NoDifference(tree.range))?;
        found.extend(difference(tree, other)?);
    }
    Ok(found)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Differs {
    Not,
    Wholly,
    /// What differs is among what was found.
    Partly,
}

/// A tree, and how many of its leaves the pass has behind it.
struct Side<'t> {
    tree: &'t Tree,
    next: usize,
}

impl<'t> Side<'t> {
    fn new(tree: &'t Tree) -> Self {
        Self { tree, next: 0 }
    }

    fn is_leaf(&self, to: u64, level: u8) -> bool {
        self.tree.shape.is_leaf(self.next, to, level)
    }

    /// The hash of a node, which the pass is then behind.
    fn hash(&mut self, to: u64, level: u8) -> Hash {
        let end = self.next + self.tree.shape.leaves_below(self.next, to, level);
        let leaves = self.tree.hashes.get(self.next..end).unwrap_or_default();
        self.next = end;
        let mut sum = [0; HASH_BYTES];
        leaves.iter().for_each(|hash| xor(&mut sum, hash));
        sum
    }
}

struct Pass<'t> {
    a: Side<'t>,
    b: Side<'t>,
    /// Offsets of ranges.
    found: Vec<(u64, u64)>,
}

impl Pass<'_> {
    /// Of a node that both have: its hashes, and whether they differ.
    fn visit(&mut self, from: u64, to: u64, level: u8) -> (Hash, Hash, Differs) {
        assert!(level <= NODE_DEPTH_MAX, "a node of one token is not divided");
        let is_leaf = self.a.is_leaf(to, level) || self.b.is_leaf(to, level);
        let Some(middle) = middle(from, to).filter(|_| !is_leaf) else {
            let (a, b) = (self.a.hash(to, level), self.b.hash(to, level));
            return (a, b, if a == b { Differs::Not } else { Differs::Wholly });
        };
        let before = self.found.len();
        let (mut a, mut b, left) = self.visit(from, middle, level + 1);
        let (right_a, right_b, right) = self.visit(middle, to, level + 1);
        xor(&mut a, &right_a);
        xor(&mut b, &right_b);
        if a == b {
            self.found.truncate(before);
            return (a, b, Differs::Not);
        }
        let differs = match (left, right) {
            (Differs::Wholly, Differs::Wholly) => Differs::Wholly,
            (Differs::Wholly, _) => {
                self.found.push((from, middle));
                Differs::Partly
            }
            (_, Differs::Wholly) => {
                self.found.push((middle, to));
                Differs::Partly
            }
            _ => Differs::Partly,
        };
        (a, b, differs)
    }
}
