//! Writing memtables to SSTables: those of all shards, merged in the order of tokens.
//!
//! A partition that one memtable has, and in which nothing deletes anything, is written without a
//! merge. Others go through the merge of reads.

use std::rc::Rc;
use std::sync::Arc;

use rows::{Deletion, RowRef, Unfiltered};
use schema::Table;
use sstable::compression_params::CompressionParams;

use super::pace::FlushPace;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::{Memtable, MemtableCursor, Partition, PartitionKey, Slot};
use crate::node_tables::Outputs;
use crate::options::FlushCompression;
use crate::read::{PartitionCursor, Slices, Source};

/// How what is compressed with the table's compressor is compressed by a flush.
pub(super) fn compression_of_flush(
    how: FlushCompression,
    table: CompressionParams,
) -> CompressionParams {
    match how {
        FlushCompression::None => CompressionParams::noop(),
        FlushCompression::Fast if !table.compressor.is_fast() => CompressionParams::default(),
        FlushCompression::Fast | FlushCompression::Table => table,
    }
}

/// Writes all that memtables hold of a table.
pub(super) async fn write_all(
    engine: &Rc<Engine>,
    table: &Arc<Table>,
    memtables: &[Arc<Memtable>],
    outputs: &mut Outputs<'_>,
    mut pace: FlushPace<'_>,
) -> Result<(), StorageError> {
    let slots: Vec<_> =
        memtables.iter().map(|memtable| Slot::frozen(Arc::clone(memtable))).collect();
    let mut walks: Vec<_> = memtables.iter().map(|memtable| memtable.walk().peekable()).collect();
    let held: usize = memtables.iter().map(|memtable| memtable.len()).sum();
    let (mut written, mut last) = (0, None::<&PartitionKey>);
    loop {
        let heads = walks.iter_mut().zip(memtables);
        let heads = heads.filter_map(|(walk, memtable)| Some((*walk.peek()?, memtable)));
        let Some(((key, partition), memtable)) = heads.min_by_key(|((key, _), _)| *key) else {
            assert_eq!(written, held, "a flush writes all partitions that the memtables hold");
            return Ok(());
        };
        assert!(last < Some(key), "a flush writes partitions in the order of the ring");
        last = Some(key);
        let mut holders = 0;
        for walk in &mut walks {
            // of one memtable alone it is the key itself
            let is_there =
                |(other, _): &(&PartitionKey, _)| std::ptr::eq(*other, key) || *other == key;
            holders += usize::from(walk.next_if(is_there).is_some());
        }
        assert!(holders > 0, "a partition that is flushed is one that a memtable holds");
        written += holders;
        if holders == 1 && partition.is_plain() && !memtable.is_mapped_to(table) {
            write_plain(engine, key, partition, outputs, &mut pace).await?;
        } else {
            let open = |slot| MemtableCursor::open(slot, key.as_ref(), table, Slices::all(false));
            let sources =
                slots.iter().filter_map(open).map(|c| Source::Memtable(Box::new(c))).collect();
            let mut partition =
                PartitionCursor::merge(&engine.files, Arc::clone(table), sources, false);
            write_partition(engine, key, &mut partition, outputs, &mut pace).await?;
        }
        pace.partition_ended();
        engine.env().maybe_yield().await;
    }
}

/// Writes a partition that one memtable has, and nothing of which deletes anything else of it.
async fn write_plain(
    engine: &Engine,
    key: &PartitionKey,
    partition: &Partition,
    outputs: &mut Outputs<'_>,
    pace: &mut FlushPace<'_>,
) -> Result<(), StorageError> {
    outputs.start_partition(key.as_ref(), Deletion::LIVE, partition.static_row()).await?;
    let rows = partition.rows().iter().map(|row| RowRef::from_packed(row));
    for row in rows.filter(|row| !row.is_empty()) {
        outputs.append(Unfiltered::Row(row)).await?;
        pace.at(outputs.written()).await;
        engine.env().maybe_yield().await;
    }
    outputs.end_partition().await?;
    pace.at(outputs.written()).await;
    Ok(())
}

async fn write_partition(
    engine: &Engine,
    key: &PartitionKey,
    partition: &mut PartitionCursor,
    outputs: &mut Outputs<'_>,
    pace: &mut FlushPace<'_>,
) -> Result<(), StorageError> {
    let (deletion, static_row) = (partition.deletion(), partition.static_row());
    outputs.start_partition(key.as_ref(), deletion, static_row).await?;
    while let Some(unfiltered) = partition.next().await? {
        outputs.append(unfiltered).await?;
        pace.at(outputs.written()).await;
        engine.env().maybe_yield().await;
    }
    outputs.end_partition().await?;
    pace.at(outputs.written()).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use sstable::compressor::Compressor;

    use super::*;

    #[test]
    fn a_flush_keeps_up_with_writes_unless_it_is_told_otherwise() {
        let with = |compressor| CompressionParams {
            compressor,
            chunk_length: 64 << 10,
            ..CompressionParams::default()
        };
        let of = |how, compressor| {
            let params = compression_of_flush(how, with(compressor));
            (params.compressor, params.chunk_length >> 10)
        };
        use {Compressor as C, FlushCompression as F};
        assert_eq!(of(F::Fast, C::Zstd(3)), (C::Lz4, 16));
        assert_eq!(of(F::Fast, C::Deflate), (C::Lz4, 16));
        assert_eq!(of(F::Fast, C::Snappy), (C::Snappy, 64));
        assert_eq!(of(F::Table, C::Zstd(3)), (C::Zstd(3), 64));
        assert_eq!(of(F::None, C::Lz4), (C::Noop, 4));
    }
}
