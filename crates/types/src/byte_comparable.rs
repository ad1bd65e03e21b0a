//! Values as byte strings that compare as the values do: version OSS50 of Cassandra's
//! `ByteComparable`, which the tries of BTI SSTables are made of.
//!
//! - Text, blobs and addresses are escaped: 00 becomes 00 FE.. FF for a run of zeros, and the end
//!   is 00 (nothing but FE after a zero). Dates and times are their bytes, small signed integers
//!   those with the sign flipped.
//! - `bigint` and short `varint`s say their length in the leading bits; a long `varint` has sign,
//!   length, bytes.
//! - A decimal is a base-100 exponent behind its sign and length, pairs of digits (the first
//!   signed), 00.
//! - The parts of a collection, tuple or vector each follow 40 (3E where absent), and 38 ends them.

use crate::cql_type::{CqlType, MAX_DEPTH};
use crate::decimal::Decimal;
use crate::vint::Reader;
use num_bigint::Sign;

/// Before a part of a sequence.
pub const NEXT_COMPONENT: u8 = 0x40;
/// In place of a clustering value that is empty in a type where that means nothing.
pub const NEXT_COMPONENT_EMPTY: u8 = 0x3f;
/// The same in a descending column.
pub const NEXT_COMPONENT_EMPTY_REVERSED: u8 = 0x41;
/// In place of an absent part.
pub const NEXT_COMPONENT_NULL: u8 = 0x3e;
/// Ends a sequence.
pub const TERMINATOR: u8 = 0x38;
/// Ends a sequence that stands before all that go on from there.
pub const LT_NEXT_COMPONENT: u8 = 0x20;
/// Ends a sequence that stands after all that go on from there.
pub const GT_NEXT_COMPONENT: u8 = 0x60;

const ESCAPE: u8 = 0x00;
const ESCAPED_CONTINUES: u8 = 0xfe;
const ESCAPED_DONE: u8 = 0xff;
/// Bytes from which on a `varint` says its length apart.
const FULL_FORM_BYTES: usize = 7;
/// A decimal's first byte: this and the length of its exponent, signed as that is.
const EXPONENT: i32 = 0x40;
/// A decimal's first byte is this much more where it is positive; zero is nothing but this.
const POSITIVE: u8 = 0x80;
/// A value of more digits is not encoded: what is not encoded is found by reading on from an
/// earlier place.
const DIGITS_MAX: usize = 20_000;

/// What a value became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoded {
    /// Bytes.
    Bytes,
    /// None: the value is empty where that means nothing. How that is said depends on where it
    /// stands.
    Empty,
}

impl CqlType {
    /// Appends a value's bytes. `None` if the value is malformed or of a type that has no such
    /// form; what was appended then means nothing.
    #[must_use]
    pub fn byte_comparable(&self, value: &[u8], out: &mut Vec<u8>) -> Option<Encoded> {
        self.encode_at(value, out, MAX_DEPTH)
    }

    fn encode_at(&self, value: &[u8], out: &mut Vec<u8>, depth: usize) -> Option<Encoded> {
        match self {
            Self::Text | Self::Blob | Self::Ascii | Self::Inet | Self::Duration => {
                escape(value, out);
                return Some(Encoded::Bytes);
            }
            Self::Class(_) | Self::Custom(_) | Self::Counter => return None,
            _ if value.is_empty() => return Some(Encoded::Empty),
            Self::Empty => return Some(Encoded::Empty),
            Self::Date | Self::Time => out.extend_from_slice(value),
            Self::Int | Self::SmallInt | Self::TinyInt | Self::Timestamp => {
                let (first, rest) = value.split_first()?;
                out.push(first ^ 0x80);
                out.extend_from_slice(rest);
            }
            Self::BigInt => variable_length(i64::from_be_bytes(*value.as_array()?), out),
            Self::Boolean => out.push(u8::from(*value.first()? != 0)),
            Self::Float | Self::Double => float(value, out)?,
            Self::Uuid => uuid(u128::from_be_bytes(*value.as_array()?), out),
            Self::TimeUuid => time_uuid(u128::from_be_bytes(*value.as_array()?), out),
            Self::VarInt => varint(value, out)?,
            Self::Decimal => decimal(&Decimal::from_bytes(value)?, out)?,
            _ => self.encode_parts(value, out, depth.checked_sub(1)?)?,
        }
        Some(Encoded::Bytes)
    }

    fn encode_parts(&self, value: &[u8], out: &mut Vec<u8>, depth: usize) -> Option<()> {
        match self {
            Self::List { element, .. } | Self::Set { element, .. } => {
                collection(&[element], value, out, depth)
            }
            Self::Map { key, value: of, .. } => collection(&[key, of], value, out, depth),
            Self::Tuple(types) => components(types.iter(), value, out, depth),
            Self::Udt { definition, .. } => {
                components(definition.fields.iter().map(|(_, kind)| kind), value, out, depth)
            }
            Self::Vector { element, dimension } => vector(element, *dimension, value, out, depth),
            _ => None,
        }
    }
}

/// Appends bytes with their zeros escaped, and their end.
pub fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    let mut escaped = false;
    for byte in bytes {
        match (*byte, escaped) {
            (0, false) => {
                out.push(ESCAPE);
                escaped = true;
            }
            (0, true) => out.push(ESCAPED_CONTINUES),
            (byte, true) => {
                out.extend([ESCAPED_DONE, byte]);
                escaped = false;
            }
            (byte, false) => out.push(byte),
        }
    }
    out.push(if escaped { ESCAPED_CONTINUES } else { ESCAPE });
}

/// A signed number, its length in the leading bits after the sign: 7 bits a byte.
fn variable_length(value: i64, out: &mut Vec<u8>) {
    let negative = if value < 0 { u64::MAX } else { 0 };
    let magnitude = value.cast_unsigned() ^ negative;
    let bits = 64 - (magnitude | 1).leading_zeros() as usize;
    let bytes = bits / 7 + 1;
    if bytes >= 9 {
        out.push(if negative == 0 { 0xff } else { 0 });
        return out.extend(((magnitude | 1 << 63) ^ negative).to_be_bytes());
    }
    // one bit for the sign, and as many more as bytes follow the first
    let mask = 0xffff_u64 << (8 - bytes) & 0xff;
    let marked = (magnitude | mask << (8 * (bytes - 1))) ^ negative;
    out.extend(marked.to_be_bytes().iter().skip(8 - bytes));
}

/// An unsigned number, its length in the leading bits: 7 bits a byte.
fn variable_length_unsigned(value: u64, out: &mut Vec<u8>) {
    let more = (63 - (value | 1).leading_zeros() as usize) / 7;
    if more >= 8 {
        out.push(0xff);
        return out.extend(value.to_be_bytes());
    }
    let mask = !(0xff_u64 >> more) & 0xff;
    let marked = value | mask << (8 * more);
    out.extend(marked.to_be_bytes().iter().skip(7 - more));
}

/// IEEE 754 in its total order: a negative number inverted, a positive one with the sign bit set.
fn float(value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let negative = *value.first()? >= 0x80;
    let start = out.len();
    out.extend(value.iter().map(|byte| if negative { !byte } else { *byte }));
    if !negative {
        *out.get_mut(start)? |= 0x80;
    }
    Some(())
}

/// The first half of a time-UUID with its fields in order of weight.
fn by_time(half: u64) -> u64 {
    half << 48 | half << 16 & 0xffff_0000_0000 | half >> 32
}

fn time_uuid(uuid: u128, out: &mut Vec<u8>) {
    out.extend(by_time((uuid >> 64) as u64).to_be_bytes());
    out.extend((uuid as u64 ^ 0x8080_8080_8080_8080).to_be_bytes());
}

/// The version first, then the rest of the first half: by time in version 1.
fn uuid(uuid: u128, out: &mut Vec<u8>) {
    let half = (uuid >> 64) as u64;
    let first = match half >> 12 & 0xf {
        1 => by_time(half),
        version => version << 60 | half >> 4 & 0x0fff_ffff_ffff_f000 | half & 0xfff,
    };
    out.extend(first.to_be_bytes());
    out.extend((uuid as u64).to_be_bytes());
}

fn varint(value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let negative = *value.first()? >= 0x80;
    let padding = if negative { 0xff } else { 0 };
    let last = value.len() - 1;
    let start = value.iter().position(|byte| *byte != padding).unwrap_or(last).min(last);
    let digits = value.get(start..)?;
    if digits.len() < FULL_FORM_BYTES {
        let sign = if negative { -1 } else { 0 };
        let number = digits.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte));
        variable_length(number, out);
        return Some(());
    }
    out.push(!padding);
    let from = out.len();
    variable_length_unsigned((digits.len() - FULL_FORM_BYTES) as u64, out);
    out.iter_mut().skip(from).for_each(|byte| *byte ^= padding);
    out.extend_from_slice(digits);
    Some(())
}

/// Exponent and digits in base 100: the number is 0.d1d2d3.. times 100 to the exponent.
fn decimal(value: &Decimal, out: &mut Vec<u8>) -> Option<()> {
    let negative = match value.unscaled.sign() {
        Sign::NoSign => {
            out.push(POSITIVE);
            return Some(());
        }
        sign => sign == Sign::Minus,
    };
    let mut digits = value.unscaled.magnitude().to_string().into_bytes();
    if digits.len() > DIGITS_MAX {
        return None;
    }
    digits.iter_mut().for_each(|digit| *digit -= b'0');
    // 10^places is just above the number; an odd count of places begins with a zero
    let places = digits.len() as i64 - i64::from(value.scale);
    let exponent = places.div_euclid(2) + places.rem_euclid(2);
    if places.rem_euclid(2) == 1 {
        digits.insert(0, 0);
    }
    if digits.len() % 2 == 1 {
        digits.push(0);
    }
    put_exponent(i32::try_from(exponent).ok()?, negative, out)?;
    let mut pairs: Vec<i32> = digits
        .chunks_exact(2)
        .map(|pair| pair.iter().fold(0, |n, digit| n * 10 + i32::from(*digit)))
        .collect();
    while pairs.last() == Some(&0) {
        pairs.pop();
    }
    // Of a negative number each pair is rounded down, so that all but the first are positive.
    let more = pairs.len() - 1;
    for (at, pair) in pairs.iter().enumerate() {
        let signed = match (negative, at) {
            (false, _) => *pair,
            (true, 0) => -pair - i32::from(more > 0),
            (true, at) => 100 - pair - i32::from(at < more),
        };
        out.push(u8::try_from(signed + i32::from(POSITIVE)).ok()?);
    }
    out.push(0);
    Some(())
}

/// The exponent of a decimal, turned about where the number is negative.
fn put_exponent(exponent: i32, negative: bool, out: &mut Vec<u8>) -> Option<()> {
    let turned = if negative { exponent.checked_neg()? } else { exponent };
    let bytes = 4 - turned.unsigned_abs().leading_zeros() as usize / 8;
    let length = if turned < 0 { -(bytes as i32) } else { bytes as i32 };
    let sign = if negative { 0 } else { i32::from(POSITIVE) };
    out.push(u8::try_from(EXPONENT + length + sign).ok()?);
    out.extend(turned.to_be_bytes().iter().skip(4 - bytes));
    Some(())
}

/// A part of a sequence; absent and empty are one here.
fn part(kind: &CqlType, value: Option<&[u8]>, out: &mut Vec<u8>, depth: usize) -> Option<()> {
    let at = out.len();
    out.push(NEXT_COMPONENT);
    let encoded = match value {
        Some(value) => kind.encode_at(value, out, depth)?,
        None => Encoded::Empty,
    };
    if encoded == Encoded::Empty {
        out.truncate(at);
        out.push(NEXT_COMPONENT_NULL);
    }
    Some(())
}

fn collection(kinds: &[&CqlType], value: &[u8], out: &mut Vec<u8>, depth: usize) -> Option<()> {
    let mut reader = Reader::new(value);
    // a part takes four bytes at least
    let parts = usize::try_from(reader.i32().ok()?).ok()?.checked_mul(kinds.len())?;
    for kind in kinds.iter().cycle().take(parts) {
        part(kind, reader.int_bytes_or_null().ok()?, out, depth)?;
    }
    out.push(TERMINATOR);
    Some(())
}

/// Nulls at the end are left out.
fn components<'t>(
    kinds: impl Iterator<Item = &'t CqlType>,
    value: &[u8],
    out: &mut Vec<u8>,
    depth: usize,
) -> Option<()> {
    let mut reader = Reader::new(value);
    let mut end = out.len();
    for kind in kinds {
        if reader.is_empty() {
            break;
        }
        let value = reader.int_bytes_or_null().ok()?;
        part(kind, value, out, depth)?;
        if value.is_some() {
            end = out.len();
        }
    }
    out.truncate(end);
    out.push(TERMINATOR);
    Some(())
}

fn vector(
    kind: &CqlType,
    dimension: u32,
    value: &[u8],
    out: &mut Vec<u8>,
    depth: usize,
) -> Option<()> {
    let mut reader = Reader::new(value);
    let fixed = kind.fixed_length();
    for _ in 0..dimension {
        let value = match fixed {
            Some(0) => return None,
            Some(length) => reader.bytes(length).ok()?,
            None => reader.vint_bytes().ok()?,
        };
        part(kind, Some(value), out, depth)?;
    }
    out.push(TERMINATOR);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What classes of Cassandra 5.0.9 make of values, of every type (testdata/README.md).
    #[test]
    fn as_cassandra_encodes_it() {
        let mut lines = 0;
        for line in include_str!("../testdata/byte_comparable.txt").lines() {
            let mut parts = line.split('\t');
            let mut part = || parts.next().unwrap_or_default();
            let (class, value, wanted) = (part(), part(), part());
            let (kind, reversed) = CqlType::parse_marshal(class).expect("a class");
            let value = crate::hex::from_hex(value).expect("hex");
            let mut out = Vec::new();
            let encoded = kind.byte_comparable(&value, &mut out);
            let found = match encoded {
                None => "none".to_owned(),
                Some(Encoded::Empty) => "empty".to_owned(),
                Some(Encoded::Bytes) => {
                    let mask = if reversed { 0xff } else { 0 };
                    out.iter_mut().for_each(|byte| *byte ^= mask);
                    crate::hex::to_hex(&out)
                }
            };
            assert_eq!(found, wanted, "{line}");
            lines += 1;
        }
        assert!(lines > 800);
    }

    #[test]
    fn malformed_values_have_no_form() {
        let int = || std::sync::Arc::new(CqlType::Int);
        for (kind, value) in [
            (CqlType::BigInt, &[0u8; 7][..]),
            (CqlType::Uuid, &[0; 15]),
            (CqlType::Decimal, &[0; 3]),
            (CqlType::List { element: int(), frozen: true }, &[0, 0, 0, 2, 0, 0, 0, 0]),
            (CqlType::List { element: int(), frozen: true }, &[0xff; 4]),
            (CqlType::Vector { element: int(), dimension: 2 }, &[0; 7]),
            (CqlType::Custom("x".into()), &[1]),
        ] {
            assert_eq!(kind.byte_comparable(value, &mut Vec::new()), None, "{kind:?}");
        }
    }
}
