//! A hint in a file (`HintsWriter.Session.append`, `Hint.Serializer`).
//!
//! record = i32 n | i32 crc(n) | n bytes of hint | i32 crc(n, hint)
//! hint   = i64 created, ms since 1970 | uvint gc_grace, seconds | mutation, messaging 12
//!
//! Source: the code of 4.1.10 and 5.0.9; files that 5.0.9's classes wrote are in `testdata`.

use crc32fast::Hasher;
use types::{Reader, WriteBytes, vint};

/// Bytes of a record besides its hint.
pub const OVERHEAD_BYTES: usize = 12;
/// Bytes of a record before its hint.
const HEAD_BYTES: usize = 8;
/// Milliseconds in a second.
const SECOND: i64 = 1000;

/// A hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint<'a> {
    /// When it was made, in milliseconds since 1970.
    pub created: i64,
    /// The least `gc_grace_seconds` of its tables then.
    pub gc_grace: i32,
    /// Its mutation, of messaging 12.
    pub mutation: &'a [u8],
}

impl<'a> Hint<'a> {
    /// Reads what a record holds.
    pub fn read(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let (created, gc_grace) = (reader.i64().ok()?, reader.uvint32().ok()?);
        Some(Self { created, gc_grace, mutation: reader.rest() })
    }

    /// Bytes of its record.
    pub fn record_bytes(&self) -> usize {
        OVERHEAD_BYTES + self.body_bytes()
    }

    fn body_bytes(&self) -> usize {
        8 + vint::uvint_size(self.gc_grace.max(0) as u64) + self.mutation.len()
    }

    /// Appends its record.
    pub fn append(&self, out: &mut Vec<u8>) {
        let n = self.body_bytes() as u32;
        let mut crc = Hasher::new();
        crc.update(&n.to_be_bytes());
        out.put_u32(n);
        out.put_u32(crc.clone().finalize());
        let start = out.len();
        out.put_i64(self.created);
        out.put_uvint32(self.gc_grace.max(0));
        out.put(self.mutation);
        crc.update(out.get(start..).unwrap_or_default());
        out.put_u32(crc.finalize());
    }
}

/// Is a hint too old to be applied (`Hint.isLive`)? What was deleted since may be gone with its
/// tombstone.
pub fn is_expired(created: i64, gc_grace: i32, now: i64) -> bool {
    created.saturating_add(i64::from(gc_grace).saturating_mul(SECOND)) <= now
}

/// What there is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// What a whole record holds, and where the record ends.
    Whole(&'a [u8], usize),
    /// A record whose hint is damaged, and where it ends.
    Damaged(usize),
    /// A record that ends where there are more bytes than there are here.
    Longer(usize),
    /// No record.
    Nothing,
}

/// Looks for a record at a place.
pub fn at(bytes: &[u8], place: usize) -> Found<'_> {
    let Some(n) = length_at(bytes, place) else { return Found::Nothing };
    let end = place + OVERHEAD_BYTES + n;
    let body = bytes.get(place + HEAD_BYTES..place + HEAD_BYTES + n);
    let (Some(body), Some(stored)) = (body, u32_at(bytes, end - 4)) else {
        return Found::Longer(end);
    };
    let mut crc = Hasher::new();
    crc.update(&(n as u32).to_be_bytes());
    crc.update(body);
    match crc.finalize() == stored {
        true => Found::Whole(body, end),
        false => Found::Damaged(end),
    }
}

/// The first place from `from` on where a record seems to begin.
pub fn find(bytes: &[u8], from: usize) -> Option<usize> {
    (from..bytes.len()).find(|place| length_at(bytes, *place).is_some())
}

/// The length of the hint at a place, if its checksum says that one begins there.
fn length_at(bytes: &[u8], place: usize) -> Option<usize> {
    let (n, stored) = (u32_at(bytes, place)?, u32_at(bytes, place + 4)?);
    let is_length = n > 0 && i32::try_from(n).is_ok();
    (is_length && crc32fast::hash(&n.to_be_bytes()) == stored).then_some(n as usize)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk::<4>()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_appended_is_found(created: i64, gc_grace in 0..i32::MAX, mutation: Vec<u8>, before in 0usize..9) {
            let hint = Hint { created, gc_grace, mutation: &mutation };
            let mut bytes = vec![0; before];
            hint.append(&mut bytes);
            let end = bytes.len();
            prop_assert_eq!(end - before, hint.record_bytes());
            bytes.extend([1; 3]);
            let Found::Whole(body, found) = at(&bytes, before) else { panic!() };
            prop_assert_eq!((Hint::read(body), found), (Some(hint), end));
            prop_assert_eq!(find(&bytes, 0), Some(before));
            prop_assert_eq!(at(&bytes[..end - 1], before), Found::Longer(end));
        }

        #[test]
        fn what_is_turned_is_not_whole(mutation: Vec<u8>, bit: usize) {
            let mut bytes = Vec::new();
            Hint { created: 1, gc_grace: 2, mutation: &mutation }.append(&mut bytes);
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!matches!(at(&bytes, 0), Found::Whole(..)));
        }

        #[test]
        fn nothing_panics(bytes: Vec<u8>, place in 0usize..40) {
            let _ = (at(&bytes, place), find(&bytes, place), Hint::read(&bytes));
        }
    }
}
