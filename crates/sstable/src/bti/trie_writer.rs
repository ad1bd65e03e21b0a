//! Writes tries as [`super::node`] has them (`io.tries.IncrementalTrieWriterPageAware`): entries
//! come in order, nodes go out from the leaves to the root, none across a page, and what lies below
//! a node in the same page as far as it fits. A walk from the root reads few pages then.
//!
//! Memory stays bounded: for each node on the path to the last entry, less than a page for each
//! child.

use super::node::PAGE_BYTES;

/// The most bytes of a payload: an offset of 8 and a deletion of 12.
pub const PAYLOAD_BYTES_MAX: usize = 20;
/// The flags of a payload fill four bits.
const FLAGS_MAX: u8 = 15;

/// What stands at an entry: flags that are not 0, and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    flags: u8,
    length: u8,
    bytes: [u8; PAYLOAD_BYTES_MAX],
}

impl Payload {
    /// A payload of these flags and bytes: at most [`PAYLOAD_BYTES_MAX`]. Both are asserted.
    pub fn new(flags: u8, bytes: &[u8]) -> Self {
        assert!((1..=FLAGS_MAX).contains(&flags), "a payload has flags of four bits, not {flags}");
        let mut all = [0; PAYLOAD_BYTES_MAX];
        let own = all.get_mut(..bytes.len()).expect("a payload has no more bytes than its limit");
        own.copy_from_slice(bytes);
        Self { flags, length: bytes.len() as u8, bytes: all }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Appends a number in as few bytes as keep its sign, one at least (`SizedInts`).
pub fn put_sized(number: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_be_bytes()[8 - sized(number)..]);
}

/// How many they are.
fn sized(number: i64) -> usize {
    let bits = 65 - (number ^ number >> 63).leading_zeros() as usize;
    bits.div_ceil(8)
}

/// A node whose entries are all known, and what lies below it.
#[derive(Debug, Default)]
struct Branch {
    payload: Option<Payload>,
    /// By their bytes, ascending.
    children: Vec<(u8, Child)>,
    /// Bytes of the node and of all below it that is not written.
    size: usize,
    /// Bytes of the node.
    own: usize,
}

#[derive(Debug)]
enum Child {
    /// Where it was written.
    Written(u64),
    Pending(Box<Branch>),
}

/// The file that tries are written to, one after the other.
#[derive(Debug, Default)]
pub struct TrieWriter {
    out: Vec<u8>,
    /// Bytes that were taken away.
    taken: u64,
    /// The key of the last entry.
    last: Vec<u8>,
    /// The nodes from the root to the last entry: one more than the key has bytes. Empty before the
    /// first entry.
    path: Vec<Branch>,
}

impl TrieWriter {
    /// The bytes of the file that are not taken yet. Whoever appends to them appends to the file.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Moves the bytes that are there to the end of others.
    pub fn take(&mut self, to: &mut Vec<u8>) {
        self.taken += self.out.len() as u64;
        to.append(&mut self.out);
    }

    /// Bytes of the file so far.
    pub fn position(&self) -> u64 {
        self.taken + self.out.len() as u64
    }

    /// Forgets the trie in the making.
    pub fn clear(&mut self) {
        self.path.clear();
        self.last.clear();
    }

    /// Adds an entry; they come in ascending order: asserted.
    pub fn add(&mut self, key: &[u8], payload: Payload) {
        if self.path.is_empty() {
            self.path.push(Branch::default());
        } else {
            assert!(self.last.as_slice() < key, "the entries of a trie are written in order");
        }
        let common = self.last.iter().zip(key).take_while(|(a, b)| a == b).count();
        self.complete_below(common);
        self.path.extend(key.iter().skip(common).map(|_| Branch::default()));
        self.last.truncate(common);
        self.last.extend(key.iter().skip(common));
        let node = self.path.last_mut().expect("the path begins with the root");
        node.payload = Some(payload);
    }

    /// Ends the trie: where its root is. `None` if it has no entries.
    pub fn complete(&mut self) -> Option<u64> {
        if self.path.is_empty() {
            return None;
        }
        self.complete_below(0);
        let root = self.path.pop().expect("the root is left");
        let mut root = self.sized_to_page(root);
        self.last.clear();
        Some(self.place(&mut root))
    }

    /// Nodes deeper than that on the path get no further entries.
    fn complete_below(&mut self, depth: usize) {
        while self.path.len() > depth + 1 {
            let node = self.path.pop().expect("the path is longer than the depth");
            let byte =
                *self.last.get(self.path.len() - 1).expect("each node has a byte but the root");
            let node = self.sized_to_page(node);
            let parent = self.path.last_mut().expect("the root stays");
            parent.children.push((byte, Child::Pending(Box::new(node))));
        }
    }

    /// Makes sure that a branch fits into a page: what lies below its node is written if not.
    fn sized_to_page(&mut self, mut branch: Branch) -> Branch {
        branch.estimate(self.position());
        if branch.size > PAGE_BYTES as usize {
            self.place_children(&mut branch);
        }
        branch
    }

    /// Writes all that is pending below a node: of what fits into the rest of the page the largest,
    /// again and again.
    fn place_children(&mut self, branch: &mut Branch) {
        let sizes = branch.children.iter().enumerate().filter_map(|(n, (_, child))| match child {
            Child::Pending(below) => Some((below.size, n)),
            Child::Written(_) => None,
        });
        let mut left: Vec<(usize, usize)> = sizes.collect();
        left.sort_unstable();
        while !left.is_empty() {
            let room = room(self.position());
            let fitting = left.partition_point(|(size, _)| *size <= room);
            let (_, n) = left.remove(fitting.checked_sub(1).unwrap_or(left.len() - 1));
            let (_, child) = branch.children.get_mut(n).expect("the place of a child");
            if let Child::Pending(below) = child {
                *child = Child::Written(self.place(below));
            }
        }
        branch.estimate(self.position());
    }

    /// Writes a branch into one page, or, where distances have grown since its size was estimated,
    /// each of its parts into one: where its node is.
    fn place(&mut self, branch: &mut Branch) -> u64 {
        if let Some(at) = self.try_here(branch) {
            return at;
        }
        self.pad();
        if let Some(at) = self.try_here(branch) {
            return at;
        }
        self.place_children(branch);
        if let Some(at) = self.try_here(branch) {
            return at;
        }
        self.pad();
        self.try_here(branch).expect("a node is smaller than a page")
    }

    /// Writes a branch if it fits into the rest of the page.
    fn try_here(&mut self, branch: &Branch) -> Option<u64> {
        let (before, room) = (self.out.len(), room(self.position()));
        let at = emit(branch, &mut self.out, self.taken);
        if self.out.len() - before <= room {
            return Some(at);
        }
        self.out.truncate(before);
        None
    }

    /// Goes to the next page.
    fn pad(&mut self) {
        let rest = room(self.position()) % PAGE_BYTES as usize;
        self.out.resize(self.out.len() + rest, 0);
    }
}

/// Bytes from a position to the end of its page.
fn room(position: u64) -> usize {
    (PAGE_BYTES - position % PAGE_BYTES) as usize
}

impl Branch {
    /// Says how many bytes it takes if it is written at a position.
    fn estimate(&mut self, position: u64) {
        let pending = |(_, child): &(u8, Child)| match child {
            Child::Written(_) => None,
            Child::Pending(below) => Some((below.size, below.own)),
        };
        let below: usize = self.children.iter().filter_map(pending).map(|(size, _)| size).sum();
        // of those that are not written the first is the farthest, by all behind its own end
        let first = self.children.iter().find_map(pending);
        let nearest = first.map_or(0, |(size, own)| below - size + own);
        let at = position + below as u64;
        let written = self.children.iter().filter_map(|(_, child)| match child {
            Child::Written(child) => Some(at - child),
            Child::Pending(_) => None,
        });
        let far = written.max().unwrap_or(0).max(nearest as u64);
        let shape = Shape::of(&self.children, far, self.payload.is_some());
        self.own = shape.bytes + self.payload.map_or(0, |payload| payload.bytes().len());
        self.size = below + self.own;
    }
}

/// Appends what lies below a node and is not written, then the node: where it is, `before` bytes
/// being in front of `out`.
fn emit(branch: &Branch, out: &mut Vec<u8>, before: u64) -> u64 {
    // a node has few children as a rule, and most of them are not pending
    let places: Vec<u64> = branch
        .children
        .iter()
        .map(|(_, child)| match child {
            Child::Written(at) => *at,
            Child::Pending(below) => emit(below, out, before),
        })
        .collect();
    let at = before + out.len() as u64;
    let far = places.iter().map(|place| at - place).max().unwrap_or(0);
    let shape = Shape::of(&branch.children, far, branch.payload.is_some());
    let start = out.len();
    let flags = branch.payload.map_or(0, |payload| payload.flags);
    let children =
        branch.children.iter().zip(&places).map(|((byte, _), place)| (*byte, at - place));
    shape.write(children, flags, out);
    assert_eq!(out.len() - start, shape.bytes, "a node has the size of its shape");
    if let Some(payload) = &branch.payload {
        out.extend_from_slice(payload.bytes());
    }
    at
}

/// The layout of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    kind: u8,
    /// Bits of a distance.
    bits: usize,
    /// Bytes without the payload.
    bytes: usize,
}

/// Kinds with one child: bits of its distance, bytes, and whether there is room for the flags of a
/// payload.
const SINGLE: [(u8, usize, usize, bool); 4] =
    [(1, 4, 2, false), (2, 8, 3, true), (3, 12, 3, false), (4, 16, 4, true)];
/// Kinds whose bytes are listed, and bits of their distances.
const SPARSE: [(u8, usize); 5] = [(5, 8), (6, 12), (7, 16), (8, 24), (9, 40)];
/// Kinds with a place for each byte from the first to the last.
const DENSE: [(u8, usize); 6] = [(10, 12), (11, 16), (12, 24), (13, 32), (14, 40), (15, 64)];
/// From these kinds on.
const FIRST_SPARSE: u8 = 5;
const FIRST_DENSE: u8 = 10;
/// A sparse node counts its children in a byte.
const SPARSE_CHILDREN_MAX: usize = 255;

impl Shape {
    /// The smallest one for these children, the farthest of which is so far off.
    fn of(children: &[(u8, Child)], far: u64, has_payload: bool) -> Self {
        let (Some((first, _)), Some((last, _))) = (children.first(), children.last()) else {
            return Self { kind: 0, bits: 0, bytes: 1 };
        };
        if children.len() == 1 {
            let single = SINGLE.into_iter().find(|(_, bits, _, takes_payload)| {
                far < 1 << bits && (*takes_payload || !has_payload)
            });
            if let Some((kind, bits, bytes, _)) = single {
                return Self { kind, bits, bytes };
            }
        }
        let fits = |bits: usize| bits == 64 || far < 1 << bits;
        let sparse = SPARSE.into_iter().find(|(_, bits)| fits(*bits));
        let sparse = sparse.filter(|_| children.len() <= SPARSE_CHILDREN_MAX);
        let listed = |(kind, bits): (u8, usize)| {
            let n = children.len();
            Self { kind, bits, bytes: 2 + n + (n * bits).div_ceil(8) }
        };
        let dense = DENSE.into_iter().find(|(_, bits)| fits(*bits));
        let placed = |(kind, bits): (u8, usize)| {
            let n = usize::from(last - first) + 1;
            Self { kind, bits, bytes: 3 + (n * bits).div_ceil(8) }
        };
        let both = [dense.map(placed), sparse.map(listed)];
        let smallest = both.into_iter().flatten().min_by_key(|shape| shape.bytes);
        smallest.expect("a distance has no more than 64 bits")
    }

    fn write(
        self,
        mut children: impl ExactSizeIterator<Item = (u8, u64)> + Clone,
        flags: u8,
        out: &mut Vec<u8>,
    ) {
        let head = self.kind << 4;
        match self.kind {
            0 => out.push(head | flags),
            1..FIRST_SPARSE => {
                let (byte, distance) = children.next().expect("the only child");
                match self.bits {
                    4 => out.extend([head | distance as u8, byte]),
                    12 => out.extend([head | (distance >> 8) as u8, distance as u8, byte]),
                    8 => out.extend([head | flags, byte, distance as u8]),
                    _ => {
                        out.extend([head | flags, byte]);
                        out.extend((distance as u16).to_be_bytes());
                    }
                }
            }
            FIRST_SPARSE..FIRST_DENSE => {
                out.extend([head | flags, children.len() as u8]);
                out.extend(children.clone().map(|(byte, _)| byte));
                pack(children.map(|(_, distance)| distance), self.bits, out);
            }
            _ => {
                let first = children.clone().next().map_or(0, |(byte, _)| byte);
                let last = children.clone().last().map_or(0, |(byte, _)| byte);
                out.extend([head | flags, first, last - first]);
                let places = (first..=last).map(|byte| match children.clone().next() {
                    Some((own, distance)) if own == byte => {
                        children.next();
                        distance
                    }
                    _ => 0,
                });
                pack(places, self.bits, out);
            }
        }
    }
}

/// Appends numbers of so many bits, half a byte of zeros at the end where it is needed.
fn pack(numbers: impl Iterator<Item = u64>, bits: usize, out: &mut Vec<u8>) {
    if bits != 12 {
        for number in numbers {
            let bytes = number.to_be_bytes();
            out.extend_from_slice(&bytes[8 - bits / 8..]);
        }
        return;
    }
    let mut half = None;
    for number in numbers {
        match half.take() {
            None => {
                out.push((number >> 4) as u8);
                half = Some((number << 4) as u8);
            }
            Some(left) => out.extend([left | (number >> 8) as u8, number as u8]),
        }
    }
    out.extend(half);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_as_few_bytes_as_keep_their_sign() {
        for (number, bytes) in [
            (0, 1),
            (127, 1),
            (128, 2),
            (-1, 1),
            (-128, 1),
            (-129, 2),
            (0x7fff, 2),
            (0x8000, 3),
            (i64::MAX, 8),
            (i64::MIN, 8),
        ] {
            assert_eq!(sized(number), bytes, "{number}");
        }
    }
}
