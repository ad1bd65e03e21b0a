//! Writers of the specification's notations (section 3) onto an output buffer.

use std::net::{IpAddr, SocketAddr};

use crate::consistency::Consistency;

/// Longest `[string]`, `[short bytes]` and list.
pub const MAX_SHORT: usize = u16::MAX as usize;
/// Length that stands for null.
pub const NULL: i32 = -1;
/// Length that stands for "not set" (version 4 on).
pub const UNSET: i32 = -2;

pub(crate) fn u8(out: &mut Vec<u8>, value: u8) {
    out.push(value);
}

pub(crate) fn u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(crate) fn i32(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(crate) fn i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// A count that the wire holds in 16 bits; callers write no more items than it says.
pub(crate) fn count(out: &mut Vec<u8>, items: usize) -> usize {
    let count = items.min(MAX_SHORT);
    u16(out, count as u16);
    count
}

/// `[string]`; what is beyond 65535 bytes is cut off at a character's boundary.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    let end = text.floor_char_boundary(MAX_SHORT);
    let text = text.get(..end).unwrap_or_default();
    u16(out, text.len() as u16);
    out.extend_from_slice(text.as_bytes());
}

/// `[long string]`.
pub(crate) fn long_string(out: &mut Vec<u8>, text: &str) {
    bytes(out, text.as_bytes());
}

/// `[short bytes]`; what is beyond 65535 bytes is cut off.
pub(crate) fn short_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = bytes.get(..MAX_SHORT).unwrap_or(bytes);
    u16(out, bytes.len() as u16);
    out.extend_from_slice(bytes);
}

/// `[bytes]`. A value above 2 GiB cannot be written; it becomes null.
pub(crate) fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match i32::try_from(bytes.len()) {
        Ok(length) => {
            i32(out, length);
            out.extend_from_slice(bytes);
        }
        Err(_) => i32(out, NULL),
    }
}

/// `[bytes]`, or null.
pub(crate) fn nullable(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(value) => bytes(out, value),
        None => i32(out, NULL),
    }
}

pub(crate) fn consistency(out: &mut Vec<u8>, level: Consistency) {
    u16(out, level.code());
}

/// `[inetaddr]`.
pub(crate) fn address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(four) => {
            u8(out, 4);
            out.extend_from_slice(&four.octets());
        }
        IpAddr::V6(six) => {
            u8(out, 16);
            out.extend_from_slice(&six.octets());
        }
    }
}

/// `[inet]`.
pub(crate) fn socket(out: &mut Vec<u8>, socket: SocketAddr) {
    address(out, socket.ip());
    i32(out, i32::from(socket.port()));
}

/// `[string list]`.
pub(crate) fn string_list<'s>(out: &mut Vec<u8>, list: impl ExactSizeIterator<Item = &'s str>) {
    let count = count(out, list.len());
    list.take(count).for_each(|text| string(out, text));
}

/// Overwrites four bytes written before; `at` comes from the length of the same buffer.
pub(crate) fn patch_i32(out: &mut [u8], at: usize, value: i32) {
    if let Some(place) = out.get_mut(at..).and_then(|tail| tail.first_chunk_mut::<4>()) {
        *place = value.to_be_bytes();
    }
}
