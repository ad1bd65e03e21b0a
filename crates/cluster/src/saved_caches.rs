//! Saved caches, read back: what they name is read again on the shards that own it, and kept.

use std::path::Path;
use std::rc::Rc;

use env::Class;
use rows::ClusteringRef;
use storage::shards::Remote;
use storage::{CacheKind, CounterName, SavedCache, SavedName, SavedWhat, StorageError};

use crate::counters::Counters;
use crate::shard_context::ShardContext;

/// Names that are read from a file, and then looked for, at a time.
const NAMES: usize = 256;

/// Fills caches with what was saved of them.
pub struct SavedCaches {
    shard: Rc<ShardContext>,
    others: Remote<SavedCaches>,
    counters: Rc<Counters>,
}

impl SavedCaches {
    pub(crate) fn new(
        shard: &Rc<ShardContext>,
        others: Remote<Self>,
        counters: &Rc<Counters>,
    ) -> Rc<Self> {
        Rc::new(Self { shard: Rc::clone(shard), others, counters: Rc::clone(counters) })
    }

    /// Takes what was saved of a cache into it, as long as `goes_on`: how much of it was looked
    /// for; none if nothing was saved.
    ///
    /// # Errors
    /// If the files, or what they name, cannot be read.
    pub async fn load(
        self: &Rc<Self>,
        kind: CacheKind,
        directory: &Path,
        goes_on: impl Fn() -> bool,
    ) -> Result<Option<u64>, StorageError> {
        let saved = SavedCache::open(&self.shard.engine, kind, directory).await?;
        let Some(mut saved) = saved else { return Ok(None) };
        let mut looked_for = 0;
        while goes_on() {
            let names = saved.next(NAMES).await?;
            if names.is_empty() {
                break;
            }
            looked_for += names.len() as u64;
            let mut by_shard: Vec<Vec<SavedName>> =
                (0..self.others.count()).map(|_| Vec::new()).collect();
            for name in names {
                if let Some(of_shard) = by_shard.get_mut(self.shard.engine.owner(name.key.token)) {
                    of_shard.push(name);
                }
            }
            for (shard, names) in by_shard.into_iter().enumerate().filter(|(_, of)| !of.is_empty())
            {
                let take = move |owner: Rc<Self>| async move { owner.take_names(names).await };
                self.others.call_async(shard, Class::Background, take).await??;
            }
        }
        Ok(Some(looked_for))
    }

    /// On the shard that owns their keys.
    async fn take_names(&self, names: Vec<SavedName>) -> Result<(), StorageError> {
        for SavedName { table, key, what } in names {
            let taken = match what {
                SavedWhat::Place(sstable) => {
                    self.shard.engine.take_place(table, key.as_ref(), sstable).await
                }
                SavedWhat::Rows => self.shard.engine.take_rows(table, key.as_ref()).await,
                SavedWhat::Counter(row, column) => {
                    let row = row.as_deref().map(ClusteringRef::from_packed);
                    self.counters.keep_counter(table, key, CounterName { row, column }).await
                }
            };
            match taken {
                // it may be dropped any time
                Ok(()) | Err(StorageError::UnknownTable(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
