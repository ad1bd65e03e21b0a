//! Markers: where range tombstones open and close in a stream of rows.
//!
//! Packed: `0x80` (no row has that flag), kind (`u8`), the clustering's length (`u32`) and bytes,
//! and the deletion (`i64` and `u32`); a boundary has two, first that of the range that ends.

use crate::BoundKind;
use crate::clustering::{BoundRef, ClusteringRef};
use crate::packed::{deletion_at, put_bytes, put_deletion, slice, u8_at, u32_at};
use crate::row::{MARKER, RowRef};
use crate::time::Deletion;

/// An end, a start or a boundary of range tombstones. Borrowed.
///
/// "End" and "start" are in clustering order; a reversed iteration opens at ends and closes at
/// starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerRef<'a> {
    /// Where; a start, an end or a boundary.
    pub bound: BoundRef<'a>,
    /// Of the range that ends here; [`Deletion::LIVE`] at a mere start.
    pub end: Deletion,
    /// Of the range that starts here; [`Deletion::LIVE`] at a mere end.
    pub start: Deletion,
}

impl<'a> MarkerRef<'a> {
    /// A start or an end.
    pub fn bound(bound: BoundRef<'a>, deletion: Deletion) -> Self {
        let is_one = bound.kind.is_start() != bound.kind.is_end();
        assert!(is_one, "a marker of one deletion is a start or an end: {:?}", bound.kind);
        if bound.kind.is_end() {
            Self { bound, end: deletion, start: Deletion::LIVE }
        } else {
            Self { bound, end: Deletion::LIVE, start: deletion }
        }
    }

    /// A boundary.
    pub fn boundary(bound: BoundRef<'a>, end: Deletion, start: Deletion) -> Self {
        let is_boundary = bound.kind.is_boundary();
        assert!(is_boundary, "a marker of two deletions is a boundary: {:?}", bound.kind);
        Self { bound, end, start }
    }

    /// The deletion that holds from here on in the direction of iteration.
    pub fn opens(&self, reversed: bool) -> Option<Deletion> {
        let deletion = if reversed { self.end } else { self.start };
        self.bound.kind.is_open(reversed).then_some(deletion)
    }

    /// The deletion that held up to here in the direction of iteration.
    pub fn closes(&self, reversed: bool) -> Option<Deletion> {
        let deletion = if reversed { self.start } else { self.end };
        self.bound.kind.is_close(reversed).then_some(deletion)
    }

    /// Appends the packed form.
    pub fn pack(&self, out: &mut Vec<u8>) {
        let kind = self.bound.kind;
        assert!(kind.is_start() || kind.is_end(), "a marker stands at a bound: {kind:?}");
        out.extend_from_slice(&[MARKER, self.bound.kind.ordinal()]);
        put_bytes(out, self.bound.values.as_packed());
        if self.bound.kind.is_end() {
            put_deletion(out, self.end);
        }
        if self.bound.kind.is_start() {
            put_deletion(out, self.start);
        }
    }

    /// Over bytes that [`Self::pack`] wrote.
    pub fn from_packed(bytes: &'a [u8]) -> Self {
        assert!(bytes.first() == Some(&MARKER), "a packed marker begins with the flag of markers");
        let kind = BoundKind::from_ordinal(u8_at(bytes, 1));
        let kind = kind.expect("a packed marker has the ordinal of a kind of bound");
        let len = u32_at(bytes, 2) as usize;
        let bound = BoundRef::new(kind, ClusteringRef::from_packed(slice(bytes, 6, len)));
        let at = len.saturating_add(6);
        if kind.is_boundary() {
            return Self::boundary(bound, deletion_at(bytes, at), deletion_at(bytes, at + 12));
        }
        Self::bound(bound, deletion_at(bytes, at))
    }
}

/// What a partition is made of, in clustering order or its reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfiltered<'a> {
    /// A row.
    Row(RowRef<'a>),
    /// A marker.
    Marker(MarkerRef<'a>),
}

impl<'a> Unfiltered<'a> {
    /// Over the packed bytes of either.
    pub fn from_packed(bytes: &'a [u8]) -> Self {
        match bytes.first() {
            Some(&MARKER) => Self::Marker(MarkerRef::from_packed(bytes)),
            _ => Self::Row(RowRef::from_packed(bytes)),
        }
    }

    /// Appends the packed form of either.
    pub fn pack(&self, out: &mut Vec<u8>) {
        match self {
            Self::Row(row) => out.extend_from_slice(row.as_packed()),
            Self::Marker(marker) => marker.pack(out),
        }
    }

    /// Where it stands.
    pub fn position(&self) -> BoundRef<'a> {
        match self {
            Self::Row(row) => row.clustering().into(),
            Self::Marker(marker) => marker.bound,
        }
    }
}
