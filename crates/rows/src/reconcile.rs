//! Which of two versions of a cell wins.

use crate::cell::{CellKind, CellRef};
use std::cmp::{Ordering, Reverse};

/// The version that wins (`Cells.resolveRegular`): the later; at one timestamp what expires or is
/// deleted over what lives for good, and a deletion over what expires; then the later local
/// deletion time, then the smaller time to live, then the larger value. Two versions that are equal
/// in all of that are equal.
///
/// Living counters do not come here: their contexts are merged ([`crate::counter`]).
#[inline]
pub fn reconcile<'a>(a: CellRef<'a>, b: CellRef<'a>) -> CellRef<'a> {
    if precedence(&a, &b) == Ordering::Less { b } else { a }
}

/// How strong `a` is compared to `b`.
#[inline]
pub(crate) fn precedence(a: &CellRef<'_>, b: &CellRef<'_>) -> Ordering {
    let strength = |kind| match kind {
        CellKind::Live => 0,
        CellKind::Expiring => 1,
        CellKind::Tombstone | CellKind::ComplexDeletion => 2,
    };
    a.timestamp.cmp(&b.timestamp).then_with(|| {
        let key = |c: &CellRef<'_>| (strength(c.kind), c.local_deletion_time, Reverse(c.ttl));
        key(a).cmp(&key(b)).then_with(|| a.value.cmp(b.value))
    })
}
