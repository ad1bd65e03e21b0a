//! The keys of one shard's partitions of a table, in the order of tokens.

use std::ops::Bound;
use std::rc::Rc;

use types::{KeyBytes, Token};

use super::KeyWalk;
use crate::error::StorageError;
use crate::memtable::{KeyRef, PartitionKey, Slot};
use crate::sstables::Files;
use crate::table_store::TableStore;

/// Where a scan starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanStart {
    /// At the first partition.
    Beginning,
    /// At the first partition with this token or a later one.
    Token(Token),
    /// At this key, or the one after it.
    Key(PartitionKey),
    /// After this key.
    After(PartitionKey),
}

/// A scan. Partitions that appear while it runs may or may not be seen.
pub struct KeyScan {
    files: Rc<Files>,
    slots: Vec<Rc<Slot>>,
    walks: Vec<KeyWalk>,
    start: Bound<PartitionKey>,
}

impl KeyScan {
    pub(crate) async fn start(
        files: &Rc<Files>,
        store: &Rc<TableStore>,
        start: ScanStart,
    ) -> Result<Self, StorageError> {
        let start = match start {
            ScanStart::Beginning => Bound::Unbounded,
            // the empty key sorts before all others of a token
            ScanStart::Token(token) => {
                Bound::Included(PartitionKey { token, bytes: KeyBytes::default() })
            }
            ScanStart::Key(key) => Bound::Included(key),
            ScanStart::After(key) => Bound::Excluded(key),
        };
        let mut slots = Vec::new();
        store.for_each_scanned(|slot| slots.push(Rc::clone(slot)));
        let from = match &start {
            Bound::Unbounded => None,
            Bound::Included(key) | Bound::Excluded(key) => Some(key.as_ref()),
        };
        let mut walks = Vec::new();
        let live = store.live();
        for sstable in live.tables() {
            if store.is_kept(sstable.number, Token::MIN) {
                continue;
            }
            walks.push(KeyWalk::start(files, sstable, from, true).await?);
        }
        Ok(Self { files: Rc::clone(files), slots, walks, start })
    }

    /// The next key.
    ///
    /// # Errors
    /// If an SSTable cannot be read.
    pub async fn next(&mut self) -> Result<Option<PartitionKey>, StorageError> {
        loop {
            let mut least = self.next_in_memory();
            for walk in &mut self.walks {
                skip(&self.files, walk, &self.start).await?;
                if let Some(head) = walk.head()
                    && least.as_ref().is_none_or(|least| head.key < *least)
                {
                    least = Some(head.key.clone());
                }
            }
            let Some(key) = least else { return Ok(None) };
            self.start = Bound::Excluded(key.clone());
            let env = self.files.env();
            env.maybe_yield().await;
            if key.token.shard(env.shards() as u32) as usize == env.shard() {
                return Ok(Some(key));
            }
        }
    }

    fn next_in_memory(&self) -> Option<PartitionKey> {
        let from: Bound<KeyRef<'_>> = match &self.start {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(key) => Bound::Included(key.as_ref()),
            Bound::Excluded(key) => Bound::Excluded(key.as_ref()),
        };
        let first = |slot: &Rc<Slot>| slot.read().range(from).next().map(|(key, _)| key.clone());
        self.slots.iter().filter_map(first).min()
    }
}

/// Moves a walk past the keys that were given out.
async fn skip(
    files: &Files,
    walk: &mut KeyWalk,
    start: &Bound<PartitionKey>,
) -> Result<(), StorageError> {
    loop {
        let Some(head) = walk.head() else { return Ok(()) };
        let past = match start {
            Bound::Unbounded => true,
            Bound::Included(key) => head.key >= *key,
            Bound::Excluded(key) => head.key > *key,
        };
        if past {
            return Ok(());
        }
        walk.step(files).await?;
    }
}
