//! Writing memtables to an SSTable: those of all shards, merged in the order of tokens.
//!
//! All shards' memtables of a table are frozen together. Directories of several disks take an
//! SSTable each. Its statistics name the log's intervals, segment by segment. Its files are
//! complete and durable before its table of contents, and before any shard sees them.
//!
//! A partition that one memtable has, and in which nothing deletes anything, is written without a
//! merge. Others go through the merge of reads.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use env::Env;
use rows::codec::EncodingStats;
use rows::{Deletion, RowRef, Unfiltered};
use schema::Table;
use sstable::compression_params::CompressionParams;
use sstable::compressor::Compressor;
use sstable::descriptor::{Descriptor, Format, Id, NB};
use sstable::statistics::LogPosition;
use sstable::writer::WriterOptions;
use types::Uuid;

use crate::commitlog::Position;
use crate::compaction::{FLUSH, Outputs, Split, Splitter};
use crate::engine::{Engine, FrozenShare};
use crate::error::StorageError;
use crate::flush_pace::FlushPace;
use crate::live_set::LiveSet;
use crate::memtable::{Memtable, MemtableCursor, Partition, PartitionKey, Slot};
use crate::node::{Node, NodeTable};
use crate::options::FlushCompression;
use crate::read::{PartitionCursor, Slices, Source};

/// The directory of a table's files: Cassandra's.
pub fn table_directory(data: &Path, table: &Table) -> PathBuf {
    let name = sstable::descriptor::table_directory(&table.name, u128::from_be_bytes(table.id.0));
    data.join(&table.keyspace).join(name)
}

/// How a table's options say that its files are written.
pub(crate) fn writer_options(engine: &Engine, table: &Table) -> WriterOptions {
    let params = &table.params.compression;
    let compressor =
        params.class.as_ref().and_then(|class| Compressor::parse(class, &params.options).ok()).map(
            |compressor| CompressionParams {
                compressor,
                options: params.options.clone(),
                chunk_length: params.chunk_length,
                min_compress_ratio: params.min_compress_ratio,
            },
        );
    let key_types: Vec<_> = table.partition_key.iter().map(|column| column.ty.clone()).collect();
    WriterOptions {
        layout: Arc::clone(&table.layout),
        key_type: types::key_to_marshal_string(&key_types),
        stats: EncodingStats::NONE,
        compression: compressor,
        filter_chance: table.params.bloom_filter_fp_chance,
        partitions: 1,
        bytes: 0,
        min_index_interval: table.params.min_index_interval.max(1) as u32,
        column_index_bytes: u64::from(engine.options.column_index_bytes),
        log_intervals: Vec::new(),
        host_id: Some(engine.host_id()),
        level: 0,
        repaired_at: 0,
    }
}

/// How what is compressed with the table's compressor is compressed by a flush.
fn compression_of_flush(how: FlushCompression, table: CompressionParams) -> CompressionParams {
    match how {
        FlushCompression::None => CompressionParams::noop(),
        FlushCompression::Fast if !table.compressor.is_fast() => CompressionParams::default(),
        FlushCompression::Fast | FlushCompression::Table => table,
    }
}

impl Node {
    /// A name for the next file of a table.
    pub(crate) fn next_descriptor(&self, engine: &Engine, table: &NodeTable) -> Descriptor {
        let id = match engine.options.uuid_identifiers {
            true => {
                let env = engine.env();
                let id = Uuid::from_unix_micros(env.unique_micros(), env.random_u64());
                Id::Uuid(u128::from_be_bytes(id.to_bytes()))
            }
            false => {
                let generation = table.next_generation.get();
                table.next_generation.set(generation + 1);
                Id::Sequence(generation)
            }
        };
        Descriptor { version: NB, id, format: Format::Big }
    }

    /// Writes what the shards gave to a flush; the table's new set of files.
    pub(crate) async fn write_memtables(
        &self,
        engine: &Rc<Engine>,
        table: &Arc<Table>,
        node_table: &NodeTable,
        shares: Vec<FrozenShare>,
    ) -> Result<Arc<LiveSet>, StorageError> {
        let mut intervals: Vec<_> = shares
            .iter()
            .flat_map(|share| share.intervals.iter())
            .map(|(from, to)| (log_position(*from), log_position(*to)))
            .collect();
        intervals.extend(self.replayed_intervals(table));
        intervals.sort();
        let are_stretches = intervals.iter().all(|(from, to)| from <= to);
        assert!(are_stretches, "an SSTable's parts of the log end at or after their starts");
        let memtables: Vec<Arc<Memtable>> =
            shares.into_iter().flat_map(|share| share.memtables).collect();
        let mut options = writer_options(engine, table);
        options.partitions = memtables.iter().map(|memtable| memtable.len() as u64).sum();
        let bytes: u64 = memtables.iter().map(|memtable| memtable.bytes() as u64).sum();
        options.bytes = bytes;
        options.log_intervals = intervals;
        let how = engine.options.flush_compression;
        options.compression = options.compression.map(|of| compression_of_flush(how, of));
        let minima =
            memtables.iter().map(|memtable| memtable.minima()).reduce(EncodingStats::merge);
        options.stats = minima.unwrap_or(EncodingStats::NONE);

        let shards = node_table
            .strategy(table, |strategy| strategy.flush_shards(node_table.flush_bytes.get()));
        let splitter = Splitter::new(Split::Shards(shards), 0);
        let of = (table, node_table);
        let pace = FlushPace::new(self, engine, options.partitions, bytes);
        let mut outputs = Outputs::new(self, engine, of, FLUSH, splitter, options).await?;
        let written = async {
            write_all(engine, table, &memtables, &mut outputs, pace).await?;
            let new = outputs.finish(table, node_table.epoch.get() + 1).await?;
            for sstable in &new {
                self.back_up(engine, table, sstable).await?;
            }
            outputs.commit(&[]).await?;
            Ok::<_, StorageError>(new)
        };
        let new = match written.await {
            Ok(new) => new,
            Err(error) => {
                // It is tried again, and what is left takes space.
                let _ = outputs.abandon().await;
                return Err(error);
            }
        };
        if let Some(transaction) = outputs.into_transaction() {
            // The SSTables are there. A log that stays is one that the next start ends.
            let _ = transaction.finish().await;
        }
        let bytes = new.iter().map(|sstable| sstable.bytes_on_disk).sum::<u64>();
        self.stats.flushed_bytes.set(self.stats.flushed_bytes.get() + bytes);
        if !new.is_empty() {
            node_table.flushed(new.iter().map(|sstable| sstable.table.data_length).sum());
        }
        Ok(node_table.live.borrow().with(&[], new))
    }

    /// The intervals of what was replayed into a table's memtables: in segments of earlier lives,
    /// of any shard.
    fn replayed_intervals(&self, table: &Table) -> Vec<(LogPosition, LogPosition)> {
        let replayed = self.replayed.borrow();
        let segments = replayed.iter().filter(|(_, tables)| tables.contains(&table.id));
        let whole = |(segment, _): (&i64, _)| {
            let at = |offset| LogPosition { segment: *segment, offset };
            (at(0), at(i32::MAX))
        };
        segments.map(whole).collect()
    }

    /// The directories for a table's new files, one for each of as many equal parts of the ring
    /// (`DiskBoundaries`), so that all of a partition is on one disk; they are made durable where
    /// they are new.
    pub(crate) async fn places_of(
        &self,
        engine: &Engine,
        table: &Table,
    ) -> Result<Vec<PathBuf>, StorageError> {
        let env = engine.env();
        let disallowed = self.table(table.id).disallowed.borrow().clone();
        let mut places = Vec::new();
        for data in &engine.options.data_directories {
            let directory = table_directory(data, table);
            if disallowed.contains(&directory) {
                continue;
            }
            let failed = |e| StorageError::io("cannot create", &directory, e);
            if !env.exists(&directory).await.map_err(failed)? {
                env.create_dir_all(&directory).await.map_err(failed)?;
                sync_parents(env, data, &directory).await?;
            }
            places.push(directory);
        }
        match places.is_empty() {
            true => Err(StorageError::corrupt(
                "data_file_directories",
                "no directory is left for the table after disk failures; replace the disk and \
                 restart the node",
            )),
            false => Ok(places),
        }
    }

    /// The first of them: for what is of the table as a whole.
    pub(crate) async fn directory_of(
        &self,
        engine: &Engine,
        table: &Table,
    ) -> Result<PathBuf, StorageError> {
        let places = self.places_of(engine, table).await?;
        let none = || {
            StorageError::corrupt(
                "data_file_directories",
                "no directory is left for the table after disk failures; replace the disk and \
                 restart the node",
            )
        };
        places.into_iter().next().ok_or_else(none)
    }
}

/// Makes the name of a table's directory durable.
pub(crate) async fn sync_parents(
    env: &Env,
    data: &Path,
    directory: &Path,
) -> Result<(), StorageError> {
    for parent in [directory.parent(), Some(data)].into_iter().flatten() {
        let synced = env.sync_dir(parent).await;
        synced.map_err(|e| StorageError::io("cannot sync", parent, e))?;
    }
    Ok(())
}

fn log_position(position: Position) -> LogPosition {
    LogPosition { segment: position.segment, offset: position.offset as i32 }
}

async fn write_all(
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
