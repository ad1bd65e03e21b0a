//! Cells, and their packed form.
//!
//! Packed: column (`u16`), flags (`u8`), then, each only if the flags say so: timestamp (`i64`),
//! local deletion time (`u32`), time to live (`i32`), path and value (each a `u32` length and
//! bytes).

use crate::packed::{i32_at, i64_at, pack_seconds, put_bytes, slice, u8_at, u16_at, u32_at};
use crate::packed::{tail, unpack_seconds};
use crate::time::{Deletion, Liveness, NO_DELETION_TIME, NO_TTL};

const TOMBSTONE: u8 = 0x01;
const EXPIRING: u8 = 0x02;
/// No cell, but the deletion of the complex column whose cells follow.
const COMPLEX_DELETION: u8 = 0x04;
const HAS_PATH: u8 = 0x08;
const HAS_VALUE: u8 = 0x10;
/// The timestamp is that of the row's liveness.
const SAME_TIMESTAMP: u8 = 0x20;
/// Time to live and expiration are those of the row's liveness.
const SAME_EXPIRY: u8 = 0x40;

/// What a [`CellRef`] is. As a number it is its flag in the packed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CellKind {
    /// A value for good.
    Live = 0,
    /// A value until its local deletion time.
    Expiring = EXPIRING,
    /// The deletion of one cell.
    Tombstone = TOMBSTONE,
    /// Not a cell: the deletion of a whole complex column, before the cells that survive it. Its
    /// timestamp is the deletion's `marked_for_delete_at`.
    ComplexDeletion = COMPLEX_DELETION,
}

/// A cell of a row. Borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRef<'a> {
    /// Index into the statics or regulars of the row's `Layout`.
    pub column: u16,
    /// What it is.
    pub kind: CellKind,
    /// Of the write.
    pub timestamp: i64,
    /// Seconds; [`NO_TTL`] unless expiring.
    pub ttl: i32,
    /// Seconds since the epoch: when it expires or was deleted; [`NO_DELETION_TIME`] if live.
    pub local_deletion_time: i64,
    /// Which cell of a complex column; `None` in a simple one.
    pub path: Option<&'a [u8]>,
    /// The value; empty for tombstones.
    pub value: &'a [u8],
}

impl<'a> CellRef<'a> {
    /// A cell that neither expires nor is deleted.
    pub fn live(column: u16, path: Option<&'a [u8]>, timestamp: i64, value: &'a [u8]) -> Self {
        Self {
            column,
            kind: CellKind::Live,
            timestamp,
            ttl: NO_TTL,
            local_deletion_time: NO_DELETION_TIME,
            path,
            value,
        }
    }

    /// A cell that expires at `expires_at` seconds, `ttl` seconds after it was written.
    pub fn expiring(
        column: u16,
        path: Option<&'a [u8]>,
        timestamp: i64,
        ttl: i32,
        expires_at: i64,
        value: &'a [u8],
    ) -> Self {
        let local_deletion_time = expires_at;
        let kind = CellKind::Expiring;
        Self { column, kind, timestamp, ttl, local_deletion_time, path, value }
    }

    /// A deleted cell.
    pub fn tombstone(
        column: u16,
        path: Option<&'a [u8]>,
        timestamp: i64,
        local_deletion_time: i64,
    ) -> Self {
        let kind = CellKind::Tombstone;
        Self { column, kind, timestamp, ttl: NO_TTL, local_deletion_time, path, value: &[] }
    }

    /// The deletion of a complex column.
    pub fn complex_deletion(column: u16, deletion: Deletion) -> Self {
        Self {
            kind: CellKind::ComplexDeletion,
            ..Self::tombstone(
                column,
                None,
                deletion.marked_for_delete_at,
                deletion.local_deletion_time,
            )
        }
    }

    /// A cell from what a codec read: the kind follows from time to live and local deletion time,
    /// as in Cassandra.
    #[inline(always)]
    pub(crate) fn from_parts(
        column: u16,
        path: Option<&'a [u8]>,
        timestamp: i64,
        ttl: i32,
        local_deletion_time: i64,
        value: &'a [u8],
    ) -> Self {
        let kind = if ttl != NO_TTL {
            CellKind::Expiring
        } else if local_deletion_time != NO_DELETION_TIME {
            CellKind::Tombstone
        } else {
            CellKind::Live
        };
        Self { column, kind, timestamp, ttl, local_deletion_time, path, value }
    }

    /// Is this the deletion of a complex column instead of a cell?
    pub fn is_complex_deletion(&self) -> bool {
        self.kind == CellKind::ComplexDeletion
    }

    /// Is it of a complex column?
    pub(crate) fn is_of_complex(&self) -> bool {
        self.path.is_some() || self.is_complex_deletion()
    }

    /// A single cell's deletion?
    pub fn is_tombstone(&self) -> bool {
        self.kind == CellKind::Tombstone
    }

    /// Has it a time to live?
    pub fn is_expiring(&self) -> bool {
        self.kind == CellKind::Expiring
    }

    /// Is there a value at `now` (seconds)?
    pub fn is_live(&self, now: i64) -> bool {
        match self.kind {
            CellKind::Live => true,
            CellKind::Expiring => now < self.local_deletion_time,
            CellKind::Tombstone | CellKind::ComplexDeletion => false,
        }
    }

    /// The deletion that a [`CellKind::ComplexDeletion`] is.
    pub fn as_deletion(&self) -> Deletion {
        Deletion::new(self.timestamp, self.local_deletion_time)
    }

    /// Appends the packed form, relative to the liveness of its row.
    #[inline]
    pub(crate) fn pack(&self, liveness: Option<&Liveness>, out: &mut Vec<u8>) {
        let mut flags = self.kind as u8;
        if let Some(liveness) = liveness {
            if liveness.timestamp == self.timestamp {
                flags |= SAME_TIMESTAMP;
            }
            if self.is_expiring()
                && liveness.ttl == self.ttl
                && liveness.expires_at == self.local_deletion_time
            {
                flags |= SAME_EXPIRY;
            }
        }
        if self.path.is_some() {
            flags |= HAS_PATH;
        }
        if !self.value.is_empty() {
            flags |= HAS_VALUE;
        }
        out.extend_from_slice(&self.column.to_le_bytes());
        out.push(flags);
        if flags & SAME_TIMESTAMP == 0 {
            out.extend_from_slice(&self.timestamp.to_le_bytes());
        }
        if self.kind != CellKind::Live && flags & SAME_EXPIRY == 0 {
            out.extend_from_slice(&pack_seconds(self.local_deletion_time).to_le_bytes());
            if flags & EXPIRING != 0 {
                out.extend_from_slice(&self.ttl.to_le_bytes());
            }
        }
        if let Some(path) = self.path {
            put_bytes(out, path);
        }
        if !self.value.is_empty() {
            put_bytes(out, self.value);
        }
    }
}

/// The column of the first of packed cells of which none is expiring or deleted, and the bytes that
/// it takes.
#[inline]
pub(crate) fn measure_plain(cells: &[u8]) -> Option<(u16, usize)> {
    if cells.is_empty() {
        return None;
    }
    let flags = u8_at(cells, 2);
    let is_live = flags & (TOMBSTONE | EXPIRING | COMPLEX_DELETION) == 0;
    assert!(is_live, "no cell of a row that is not mortal expires or is deleted: {flags:#x}");
    let mut at: usize = if flags & SAME_TIMESTAMP == 0 { 11 } else { 3 };
    for component in [HAS_PATH, HAS_VALUE] {
        if flags & component != 0 {
            at = at.saturating_add(4).saturating_add(u32_at(cells, at) as usize);
        }
    }
    assert!(at <= cells.len(), "a packed cell ends within its row");
    Some((u16_at(cells, 0), at))
}

/// The columns of packed cells of which none is expiring or deleted.
pub(crate) struct PlainColumns<'a>(pub &'a [u8]);

impl Iterator for PlainColumns<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        let (column, length) = measure_plain(self.0)?;
        self.0 = tail(self.0, length);
        Some(column)
    }
}

/// The timestamps of packed cells of which none is expiring or deleted, but for those that are
/// their row's.
pub(crate) struct OwnTimestamps<'a>(pub &'a [u8]);

impl Iterator for OwnTimestamps<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        while !self.0.is_empty() {
            let bytes = self.0;
            let (_, length) = measure_plain(bytes)?;
            self.0 = tail(bytes, length);
            if u8_at(bytes, 2) & SAME_TIMESTAMP == 0 {
                return Some(i64_at(bytes, 3));
            }
        }
        None
    }
}

/// Iterates over packed cells.
#[derive(Clone, Debug)]
pub struct Cells<'a> {
    pub(crate) rest: &'a [u8],
    pub(crate) liveness: Option<Liveness>,
}

impl<'a> Iterator for Cells<'a> {
    type Item = CellRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<CellRef<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let bytes = self.rest;
        let column = u16_at(bytes, 0);
        let flags = u8_at(bytes, 2);
        let mut at = 3;
        let timestamp = match &self.liveness {
            Some(liveness) if flags & SAME_TIMESTAMP != 0 => liveness.timestamp,
            _ => {
                at += 8;
                i64_at(bytes, at - 8)
            }
        };
        let (mut ttl, mut local_deletion_time) = (NO_TTL, NO_DELETION_TIME);
        if flags & (TOMBSTONE | EXPIRING | COMPLEX_DELETION) != 0 {
            match &self.liveness {
                Some(liveness) if flags & SAME_EXPIRY != 0 => {
                    (ttl, local_deletion_time) = (liveness.ttl, liveness.expires_at);
                }
                _ => {
                    local_deletion_time = unpack_seconds(u32_at(bytes, at));
                    at += 4;
                    if flags & EXPIRING != 0 {
                        ttl = i32_at(bytes, at);
                        at += 4;
                    }
                }
            }
        }
        let mut component = |flag: u8| {
            if flags & flag == 0 {
                return None;
            }
            let len = u32_at(bytes, at) as usize;
            let component = slice(bytes, at + 4, len);
            at = at.saturating_add(4).saturating_add(len);
            Some(component)
        };
        let path = component(HAS_PATH);
        let value = component(HAS_VALUE).unwrap_or_default();
        self.rest = tail(bytes, at);
        let kind = match flags & (TOMBSTONE | EXPIRING | COMPLEX_DELETION) {
            0 => CellKind::Live,
            EXPIRING => CellKind::Expiring,
            COMPLEX_DELETION => CellKind::ComplexDeletion,
            _ => CellKind::Tombstone,
        };
        Some(CellRef { column, kind, timestamp, ttl, local_deletion_time, path, value })
    }
}
