//! Walks the partitions of an SSTable by its data alone, without an index.

use std::sync::Arc;

use rows::{ColumnMap, RowBuilder, RowRef, Unfiltered};
use schema::Table;
use sstable::data::{DataCursor, Next, PartitionStart};

use super::pass::{Keeping, PIECE_BYTES};
use super::sstable::{corrupt, feed};
use crate::error::StorageError;
use crate::sstables::{Files, SSTable};

/// The walk. Chunks are verified as everywhere.
pub(crate) struct DataWalk {
    sstable: Arc<SSTable>,
    table: Arc<Table>,
    map: Option<ColumnMap>,
    data: DataCursor,
    scratch: RowBuilder,
    keeping: Keeping,
}

impl DataWalk {
    /// At the first partition; what is read comes in the table's present layout.
    pub fn new(sstable: &Arc<SSTable>, table: &Arc<Table>) -> Self {
        let map = super::column_map(&sstable.table.layout, table);
        Self {
            sstable: Arc::clone(sstable),
            table: Arc::clone(table),
            map: Some(map).filter(|map| !map.is_identity()),
            data: DataCursor::new(&sstable.table, 0),
            scratch: RowBuilder::new(),
            keeping: Keeping::pass(PIECE_BYTES),
        }
    }

    /// Where it stands in the uncompressed data.
    pub fn position(&self) -> u64 {
        self.data.position()
    }

    /// Is nothing left?
    pub fn is_at_end(&self) -> bool {
        self.position() >= self.sstable.table.uncompressed_length()
    }

    /// Goes on elsewhere, where a partition starts.
    pub fn seek(&mut self, position: u64) {
        self.data.seek(position);
    }

    /// Reads the start of a partition.
    pub async fn start(&mut self, files: &Files) -> Result<PartitionStart, StorageError> {
        let mut start = loop {
            match self.data.partition_start().map_err(|e| corrupt(&self.sstable, e))? {
                Some(start) => break start,
                None => feed(files, &self.sstable, &mut self.data, &self.keeping).await?,
            }
        };
        if let Some(map) = &self.map
            && let Some(row) = start.static_row.take()
        {
            let row = RowRef::from_packed(&row);
            let row = map.apply(row, &self.table.layout, &mut self.scratch);
            start.static_row = row.map(|row| row.as_packed().to_vec());
        }
        Ok(start)
    }

    /// Reads the next row or marker of the partition into `out`, packed. False at the partition's
    /// end.
    pub async fn next(&mut self, files: &Files, out: &mut Vec<u8>) -> Result<bool, StorageError> {
        loop {
            match self.data.next(out).map_err(|e| corrupt(&self.sstable, e))? {
                Next::End => return Ok(false),
                Next::NeedMore => feed(files, &self.sstable, &mut self.data, &self.keeping).await?,
                Next::Unfiltered => {
                    let (Some(map), Unfiltered::Row(row)) =
                        (&self.map, Unfiltered::from_packed(out))
                    else {
                        return Ok(true);
                    };
                    // Where only dropped columns were in a row, nothing is left of it.
                    if let Some(row) = map.apply(row, &self.table.layout, &mut self.scratch) {
                        *out = row.as_packed().to_vec();
                        return Ok(true);
                    }
                }
            }
        }
    }
}
