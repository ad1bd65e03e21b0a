//! Rows of an SSTable that another one can have as they lie there: nothing in them is deleted or
//! expires, and all cells have the timestamp of their row. What is relative to the header is that
//! one timestamp; a compaction need not take the rest apart.

use std::ops::Range;

use super::columns::{ColumnSet, HeaderColumn, PlaceSet};
use super::encode::put_size;
use super::flags::*;
use super::header::Header;
use super::prefix::read_clustering;
use crate::clustering::{ClusteringBuilder, ClusteringRef};
use crate::layout::Layout;
use crate::time::NO_TIMESTAMP;
use types::Reader;

/// A row among the bytes of its partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainRow {
    /// The timestamp of the row and its cells.
    pub timestamp: i64,
    /// How many columns have a cell.
    pub cells: usize,
    flags: u8,
    /// The values of its clustering, as written.
    clustering: Range<usize>,
    /// Which columns it has, and their cells, as written.
    body: Range<usize>,
}

/// Finds them.
#[derive(Clone, Debug, Default)]
pub struct PlainReader {
    present: PlaceSet,
    place: ClusteringBuilder,
}

impl PlainReader {
    /// Can rows of that header and layout be among those of another layout, all of whose columns
    /// its header has, as they lie?
    pub fn fits(header: &Header, from: &Layout, to: &Layout) -> bool {
        let is_simple = |column: &HeaderColumn| !column.complex && column.dropped_at.is_none();
        let columns = header.columns(false);
        let mut places = from.clustering.iter().zip(&to.clustering);
        header.format.has_sizes()
            && to.statics.is_empty()
            && !to.counter
            && from.clustering.len() == to.clustering.len()
            && places.all(|(from, to)| from.ty == to.ty)
            && columns.columns.iter().all(is_simple)
            && *columns == ColumnSet::all(to, false)
    }

    /// Are these the last bytes of a partition, behind its last row?
    pub fn is_end(bytes: &[u8]) -> bool {
        bytes == [END_OF_PARTITION]
    }

    /// The row at `at` in the bytes of its partition, and where it ends; `None` if it is another
    /// kind of row, or none.
    pub fn row(
        &mut self,
        layout: &Layout,
        header: &Header,
        bytes: &[u8],
        at: usize,
    ) -> Option<(PlainRow, usize)> {
        let rest = bytes.get(at..)?;
        let mut reader = Reader::new(rest);
        let flags = reader.u8().ok()?;
        if flags & !HAS_ALL_COLUMNS != HAS_TIMESTAMP {
            return None;
        }
        let clustering_at = at + reader.position();
        self.place.clear();
        read_clustering(layout, layout.clustering.len(), &mut reader, &mut self.place).ok()?;
        let clustering = clustering_at..at + reader.position();
        let size = usize::try_from(reader.uvint().ok()?).ok()?;
        let sized_at = at + reader.position();
        let end = sized_at.checked_add(size).filter(|end| *end <= bytes.len())?;
        let mut reader = Reader::new(bytes.get(sized_at..end)?);
        reader.uvint().ok()?;
        let timestamp = header.stats.timestamp(&mut reader).ok()?;
        let body = sized_at + reader.position()..end;
        let cells = self.cells(header.columns(false), flags, &mut reader)?;
        let is_whole = reader.is_empty() && timestamp != NO_TIMESTAMP;
        is_whole.then_some((PlainRow { timestamp, cells, flags, clustering, body }, end))
    }

    /// Walks over the cells of a row; how many there are.
    fn cells(&mut self, columns: &ColumnSet, flags: u8, reader: &mut Reader<'_>) -> Option<usize> {
        if flags & HAS_ALL_COLUMNS != 0 {
            columns.columns.iter().try_for_each(|column| skip_cell(column.fixed_len, reader))?;
            return Some(columns.len());
        }
        self.present.read_subset(columns.len(), reader).ok()?;
        for place in self.present.iter() {
            let column = columns.columns.get(place);
            let column = column.expect("a subset of the header's columns names none beyond them");
            skip_cell(column.fixed_len, reader)?;
        }
        // the encoder says "all" where it is all
        Some(self.present.len()).filter(|cells| *cells < columns.len())
    }

    /// The clustering of the row that was found last.
    pub fn place(&self) -> ClusteringRef<'_> {
        self.place.finish()
    }
}

/// A cell with the timestamp of its row that neither is deleted nor expires, written as the encoder
/// would.
#[inline]
fn skip_cell(fixed_len: Option<usize>, reader: &mut Reader<'_>) -> Option<()> {
    let flags = reader.u8().ok()?;
    if flags == CELL_ROW_TIMESTAMP | CELL_EMPTY_VALUE {
        return Some(());
    }
    if flags != CELL_ROW_TIMESTAMP {
        return None;
    }
    let length = match fixed_len {
        Some(length) => length,
        None => usize::try_from(reader.uvint().ok()?).ok()?,
    };
    reader.skip(length).ok().filter(|()| length > 0)
}

impl PlainRow {
    /// Writes it under another header; `bytes` are those it was found in.
    pub fn write(&self, header: &Header, bytes: &[u8], previous_size: u64, out: &mut Vec<u8>) {
        let part = |range: &Range<usize>| {
            let part = bytes.get(range.clone());
            part.expect("a plain row is written from the bytes it was found in")
        };
        out.push(self.flags);
        out.extend_from_slice(part(&self.clustering));
        let body = part(&self.body);
        put_size(header.stats.timestamp_size(self.timestamp) + body.len(), previous_size, out);
        header.stats.put_timestamp(self.timestamp, out);
        out.extend_from_slice(body);
    }
}
