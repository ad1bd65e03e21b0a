//! Clusterings and bounds (`ClusteringPrefix.Serializer`, `ClusteringBoundOrBoundary.Serializer`).
//!
//! Values come in blocks of 32, each behind an unsigned vint of two bits a value: the lower says
//! "empty", the higher "null". The others follow, bare if of fixed length, else behind their
//! length.

use super::error::{EncodeError, Problem};
use crate::clustering::{BoundKind, BoundRef, ClusteringBuilder, ClusteringRef};
use crate::layout::Layout;
use types::{ReadError, Reader, WriteBytes};

const BLOCK: usize = 32;

/// Writes the values of a row's clustering; their number is that of the table's clustering columns.
pub fn write_clustering(
    layout: &Layout,
    values: ClusteringRef<'_>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let mut columns = layout.clustering.iter().enumerate();
    let mut rest = values.iter();
    let mut left = values.len();
    if left > layout.clustering.len() {
        return Err(EncodeError::ClusteringLength(left));
    }
    while left > 0 {
        let block = left.min(BLOCK);
        let header = rest.clone().take(block).enumerate().fold(0u64, |header, (at, value)| {
            header | value.map_or(2, |value| u64::from(value.is_empty())) << (2 * at)
        });
        out.put_uvint(header);
        for (value, (position, column)) in rest.by_ref().zip(columns.by_ref()).take(block) {
            let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
            match column.ty.fixed_length() {
                None => out.put_vint_bytes(value),
                Some(length) if length == value.len() => out.put(value),
                Some(_) => return Err(EncodeError::ClusteringValue(position)),
            }
        }
        left -= block;
    }
    Ok(())
}

/// Reads `count` values, at most as many as the table has clustering columns, after those in `out`.
pub fn read_clustering(
    layout: &Layout,
    count: usize,
    reader: &mut Reader<'_>,
    out: &mut ClusteringBuilder,
) -> Result<(), ReadError> {
    let mut header = 0;
    for (position, column) in layout.clustering.iter().take(count).enumerate() {
        if position % BLOCK == 0 {
            header = reader.uvint()?;
        }
        match header >> (2 * (position % BLOCK)) & 3 {
            0 => out.push(Some(match column.ty.fixed_length() {
                Some(length) => reader.bytes(length)?,
                None => reader.vint_bytes()?,
            })),
            1 => out.push(Some(&[])),
            _ => out.push(None),
        }
    }
    Ok(())
}

/// Writes a bound: kind, number of values (`u16`), values.
pub fn write_bound(
    layout: &Layout,
    bound: BoundRef<'_>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    out.put_u8(bound.kind.ordinal());
    // A table has no more clustering columns than columns.
    out.put_u16(bound.values.len() as u16);
    write_clustering(layout, bound.values, out)
}

/// Reads a bound or boundary.
pub fn read_bound<'o>(
    layout: &Layout,
    reader: &mut Reader<'_>,
    out: &'o mut ClusteringBuilder,
) -> Result<BoundRef<'o>, Problem> {
    let ordinal = reader.u8()?;
    let kind = BoundKind::from_ordinal(ordinal).filter(|kind| kind.is_start() || kind.is_end());
    let kind = kind.ok_or(Problem::BoundKind(ordinal))?;
    let count = reader.u16()?;
    if usize::from(count) > layout.clustering.len() {
        return Err(Problem::BoundLength(count));
    }
    out.clear();
    read_clustering(layout, usize::from(count), reader, out)?;
    Ok(BoundRef::new(kind, out.finish()))
}
