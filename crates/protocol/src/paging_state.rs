//! Where a page ended, as the client carries it from one request to the next
//! (`org.apache.cassandra.service.pager.PagingState`).
//!
//! ```text
//! version 4 on: vint length + partition key, vint length + mark, vint remaining, vint remaining
//!               in partition (unsigned vints)
//! version 3:    the same with u16 lengths and i32 numbers; 2.1 leaves the last one out
//! ```
//! The mark names the last row: from version 4 on its clustering, serialized as blobs; in version 3
//! a cell's name of 2.1 (a composite of clustering, column and collection element).

use crate::{error::ProtocolError, put, reader::Reader, version::Version};

/// A paging state. Its parts are the client's word: check keys and rows against access rights and
/// schema as if they came in the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PagingState<'a> {
    /// Serialized partition key; none in a query of one partition.
    pub partition_key: Option<&'a [u8]>,
    /// The last row; none where the page ended with the partition.
    pub row_mark: Option<RowMark<'a>>,
    /// Rows that LIMIT leaves, `i32::MAX` without one.
    pub remaining: i32,
    /// Rows that PER PARTITION LIMIT leaves of the partition.
    pub remaining_in_partition: i32,
}

/// The mark of a row, in the form of the version that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMark<'a> {
    /// Version 4 on: a serialized clustering ([`write_clustering`]).
    Clustering(&'a [u8]),
    /// Version 3: the name of a cell ([`write_cell_name`]).
    CellName(&'a [u8]),
}

/// The row that a mark names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkedRow<'a> {
    /// The static row (version 3 only).
    Static,
    /// The row of this clustering; a value may be null in tables of COMPACT STORAGE.
    Row(Vec<Option<&'a [u8]>>),
}

/// Shape of a table, as far as marks depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkShape {
    /// Number of clustering columns.
    pub clustering: usize,
    /// Is it a table of COMPACT STORAGE? With one clustering column a version 3 mark is then the
    /// bare value.
    pub compact: bool,
}

type Result<T> = std::result::Result<T, ProtocolError>;

const INVALID: ProtocolError = ProtocolError::PagingState;
/// What a composite of the static row begins with.
const STATIC_PREFIX: [u8; 2] = [0xff, 0xff];

impl<'a> PagingState<'a> {
    /// Reads a state that came over a connection of `version`. A client may bring the state of
    /// another version: both forms are recognized, its own first.
    pub fn parse(bytes: &'a [u8], version: Version) -> Result<Self> {
        let state = if version >= Version::V4 {
            Self::parse_vints(bytes).or_else(|| Self::parse_shorts(bytes))
        } else {
            Self::parse_shorts(bytes).or_else(|| Self::parse_vints(bytes))
        };
        state.ok_or(INVALID)
    }

    fn parse_vints(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let key = vint_bytes(&mut reader)?;
        let mark = vint_bytes(&mut reader)?;
        let remaining = vint_i32(&mut reader)?;
        let remaining_in_partition = vint_i32(&mut reader)?;
        (reader.remaining() == 0).then(|| Self {
            partition_key: (!key.is_empty()).then_some(key),
            row_mark: (!mark.is_empty()).then_some(RowMark::Clustering(mark)),
            remaining,
            remaining_in_partition,
        })
    }

    fn parse_shorts(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let key = signed_short_bytes(&mut reader)?;
        let mark = signed_short_bytes(&mut reader)?;
        let remaining = reader.i32().ok()?;
        let remaining_in_partition = match reader.remaining() {
            0 => i32::MAX,
            _ => reader.i32().ok()?,
        };
        (reader.remaining() == 0 && remaining >= 0 && remaining_in_partition >= 0).then(|| Self {
            partition_key: (!key.is_empty()).then_some(key),
            row_mark: (!mark.is_empty()).then_some(RowMark::CellName(mark)),
            remaining,
            remaining_in_partition,
        })
    }

    /// Appends the state in the form of `version`; the mark must be of that form. A version 3 key
    /// or mark above 32767 bytes cannot be read back.
    pub fn write(&self, version: Version, out: &mut Vec<u8>) {
        let key = self.partition_key.unwrap_or_default();
        let mark = match self.row_mark {
            Some(RowMark::Clustering(mark) | RowMark::CellName(mark)) => mark,
            None => &[],
        };
        if version >= Version::V4 {
            write_vint(out, key.len() as u64);
            out.extend_from_slice(key);
            write_vint(out, mark.len() as u64);
            out.extend_from_slice(mark);
            write_vint(out, self.remaining.max(0) as u64);
            write_vint(out, self.remaining_in_partition.max(0) as u64);
        } else {
            put::short_bytes(out, key);
            put::short_bytes(out, mark);
            put::i32(out, self.remaining);
            put::i32(out, self.remaining_in_partition);
        }
    }
}

impl<'a> RowMark<'a> {
    /// The row that the mark names in a table of this shape.
    pub fn row(self, shape: MarkShape) -> Result<MarkedRow<'a>> {
        match self {
            Self::Clustering(bytes) => read_clustering(bytes, shape.clustering),
            Self::CellName(bytes) => read_cell_name(bytes, shape),
        }
    }
}

/// Values whose nulls and empties one header of a serialized clustering holds.
const HEADER_VALUES: usize = 32;

/// Appends a clustering as marks hold it from version 4 on: `ClusteringPrefix`'s values without
/// their number, all typed as blobs. Each 32 values have a vint header of two bits a value (1:
/// empty, 2: null), then each value that is neither as vint length and bytes.
pub fn write_clustering(clustering: &[Option<&[u8]>], out: &mut Vec<u8>) {
    for values in clustering.chunks(HEADER_VALUES) {
        let header = values.iter().enumerate().fold(0, |header, (index, value)| {
            let bits: u64 = match value {
                None => 2,
                Some([]) => 1,
                Some(_) => 0,
            };
            header | bits << (2 * index)
        });
        write_vint(out, header);
        for value in values.iter().flatten().filter(|value| !value.is_empty()) {
            write_vint(out, value.len() as u64);
            out.extend_from_slice(value);
        }
    }
}

fn read_clustering(bytes: &[u8], count: usize) -> Result<MarkedRow<'_>> {
    let mut reader = Reader::new(bytes);
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        let header = vint(&mut reader).ok_or(INVALID)?;
        for index in 0..HEADER_VALUES.min(count - values.len()) {
            values.push(match header >> (2 * index) & 3 {
                0 => Some(vint_bytes(&mut reader).ok_or(INVALID)?),
                1 => Some(&[][..]),
                _ => None,
            });
        }
    }
    Ok(MarkedRow::Row(values))
}

/// Appends the mark of version 3: the composite name of the last cell of the row. `column` is empty
/// where the row has no cell; `element` is the path of a cell of a collection. A null in the
/// clustering ends the name.
pub fn write_cell_name(
    row: &MarkedRow<'_>,
    shape: MarkShape,
    column: &[u8],
    element: Option<&[u8]>,
    out: &mut Vec<u8>,
) {
    let component = |out: &mut Vec<u8>, value: &[u8]| {
        put::short_bytes(out, value);
        out.push(0);
    };
    match row {
        MarkedRow::Row(values) => {
            if let (MarkShape { clustering: 1, compact: true }, [value]) = (shape, &values[..]) {
                out.extend_from_slice(value.unwrap_or_default());
                return;
            }
            for value in values {
                match value {
                    Some(value) => component(out, value),
                    None => return,
                }
            }
        }
        MarkedRow::Static => {
            out.extend_from_slice(&STATIC_PREFIX);
            (0..shape.clustering).for_each(|_| component(out, &[]));
        }
    }
    component(out, column);
    if let Some(element) = element {
        component(out, element);
    }
}

fn read_cell_name(bytes: &[u8], shape: MarkShape) -> Result<MarkedRow<'_>> {
    match shape {
        MarkShape { clustering: 0, .. } => return Ok(MarkedRow::Row(Vec::new())),
        MarkShape { clustering: 1, compact: true } => {
            return Ok(MarkedRow::Row(vec![Some(bytes)]));
        }
        _ if bytes.starts_with(&STATIC_PREFIX) => return Ok(MarkedRow::Static),
        _ => {}
    }
    let mut reader = Reader::new(bytes);
    let mut values = vec![None; shape.clustering];
    for value in &mut values {
        if reader.remaining() == 0 {
            break;
        }
        *value = Some(signed_short_bytes(&mut reader).ok_or(INVALID)?);
        reader.u8().map_err(|_| INVALID)?;
    }
    Ok(MarkedRow::Row(values))
}

fn signed_short_bytes<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let length = i16::try_from(reader.u16().ok()?).ok()?;
    reader.take(usize::try_from(length).ok()?).ok()
}

fn vint_bytes<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let length = usize::try_from(vint_i32(reader)?).ok()?;
    reader.take(length).ok()
}

fn vint_i32(reader: &mut Reader<'_>) -> Option<i32> {
    i32::try_from(vint(reader)?).ok()
}

/// An unsigned vint: as many bytes follow the first as it has leading ones. Longer forms than
/// needed are refused, as nobody writes them.
fn vint(reader: &mut Reader<'_>) -> Option<u64> {
    let first = reader.u8().ok()?;
    let more = first.leading_ones();
    let head = u64::from(first) & (0xffu64 >> more);
    let tail = reader.take(more as usize).ok()?;
    let value = tail.iter().fold(head, |value, byte| value << 8 | u64::from(*byte));
    (vint_more(value) == more).then_some(value)
}

/// Bytes that a vint has behind its first.
fn vint_more(value: u64) -> u32 {
    let bits = 64 - (value | 1).leading_zeros();
    if bits > 56 { 8 } else { (bits - 1) / 7 }
}

fn write_vint(out: &mut Vec<u8>, value: u64) {
    let more = vint_more(value) as usize;
    let bytes = value.to_be_bytes();
    match more {
        8 => out.push(0xff),
        _ => {
            let first = bytes.get(7 - more).copied().unwrap_or_default();
            out.push(first | !(0xffu8 >> more));
        }
    }
    out.extend_from_slice(bytes.get(8 - more..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn vints_are_cassandras() {
        for (value, hex) in [
            (0, "00"),
            (127, "7f"),
            (128, "8080"),
            (0x7fff_fffd, "f07ffffffd"),
            ((1 << 56) - 1, "feffffffffffffff"),
            (1 << 56, "ff0100000000000000"),
            (u64::MAX, "ffffffffffffffffff"),
        ] {
            let mut out = Vec::new();
            write_vint(&mut out, value);
            let written: String = out.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(written, hex);
            assert_eq!(vint(&mut Reader::new(&out)), Some(value));
        }
        assert_eq!(vint(&mut Reader::new(&[0x80, 0x01])), None);
    }

    proptest! {
        #[test]
        fn vint_round_trips(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let mut out = Vec::new();
            write_vint(&mut out, value);
            prop_assert_eq!(vint(&mut Reader::new(&out)), Some(value));
        }

        #[test]
        fn clustering_round_trips(
            values in prop::collection::vec(
                prop::option::of(prop::collection::vec(any::<u8>(), 0..5)), 0..70),
        ) {
            let values: Vec<_> = values.iter().map(Option::as_deref).collect();
            let mut out = Vec::new();
            write_clustering(&values, &mut out);
            let shape = MarkShape { clustering: values.len(), compact: false };
            prop_assert_eq!(RowMark::Clustering(&out).row(shape), Ok(MarkedRow::Row(values)));
        }

        #[test]
        fn cell_name_round_trips(
            values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5), 1..5),
            compact: bool,
            element in prop::option::of(prop::collection::vec(any::<u8>(), 0..5)),
        ) {
            let row = MarkedRow::Row(values.iter().map(|value| Some(value.as_slice())).collect());
            let shape = MarkShape { clustering: values.len(), compact };
            let mut out = Vec::new();
            write_cell_name(&row, shape, b"v", element.as_deref(), &mut out);
            prop_assert_eq!(RowMark::CellName(&out).row(shape), Ok(row));
            let mut out = Vec::new();
            let wide = MarkShape { clustering: 2, compact };
            write_cell_name(&MarkedRow::Static, wide, b"v", None, &mut out);
            prop_assert_eq!(RowMark::CellName(&out).row(wide), Ok(MarkedRow::Static));
        }

        #[test]
        fn state_round_trips(
            key in prop::option::of(prop::collection::vec(any::<u8>(), 1..300)),
            mark in prop::option::of(prop::collection::vec(any::<u8>(), 1..9)),
            remaining in 0..=i32::MAX,
            remaining_in_partition in 0..=i32::MAX,
            modern: bool,
        ) {
            let version = if modern { Version::V5 } else { Version::V3 };
            let form = if modern { RowMark::Clustering } else { RowMark::CellName };
            let state = PagingState {
                partition_key: key.as_deref(),
                row_mark: mark.as_deref().map(form),
                remaining,
                remaining_in_partition,
            };
            let mut out = Vec::new();
            state.write(version, &mut out);
            prop_assert_eq!(PagingState::parse(&out, version), Ok(state));
        }

        #[test]
        fn any_bytes_are_a_state_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            clustering in 0usize..5,
            compact: bool,
        ) {
            for version in Version::ALL {
                if let Ok(PagingState { row_mark: Some(mark), .. }) =
                    PagingState::parse(&bytes, version)
                {
                    let _ = mark.row(MarkShape { clustering, compact });
                }
            }
        }
    }
}
