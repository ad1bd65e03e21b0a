//! What is done with SSTables of tables one by one.

use std::path::PathBuf;
use std::sync::Arc;

use admin::{Answer, NewImport, Refusal, SSTablesOperator, Scrub, TableName, Verify};
use cluster::Standing;
use metrics::Level;
use schema::TombstoneOption;
use storage::StorageError;
use types::TokenRange;

use super::{Operations, failed, ignore_dropped};

/// Where a node has no ranges that are its own.
const NOT_JOINED: &str = "Cleanup cannot run before a node has joined the ring";

impl Operations {
    /// The ranges of a keyspace that this node has, while nothing of them is about to change, or
    /// just did: what it gives up others may still read here.
    fn settled_ranges(&self, keyspace: &str) -> Answer<Vec<TokenRange>> {
        let schema = self.engine().schema();
        let peers = self.shard.peers();
        let ring = peers.ring().ok_or_else(|| failed(NOT_JOINED))?;
        let is_member = self.shard.join().is_some_and(|join| join.standing() == Standing::Member);
        if !is_member {
            return Err(failed(NOT_JOINED));
        }
        let strategy = schema.keyspace(keyspace).map(|keyspace| &keyspace.replication.strategy);
        let placement = strategy.and_then(|strategy| ring.placement(strategy));
        let Some(placement) = placement else {
            return Err(failed(format!("the replicas of keyspace {keyspace} are not known")));
        };
        if placement.changes_for(ring.local()) {
            return Err(failed(
                "Node is involved in cluster membership changes. Not safe to run cleanup.",
            ));
        }
        Ok(TokenRange::normalize(placement.ranges_of(ring.local())))
    }
}

impl SSTablesOperator for Operations {
    async fn flush(&self, keyspace: &str, tables: &[String]) -> Answer<()> {
        for table in self.tables(keyspace, tables)? {
            ignore_dropped(self.storage()?.flush(table).await.map(drop))?;
        }
        Ok(())
    }

    async fn upgrade(&self, keyspace: &str, tables: &[String], all: bool) -> Answer<()> {
        for id in self.tables(keyspace, tables)? {
            let Ok(store) = self.engine().store(id) else { continue };
            let written = self.engine().sstable_version();
            let is_old =
                |table: &&Arc<storage::SSTable>| all || table.table.descriptor.version != written;
            let live = store.live();
            let old: Vec<u64> = live.tables().iter().filter(is_old).map(|t| t.number).collect();
            for number in old {
                // one by one: what a compaction replaced meanwhile is new by now
                let storage = self.storage()?;
                let only = storage.compactions().merge_these(id, |table| table.number == number);
                ignore_dropped(only.await.map(drop))?;
            }
        }
        Ok(())
    }

    async fn scrub(&self, keyspace: &str, tables: &[String], how: Scrub) -> Answer<()> {
        for table in self.tables(keyspace, tables)? {
            self.upkeep.scrub(table, how).await?;
        }
        Ok(())
    }

    async fn verify(&self, keyspace: &str, tables: &[String], how: Verify) -> Answer<()> {
        let mut first = Ok(());
        for table in self.tables(keyspace, tables)? {
            first = first.and(self.upkeep.verify(table, how).await);
        }
        first
    }

    async fn garbage_collect(&self, keyspace: &str, tables: &[String], cells: bool) -> Answer<()> {
        let granularity = if cells { TombstoneOption::Cell } else { TombstoneOption::Row };
        for table in self.tables(keyspace, tables)? {
            ignore_dropped(
                self.storage()?.compactions().collect_garbage(table, granularity).await,
            )?;
        }
        Ok(())
    }

    /// A node that is the only one owns all: nothing is to be dropped.
    async fn cleanup(&self, keyspace: &str, tables: &[String]) -> Answer<()> {
        let tables = self.tables(keyspace, tables)?;
        if self.shard.peers().is_alone() || tables.is_empty() {
            return Ok(());
        }
        let ranges = self.settled_ranges(keyspace)?;
        for table in tables {
            ignore_dropped(self.storage()?.flush(table).await.map(drop))?;
            ignore_dropped(self.storage()?.compactions().keep(table, &ranges).await)?;
        }
        Ok(())
    }

    async fn relocate(&self, keyspace: &str, tables: &[String]) -> Answer<()> {
        for table in self.tables(keyspace, tables)? {
            ignore_dropped(self.storage()?.compactions().relocate(table).await)?;
        }
        Ok(())
    }

    async fn import(&self, import: NewImport) -> Answer<Vec<String>> {
        let NewImport { of, directories, keep_level, copy, verify } = import;
        let schema = self.engine().schema();
        let table = schema.table(&of.keyspace, &of.table).filter(|table| !table.is_virtual());
        let Some(table) = table else {
            return Err(Refusal::UnknownTable(of));
        };
        let mut places = Vec::new();
        for directory in directories {
            let there = self.env.metadata(&directory).await.map_err(failed)?;
            if !there.is_some_and(|metadata| metadata.is_dir) {
                return Err(failed(format!("Directory {directory} does not exist")));
            }
            places.push(PathBuf::from(directory));
        }
        let how = storage::Import { copy, keep_level, verify };
        let refused =
            self.storage()?.importer().import(table.id, &places, how).await.map_err(failed)?;
        let tell = |(directory, error): (PathBuf, StorageError)| {
            self.journal.say_seldom(
                Level::Error,
                format!("cannot import the SSTables in {}: {error}", directory.display()),
            );
            directory.display().to_string()
        };
        Ok(refused.into_iter().map(tell).collect())
    }

    async fn refresh(&self, table: &TableName) -> Answer<()> {
        let schema = self.engine().schema();
        let refused = |what: String| Err(Refusal::BadUse(what));
        let TableName { keyspace, table } = table;
        if schema.keyspace(keyspace).is_none_or(|keyspace| keyspace.is_virtual) {
            return refused(format!("Keyspace {keyspace} does not exist"));
        }
        let Some(table) = schema.table(keyspace, table) else {
            return refused(format!("Unknown keyspace/cf pair ({keyspace}.{table})"));
        };
        ignore_dropped(self.storage()?.importer().refresh(table.id).await)
    }
}
