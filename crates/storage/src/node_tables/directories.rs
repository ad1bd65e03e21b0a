//! The directories of a table's files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::Env;
use schema::Table;

use super::NodeTables;
use crate::engine::Engine;
use crate::error::StorageError;

/// The directory of a table's files: Cassandra's.
pub fn table_directory(data: &Path, table: &Table) -> PathBuf {
    let name = sstable::descriptor::table_directory(&table.name, u128::from_be_bytes(table.id.0));
    data.join(&table.keyspace).join(name)
}

/// The table that a file is of, with its directory.
pub(crate) fn table_of(engine: &Engine, path: &Path) -> Option<(Arc<Table>, PathBuf)> {
    let tables = engine.stores().into_iter().map(|(_, store)| store.table());
    tables.into_iter().find_map(|table| {
        let places = engine.options.data_directories.iter();
        let mut places = places.map(|data| table_directory(data, &table));
        places.find(|place| path.starts_with(place)).map(|place| (table, place))
    })
}

impl NodeTables {
    /// The directories for a table's new files, one for each of as many equal parts of the ring
    /// (`DiskBoundaries`), so that all of a partition is on one disk; they are made where there
    /// are none.
    pub async fn places_of(
        &self,
        engine: &Engine,
        table: &Table,
    ) -> Result<Vec<PathBuf>, StorageError> {
        let disallowed = self.table(table.id).disallowed();
        let mut places = Vec::new();
        for data in &engine.options.data_directories {
            let directory = table_directory(data, table);
            if disallowed.contains(&directory) {
                continue;
            }
            self.new_directories.make(engine.env(), &directory).await?;
            places.push(directory);
        }
        match places.is_empty() {
            true => Err(no_directory(table)),
            false => Ok(places),
        }
    }

    /// The first of them: for what is of the table as a whole.
    pub async fn directory_of(
        &self,
        engine: &Engine,
        table: &Table,
    ) -> Result<PathBuf, StorageError> {
        let places = self.places_of(engine, table).await?;
        places.into_iter().next().ok_or_else(|| no_directory(table))
    }
}

fn no_directory(table: &Table) -> StorageError {
    StorageError::NoDirectory { table: format!("{}.{}", table.keyspace, table.name) }
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
