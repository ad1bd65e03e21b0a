//! Reading and writing the integers of the packed forms: little endian, private to memory.
//!
//! The packed bytes come from our own builder, never from a file, a peer or a client: whoever reads
//! past their end has a bug, and stops the node. To read zero instead would merge it, write it and
//! send it. The assertions cost nothing beyond the check of bounds that a read makes anyway.

/// Marks a component that is null, in place of its length.
pub(crate) const NULL: u32 = u32::MAX;

/// Out of line, so that the reads stay as small as they were.
#[cold]
#[inline(never)]
fn ends_early(bytes: &[u8], at: usize, len: usize) -> ! {
    panic!(
        "packed bytes are as long as their flags and lengths state: {at}+{len} of {}",
        bytes.len()
    )
}

macro_rules! reader {
    ($name:ident, $ty:ty) => {
        #[inline]
        pub(crate) fn $name(bytes: &[u8], at: usize) -> $ty {
            const N: usize = size_of::<$ty>();
            match bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()) {
                Some(chunk) => <$ty>::from_le_bytes(*chunk),
                None => ends_early(bytes, at, N),
            }
        }
    };
}

reader!(u8_at, u8);
reader!(u16_at, u16);
reader!(u32_at, u32);
reader!(i32_at, i32);
reader!(i64_at, i64);

/// The `len` bytes from `at` on.
#[inline]
pub(crate) fn slice(bytes: &[u8], at: usize, len: usize) -> &[u8] {
    match at.checked_add(len).and_then(|end| bytes.get(at..end)) {
        Some(slice) => slice,
        None => ends_early(bytes, at, len),
    }
}

/// What follows `at`.
#[inline]
pub(crate) fn tail(bytes: &[u8], at: usize) -> &[u8] {
    match bytes.get(at..) {
        Some(tail) => tail,
        None => ends_early(bytes, at, 0),
    }
}

/// A local deletion time as it is packed: unsigned 32 bits, the maximum for none.
#[inline]
pub(crate) fn pack_seconds(seconds: i64) -> u32 {
    if seconds == crate::NO_DELETION_TIME {
        return u32::MAX;
    }
    u32::try_from(seconds)
        .ok()
        .filter(|s| i64::from(*s) <= crate::MAX_DELETION_TIME)
        .unwrap_or(crate::INVALID_DELETION_TIME as u32)
}

/// The inverse of [`pack_seconds`].
#[inline]
pub(crate) fn unpack_seconds(packed: u32) -> i64 {
    if packed == u32::MAX { crate::NO_DELETION_TIME } else { i64::from(packed) }
}

/// Appends a length and the bytes. A value of 4 GiB or more cannot come in: frames, mutations and
/// files bound it far below.
#[inline]
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u32::try_from(bytes.len()).ok().filter(|len| *len != NULL);
    let len = len.expect("a component is bounded far below 4 GiB by frame, mutation and file");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a deletion.
#[inline]
pub(crate) fn put_deletion(out: &mut Vec<u8>, deletion: crate::Deletion) {
    out.extend_from_slice(&deletion.marked_for_delete_at.to_le_bytes());
    out.extend_from_slice(&pack_seconds(deletion.local_deletion_time).to_le_bytes());
}

/// Bytes of a packed deletion.
pub(crate) const DELETION_LEN: usize = 12;

/// Reads what [`put_deletion`] wrote.
#[inline]
pub(crate) fn deletion_at(bytes: &[u8], at: usize) -> crate::Deletion {
    crate::Deletion::new(i64_at(bytes, at), unpack_seconds(u32_at(bytes, at + 8)))
}
