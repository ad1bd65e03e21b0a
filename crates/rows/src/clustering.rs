//! Clusterings, and the bounds of slices and range tombstones.
//!
//! Packed: for each component its length (`u32` little endian, the maximum for null) and its bytes.

use crate::packed::{NULL, put_bytes, slice, tail, u32_at};
use std::fmt;

/// The values of the clustering columns of a row, or of the first few of them in a bound. Borrowed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ClusteringRef<'a> {
    bytes: &'a [u8],
}

impl<'a> ClusteringRef<'a> {
    /// No component: of a table without clustering columns, or a bound of everything.
    pub const EMPTY: ClusteringRef<'static> = ClusteringRef { bytes: &[] };

    /// Over packed bytes: those of [`Self::as_packed`].
    pub fn from_packed(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The packed bytes; equal bytes are equal clusterings (the inverse does not hold for types
    /// such as `decimal`).
    pub fn as_packed(&self) -> &'a [u8] {
        self.bytes
    }

    /// The components; `None` is null.
    pub fn iter(&self) -> Components<'a> {
        Components { rest: self.bytes }
    }

    /// Number of components.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Has it no component?
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The component at a position; outer `None` past the end.
    pub fn get(&self, position: usize) -> Option<Option<&'a [u8]>> {
        self.iter().nth(position)
    }

    /// The first `count` components.
    pub fn prefix(&self, count: usize) -> Self {
        let mut components = self.iter();
        for _ in 0..count {
            components.next();
        }
        Self { bytes: slice(self.bytes, 0, self.bytes.len() - components.rest.len()) }
    }

    /// Its own copy.
    pub fn to_owned(&self) -> Clustering {
        Clustering { bytes: self.bytes.into() }
    }
}

impl<'a> IntoIterator for ClusteringRef<'a> {
    type Item = Option<&'a [u8]>;
    type IntoIter = Components<'a>;

    fn into_iter(self) -> Components<'a> {
        self.iter()
    }
}

impl fmt::Debug for ClusteringRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|value| value.map(types::hex::to_hex))).finish()
    }
}

impl fmt::Debug for Clustering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// Iterates over the components of a clustering.
#[derive(Clone, Debug)]
pub struct Components<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Components<'a> {
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let len = u32_at(self.rest, 0);
        if len == NULL {
            self.rest = tail(self.rest, 4);
            return Some(None);
        }
        let value = slice(self.rest, 4, len as usize);
        self.rest = tail(self.rest, 4 + len as usize);
        Some(Some(value))
    }
}

/// The owned form of a [`ClusteringRef`].
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Clustering {
    bytes: Box<[u8]>,
}

impl Clustering {
    /// From components; `None` is null.
    pub fn new<'v>(components: impl IntoIterator<Item = Option<&'v [u8]>>) -> Self {
        let mut builder = ClusteringBuilder::default();
        for component in components {
            builder.push(component);
        }
        builder.finish().to_owned()
    }

    /// A view of it.
    pub fn as_ref(&self) -> ClusteringRef<'_> {
        ClusteringRef { bytes: &self.bytes }
    }

    /// Makes it another, in place if that has as many bytes.
    fn set(&mut self, other: ClusteringRef<'_>) {
        if self.bytes.len() == other.bytes.len() {
            self.bytes.copy_from_slice(other.bytes);
        } else {
            self.bytes = other.bytes.into();
        }
    }
}

impl<'a> From<&'a Clustering> for ClusteringRef<'a> {
    fn from(clustering: &'a Clustering) -> Self {
        clustering.as_ref()
    }
}

/// Builds clusterings in a buffer that is used again.
#[derive(Clone, Debug, Default)]
pub struct ClusteringBuilder {
    bytes: Vec<u8>,
}

impl ClusteringBuilder {
    /// Forgets the components pushed so far.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Appends a component; `None` is null.
    pub fn push(&mut self, component: Option<&[u8]>) {
        match component {
            Some(value) => put_bytes(&mut self.bytes, value),
            None => self.bytes.extend_from_slice(&NULL.to_le_bytes()),
        }
    }

    /// The components pushed since the last `clear`.
    pub fn finish(&self) -> ClusteringRef<'_> {
        ClusteringRef { bytes: &self.bytes }
    }
}

/// What a clustering prefix stands for. The discriminants are those of the wire and of disk
/// (`ClusteringPrefix.Kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BoundKind {
    /// Ends before what has the prefix.
    ExclEnd = 0,
    /// Starts with what has the prefix.
    InclStart = 1,
    /// One range ends and another starts before what has the prefix.
    ExclEndInclStart = 2,
    /// The static row: before every other.
    Static = 3,
    /// A row.
    Clustering = 4,
    /// One range ends and another starts after what has the prefix.
    InclEndExclStart = 5,
    /// Ends after what has the prefix.
    InclEnd = 6,
    /// Starts after what has the prefix.
    ExclStart = 7,
}

impl BoundKind {
    /// The kind with an ordinal of the wire.
    pub fn from_ordinal(ordinal: u8) -> Option<Self> {
        Some(match ordinal {
            0 => Self::ExclEnd,
            1 => Self::InclStart,
            2 => Self::ExclEndInclStart,
            3 => Self::Static,
            4 => Self::Clustering,
            5 => Self::InclEndExclStart,
            6 => Self::InclEnd,
            7 => Self::ExclStart,
            _ => return None,
        })
    }

    /// Its ordinal on the wire.
    pub fn ordinal(self) -> u8 {
        self as u8
    }

    /// Rank among prefixes with the same values.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::ExclEnd | Self::InclStart | Self::ExclEndInclStart => 0,
            Self::Static => 1,
            Self::Clustering => 2,
            Self::InclEndExclStart | Self::InclEnd | Self::ExclStart => 3,
        }
    }

    /// Where it stands relative to what has its values as a prefix.
    pub fn compared_to_clustering(self) -> std::cmp::Ordering {
        self.rank().cmp(&Self::Clustering.rank())
    }

    /// Two ranges that touch here?
    pub fn is_boundary(self) -> bool {
        matches!(self, Self::ExclEndInclStart | Self::InclEndExclStart)
    }

    /// Can a range start here?
    pub fn is_start(self) -> bool {
        self.is_boundary() || matches!(self, Self::InclStart | Self::ExclStart)
    }

    /// Can a range end here?
    pub fn is_end(self) -> bool {
        self.is_boundary() || matches!(self, Self::InclEnd | Self::ExclEnd)
    }

    /// Does iteration enter a range here?
    pub fn is_open(self, reversed: bool) -> bool {
        if reversed { self.is_end() } else { self.is_start() }
    }

    /// Does iteration leave a range here?
    pub fn is_close(self, reversed: bool) -> bool {
        if reversed { self.is_start() } else { self.is_end() }
    }

    /// The bound at the same place that closes what this one opens, and the other way round.
    pub fn invert(self) -> Self {
        match self {
            Self::ExclStart => Self::InclEnd,
            Self::InclStart => Self::ExclEnd,
            Self::ExclEnd => Self::InclStart,
            Self::InclEnd => Self::ExclStart,
            Self::ExclEndInclStart => Self::InclEndExclStart,
            Self::InclEndExclStart => Self::ExclEndInclStart,
            other => other,
        }
    }

    /// The start bound of a boundary; a start bound itself.
    pub fn start_of(self) -> Self {
        match self {
            Self::ExclEndInclStart => Self::InclStart,
            Self::InclEndExclStart => Self::ExclStart,
            other => other,
        }
    }

    /// The end bound of a boundary; an end bound itself.
    pub fn end_of(self) -> Self {
        match self {
            Self::ExclEndInclStart => Self::ExclEnd,
            Self::InclEndExclStart => Self::InclEnd,
            other => other,
        }
    }
}

/// A place between or at rows: a kind and the first few clustering values. Borrowed. A row is one
/// of kind [`BoundKind::Clustering`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundRef<'a> {
    /// What it stands for.
    pub kind: BoundKind,
    /// The values.
    pub values: ClusteringRef<'a>,
}

impl BoundRef<'static> {
    /// Before everything.
    pub const BOTTOM: Self = Self { kind: BoundKind::InclStart, values: ClusteringRef::EMPTY };
    /// After everything.
    pub const TOP: Self = Self { kind: BoundKind::InclEnd, values: ClusteringRef::EMPTY };
}

impl<'a> BoundRef<'a> {
    /// A bound.
    pub const fn new(kind: BoundKind, values: ClusteringRef<'a>) -> Self {
        Self { kind, values }
    }

    /// The same place as another kind.
    pub fn with_kind(self, kind: BoundKind) -> Self {
        Self { kind, ..self }
    }

    /// See [`BoundKind::invert`].
    pub fn invert(self) -> Self {
        self.with_kind(self.kind.invert())
    }

    /// Its own copy.
    pub fn to_owned(&self) -> Bound {
        Bound { kind: self.kind, values: self.values.to_owned() }
    }
}

impl<'a> From<ClusteringRef<'a>> for BoundRef<'a> {
    fn from(values: ClusteringRef<'a>) -> Self {
        Self { kind: BoundKind::Clustering, values }
    }
}

impl<'a> From<&'a Clustering> for BoundRef<'a> {
    fn from(values: &'a Clustering) -> Self {
        values.as_ref().into()
    }
}

impl<'a> From<&'a Bound> for BoundRef<'a> {
    fn from(bound: &'a Bound) -> Self {
        bound.as_ref()
    }
}

/// The owned form of a [`BoundRef`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// What it stands for.
    pub kind: BoundKind,
    /// The values.
    pub values: Clustering,
}

impl Bound {
    /// A bound.
    pub fn new(kind: BoundKind, values: Clustering) -> Self {
        Self { kind, values }
    }

    /// Before everything.
    pub fn bottom() -> Self {
        BoundRef::BOTTOM.to_owned()
    }

    /// After everything.
    pub fn top() -> Self {
        BoundRef::TOP.to_owned()
    }

    /// A view of it.
    pub fn as_ref(&self) -> BoundRef<'_> {
        BoundRef { kind: self.kind, values: self.values.as_ref() }
    }

    /// Makes it another, in place if that has as many bytes.
    pub fn set(&mut self, other: BoundRef<'_>) {
        self.kind = other.kind;
        self.values.set(other.values);
    }
}
