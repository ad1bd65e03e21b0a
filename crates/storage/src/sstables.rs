//! The node's SSTables of a table, as shards read them.

use std::rc::Rc;
use std::sync::Arc;

use rows::{Deletion, RowRef, Unfiltered};
use schema::Table;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::KeyRef;
use crate::read::Slices;

/// One SSTable.
#[derive(Debug)]
pub enum SSTable {}

/// The live SSTables of a table: an immutable snapshot, delivered to every shard by message.
#[derive(Debug, Default)]
pub struct LiveSet {
    tables: Vec<Arc<SSTable>>,
}

impl LiveSet {
    /// Those that may hold a part of a partition.
    pub(crate) fn candidates<'a>(
        &'a self,
        _key: KeyRef<'a>,
    ) -> impl Iterator<Item = &'a Arc<SSTable>> {
        self.tables.iter()
    }
}

/// Decompressed chunks that a shard keeps.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    _bytes: u64,
}

impl ChunkCache {
    pub fn new(bytes: u64) -> Self {
        Self { _bytes: bytes }
    }
}

/// A cursor over one partition of an SSTable.
pub(crate) enum SSTableCursor {}

impl SSTableCursor {
    pub async fn open(
        _engine: &Engine,
        sstable: &Arc<SSTable>,
        _key: KeyRef<'_>,
        _table: &Arc<Table>,
        _slices: Slices,
    ) -> Result<Option<Self>, StorageError> {
        match **sstable {}
    }

    pub fn head(&self) -> Option<Unfiltered<'_>> {
        match *self {}
    }

    pub fn deletion(&self) -> Deletion {
        match *self {}
    }

    pub fn static_row(&self) -> Option<RowRef<'_>> {
        match *self {}
    }

    pub async fn advance(&mut self) -> Result<(), StorageError> {
        match *self {}
    }
}

#[allow(unused)]
type Unused = Rc<()>;
