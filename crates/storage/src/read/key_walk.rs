//! Walks the keys of an SSTable in order, by its index.

use std::sync::Arc;

use sstable::bti::{PartitionPlace, TrieCursor, key_bytes};
use sstable::descriptor::Component;
use sstable::index::{Found, read_entry};
use sstable::table::Index;

use super::Located;
use super::locate::{KeyReader, RowsIndex, keys_corrupt};
use crate::error::StorageError;
use crate::memtable::{KeyRef, PartitionKey};
use crate::sstables::{Files, IndexFile, SSTable, TriePages};

/// The entry at which a walk stands.
pub(crate) struct Head {
    pub key: PartitionKey,
    pub located: Located,
}

/// The walk.
pub(crate) struct KeyWalk {
    sstable: Arc<SSTable>,
    place: Place,
    head: Option<Head>,
    /// Where the partition of the last entry starts: those of all others are behind it.
    last: Option<u64>,
    keep: bool,
}

/// Where a walk goes on, in either kind of index.
enum Place {
    Index {
        /// Where the next entry starts.
        at: u64,
        window: Vec<u8>,
        window_start: u64,
    },
    Trie {
        /// At the entry that was last read, or before the first.
        cursor: TrieCursor,
        /// Is the entry at the cursor still to be read?
        unread: bool,
        keys: KeyReader,
    },
}

impl KeyWalk {
    /// At the first key that is not before `from`. `keep` says whether index pages are worth
    /// caching.
    pub async fn start(
        files: &Files,
        sstable: &Arc<SSTable>,
        from: Option<KeyRef<'_>>,
        keep: bool,
    ) -> Result<Self, StorageError> {
        let mut walk = Self::before(files, sstable, from, keep).await?;
        walk.step(files).await?;
        if let Some(from) = from {
            while walk.head().is_some_and(|head| head.key.as_ref() < from) {
                walk.step(files).await?;
            }
        }
        Ok(walk)
    }

    /// Before that key, or some keys before it: no entry is read yet.
    pub async fn before(
        files: &Files,
        sstable: &Arc<SSTable>,
        from: Option<KeyRef<'_>>,
        keep: bool,
    ) -> Result<Self, StorageError> {
        let place = match &sstable.table.index {
            Index::Big { summary, .. } => {
                let floor = |from: KeyRef<'_>| summary.floor(from.token, from.bytes);
                let at = from.and_then(floor).unwrap_or(0);
                Place::Index { at, window: Vec::new(), window_start: at }
            }
            Index::Bti { partitions, .. } => {
                let pages = TriePages { files, sstable, file: IndexFile::Keys, keep };
                let mut cursor = TrieCursor::new(partitions.root);
                // The entry there is of a key before `from`, or of one that begins as it does.
                let mut unread = match from {
                    Some(from) => cursor.floor(&pages, &key_bytes(from.token, from.bytes)).await?,
                    None => false,
                };
                if !unread {
                    unread = cursor.first(&pages).await?;
                }
                Place::Trie { cursor, unread, keys: KeyReader::new(keep) }
            }
        };
        let sstable = Arc::clone(sstable);
        Ok(Self { sstable, place, head: None, last: None, keep })
    }

    /// The SSTable.
    pub fn sstable(&self) -> &Arc<SSTable> {
        &self.sstable
    }

    /// Where it stands; `None` at the end.
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Takes where it stands, and moves on.
    pub async fn take(&mut self, files: &Files) -> Result<Option<Head>, StorageError> {
        let head = self.head.take();
        self.step(files).await?;
        Ok(head)
    }

    /// Moves on.
    pub async fn step(&mut self, files: &Files) -> Result<(), StorageError> {
        let sstable = &self.sstable;
        self.head = match &mut self.place {
            Place::Index { at, window, window_start } => {
                step_in_index(files, sstable, self.keep, (at, window, window_start)).await?
            }
            Place::Trie { cursor, unread, keys } => {
                let pages = TriePages { files, sstable, file: IndexFile::Keys, keep: self.keep };
                let there = std::mem::take(unread) || cursor.next(&pages).await?;
                match there {
                    true => Some(read_in_trie(&pages, cursor, keys).await?),
                    false => None,
                }
            }
        };
        // An index that leads back to where the walk was might do so for ever.
        let position = self.head.as_ref().map(|head| head.located.position);
        if position.is_some() && position <= self.last {
            let path = sstable.path(&IndexFile::Keys.of(sstable).0);
            return Err(StorageError::corrupt(path, "its partitions are out of order"));
        }
        self.last = position;
        Ok(())
    }
}

async fn step_in_index(
    files: &Files,
    sstable: &SSTable,
    keep: bool,
    (at, window, window_start): (&mut u64, &mut Vec<u8>, &mut u64),
) -> Result<Option<Head>, StorageError> {
    let (component, length) = IndexFile::Keys.of(sstable);
    loop {
        let left = length.saturating_sub(*at);
        if left == 0 {
            return Ok(None);
        }
        let skip = (*at - *window_start) as usize;
        let bytes = window.get(skip..).unwrap_or_default();
        let found =
            read_entry(bytes, left).map_err(|e| StorageError::corrupt(sstable.path(&component), e));
        match found? {
            Found::Entry(entry) => {
                let rows = RowsIndex::promoted(entry.promoted);
                let located = Located { position: entry.position, end: None, rows };
                *at += entry.length as u64;
                return Ok(Some(Head { key: PartitionKey::new(entry.key), located }));
            }
            Found::NeedMore(_) => {
                window.drain(..skip.min(window.len()));
                *window_start = *at;
                let next = *window_start + window.len() as u64;
                let (start, page) = files.index_page(sstable, IndexFile::Keys, next, keep).await?;
                let page = page.get((next - start) as usize..).unwrap_or_default();
                window.extend_from_slice(page);
            }
        }
    }
}

async fn read_in_trie(
    pages: &TriePages<'_>,
    cursor: &mut TrieCursor,
    keys: &mut KeyReader,
) -> Result<Head, StorageError> {
    let sstable = pages.sstable;
    let place = match cursor.payload(pages).await? {
        Some((flags, payload)) => PartitionPlace::parse(flags, &payload, None),
        None => Ok(None),
    };
    let Some(place) = place.map_err(|e| keys_corrupt(sstable, e))? else {
        let path = sstable.path(&Component::Partitions);
        return Err(StorageError::corrupt(path, "an entry of the index has no payload"));
    };
    let (key, located) = keys.read(pages.files, sstable, place).await?;
    Ok(Head { key: PartitionKey::new(key), located })
}
