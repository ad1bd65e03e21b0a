//! The SSTables that a flush or a compaction writes, one after the other, as one transaction.
//!
//! Outputs end by size, level or shard of the ring. Each output goes to the directory of its part
//! of the ring (`Node::places_of`).

use std::path::PathBuf;
use std::sync::Arc;

use env::Class;
use rows::codec::PlainRow;
use rows::{ClusteringRef, Deletion, RowRef, Unfiltered};
use schema::Table;
use sstable::descriptor::Component;
use sstable::writer::WriterOptions;

use super::choice::Split;
use super::ring;
use super::splitter::Splitter;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::KeyRef;
use crate::node::{Node, NodeTable};
use crate::output::Output;
use crate::sstables::SSTable;
use crate::transaction::{Place, Transaction, remove_descriptor};

/// To return where there is no output would lose rows that are then taken for written.
const STARTED: &str = "rows are written to a partition that was started";

/// The operation that frees memory, in the name of its transaction.
pub(crate) const FLUSH: &str = "flush";

/// What is being written.
pub(crate) struct Outputs<'a> {
    node: &'a Node,
    engine: &'a Engine,
    table: &'a Arc<Table>,
    node_table: &'a NodeTable,
    operation: &'static str,
    /// The directories of the parts of the ring, in their order.
    pub places: Vec<PathBuf>,
    /// The one that is written to.
    place: usize,
    splitter: Splitter,
    options: WriterOptions,
    transaction: Option<Transaction>,
    current: Option<Output>,
    done: Vec<Place>,
    /// Of each complete output the bytes of data before compression.
    lengths: Vec<u64>,
    /// Bytes of data of complete outputs, before their chunks are padded.
    written: u64,
}

impl<'a> Outputs<'a> {
    /// Of a table; nothing is created before the first partition.
    pub async fn new(
        node: &'a Node,
        engine: &'a Engine,
        (table, node_table): (&'a Arc<Table>, &'a NodeTable),
        operation: &'static str,
        splitter: Splitter,
        options: WriterOptions,
    ) -> Result<Self, StorageError> {
        Ok(Self {
            node,
            engine,
            table,
            node_table,
            operation,
            places: node.places_of(engine, table).await?,
            place: 0,
            splitter,
            options,
            transaction: None,
            current: None,
            done: Vec::new(),
            lengths: Vec::new(),
            written: 0,
        })
    }

    /// Bytes of data written.
    pub fn written(&self) -> u64 {
        let current = self.current.as_ref().map_or(0, Output::stored_length);
        self.written + current
    }

    async fn create(&mut self) -> Result<(), StorageError> {
        let env = self.engine.env();
        let descriptor = self.node.next_descriptor(self.engine, self.node_table);
        let directory = self.places.get(self.place).cloned();
        let directory = directory.expect("there is a directory for each part of the ring");
        assert!(self.current.is_none(), "an output is complete before the next one begins");
        match &mut self.transaction {
            Some(transaction) => transaction.add(&directory, &descriptor).await?,
            none => {
                *none =
                    Some(Transaction::begin(env, &directory, self.operation, &descriptor).await?);
            }
        }
        self.done.push((directory.clone(), descriptor));
        let mut options = self.options.clone();
        options.level = self.splitter.level() as i32;
        let class = if self.operation == FLUSH { Class::Flush } else { Class::Compaction };
        let output =
            Output::create(self.engine, class, self.table, &directory, descriptor, options).await?;
        self.current = Some(output);
        Ok(())
    }

    async fn complete(&mut self) -> Result<(), StorageError> {
        if let Some(output) = self.current.take() {
            self.written += output.stored_length();
            self.lengths.push(output.uncompressed_length());
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
        let current = self.current.as_ref();
        let stored = current.map_or(0, Output::stored_length);
        let is_empty = current.is_none_or(|output| output.partitions() == 0);
        let place = ring::shard_of(key.token, self.places.len() as u32) as usize;
        let moves = std::mem::replace(&mut self.place, place) != place && !is_empty;
        if self.splitter.cuts(key.token, stored, is_empty) || moves {
            self.complete().await?;
        }
        if self.current.is_none() {
            self.create().await?;
        }
        let output = self.current.as_mut().expect("an output was created for the partition");
        output.start(key.bytes, deletion, static_row)
    }

    /// The next partition starts an SSTable of level 0.
    pub async fn cut(&mut self) -> Result<(), StorageError> {
        self.complete().await?;
        self.splitter = Splitter::new(Split::None, 0);
        Ok(())
    }

    /// What is being written, and what follows, lacks something: it does not count as repaired.
    pub fn unrepaired(&mut self) {
        self.options.repaired_at = 0;
        if let Some(output) = &mut self.current {
            output.unrepaired();
        }
    }

    /// Appends to the partition.
    pub async fn append(&mut self, unfiltered: Unfiltered<'_>) -> Result<(), StorageError> {
        let output = self.current.as_mut().expect(STARTED);
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
        let output = self.current.as_mut().expect(STARTED);
        output.append_plain(place, row, bytes)?;
        output.drain().await?;
        Ok(())
    }

    /// Ends the partition.
    pub async fn end_partition(&mut self) -> Result<(), StorageError> {
        let output = self.current.as_mut().expect(STARTED);
        output.end()?;
        output.drain().await?;
        Ok(())
    }

    /// Completes the last one, makes it durable and opens all.
    pub async fn finish(
        &mut self,
        table: &Table,
        epoch: u64,
    ) -> Result<Vec<Arc<SSTable>>, StorageError> {
        self.complete().await?;
        let env = self.engine.env();
        let mut opened = Vec::with_capacity(self.done.len());
        assert_eq!(self.lengths.len(), self.done.len(), "all outputs that were begun are complete");
        for ((directory, descriptor), written) in self.done.iter().zip(&self.lengths) {
            let number = self.node.numbers.next();
            let counter = table.is_counter();
            let mut new = SSTable::open(env, directory, descriptor, number, counter).await?;
            // What the disk gives back is not ours to trust, even of what was written just now.
            if new.table.uncompressed_length() != *written {
                let found = new.table.uncompressed_length();
                let what = format!("wrote {written} bytes of data, but the file has {found}");
                return Err(StorageError::corrupt(new.path(&Component::Data), what));
            }
            new.epoch = epoch;
            opened.push(Arc::new(new));
        }
        Ok(opened)
    }

    /// What is written becomes part of the table, and `removed` goes. The transaction is to be
    /// finished when the files of those are gone.
    pub async fn commit(&mut self, removed: &[Place]) -> Result<(), StorageError> {
        match &mut self.transaction {
            Some(transaction) => transaction.commit(removed).await,
            None if removed.is_empty() => Ok(()),
            None => {
                let env = self.engine.env();
                let removal = Transaction::remove(env, self.operation, removed).await?;
                self.transaction = Some(removal);
                Ok(())
            }
        }
    }

    /// The transaction that was committed, if anything was written or removed.
    pub fn into_transaction(self) -> Option<Transaction> {
        self.transaction
    }

    /// Removes what was written, unless nobody knows whether that was committed.
    pub async fn abandon(self) -> Result<(), StorageError> {
        drop(self.current);
        if self.transaction.as_ref().is_some_and(Transaction::is_in_doubt) {
            return Ok(());
        }
        for (directory, descriptor) in &self.done {
            remove_descriptor(self.engine.env(), directory, descriptor).await?;
        }
        match self.transaction {
            Some(transaction) => transaction.finish().await,
            None => Ok(()),
        }
    }
}
