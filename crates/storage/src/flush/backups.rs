//! Incremental backups: hard links to all that is flushed, at the place where Cassandra keeps them.

use std::cell::Cell;

use env::Env;
use schema::Table;

use crate::error::StorageError;
use crate::sstables::{SSTable, link_sstable};

/// The directory of a table that collects links to all that was flushed.
pub const BACKUPS: &str = "backups";

/// Whether backups are kept.
pub(super) struct Backups(Cell<bool>);

impl Backups {
    pub fn new(enabled: bool) -> Self {
        Self(Cell::new(enabled))
    }

    pub fn are_on(&self) -> bool {
        self.0.get()
    }

    pub fn enable(&self, enabled: bool) {
        self.0.set(enabled);
    }

    /// Links a table that was flushed into the directory of backups, where that is wanted.
    pub async fn take(
        &self,
        env: &Env,
        table: &Table,
        sstable: &SSTable,
    ) -> Result<(), StorageError> {
        if !(self.are_on() && table.params.incremental_backups) {
            return Ok(());
        }
        let to = sstable.directory.join(BACKUPS);
        let failed = |e| StorageError::io("cannot create a backup in", &to, e);
        if !env.exists(&to).await.map_err(failed)? {
            env.create_dir_all(&to).await.map_err(failed)?;
            env.sync_dir(&sstable.directory).await.map_err(failed)?;
        }
        let names = env.open_dir(&to).await.map_err(failed)?;
        link_sstable(env, &sstable.directory, &sstable.table.descriptor, &to).await?;
        names.sync().await.map_err(failed)
    }
}
