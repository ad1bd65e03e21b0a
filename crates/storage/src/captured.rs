//! SSTables that came of a table with change data capture: they go through the commit log and the
//! memtables as other writes do, so that who reads `cdc_raw_directory` learns of them
//! (`CassandraStreamReceiver.sendThroughWritePath`).

use std::rc::Rc;
use std::sync::Arc;

use env::Class;
use rows::{
    Bound, Deletion, Mutation, PartitionUpdate, RangeTombstone, RowBuilder, RowRef, Unfiltered,
    UpdateBuilder,
};
use schema::Table;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::read::DataWalk;
use crate::sstables::SSTable;

/// Rows of a mutation at most (`cassandra.repair.mutation_repair_rows_per_batch`).
const ROWS_MAX: usize = 100;
/// Bytes after which a mutation ends, whatever rows it has.
const BYTES_MAX: usize = 1 << 20;

/// Does what comes of a table go through the commit log?
pub(crate) fn is_captured(engine: &Engine, table: &Table) -> bool {
    let captures = engine.options.log.cdc.as_ref().is_some_and(|cdc| cdc.captures_streams);
    table.params.cdc && captures && !engine.env().planted("stream_passes_cdc_by")
}

/// Writes all that an SSTable has.
///
/// # Errors
/// If it cannot be read, or a mutation is refused: those before it stay.
pub(crate) async fn write_through(
    engine: &Rc<Engine>,
    table: &Arc<Table>,
    sstable: &Arc<SSTable>,
) -> Result<(), StorageError> {
    let mut walk = DataWalk::new(sstable, table);
    let mut packed = Vec::new();
    while !walk.is_at_end() {
        let start = walk.start(&engine.files).await?;
        let mut part = Part::new(table, &start.key);
        part.update.delete_partition(start.deletion);
        if let Some(row) = &start.static_row {
            part.row(RowRef::from_packed(row));
        }
        while walk.next(&engine.files, &mut packed).await? {
            part.add(&Unfiltered::from_packed(&packed));
            if part.is_full() {
                write(engine, part.cut()).await?;
            }
        }
        write(engine, part.cut()).await?;
    }
    Ok(())
}

async fn write(engine: &Engine, update: PartitionUpdate) -> Result<(), StorageError> {
    engine.env().maybe_yield().await;
    if update.is_empty() {
        return Ok(());
    }
    let mutation = Mutation::new(update);
    let owner = engine.owner(mutation.token());
    let applied = engine.shards().call_async(owner, Class::Streaming, |there: Rc<Engine>| {
        // durable once the table is flushed, which is before anybody hears of it
        async move { there.apply(&mutation, true).await.map(drop) }
    });
    applied.await?
}

/// Part of a partition.
struct Part<'a> {
    table: &'a Arc<Table>,
    update: UpdateBuilder,
    scratch: RowBuilder,
    rows: usize,
    bytes: usize,
    /// A range that is deleted and whose end is still to come: it goes with the part in which that
    /// is, whole. What it deletes of a part before is older than the deletion either way.
    open: Option<(Bound, Deletion)>,
}

impl<'a> Part<'a> {
    fn new(table: &'a Arc<Table>, key: &[u8]) -> Self {
        Self {
            table,
            update: UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), key),
            scratch: RowBuilder::new(),
            rows: 0,
            bytes: 0,
            open: None,
        }
    }

    fn row(&mut self, row: RowRef<'_>) {
        self.rows += 1;
        self.bytes += row.as_packed().len();
        self.update.add(row, &mut self.scratch);
    }

    fn add(&mut self, unfiltered: &Unfiltered<'_>) {
        let marker = match unfiltered {
            Unfiltered::Row(row) => return self.row(*row),
            Unfiltered::Marker(marker) => marker,
        };
        let place = marker.bound;
        if let Some((start, deletion)) = self.open.take() {
            let end = place.with_kind(place.kind.end_of()).to_owned();
            self.rows += 1;
            self.bytes += 2 * place.values.as_packed().len();
            self.update.delete_range(RangeTombstone { start, end, deletion });
        }
        if let Some(deletion) = marker.opens(false) {
            self.open = Some((place.with_kind(place.kind.start_of()).to_owned(), deletion));
        }
    }

    fn is_full(&self) -> bool {
        self.rows >= ROWS_MAX || self.bytes >= BYTES_MAX
    }

    /// What there is; what follows is of the same partition.
    fn cut(&mut self) -> PartitionUpdate {
        let layout = Arc::clone(&self.table.layout);
        let next = UpdateBuilder::new(self.table.id.0, layout, self.update.key().as_ref());
        (self.rows, self.bytes) = (0, 0);
        std::mem::replace(&mut self.update, next).finish(&mut self.scratch)
    }
}
