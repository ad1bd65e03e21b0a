//! Directories of tables that this process makes: each has a durable name before anybody writes
//! into it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use env::Env;
use env::sync::Semaphore;

use crate::error::StorageError;

/// Makes them, one at a time.
pub(super) struct NewDirectories {
    turn: Semaphore,
    /// Those whose names are not durable, as their sync goes on or has failed.
    nameless: RefCell<BTreeSet<PathBuf>>,
}

impl NewDirectories {
    pub fn new() -> Self {
        Self { turn: Semaphore::new(1), nameless: RefCell::default() }
    }

    /// Sees to it that a table's directory is there, and its keyspace's.
    ///
    /// # Errors
    /// If one cannot be made, or its name not be made durable. The next call begins anew.
    pub async fn make(&self, env: &Env, directory: &Path) -> Result<(), StorageError> {
        if self.is_there(env, directory).await? {
            return Ok(());
        }
        let _turn = self.turn.acquire(1).await;
        for one in [directory.parent(), Some(directory)].into_iter().flatten() {
            self.make_one(env, one).await?;
        }
        Ok(())
    }

    async fn is_there(&self, env: &Env, directory: &Path) -> Result<bool, StorageError> {
        Ok(!self.is_nameless(directory) && exists(env, directory).await?)
    }

    fn is_nameless(&self, directory: &Path) -> bool {
        self.nameless.borrow().contains(directory)
    }

    async fn make_one(&self, env: &Env, directory: &Path) -> Result<(), StorageError> {
        if self.is_there(env, directory).await? {
            return Ok(());
        }
        let failed = |e| StorageError::io("cannot create", directory, e);
        if self.is_nameless(directory) && exists(env, directory).await? {
            // A sync failed, so no later one makes this name durable. Nobody has it yet.
            env.remove_dir_all(directory).await.map_err(failed)?;
        }
        let Some(parent) = directory.parent() else { return Ok(()) };
        let cannot_sync = |e| StorageError::io("cannot sync", parent, e);
        let above = env.open_dir(parent).await.map_err(cannot_sync)?;
        self.nameless.borrow_mut().insert(directory.to_path_buf());
        env.create_dir_all(directory).await.map_err(failed)?;
        above.sync().await.map_err(cannot_sync)?;
        self.nameless.borrow_mut().remove(directory);
        Ok(())
    }
}

async fn exists(env: &Env, directory: &Path) -> Result<bool, StorageError> {
    let exists = env.exists(directory).await;
    exists.map_err(|e| StorageError::io("cannot stat", directory, e))
}
