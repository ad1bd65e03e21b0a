//! A partition in a message (`UnfilteredRowIteratorSerializer`): its start, then unfiltereds, then
//! an end.

use super::columns::ColumnSet;
use super::decode::{Decoded, Decoder};
use super::deletion::read_deletion;
use super::encode::Encoder;
use super::error::{CodecError, EncodeError, Problem};
use super::header::Header;
use super::stats::EncodingStats;
use super::{Format, flags};
use crate::layout::Layout;
use crate::marker::Unfiltered;
use crate::row::RowRef;
use crate::time::Deletion;
use std::borrow::Cow;
use types::{ReadError, Reader, WriteBytes};

const IS_EMPTY: u8 = 0x01;
const IS_REVERSED: u8 = 0x02;
const HAS_PARTITION_DELETION: u8 = 0x04;
const HAS_STATIC_ROW: u8 = 0x08;
const HAS_ROW_ESTIMATE: u8 = 0x10;

/// The longest partition key.
const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// How the columns of a partition are told.
#[derive(Clone, Copy, Debug)]
pub enum Selection<'s> {
    /// By name: mutations.
    Names,
    /// As a subset of what the read fetches, which both sides know: responses. The header of all
    /// fetched columns.
    Fetched(&'s Header),
}

/// What comes before the rows.
#[derive(Clone, Debug)]
pub struct PartitionStart<'a> {
    /// The partition key.
    pub key: &'a [u8],
    /// Are the rows in reverse order?
    pub is_reversed: bool,
    /// The header of the rows; `None` for an empty partition, after which nothing comes.
    pub header: Option<Header>,
    /// The deletion of the partition.
    pub deletion: Deletion,
    /// The packed static row.
    pub static_row: Option<Cow<'a, [u8]>>,
    /// How many rows are about to come, where that is told.
    pub row_estimate: Option<i32>,
    /// Bytes that the start took.
    pub consumed: usize,
}

/// Writes a partition without content.
pub fn write_empty_partition(key: &[u8], is_reversed: bool, out: &mut Vec<u8>) {
    out.put_vint_bytes(key);
    out.put_u8(IS_EMPTY | if is_reversed { IS_REVERSED } else { 0 });
}

/// Writes the start of a partition, up to its first unfiltered. The header must be of
/// [`Format::Messaging12`] and hold the columns of all rows to come.
pub fn write_partition_start(
    layout: &Layout,
    header: &Header,
    selection: Selection<'_>,
    start: &PartitionStart<'_>,
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let is_of_12 = header.format == Format::Messaging12;
    assert!(is_of_12, "partitions are sent in the format of messaging 12: {:?}", header.format);
    out.put_vint_bytes(start.key);
    let static_row = start.static_row.as_deref().map(RowRef::from_packed);
    let mut flags = if start.is_reversed { IS_REVERSED } else { 0 };
    for (holds, flag) in [
        (!start.deletion.is_live(), HAS_PARTITION_DELETION),
        (static_row.is_some(), HAS_STATIC_ROW),
        (start.row_estimate.is_some(), HAS_ROW_ESTIMATE),
    ] {
        if holds {
            flags |= flag;
        }
    }
    out.put_u8(flags);
    header.stats.write(out);
    for is_static in [true, false] {
        if is_static && static_row.is_none() {
            continue;
        }
        match selection {
            Selection::Names => header.columns(is_static).write_names(layout, is_static, out),
            Selection::Fetched(fetched) => {
                header.columns(is_static).write_subset_of(fetched.columns(is_static), out)?;
            }
        }
    }
    if !start.deletion.is_live() {
        header.stats.put_deletion(start.deletion, out);
    }
    if let Some(row) = static_row {
        encoder.row(layout, header, row, 0, out)?;
    }
    if let Some(estimate) = start.row_estimate {
        out.put_uvint32(estimate);
    }
    Ok(())
}

/// Writes the end of a partition.
pub fn write_partition_end(out: &mut Vec<u8>) {
    out.put_u8(flags::END_OF_PARTITION);
}

/// Reads the start of a partition from the start of `bytes`, which must hold all of it. Go on with
/// [`Decoder::unfiltered`] behind `consumed`.
pub fn read_partition_start<'a>(
    layout: &Layout,
    selection: Selection<'_>,
    bytes: &'a [u8],
    decoder: &mut Decoder,
) -> Result<PartitionStart<'a>, CodecError> {
    read_start_of(Format::Messaging12, layout, selection, bytes, decoder)
}

/// The same in another version of messaging.
pub(crate) fn read_start_of<'a>(
    format: Format,
    layout: &Layout,
    selection: Selection<'_>,
    bytes: &'a [u8],
    decoder: &mut Decoder,
) -> Result<PartitionStart<'a>, CodecError> {
    let mut reader = Reader::new(bytes);
    let start = read_start(format, layout, selection, &mut reader, decoder);
    start.map_err(|problem| CodecError::at(reader.position(), problem))
}

fn read_start<'a>(
    format: Format,
    layout: &Layout,
    selection: Selection<'_>,
    reader: &mut Reader<'a>,
    decoder: &mut Decoder,
) -> Result<PartitionStart<'a>, Problem> {
    let key = reader.vint_bytes()?;
    // An SSTable has two bytes for its length: cut to them it would be the key of another
    // partition.
    if key.len() > KEY_BYTES_MAX {
        return Err(Problem::TooLarge(key.len()));
    }
    let flags = reader.u8()?;
    let mut start = PartitionStart {
        key,
        is_reversed: flags & IS_REVERSED != 0,
        header: None,
        deletion: Deletion::LIVE,
        static_row: None,
        row_estimate: None,
        consumed: reader.position(),
    };
    if flags & IS_EMPTY != 0 {
        return Ok(start);
    }
    let has_static = flags & HAS_STATIC_ROW != 0;
    let stats = EncodingStats::read(reader)?;
    let mut columns = |is_static: bool| match selection {
        _ if is_static && !has_static => Ok(ColumnSet::default()),
        Selection::Names => ColumnSet::read_names_in_any_order(layout, is_static, reader),
        Selection::Fetched(fetched) => {
            fetched.columns(is_static).read_subset(layout, is_static, reader)
        }
    };
    let (statics, regulars) = (columns(true)?, columns(false)?);
    let header = Header { format, stats, statics, regulars };
    if flags & HAS_PARTITION_DELETION != 0 {
        start.deletion = read_deletion(header.format, &header.stats, reader)?;
    }
    if has_static {
        let left = reader.remaining();
        match decoder.static_row(layout, &header, reader.rest()).map_err(|e| e.problem)? {
            Decoded::Unfiltered { unfiltered: Unfiltered::Row(row), consumed } => {
                reader.skip(consumed)?;
                start.static_row = Some(Cow::Owned(row.as_packed().to_vec()));
            }
            Decoded::Nothing { consumed } => reader.skip(consumed)?,
            Decoded::NeedMore(wanted) => return Err(ReadError::End { wanted, left }.into()),
            Decoded::Unfiltered { .. } | Decoded::End { .. } => {
                return Err(Problem::Flags(flags));
            }
        }
    }
    if flags & HAS_ROW_ESTIMATE != 0 {
        start.row_estimate = Some(reader.uvint32()?);
    }
    start.header = Some(header);
    start.consumed = reader.position();
    Ok(start)
}
