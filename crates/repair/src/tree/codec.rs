//! Trees as bytes (`MerkleTree.serialize`, `deserialize`).
//!
//! A tree of a node comes from bisection, and so each inner node says what is known: the midpoint.
//! Another token is refused. It bounds the depth too, and no reader recurses.

use types::{Reader, Token, TokenRange, WriteBytes};

use super::offsets::{Offsets, middle};
use super::shape::{Node, Shape, Walk};
use super::{HASH_BYTES, Hash, NODE_DEPTH_MAX, Tree, TreeError};

/// The one partitioner that is served.
const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
const INNER: u8 = 2;
const LEAF: u8 = 1;
/// Bytes of a leaf at least: kind, and the length of no hash.
const LEAF_BYTES_MIN: usize = 2;
/// Bytes of an inner node: kind, and a token behind its length.
const INNER_BYTES: usize = 13;
/// Bytes of a tree at least: depth, two numbers, the partitioner's name, two tokens, a leaf.
pub const TREE_BYTES_MIN: usize =
    1 + 8 + 8 + 2 + PARTITIONER.len() + 2 * (INNER_BYTES - 1) + LEAF_BYTES_MIN;

impl Tree {
    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let leaves = self.leaf_count();
        out.reserve(TREE_BYTES_MIN + leaves * (INNER_BYTES + LEAF_BYTES_MIN + HASH_BYTES));
        self.writer().write_nodes(usize::MAX, out);
    }

    /// Appends it in steps. A deep tree takes a tenth of a second, and a shard has other work.
    pub fn writer(&self) -> TreeWriter<'_> {
        let nodes = self.shape.walk(self.offsets.length());
        TreeWriter { tree: self, nodes, has_head: false }
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        out.put_u8(self.hash_depth.cast_unsigned());
        out.put_i64(self.leaves_most);
        out.put_i64(self.leaves_said.into());
        out.put_u16(PARTITIONER.len() as u16);
        out.put(PARTITIONER.as_bytes());
        self.range().write(out);
    }

    fn write_node(&self, node: Node, out: &mut Vec<u8>) {
        match node {
            Node::Inner(middle) => {
                out.put_u8(INNER);
                self.offsets.token(middle).write(out);
            }
            Node::Leaf(leaf) => {
                out.put_u8(LEAF);
                match self.hash(leaf.index) {
                    None => out.put_u8(0),
                    Some(hash) => {
                        out.put_u8(HASH_BYTES as u8);
                        out.put(hash);
                    }
                }
            }
        }
    }

    /// Reads one with at most so many leaves.
    ///
    /// # Errors
    /// If the bytes end within it, or are no tree that a node builds.
    pub fn read(reader: &mut Reader<'_>, leaves_max: usize) -> Result<Self, TreeError> {
        let hash_depth = reader.u8()?.cast_signed();
        // Cassandra asserts as much
        if !(0..i8::MAX).contains(&hash_depth) {
            return Err(TreeError::Depth(hash_depth));
        }
        let leaves_most = reader.i64()?;
        let said = reader.i64()?;
        let leaves_said = i32::try_from(said).ok().and_then(|said| u32::try_from(said).ok());
        let leaves_said = leaves_said.ok_or(TreeError::Leaves(said))?;
        let partitioner = reader.short_bytes()?;
        if partitioner != PARTITIONER.as_bytes() {
            let name = String::from_utf8_lossy(partitioner).into_owned();
            return Err(TreeError::Partitioner(name));
        }
        let range = TokenRange::read(reader)?;
        let allowed = leaves_max.min(leaves_said as usize);
        let offsets = Offsets::of(range);
        let mut leaves = Leaves::default();
        leaves.read(reader, offsets, allowed, said)?;
        let Leaves { depths, mut hashes, mut filled } = leaves;
        hashes.shrink_to_fit();
        filled.shrink_to_fit();
        let shape = Shape::of_depths(offsets.length(), &depths);
        let last = shape.leaf_at(0, offsets.length());
        let tree = Self {
            range,
            offsets,
            hash_depth,
            leaves_most,
            leaves_said,
            shape,
            hashes,
            filled,
            last,
        };
        Ok(tree)
    }
}

/// Appends a tree in steps.
#[derive(Debug)]
pub struct TreeWriter<'t> {
    tree: &'t Tree,
    nodes: Walk<'t>,
    has_head: bool,
}

impl TreeWriter<'_> {
    /// Appends so many nodes at most: are there more?
    pub fn write_nodes(&mut self, count: usize, out: &mut Vec<u8>) -> bool {
        if !self.has_head {
            self.tree.write_head(out);
            self.has_head = true;
        }
        for node in self.nodes.by_ref().take(count) {
            self.tree.write_node(node, out);
        }
        !self.nodes.is_done()
    }
}

/// What was read of a tree's leaves. Nothing is made as large as the tree says that it is.
#[derive(Default)]
struct Leaves {
    depths: Vec<u8>,
    hashes: Vec<Hash>,
    filled: Vec<u64>,
}

impl Leaves {
    fn read(
        &mut self,
        reader: &mut Reader<'_>,
        offsets: Offsets,
        allowed: usize,
        said: i64,
    ) -> Result<(), TreeError> {
        let mut nodes = vec![(0, offsets.length(), 0)];
        while let Some((from, to, level)) = nodes.pop() {
            assert!(level <= NODE_DEPTH_MAX, "a node of one token is not divided");
            match reader.u8()? {
                INNER => {
                    let token = Token::read(reader)?;
                    let middle = middle(from, to).filter(|at| offsets.token(*at) == token);
                    let middle = middle.ok_or(TreeError::Midpoint(token))?;
                    nodes.push((middle, to, level + 1));
                    nodes.push((from, middle, level + 1));
                }
                LEAF if self.depths.len() < allowed => self.push(level, leaf_hash(reader)?),
                LEAF => return Err(TreeError::Leaves(said)),
                kind => return Err(TreeError::Node(kind)),
            }
        }
        Ok(())
    }

    fn push(&mut self, level: u8, hash: Option<Hash>) {
        let leaf = self.depths.len();
        if leaf.is_multiple_of(64) {
            self.filled.push(0);
        }
        if let Some(bits) = self.filled.last_mut().filter(|_| hash.is_some()) {
            *bits |= 1 << (leaf % 64);
        }
        self.depths.push(level);
        self.hashes.push(hash.unwrap_or([0; HASH_BYTES]));
    }
}

fn leaf_hash(reader: &mut Reader<'_>) -> Result<Option<Hash>, TreeError> {
    match reader.u8()? {
        0 => Ok(None),
        length if usize::from(length) == HASH_BYTES => Ok(Some(reader.array()?)),
        length => Err(TreeError::Hash(length)),
    }
}
