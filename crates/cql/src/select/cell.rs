//! The cells of a result, and the parts of values that are written in the same form: `[i32
//! length][bytes]`, length -1 for null.

/// The length of null.
pub(super) const NULL: [u8; 4] = (-1_i32).to_be_bytes();

/// Appends a cell.
#[inline]
pub(super) fn put(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(value) => put_bytes(out, value),
        None => out.extend_from_slice(&NULL),
    }
}

#[inline]
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_i32(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Values are bounded by mutations and frames far below 2 GiB.
#[inline]
pub(super) fn put_i32(out: &mut Vec<u8>, value: usize) {
    let value = i32::try_from(value).unwrap_or(i32::MAX);
    out.extend_from_slice(&value.to_be_bytes());
}

/// The next of cells that stand one after the other; it is taken off.
pub(super) fn next<'c>(cells: &mut &'c [u8]) -> Option<&'c [u8]> {
    let (length, rest) = cells.split_first_chunk::<4>()?;
    *cells = rest;
    let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
    let (value, rest) = cells.split_at_checked(length)?;
    *cells = rest;
    Some(value)
}
