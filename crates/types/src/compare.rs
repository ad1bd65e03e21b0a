//! The order of values: `AbstractType.compare` of every type.
//!
//! Total on any bytes: what Cassandra would refuse has a place too (mostly by its bytes), so that a
//! corrupt value can never upset a merge. Types whose order is that of their bytes are compared so.

use crate::cql_type::{CqlType, MAX_DEPTH};
use crate::decimal::Decimal;
use crate::vint::Reader;
use std::cmp::Ordering;

impl CqlType {
    /// The order of two values in this type, whichever way a column is clustered.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Text | Self::Blob | Self::Ascii | Self::Inet | Self::Date | Self::Time => {
                a.cmp(b)
            }
            Self::Int => match (a.as_array::<4>(), b.as_array::<4>()) {
                (Some(a), Some(b)) => i32::from_be_bytes(*a).cmp(&i32::from_be_bytes(*b)),
                _ => signed_first(a, b),
            },
            Self::BigInt | Self::Timestamp => match (a.as_array::<8>(), b.as_array::<8>()) {
                (Some(a), Some(b)) => i64::from_be_bytes(*a).cmp(&i64::from_be_bytes(*b)),
                _ => signed_first(a, b),
            },
            Self::TimeUuid => time_uuid(a, b),
            Self::Uuid => uuid(a, b),
            _ => self.compare_at(a, b, MAX_DEPTH),
        }
    }

    /// The order of two values of a clustering column: the type's, or the other way round.
    #[inline]
    pub fn compare_clustering(&self, reversed: bool, a: &[u8], b: &[u8]) -> Ordering {
        if reversed { self.compare(b, a) } else { self.compare(a, b) }
    }

    /// Do byte strings compare as values of this type do (`AbstractType.isByteOrderComparable`)?
    #[inline]
    pub fn is_byte_ordered(&self) -> bool {
        matches!(
            self,
            Self::Text
                | Self::Blob
                | Self::Ascii
                | Self::Inet
                | Self::Date
                | Self::Time
                | Self::Duration
        )
    }

    pub(crate) fn compare_at(&self, a: &[u8], b: &[u8], depth: usize) -> Ordering {
        match self {
            Self::Boolean => {
                a.first().map(|byte| *byte != 0).cmp(&b.first().map(|byte| *byte != 0))
            }
            Self::TinyInt => a
                .first()
                .map(|byte| byte.cast_signed())
                .cmp(&b.first().map(|byte| byte.cast_signed())),
            Self::SmallInt => signed_first(a, b),
            Self::Double => double(a, b),
            Self::Float => float(a, b),
            Self::VarInt => varint(a, b),
            Self::Decimal => decimal(a, b),
            Self::Empty => Ordering::Equal,
            Self::Class(class) => class.compare(a, b, depth),
            Self::Counter | Self::Duration | Self::Custom(_) => a.cmp(b),
            _ if self.is_nested() => match depth.checked_sub(1) {
                Some(depth) => self.compare_nested(a, b, depth),
                None => a.cmp(b),
            },
            _ => self.compare(a, b),
        }
    }

    fn is_nested(&self) -> bool {
        self.is_collection()
            || matches!(self, Self::Tuple(_) | Self::Udt { .. } | Self::Vector { .. })
    }

    fn compare_nested(&self, a: &[u8], b: &[u8], depth: usize) -> Ordering {
        let empties = b.is_empty().cmp(&a.is_empty());
        if empties.is_ne() {
            return empties;
        }
        match self {
            Self::List { element, .. } | Self::Set { element, .. } => {
                collections(&[element], a, b, depth)
            }
            Self::Map { key, value, .. } => collections(&[key, value], a, b, depth),
            Self::Tuple(types) => components(types.iter(), a, b, depth),
            Self::Udt { definition, .. } => {
                components(definition.fields.iter().map(|(_, kind)| kind), a, b, depth)
            }
            Self::Vector { element, dimension } => vectors(element, *dimension, a, b, depth),
            _ => a.cmp(b),
        }
    }
}

/// Big-endian two's complement of one length: the first byte is signed, the others are not.
#[inline]
fn signed_first(a: &[u8], b: &[u8]) -> Ordering {
    match (a.split_first(), b.split_first()) {
        (Some((first_a, rest_a)), Some((first_b, rest_b))) => {
            first_a.cast_signed().cmp(&first_b.cast_signed()).then_with(|| rest_a.cmp(rest_b))
        }
        _ => a.len().cmp(&b.len()),
    }
}

/// By the time, then by the other half byte for byte, *signed* (`AbstractTimeUUIDType`).
#[inline]
fn time_uuid(a: &[u8], b: &[u8]) -> Ordering {
    match (a.as_array::<16>(), b.as_array::<16>()) {
        (Some(a), Some(b)) => {
            let ((time_a, node_a), (time_b, node_b)) = (halves(a), halves(b));
            let signed_bytes = |node: u64| node ^ 0x8080_8080_8080_8080;
            by_time(time_a)
                .cmp(&by_time(time_b))
                .then_with(|| signed_bytes(node_a).cmp(&signed_bytes(node_b)))
        }
        (a16, b16) => a16.is_some().cmp(&b16.is_some()).then_with(|| a.cmp(b)),
    }
}

/// By version, then time (of version 1) or bytes, *unsigned* (`UUIDType`).
fn uuid(a: &[u8], b: &[u8]) -> Ordering {
    match (a.as_array::<16>(), b.as_array::<16>()) {
        (Some(a), Some(b)) => {
            let ((high_a, low_a), (high_b, low_b)) = (halves(a), halves(b));
            let version = |high: u64| high >> 12 & 0xf;
            let high = match (version(high_a), version(high_b)) {
                (1, 1) => by_time(high_a).cmp(&by_time(high_b)),
                (a, b) => a.cmp(&b).then_with(|| high_a.cmp(&high_b)),
            };
            high.then_with(|| low_a.cmp(&low_b))
        }
        (a16, b16) => a16.is_some().cmp(&b16.is_some()).then_with(|| a.cmp(b)),
    }
}

#[inline]
fn halves(uuid: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_be_bytes(*uuid);
    ((both >> 64) as u64, both as u64)
}

/// The first half of a time-UUID with its fields in order of weight: version and high, middle, low.
#[inline]
fn by_time(half: u64) -> i64 {
    (half << 48 | half << 16 & 0xffff_0000_0000 | half >> 32).cast_signed()
}

/// Where malformed values go that a comparison cannot look into: after the empty one, before all
/// others.
pub(crate) fn malformed(a: Option<()>, b: Option<()>, bytes_a: &[u8], bytes_b: &[u8]) -> Ordering {
    a.is_some().cmp(&b.is_some()).then_with(|| bytes_a.cmp(bytes_b))
}

/// `Double.compare`: -0.0 before 0.0, all NaN alike and last.
fn double(a: &[u8], b: &[u8]) -> Ordering {
    match (a.as_array::<8>(), b.as_array::<8>()) {
        (Some(x), Some(y)) => {
            let (x, y) = (f64::from_be_bytes(*x), f64::from_be_bytes(*y));
            x.is_nan()
                .cmp(&y.is_nan())
                .then_with(|| if x.is_nan() { Ordering::Equal } else { x.total_cmp(&y) })
        }
        (x, y) => malformed(x.map(|_| ()), y.map(|_| ()), a, b),
    }
}

/// [`double`] for half the bits.
fn float(a: &[u8], b: &[u8]) -> Ordering {
    match (a.as_array::<4>(), b.as_array::<4>()) {
        (Some(x), Some(y)) => {
            let (x, y) = (f32::from_be_bytes(*x), f32::from_be_bytes(*y));
            x.is_nan()
                .cmp(&y.is_nan())
                .then_with(|| if x.is_nan() { Ordering::Equal } else { x.total_cmp(&y) })
        }
        (x, y) => malformed(x.map(|_| ()), y.map(|_| ()), a, b),
    }
}

/// Numeric, whatever sign bytes pad the value; the empty value first.
fn varint(a: &[u8], b: &[u8]) -> Ordering {
    match (significant(a), significant(b)) {
        (Some((negative_a, digits_a)), Some((negative_b, digits_b))) => {
            // Of two negative numbers, the one with more bytes is the smaller.
            let lengths = digits_a.len().cmp(&digits_b.len());
            negative_b.cmp(&negative_a).then_with(|| {
                let longer = if negative_a { lengths.reverse() } else { lengths };
                longer.then_with(|| digits_a.cmp(digits_b))
            })
        }
        _ => a.len().cmp(&b.len()),
    }
}

/// Sign and the bytes from the first that is not mere sign. Of one sign and length, numbers compare
/// as these bytes do.
fn significant(value: &[u8]) -> Option<(bool, &[u8])> {
    let negative = *value.first()? >= 0x80;
    let padding = if negative { 0xff } else { 0 };
    let start = value.iter().position(|&byte| byte != padding).unwrap_or(value.len());
    Some((negative, value.get(start..).unwrap_or_default()))
}

/// Numeric (`BigDecimal.compareTo`).
fn decimal(a: &[u8], b: &[u8]) -> Ordering {
    match (Decimal::from_bytes(a), Decimal::from_bytes(b)) {
        (Some(x), Some(y)) => x.compare(&y),
        (x, y) => malformed(x.map(|_| ()), y.map(|_| ()), a, b),
    }
}

/// Element by element, then by the number of elements; an entry's parts have the types `kinds`, in
/// turn.
fn collections(kinds: &[&CqlType], a: &[u8], b: &[u8], depth: usize) -> Ordering {
    let (mut reader_a, mut reader_b) = (Reader::new(a), Reader::new(b));
    let (count_a, count_b) = (reader_a.i32().ok(), reader_b.i32().ok());
    let parts =
        |count: Option<i32>| u64::try_from(count.unwrap_or(0)).unwrap_or(0) * kinds.len() as u64;
    let (parts_a, parts_b) = (parts(count_a), parts(count_b));
    for (index, kind) in (0u64..).zip(kinds.iter().cycle()) {
        let order =
            match (part(&mut reader_a, index < parts_a), part(&mut reader_b, index < parts_b)) {
                (None, None) => break,
                (Some(item_a), Some(item_b)) => nullable(kind, item_a, item_b, depth),
                (item_a, item_b) => item_a.is_some().cmp(&item_b.is_some()),
            };
        if order.is_ne() {
            return order;
        }
    }
    count_a.cmp(&count_b)
}

/// The next part of a collection, if any is left; a value cut short has no more.
fn part<'a>(reader: &mut Reader<'a>, left: bool) -> Option<Option<&'a [u8]>> {
    if left { reader.int_bytes_or_null().ok() } else { None }
}

/// Null before any value.
fn nullable(kind: &CqlType, a: Option<&[u8]>, b: Option<&[u8]>, depth: usize) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => kind.compare_at(a, b, depth),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// Component by component; what is missing at the end is null.
fn components<'t>(
    kinds: impl Iterator<Item = &'t CqlType>,
    a: &[u8],
    b: &[u8],
    depth: usize,
) -> Ordering {
    let (mut reader_a, mut reader_b) = (Reader::new(a), Reader::new(b));
    for kind in kinds {
        if reader_a.is_empty() && reader_b.is_empty() {
            break;
        }
        let item_a = component(&mut reader_a);
        let item_b = component(&mut reader_b);
        let order = nullable(kind, item_a, item_b, depth);
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

fn component<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    reader.int_bytes_or_null().unwrap_or_else(|_| {
        // Cut short inside a component: nothing after it can be found.
        *reader = Reader::new(&[]);
        None
    })
}

fn vectors(kind: &CqlType, dimension: u32, a: &[u8], b: &[u8], depth: usize) -> Ordering {
    let (mut reader_a, mut reader_b) = (Reader::new(a), Reader::new(b));
    let fixed = kind.fixed_length();
    if fixed == Some(0) {
        return a.len().cmp(&b.len());
    }
    for _ in 0..dimension {
        let (item_a, item_b) = match fixed {
            Some(length) => (reader_a.bytes(length).ok(), reader_b.bytes(length).ok()),
            None => (reader_a.vint_bytes().ok(), reader_b.vint_bytes().ok()),
        };
        let order = nullable(kind, item_a, item_b, depth);
        if order.is_ne() || (item_a.is_none() && item_b.is_none()) {
            return order;
        }
    }
    Ordering::Equal
}
