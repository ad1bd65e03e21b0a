//! Saved caches, read back: what they name is read again on the shards that own it, and kept.

use std::path::Path;
use std::rc::Rc;

use env::Class;
use rows::ClusteringRef;
use schema::TableId;
use storage::{
    CacheKind, Counted, CounterName, PartitionKey, SavedCache, SavedName, SavedWhat, StorageError,
};

use crate::coordinator::Coordinator;
use crate::counters::{part_of, stored};
use crate::write::read_rows;

/// Names that are read from a file, and then looked for, at a time.
const NAMES: usize = 256;

impl Coordinator {
    /// Takes what was saved of a cache into it, as long as `goes_on`: how much of it was looked for; none if nothing
    /// was saved.
    ///
    /// # Errors
    /// If the files, or what they name, cannot be read.
    pub async fn load_cache(
        self: &Rc<Self>,
        kind: CacheKind,
        directory: &Path,
        goes_on: impl Fn() -> bool,
    ) -> Result<Option<u64>, StorageError> {
        let saved = SavedCache::open(&self.engine, kind, directory).await?;
        let Some(mut saved) = saved else { return Ok(None) };
        let mut looked_for = 0;
        while goes_on() {
            let names = saved.next(NAMES).await?;
            if names.is_empty() {
                break;
            }
            looked_for += names.len() as u64;
            let mut by_shard: Vec<Vec<SavedName>> =
                (0..self.shards.count()).map(|_| Vec::new()).collect();
            for name in names {
                if let Some(of_shard) = by_shard.get_mut(self.engine.owner(name.key.token)) {
                    of_shard.push(name);
                }
            }
            for (shard, names) in by_shard.into_iter().enumerate().filter(|(_, of)| !of.is_empty())
            {
                let take = move |owner: Rc<Self>| async move { owner.take_names(names).await };
                self.shards.call_async(shard, Class::Background, take).await??;
            }
        }
        Ok(Some(looked_for))
    }

    /// On the shard that owns their keys.
    async fn take_names(&self, names: Vec<SavedName>) -> Result<(), StorageError> {
        for SavedName { table, key, what } in names {
            let taken = match what {
                SavedWhat::Place(sstable) => {
                    self.engine.take_place(table, key.as_ref(), sstable).await
                }
                SavedWhat::Rows => self.engine.take_rows(table, key.as_ref()).await,
                SavedWhat::Counter(row, column) => {
                    let row = row.as_deref().map(ClusteringRef::from_packed);
                    self.take_counter(table, key, CounterName { row, column }).await
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

    /// Reads a counter in its partition's turn, and keeps this node's part of it.
    async fn take_counter(
        &self,
        table: TableId,
        key: PartitionKey,
        name: CounterName<'_>,
    ) -> Result<(), StorageError> {
        if !self.engine.keeps_counters() {
            return Ok(());
        }
        let is_in_turn = !self.env.planted("counter_cache_filled_out_of_turn");
        let _turn = match is_in_turn {
            true => Some(self.turns.take(&key.bytes).await),
            false => None,
        };
        let store = self.engine.store(table)?;
        let mark = self.engine.counter_mark(&store);
        let rows = name.row.map(|row| row.to_owned()).into_iter().collect();
        let found = read_rows(Rc::clone(&self.engine), table, key.clone(), rows).await?;
        let cell = stored(&found, name.row).and_then(|row| row.cell(name.column));
        if let Some(part) = cell.and_then(|cell| part_of(cell, self.identity.host_id)) {
            let mut counted = Counted::since(mark);
            counted.add(name, part);
            self.engine.keep_counters(&store, &key.bytes, &counted);
        }
        Ok(())
    }
}
