//! Partitions whose rows a compaction can take over as they lie ([`rows::codec::PlainRow`]).

use rows::codec::{PlainReader, PlainRow, read_partition_deletion};
use rows::{ClusteringRef, Layout};
use types::Reader;

use crate::table::{Table, format};

/// `END_OF_PARTITION` alone.
const END: u8 = 0x01;

/// The rows of one partition after another; keeps its buffers.
#[derive(Debug, Default)]
pub struct PlainPartition {
    reader: PlainReader,
    rows: Vec<PlainRow>,
}

impl PlainPartition {
    /// Can those of a table be taken over into one of that layout?
    pub fn fits(table: &Table, layout: &Layout) -> bool {
        PlainReader::fits(&table.header, &table.layout, layout)
    }

    /// Finds the rows of the partition of a key in its bytes, which are all of it; false if not all of them can be taken over,
    /// or there are none.
    pub fn read(&mut self, table: &Table, key: &[u8], bytes: &[u8]) -> bool {
        self.rows.clear();
        self.read_all(table, key, bytes).is_some() && !self.rows.is_empty()
    }

    fn read_all(&mut self, table: &Table, key: &[u8], bytes: &[u8]) -> Option<()> {
        let mut reader = Reader::new(bytes);
        let is_key = reader.short_bytes().ok()? == key;
        let format = format(table.descriptor.version);
        let deletion = read_partition_deletion(format, &mut reader).ok()?;
        if !is_key || !deletion.is_live() {
            return None;
        }
        let mut at = reader.position();
        while bytes.get(at..)? != [END] {
            let (row, end) = self.reader.row(&table.layout, &table.header, bytes, at)?;
            self.rows.push(row);
            at = end;
        }
        Some(())
    }

    /// How many rows were found.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Were none?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A row that was found, and where it stands; the bytes and the table as they were given to [`Self::read`].
    pub fn row(
        &mut self,
        number: usize,
        table: &Table,
        bytes: &[u8],
    ) -> Option<(&PlainRow, ClusteringRef<'_>)> {
        let row = self.rows.get(number)?;
        Some((row, self.reader.place(&table.layout, row, bytes)))
    }
}
