//! Emptying and dropping tables, with the snapshot that `auto_snapshot` takes before.

use std::rc::Rc;
use std::sync::Arc;

use env::sync::Semaphore;
use env::{Class, Env};
use schema::{Table, TableId};

use super::snapshot::{Snapshot, Snapshots};
use crate::commitlog::Position;
use crate::engine::{Engine, FrozenShare};
use crate::error::StorageError;
use crate::flush::{Flushes, sync_logs};
use crate::node_tables::NodeTables;
use crate::sstables::{SSTable, Transaction};

/// Empties and drops tables.
pub struct Truncations {
    tables: Rc<NodeTables>,
    flushes: Rc<Flushes>,
    snapshots: Rc<Snapshots>,
    /// Who ends the segments of all logs at one point holds it.
    cutting: Semaphore,
}

impl Truncations {
    pub(crate) fn new(
        tables: &Rc<NodeTables>,
        flushes: &Rc<Flushes>,
        snapshots: &Rc<Snapshots>,
    ) -> Self {
        Self {
            tables: Rc::clone(tables),
            flushes: Rc::clone(flushes),
            snapshots: Rc::clone(snapshots),
            cutting: Semaphore::new(1),
        }
    }

    /// Empties a table. `record` is to make durable that the log's records of the table up to the
    /// position it is given are void; only then is anything removed. `snapshot` is taken before, if
    /// there is any.
    ///
    /// # Errors
    /// If the memtables cannot be written, the snapshot not be taken or the record not be made.
    pub async fn truncate<E: From<StorageError>>(
        &self,
        id: TableId,
        snapshot: Option<&Snapshot>,
        record: impl AsyncFnOnce(Position) -> Result<(), E>,
    ) -> Result<(), E> {
        let engine = self.tables.engine()?;
        let table = engine.store(id).map_err(E::from)?.table();
        let node_table = self.tables.table(id);
        let _eager = self.flushes.eager();
        let change = node_table.change().await;
        if let Some(aside) = node_table.aside().first() {
            let what = "it is put aside, and its data would return after the truncation; restore \
                        it from a snapshot or remove it, and restart the node";
            let error = StorageError::Refused { path: aside.path.clone(), what: what.to_owned() };
            return Err(E::from(error));
        }
        let flush = self.flushes.next_number();
        let (floor, shares) = self.cut_all(&engine, id, flush).await?;
        let upto: Vec<Position> = shares.iter().map(|share| share.upto).collect();
        let are_below =
            shares.iter().flat_map(|share| &share.intervals).all(|(_, to)| to.segment <= floor);
        assert!(are_below, "what is truncated is in segments up to {floor}");
        let has_log = engine.log().is_some();
        let are_above = upto.iter().all(|upto| !has_log || upto.segment > floor);
        assert!(are_above, "what is written after a truncation is in segments above {floor}");
        // Without a snapshot too: a crash between the record and the removal of the tables would
        // leave the older writes and not the newer ones.
        if shares.iter().any(|share| !share.memtables.is_empty()) {
            sync_logs(&engine).await?;
            self.flushes.write(&engine, &table, &change, shares).await?;
        }
        let gone = node_table.live().tables().to_vec();
        if let Some(snapshot) = snapshot {
            self.snapshots.link(&engine, &table, &gone, snapshot).await?;
        }
        let upto_floor = Position { segment: floor, offset: i32::MAX as u32 };
        let transaction = if engine.env().planted("truncation_recorded_late") {
            let transaction = remove_all(engine.env(), &gone).await?;
            record(upto_floor).await?;
            transaction
        } else {
            record(upto_floor).await?;
            remove_all(engine.env(), &gone).await?
        };
        engine.env().mark("truncate.recorded");
        let empty = change.clear();
        for (shard, upto) in upto.into_iter().enumerate() {
            let live = Arc::clone(&empty);
            let publish = move |engine: &Rc<Engine>| {
                if !engine.env().planted("row_cache_survives_truncate") {
                    engine.memtables().forget_rows(id);
                }
                engine.memtables().flushed(id, flush, live, upto);
            };
            engine.shards().call(shard, publish).await.map_err(StorageError::from)?;
        }
        self.tables.remove_later(&engine, id, gone, transaction);
        Ok(())
    }

    /// Ends the log's segments and the table's memtables on all shards; the largest id of a segment
    /// with what the memtables hold.
    async fn cut_all(
        &self,
        engine: &Rc<Engine>,
        id: TableId,
        flush: u64,
    ) -> Result<(i64, Vec<FrozenShare>), StorageError> {
        let _cutting = self.cutting.acquire(1).await;
        let floor = match self.prepare_segments(engine).await {
            Ok(floor) => floor,
            Err(error) => {
                for shard in 0..engine.shards().count() {
                    let release = |engine: &Rc<Engine>| {
                        if let Some(log) = engine.log() {
                            log.release();
                        }
                    };
                    engine.shards().call(shard, release).await?;
                }
                return Err(error);
            }
        };
        let mut shares = Vec::new();
        for shard in 0..engine.shards().count() {
            let cut = move |engine: &Rc<Engine>| engine.memtables().cut(id, flush, floor);
            shares.push(engine.shards().call(shard, cut).await??);
        }
        Ok((floor, shares))
    }

    /// Lets every shard's log have a segment ready whose id is above the one returned, which is
    /// above all that were written to.
    async fn prepare_segments(&self, engine: &Rc<Engine>) -> Result<i64, StorageError> {
        let mut floor = 0;
        for shard in 0..engine.shards().count() {
            let next = |engine: &Rc<Engine>| engine.log().map_or(0, |log| log.next_id());
            floor = floor.max(engine.shards().call(shard, next).await?);
        }
        for shard in 0..engine.shards().count() {
            let prepare = move |engine: Rc<Engine>| async move {
                match engine.log() {
                    Some(log) => log.prepare_above(floor).await,
                    None => Ok(()),
                }
            };
            engine.shards().call_async(shard, Class::CommitLog, prepare).await??;
        }
        Ok(floor)
    }

    /// Removes what is left of a table that no shard knows any more.
    ///
    /// # Errors
    /// If the snapshot cannot be taken: the files stay.
    pub async fn drop_table(
        &self,
        table: &Table,
        snapshot: Option<&Snapshot>,
    ) -> Result<(), StorageError> {
        let engine = self.tables.engine()?;
        let node_table = self.tables.table(table.id);
        let change = node_table.change().await;
        let gone = node_table.live().tables().to_vec();
        change.clear();
        if let Some(snapshot) = snapshot {
            self.snapshots.link(&engine, table, &gone, snapshot).await?;
        }
        // the directory itself stays where snapshots are in it
        let transaction = remove_all(engine.env(), &gone).await?;
        self.tables.remove_later(&engine, table.id, gone, transaction);
        Ok(())
    }
}

/// Makes the removal of tables durable.
async fn remove_all(
    env: &Env,
    tables: &[Arc<SSTable>],
) -> Result<Option<Transaction>, StorageError> {
    let removed: Vec<_> = tables.iter().map(|sstable| sstable.place()).collect();
    match removed.is_empty() {
        true => Ok(None),
        false => Transaction::remove(env, "truncate", &removed).await.map(Some),
    }
}
