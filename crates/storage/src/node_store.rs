//! What a node stores once for all its shards: the set of live SSTables, flushes, compactions. It
//! lives on the first shard; the others ask it by message.
//!
//! `crates/cluster` has the schema, gossip and hints, which live on the first shard too.

use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use schema::{Schema, Table, TableId};

use crate::arrivals::Arriver;
use crate::commitlog::Position;
use crate::compaction::Compactions;
use crate::disk_failures::DiskFailures;
use crate::engine::{Background, Engine};
use crate::error::StorageError;
use crate::flush::Flushes;
use crate::maintenance::{Importer, Snapshots, Truncations, Verifier};
use crate::node_stats::NodeStats;
use crate::node_tables::NodeTables;
use crate::repairs::Repairs;
use crate::sstables::LiveSet;
use crate::start::{Lifecycle, Replay};

/// The part of the engine that the node has once: its components, made and joined together. No
/// component has this.
pub struct NodeStore {
    tables: Rc<NodeTables>,
    failures: Rc<DiskFailures>,
    compactions: Rc<Compactions>,
    flushes: Rc<Flushes>,
    lifecycle: Lifecycle,
    verifier: Rc<Verifier>,
    importer: Importer,
    arriver: Arriver,
    repairs: Rc<Repairs>,
    snapshots: Rc<Snapshots>,
    truncations: Truncations,
    /// Counters for metrics.
    pub stats: Rc<NodeStats>,
}

impl Background for NodeStore {
    fn want_flush(&self, table: TableId) {
        self.flushes.want(table);
    }

    fn memory_is_short(&self) {
        self.flushes.memory_is_short();
    }

    fn inspect(&self, error: &StorageError) {
        self.failures.inspect(error);
    }
}

impl Engine {
    /// Makes this shard the one that owns the node's background work.
    pub fn become_first(self: &Rc<Self>) -> Rc<NodeStore> {
        let node = NodeStore::new(self);
        self.set_background(Rc::clone(&node) as Rc<dyn Background>);
        node
    }

    /// The node's background work; on the first shard only.
    pub fn node(&self) -> Option<Rc<NodeStore>> {
        let background: Rc<dyn Any> = Rc::clone(self.background()?) as Rc<dyn Any>;
        Some(background.downcast().expect("the first shard's background work is the node's"))
    }
}

impl NodeStore {
    fn new(engine: &Rc<Engine>) -> Rc<Self> {
        let stats = Rc::<NodeStats>::default();
        let tables = NodeTables::new(engine);
        let failures = DiskFailures::new(&tables, &stats);
        let compactions = Compactions::new(engine, &tables, &failures, &stats);
        let flushes = Flushes::new(engine, (&tables, &failures), &compactions, &stats);
        let lifecycle = Lifecycle::new((&tables, &failures), &compactions, &flushes);
        let verifier = Verifier::new(&tables, &compactions);
        let importer = Importer::new(&tables, &verifier, &compactions);
        let arriver = Arriver::new(&tables, &verifier, &compactions, &flushes);
        let repairs = Repairs::new(&tables, &compactions, &flushes);
        let snapshots = Snapshots::new(&tables, &flushes);
        let truncations = Truncations::new(&tables, &flushes, &snapshots);
        Rc::new(Self {
            tables,
            failures,
            compactions,
            flushes,
            lifecycle,
            verifier,
            importer,
            arriver,
            repairs,
            snapshots,
            truncations,
            stats,
        })
    }

    /// Compactions, by themselves and for the operator.
    pub fn compactions(&self) -> &Rc<Compactions> {
        &self.compactions
    }

    /// Flushes.
    pub fn flushes(&self) -> &Rc<Flushes> {
        &self.flushes
    }

    /// What failed, and what is not used for it.
    pub fn failures(&self) -> &DiskFailures {
        &self.failures
    }

    /// Verifies SSTables.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Takes SSTables over.
    pub fn importer(&self) -> &Importer {
        &self.importer
    }

    /// Takes in what comes from other nodes.
    pub fn arriver(&self) -> &Arriver {
        &self.arriver
    }

    /// What incremental repair has SSTables do.
    pub fn repairs(&self) -> &Rc<Repairs> {
        &self.repairs
    }

    /// Takes snapshots.
    pub fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// Empties and drops tables.
    pub fn truncations(&self) -> &Truncations {
        &self.truncations
    }

    /// The live SSTables of a table. Who holds them keeps their files from going.
    pub fn live(&self, id: TableId) -> Arc<LiveSet> {
        self.tables.table(id).live()
    }

    /// Writes what all shards hold of a table in memory to an SSTable. True if there was anything.
    ///
    /// # Errors
    /// If the file cannot be written: the memtables stay, and so does what the log has of them; it
    /// is tried again.
    pub async fn flush(&self, id: TableId) -> Result<bool, StorageError> {
        self.flushes.flush(id).await
    }

    /// Why background work failed last, if it did.
    pub fn failure(&self) -> Option<StorageError> {
        self.failures.last()
    }

    /// Gives all shards a schema; each has it when this returns.
    ///
    /// # Errors
    /// If the node is stopping.
    pub async fn set_schema(&self, schema: &Arc<Schema>) -> Result<(), StorageError> {
        self.lifecycle.set_schema(schema).await
    }

    /// Archives the log's segments and restores archived ones. What goes wrong with the first was
    /// perhaps archived before: it is told of, a line each. To be done before the first replay.
    ///
    /// # Errors
    /// If a segment cannot be restored.
    pub async fn restore_log(&self) -> Result<Vec<String>, StorageError> {
        self.lifecycle.restore_log().await
    }

    /// Finds the SSTables of these tables and shows them to all shards.
    ///
    /// # Errors
    /// If a directory cannot be read or a table be opened: a node does not start on half its data.
    pub async fn open_tables<'a>(
        &self,
        tables: impl IntoIterator<Item = &'a Arc<Table>>,
    ) -> Result<(), StorageError> {
        self.lifecycle.open_tables(tables).await
    }

    /// Replays the log's records of the tables that `wanted` names. `truncated` tells up to where
    /// records of a table were truncated.
    ///
    /// # Errors
    /// If a segment cannot be read, or a record of it.
    pub async fn replay(
        &self,
        wanted: &dyn Fn(&Table) -> bool,
        truncated: &BTreeMap<TableId, Position>,
    ) -> Result<Replay, StorageError> {
        self.lifecycle.replay(wanted, truncated).await
    }

    /// Begins a new log on all shards, and then background work. The old segments stay until what
    /// was replayed from them is flushed.
    ///
    /// # Errors
    /// If the log cannot be begun.
    pub async fn begin_log(&self) -> Result<(), StorageError> {
        self.lifecycle.begin_log().await
    }

    /// Stops for good: everything flushed, the log closed and empty.
    ///
    /// # Errors
    /// If something cannot be flushed: it is still in the log.
    pub async fn drain(&self) -> Result<(), StorageError> {
        self.lifecycle.drain().await
    }
}
