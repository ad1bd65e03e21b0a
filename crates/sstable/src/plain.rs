//! Partitions whose rows a compaction can take over as they lie ([`rows::codec::PlainRow`]).

use rows::codec::{PlainReader, PlainRow, read_partition_deletion};
use rows::{ClusteringRef, Layout};
use types::Reader;

use crate::table::{Table, format};

/// The rows of one partition after another; keeps its buffers.
#[derive(Debug, Default)]
pub struct PlainPartition {
    reader: PlainReader,
    /// Each with where its clustering ends among `places`.
    rows: Vec<(PlainRow, usize)>,
    /// Their clusterings, packed, one behind the other.
    places: Vec<u8>,
}

impl PlainPartition {
    /// Can those of a table be taken over into one of that layout?
    pub fn fits(table: &Table, layout: &Layout) -> bool {
        PlainReader::fits(&table.header, &table.layout, layout)
    }

    /// Finds the rows of the partition of a key in its bytes, which are all of it; false if not all
    /// of them can be taken over, or there are none.
    pub fn read(&mut self, table: &Table, key: &[u8], bytes: &[u8]) -> bool {
        self.rows.clear();
        self.places.clear();
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
        while !PlainReader::is_end(bytes.get(at..)?) {
            let (row, end) = self.reader.row(&table.layout, &table.header, bytes, at)?;
            self.places.extend_from_slice(self.reader.place().as_packed());
            self.rows.push((row, self.places.len()));
            at = end;
        }
        Some(())
    }

    /// The rows that were found, and where they stand.
    pub fn rows(&self) -> impl Iterator<Item = (ClusteringRef<'_>, &PlainRow)> {
        let mut from = 0;
        self.rows.iter().map(move |(row, end)| {
            let place = self.places.get(std::mem::replace(&mut from, *end)..*end);
            let place = place.expect("the clusterings of the rows are stored without gaps");
            (ClusteringRef::from_packed(place), row)
        })
    }
}
