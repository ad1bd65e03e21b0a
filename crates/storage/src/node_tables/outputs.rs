//! The SSTables that a flush or a compaction writes, one after the other, as one transaction.
//!
//! Outputs end by size, level or shard of the ring. Each output goes to the directory of its part
//! of the ring (`NodeTables::places_of`).
//!
//! A [`Division`] writes two rows of outputs side by side in one pass.

use std::path::PathBuf;
use std::sync::Arc;

use env::Class;
use rows::codec::{EncodingStats, PlainRow};
use rows::{ClusteringRef, Deletion, RowRef, Unfiltered};
use schema::Table;
use sstable::compression_params::CompressionParams;
use sstable::compressor::Compressor;
use sstable::descriptor::Component;
use sstable::writer::WriterOptions;
use types::{Token, TokenRange, Uuid};

use super::{NodeTable, NodeTables};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::KeyRef;
use crate::repair_status::RepairStatus;
use crate::sstables::{NewSSTables, Output, Place, SSTable};
use crate::strategies::{Split, Splitter, shard_of};

/// To return where there is no output would lose rows that are then taken for written.
const STARTED: &str = "rows are written to a partition that was started";

/// The operation that frees memory, in the name of its transaction.
pub(crate) const FLUSH: &str = "flush";

/// How a table's options say that its files are written.
///
/// # Errors
/// If its compressor is one that this release does not know: to write without it would change what
/// the table's files are in silence.
pub(crate) fn writer_options(
    engine: &Engine,
    table: &Table,
) -> Result<WriterOptions, StorageError> {
    let key_types: Vec<_> = table.partition_key.iter().map(|column| column.ty.clone()).collect();
    Ok(WriterOptions {
        version: engine.options.sstable_version,
        layout: Arc::clone(&table.layout),
        key_type: types::key_to_marshal_string(&key_types),
        stats: EncodingStats::NONE,
        compression: compression_of(table)?,
        filter_chance: table.params.bloom_filter_fp_chance,
        partitions: 1,
        bytes: 0,
        min_index_interval: table.params.min_index_interval.max(1) as u32,
        column_index_bytes: u64::from(engine.options.column_index_bytes),
        log_intervals: Vec::new(),
        host_id: Some(engine.host_id()),
        level: 0,
        repaired_at: 0,
        pending_repair: None,
    })
}

fn compression_of(table: &Table) -> Result<Option<CompressionParams>, StorageError> {
    let params = &table.params.compression;
    let Some(class) = &params.class else { return Ok(None) };
    let compressor = Compressor::parse(class, &params.options);
    let compressor = compressor.map_err(|error| StorageError::UnusableOptions {
        table: format!("{}.{}", table.keyspace, table.name),
        what: format!(
            "cannot write SSTables with compression class {class}: {error}; set another one with \
             ALTER TABLE"
        ),
    })?;
    Ok(Some(CompressionParams {
        compressor,
        options: params.options.clone(),
        chunk_length: params.chunk_length,
        min_compress_ratio: params.min_compress_ratio,
    }))
}

/// Partitions in some ranges and the others, written apart.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    /// Normalized.
    pub ranges: Vec<TokenRange>,
    /// The state of what is in them.
    pub inside: RepairStatus,
    /// The state of the rest.
    pub outside: RepairStatus,
}

/// An output under way, and where the next begins.
struct Lane {
    /// The directory that is written to, by its place among them.
    place: usize,
    splitter: Splitter,
    /// The state of its outputs.
    status: RepairStatus,
    /// With its place among all outputs.
    current: Option<(usize, Output)>,
}

/// One lane, or two of which the first has what is in ranges.
struct Lanes {
    all: Vec<Lane>,
    inside: Vec<TokenRange>,
    /// The one that is written to.
    turn: usize,
}

impl Lanes {
    fn current(&mut self) -> &mut Lane {
        self.all.get_mut(self.turn).expect("outputs have the lane that they write to")
    }

    /// Turns to the lane of a token.
    fn turn_to(&mut self, token: Token) {
        if self.all.len() > 1 {
            self.turn = usize::from(!TokenRange::any_contains(&self.inside, token));
        }
    }
}

impl Lane {
    fn output(&mut self) -> &mut Output {
        &mut self.current.as_mut().expect(STARTED).1
    }
}

/// What is being written.
pub(crate) struct Outputs<'a> {
    tables: &'a NodeTables,
    engine: &'a Engine,
    table: &'a Arc<Table>,
    node_table: &'a NodeTable,
    new: NewSSTables,
    /// The directories of the parts of the ring, in their order.
    places: Vec<PathBuf>,
    /// The partition that was started last.
    last: Option<Token>,
    options: WriterOptions,
    lanes: Lanes,
    /// Of each output the bytes of data before compression, once it is complete.
    lengths: Vec<Option<u64>>,
    /// Bytes of data of complete outputs, before their chunks are padded.
    written: u64,
}

impl<'a> Outputs<'a> {
    /// Of a table; nothing is created before the first partition.
    pub async fn new(
        tables: &'a NodeTables,
        engine: &'a Engine,
        (table, node_table): (&'a Arc<Table>, &'a NodeTable),
        operation: &'static str,
        splitter: Splitter,
        options: WriterOptions,
    ) -> Result<Self, StorageError> {
        let status = RepairStatus::of(options.repaired_at, options.pending_repair);
        let lane = Lane { place: 0, splitter, status, current: None };
        Ok(Self {
            tables,
            engine,
            table,
            node_table,
            new: NewSSTables::new(engine.env(), operation),
            places: tables.places_of(engine, table).await?,
            last: None,
            options,
            lanes: Lanes { all: vec![lane], inside: Vec::new(), turn: 0 },
            lengths: Vec::new(),
            written: 0,
        })
    }

    /// Writes what is in ranges apart from the rest; to be said before anything is written.
    pub fn divide(&mut self, division: &Division) {
        assert!(self.lengths.is_empty(), "a division is known before its first partition");
        let splitter = self.lanes.current().splitter.clone();
        let side = |status| Lane { place: 0, splitter: splitter.clone(), status, current: None };
        let all = vec![side(division.inside), side(division.outside)];
        self.lanes = Lanes { all, inside: division.ranges.clone(), turn: 0 };
    }

    /// Bytes of data written.
    pub fn written(&self) -> u64 {
        let current = self.lanes.all.iter().filter_map(|lane| lane.current.as_ref());
        self.written + current.map(|(_, output)| output.stored_length()).sum::<u64>()
    }

    async fn create(&mut self) -> Result<(), StorageError> {
        let (engine, table) = (self.engine, self.table);
        let descriptor = self.tables.next_descriptor(engine, self.node_table);
        let mut options = self.options.clone();
        let lane = self.lanes.current();
        options.level = lane.splitter.level() as i32;
        options.repaired_at = lane.status.repaired_at();
        options.pending_repair = lane.status.session().map(Uuid::to_bytes);
        assert!(lane.current.is_none(), "an output is complete before the next one begins");
        let place = lane.place;
        let directory = self.places.get(place).cloned();
        let directory = directory.expect("there is a directory for each part of the ring");
        self.new.add(&directory, descriptor).await?;
        self.lengths.push(None);
        assert_eq!(self.lengths.len(), self.new.places().len(), "an output has one place");
        let class = if self.new.operation() == FLUSH { Class::Flush } else { Class::Compaction };
        let how = (engine.env(), class);
        let is_direct = engine.options.passes_page_cache;
        let watch = engine.watch(table, directory.join(descriptor.file(&Component::Data)));
        let output = Output::create(how, is_direct, &directory, descriptor, options, watch).await?;
        let number = self.lengths.len() - 1;
        self.lanes.current().current = Some((number, output));
        Ok(())
    }

    /// Completes the output of the lane that is written to.
    async fn complete(&mut self) -> Result<(), StorageError> {
        if let Some((number, output)) = self.lanes.current().current.take() {
            self.written += output.stored_length();
            let length = self.lengths.get_mut(number);
            *length.expect("an output was counted when it was begun") =
                Some(output.uncompressed_length());
            let is_there = output.finish().await?;
            assert!(is_there, "an output has the partition that it was created for");
        }
        Ok(())
    }

    /// Starts a partition, in another output where it is time for one.
    pub async fn start_partition(
        &mut self,
        key: KeyRef<'_>,
        deletion: Deletion,
        static_row: Option<RowRef<'_>>,
    ) -> Result<(), StorageError> {
        let place = shard_of(key.token, self.places.len() as u32) as usize;
        let follows = self.last.replace(key.token) <= Some(key.token);
        assert!(follows, "partitions are written in the order of the ring: {:?}", key.token);
        self.lanes.turn_to(key.token);
        let lane = self.lanes.current();
        let current = lane.current.as_ref().map(|(_, output)| output);
        let stored = current.map_or(0, Output::stored_length);
        let is_empty = current.is_none_or(|output| output.partitions() == 0);
        let moves = std::mem::replace(&mut lane.place, place) != place && !is_empty;
        if lane.splitter.cuts(key.token, stored, is_empty) || moves {
            self.complete().await?;
        }
        if self.lanes.current().current.is_none() {
            self.create().await?;
        }
        self.lanes.current().output().start(key.bytes, deletion, static_row)
    }

    /// The next partition starts an SSTable of level 0.
    pub async fn cut(&mut self) -> Result<(), StorageError> {
        self.complete().await?;
        self.last = None;
        self.lanes.current().splitter = Splitter::new(Split::None, 0);
        Ok(())
    }

    /// What is being written, and what follows, lacks something: it does not count as repaired.
    /// What is pending stays so, as in Cassandra.
    pub fn unrepaired(&mut self) {
        for lane in self.lanes.all.iter_mut().filter(|lane| lane.status.is_repaired()) {
            lane.status = RepairStatus::Unrepaired;
            if let Some((_, output)) = &mut lane.current {
                output.unrepaired();
            }
        }
    }

    /// Appends to the partition.
    pub async fn append(&mut self, unfiltered: Unfiltered<'_>) -> Result<(), StorageError> {
        let output = self.lanes.current().output();
        output.append(unfiltered)?;
        output.drain().await?;
        Ok(())
    }

    /// Appends a row as it lies among these bytes of another SSTable.
    pub async fn append_plain(
        &mut self,
        place: ClusteringRef<'_>,
        row: &PlainRow,
        bytes: &[u8],
    ) -> Result<(), StorageError> {
        let output = self.lanes.current().output();
        output.append_plain(place, row, bytes)?;
        output.drain().await?;
        Ok(())
    }

    /// Ends the partition.
    pub async fn end_partition(&mut self) -> Result<(), StorageError> {
        let output = self.lanes.current().output();
        output.end()?;
        output.drain().await?;
        Ok(())
    }

    /// Completes the last ones, makes them durable and opens all.
    pub async fn finish(&mut self, epoch: u64) -> Result<Vec<Arc<SSTable>>, StorageError> {
        for turn in 0..self.lanes.all.len() {
            self.lanes.turn = turn;
            self.complete().await?;
        }
        let env = self.engine.env();
        let mut opened = Vec::with_capacity(self.new.places().len());
        let lengths: Option<Vec<u64>> = self.lengths.iter().copied().collect();
        let lengths = lengths.expect("all outputs that were begun are complete");
        for ((directory, descriptor), written) in self.new.places().iter().zip(&lengths) {
            let number = self.tables.next_number();
            let counter = self.table.is_counter();
            let new = SSTable::open(env, directory, descriptor, number, counter).await;
            let new = new.map_err(|error| match error {
                // of what was written just now, and is synced, the disk lost a file
                StorageError::Incomplete { path, .. } => {
                    StorageError::corrupt(path, "the file is gone that was just written")
                }
                error => error,
            })?;
            // What the disk gives back is not ours to trust, even of what was written just now.
            if new.table.uncompressed_length() != *written {
                let found = new.table.uncompressed_length();
                let what = format!("wrote {written} bytes of data, but the file has {found}");
                return Err(StorageError::corrupt(new.path(&Component::Data), what));
            }
            opened.push(new.of_epoch(epoch));
        }
        Ok(opened)
    }

    /// What is written becomes part of the table, and `removed` goes.
    ///
    /// # Errors
    /// If that cannot be made durable.
    pub async fn commit(&mut self, removed: &[Place]) -> Result<(), StorageError> {
        self.new.commit(removed).await
    }

    /// The directories of the parts of the ring, in their order.
    pub fn places(&self) -> &[PathBuf] {
        &self.places
    }

    /// What is written, complete.
    pub fn into_new(self) -> NewSSTables {
        let are_complete = self.lengths.iter().all(Option::is_some);
        assert!(are_complete, "outputs are handed over when all of them are complete");
        self.new
    }

    /// Removes what was written, unless nobody knows whether that was committed.
    pub async fn abandon(self) -> Result<(), StorageError> {
        drop(self.lanes);
        self.new.abandon().await
    }
}
