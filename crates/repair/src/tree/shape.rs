//! Where a tree's leaves are.

use super::offsets::middle;

/// A leaf: which, and the offsets that it is behind and ends at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub index: usize,
    pub from: u64,
    pub to: u64,
}

impl Leaf {
    pub fn contains(self, offset: u64) -> bool {
        self.from < offset && offset <= self.to
    }
}

/// How a range is divided. Each node is divided in the middle, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// All leaves have this depth.
    Perfect(u8),
    /// The ends of leaves, in order.
    Uneven(Box<[u64]>),
}

impl Shape {
    /// A range divided down to a depth, or down to single tokens.
    pub fn even(length: u64, depth: u8) -> Self {
        if depth == 0 || length >> depth > 0 {
            return Self::Perfect(depth);
        }
        let mut nodes = vec![(0, length, 0)];
        let mut depths = Vec::new();
        while let Some((from, to, level)) = nodes.pop() {
            match middle(from, to).filter(|_| level < depth) {
                None => depths.push(level),
                Some(middle) => {
                    nodes.push((middle, to, level + 1));
                    nodes.push((from, middle, level + 1));
                }
            }
        }
        Self::of_depths(length, &depths)
    }

    /// A range divided so that its leaves, in order, have these depths, which are those of a tree.
    pub fn of_depths(length: u64, depths: &[u8]) -> Self {
        let first = depths.first().copied().unwrap_or(0);
        if depths.iter().all(|depth| *depth == first) {
            return Self::Perfect(first);
        }
        let mut nodes = vec![(0, length, 0)];
        let mut ends = Vec::with_capacity(depths.len());
        while let Some((from, to, level)) = nodes.pop() {
            match middle(from, to).filter(|_| depths.get(ends.len()) != Some(&level)) {
                None => ends.push(to),
                Some(middle) => {
                    nodes.push((middle, to, level + 1));
                    nodes.push((from, middle, level + 1));
                }
            }
        }
        assert_eq!(ends.len(), depths.len(), "the depths are those of a tree");
        Self::Uneven(ends.into())
    }

    pub fn leaf_count(&self) -> usize {
        match self {
            Self::Perfect(depth) => 1 << depth,
            Self::Uneven(ends) => ends.len(),
        }
    }

    /// Bytes beside its own.
    pub fn memory(&self) -> usize {
        match self {
            Self::Perfect(_) => 0,
            Self::Uneven(ends) => size_of_val(&**ends),
        }
    }

    /// The leaf that an offset of the range is in.
    pub fn leaf_at(&self, offset: u64, length: u64) -> Leaf {
        match self {
            Self::Perfect(depth) => {
                let (mut index, mut from, mut to) = (0, 0, length);
                for _ in 0..*depth {
                    let middle = from + (to - from) / 2;
                    let is_right = offset > middle;
                    index = index << 1 | usize::from(is_right);
                    (from, to) = if is_right { (middle, to) } else { (from, middle) };
                }
                Leaf { index, from, to }
            }
            Self::Uneven(ends) => {
                let index = ends.partition_point(|end| *end < offset);
                let before = index.checked_sub(1).and_then(|before| ends.get(before));
                let end = ends.get(index);
                Leaf { index, from: before.map_or(0, |end| *end), to: end.map_or(0, |end| *end) }
            }
        }
    }

    /// Is a node a leaf? `next` is the number of leaves left of it.
    pub fn is_leaf(&self, next: usize, to: u64, level: u8) -> bool {
        match self {
            Self::Perfect(depth) => level >= *depth,
            Self::Uneven(ends) => ends.get(next).is_none_or(|end| *end == to),
        }
    }

    /// How many leaves are below a node.
    pub fn leaves_below(&self, next: usize, to: u64, level: u8) -> usize {
        match self {
            Self::Perfect(depth) => 1 << depth.saturating_sub(level),
            Self::Uneven(ends) => {
                let rest = ends.get(next..).unwrap_or_default();
                rest.partition_point(|end| *end <= to)
            }
        }
    }

    /// Its nodes in preorder.
    pub fn walk(&self, length: u64) -> Walk<'_> {
        Walk { shape: self, nodes: vec![(0, length, 0)], next: 0 }
    }
}

/// A node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    /// Divided at this offset.
    Inner(u64),
    /// Not divided.
    Leaf(Leaf),
}

impl Node {
    pub fn leaf(self) -> Option<Leaf> {
        match self {
            Self::Inner(_) => None,
            Self::Leaf(leaf) => Some(leaf),
        }
    }
}

/// Nodes in preorder.
#[derive(Debug)]
pub(super) struct Walk<'s> {
    shape: &'s Shape,
    /// Those that are to come: their ends and levels.
    nodes: Vec<(u64, u64, u8)>,
    /// Leaves that were there.
    next: usize,
}

impl Walk<'_> {
    pub fn is_done(&self) -> bool {
        self.nodes.is_empty()
    }
}

impl Iterator for Walk<'_> {
    type Item = Node;

    fn next(&mut self) -> Option<Node> {
        let (from, to, level) = self.nodes.pop()?;
        let is_leaf = self.shape.is_leaf(self.next, to, level);
        Some(match middle(from, to).filter(|_| !is_leaf) {
            None => {
                let leaf = Leaf { index: self.next, from, to };
                self.next += 1;
                Node::Leaf(leaf)
            }
            Some(middle) => {
                self.nodes.push((middle, to, level + 1));
                self.nodes.push((from, middle, level + 1));
                Node::Inner(middle)
            }
        })
    }
}
