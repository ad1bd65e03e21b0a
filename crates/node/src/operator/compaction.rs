//! Compaction.

use std::path::Path;

use admin::{
    Answer, AutoCompaction, CompactionOperator, CompactionStats, PastCompaction, PendingTasks,
    Refusal, RunningCompaction, StopWhich, TableName, Thresholds,
};
use sstable::descriptor::Component;
use types::Uuid;

use super::{Operations, failed, ignore_dropped};
use crate::pending_compactions::pending_compactions;

/// Why a threshold is not 0.
const NO_THRESHOLD: &str = "Disabling compaction by setting min_compaction_threshold or max_compaction_threshold to 0 is \
     deprecated, set the compaction strategy option 'enabled' to 'false' instead or use the nodetool command \
     'disableautocompaction'.";
/// A file of a table is named by its keyspace's directory, its table's and its own name.
const NAMING_COMPONENTS: usize = 3;
impl CompactionOperator for Operations {
    async fn compaction_stats(&self) -> Answer<CompactionStats> {
        let node = self.storage()?;
        let schema = self.engine().schema();
        let running = node.compactions().running().into_iter().map(|compaction| {
            let table = schema.table_by_id(&compaction.table);
            let name = |of: fn(&schema::Table) -> &String| table.map(|t| of(t).clone());
            RunningCompaction {
                id: Uuid(u128::from_be_bytes(compaction.id)).to_string(),
                kind: compaction.kind.to_owned(),
                keyspace: name(|table| &table.keyspace).unwrap_or_default(),
                table: name(|table| &table.name).unwrap_or_default(),
                completed: compaction.written.get(),
                total: compaction.total,
                total_compressed: Some(compaction.total),
                unit: "bytes".to_owned(),
                sstables: compaction.sstables as u64,
                directory: compaction.directory.display().to_string(),
            }
        });
        let mut pending = Vec::new();
        for (id, tasks) in pending_compactions(&self.shard).await.map_err(failed)? {
            let Ok(store) = self.engine().store(id) else { continue };
            let table = store.table();
            let (keyspace, table) = (table.keyspace.clone(), table.name.clone());
            pending.push(PendingTasks { keyspace, table, tasks });
        }
        let completed = node.stats.compactions.get();
        let uptime = self.env.now().since(self.started).as_secs_f64();
        let rate = if uptime > 0.0 { completed as f64 / uptime } else { 0.0 };
        Ok(CompactionStats {
            concurrent: node.compactions().concurrent() as u64,
            pending,
            completed,
            compacted_bytes: node.stats.compacted_bytes.get(),
            compacted_compressed_bytes: node.stats.compacted_bytes.get(),
            aborted: node.stats.failures.get(),
            fifteen_minute_rate_per_second: rate,
            mean_rate_per_second: rate,
            throughput_bytes_per_second: node.compactions().throughput(),
            running: running.collect(),
            ..CompactionStats::default()
        })
    }

    async fn compaction_history(&self) -> Answer<Vec<PastCompaction>> {
        let past = |row: cluster::CompactionRow| PastCompaction {
            id: row.id,
            keyspace: row.keyspace,
            table: row.table,
            compacted_at_millis: row.compacted_at,
            in_bytes: row.bytes_in,
            out_bytes: row.bytes_out,
            rows_merged: row.rows_merged,
            properties: row.properties,
        };
        let rows = self.shard.compactions().rows().await.map_err(|e| failed(e.message))?;
        Ok(rows.into_iter().map(past).collect())
    }

    async fn compact(&self, keyspace: &str, tables: &[String], split: bool) -> Answer<()> {
        for table in self.tables(keyspace, tables)? {
            ignore_dropped(self.storage()?.compactions().major(table, split).await)?;
        }
        Ok(())
    }

    async fn compact_files(&self, files: &[String]) -> Answer<()> {
        let node = self.storage()?;
        for (id, store) in self.engine().stores() {
            // Keyspace, table and name say which: files of that name may be in many tables.
            let is_named = |sstable: &storage::SSTable| {
                let path = sstable.path(&Component::Data);
                files.iter().map(|file| Path::new(file.trim())).any(|file| {
                    file.components().count() >= NAMING_COMPONENTS && path.ends_with(file)
                })
            };
            if store.live().tables().iter().any(|sstable| is_named(sstable)) {
                ignore_dropped(node.compactions().merge_these(id, is_named).await.map(drop))?;
            }
        }
        Ok(())
    }

    async fn stop_compactions(&self, which: StopWhich) -> Answer<()> {
        self.storage()?.compactions().stop(|running| match &which {
            StopWhich::Kind(kind) => kind.as_ref().is_none_or(|kind| kind == running.kind),
            StopWhich::Id(id) => Uuid(u128::from_be_bytes(running.id)).to_string() == *id,
        });
        Ok(())
    }

    async fn compaction_throughput(&self) -> Answer<u64> {
        Ok(self.storage()?.compactions().throughput())
    }

    async fn set_compaction_throughput(&self, bytes_per_second: u64) -> Answer<()> {
        self.storage()?.compactions().set_throughput(bytes_per_second);
        Ok(())
    }

    async fn concurrent_compactors(&self) -> Answer<u64> {
        Ok(self.storage()?.compactions().concurrent() as u64)
    }

    async fn set_concurrent_compactors(&self, count: u64) -> Answer<()> {
        self.storage()?.compactions().set_concurrent(count as usize);
        Ok(())
    }

    async fn thresholds(&self, table: &TableName) -> Answer<Thresholds> {
        let unknown = || Refusal::UnknownTable(table.clone());
        let id = self.stored(table).ok_or_else(unknown)?;
        let found = self.storage()?.compactions().thresholds(id).map_err(|_| unknown())?;
        Ok(Thresholds { min: found.0, max: found.1 })
    }

    async fn set_thresholds(&self, table: &TableName, thresholds: Thresholds) -> Answer<()> {
        let id = self.stored(table).ok_or_else(|| Refusal::UnknownTable(table.clone()))?;
        let Thresholds { min, max } = thresholds;
        if min == 0 || max == 0 {
            return Err(failed(NO_THRESHOLD));
        }
        self.storage()?.compactions().set_thresholds(id, (min, max));
        Ok(())
    }

    async fn autocompaction(
        &self,
        keyspace: &str,
        tables: &[String],
    ) -> Answer<Vec<AutoCompaction>> {
        let schema = self.engine().schema();
        let mut found = Vec::new();
        for id in self.tables(keyspace, tables)? {
            let Some(table) = schema.table_by_id(&id) else { continue };
            found.push(AutoCompaction {
                keyspace: keyspace.to_owned(),
                table: table.name.clone(),
                enabled: self.storage()?.compactions().is_auto(id),
            });
        }
        Ok(found)
    }

    async fn set_autocompaction(
        &self,
        keyspace: &str,
        tables: &[String],
        enabled: bool,
    ) -> Answer<()> {
        for table in self.tables(keyspace, tables)? {
            self.storage()?.compactions().set_auto(table, enabled);
        }
        Ok(())
    }
}
