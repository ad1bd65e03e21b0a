//! Walks the keys of an SSTable in order, by its index.

use std::sync::Arc;

use sstable::descriptor::Component;
use sstable::index::{Found, read_entry};

use super::Located;
use crate::error::StorageError;
use crate::memtable::{KeyRef, PartitionKey};
use crate::sstables::{Files, SSTable};

/// The entry at which a walk stands.
pub(crate) struct Head {
    pub key: PartitionKey,
    pub located: Located,
}

/// The walk.
pub(crate) struct KeyWalk {
    sstable: Arc<SSTable>,
    /// Where the next entry starts in the index.
    at: u64,
    window: Vec<u8>,
    window_start: u64,
    head: Option<Head>,
    keep: bool,
}

impl KeyWalk {
    /// Starts at the first key that is not before `from`. `keep` says whether index pages are worth caching.
    pub async fn start(
        files: &Files,
        sstable: &Arc<SSTable>,
        from: Option<KeyRef<'_>>,
        keep: bool,
    ) -> Result<Self, StorageError> {
        let at = from.and_then(|from| sstable.table.index_start(from.token, from.bytes));
        let at = at.unwrap_or(0);
        let sstable = Arc::clone(sstable);
        let mut walk = Self { sstable, at, window: Vec::new(), window_start: at, head: None, keep };
        walk.step(files).await?;
        if let Some(from) = from {
            while walk.head().is_some_and(|head| head.key.as_ref() < from) {
                walk.step(files).await?;
            }
        }
        Ok(walk)
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
        loop {
            let left = self.sstable.table.index_length.saturating_sub(self.at);
            if left == 0 {
                self.head = None;
                return Ok(());
            }
            let skip = (self.at - self.window_start) as usize;
            let bytes = self.window.get(skip..).unwrap_or_default();
            let found = read_entry(bytes, left)
                .map_err(|e| StorageError::corrupt(self.sstable.path(&Component::Index), e))?;
            match found {
                Found::Entry(entry) => {
                    let promoted = entry.promoted.to_vec();
                    self.head = Some(Head {
                        key: PartitionKey::new(entry.key),
                        located: Located { position: entry.position, promoted },
                    });
                    self.at += entry.length as u64;
                    return Ok(());
                }
                Found::NeedMore(_) => {
                    self.window.drain(..skip.min(self.window.len()));
                    self.window_start = self.at;
                    let next = self.window_start + self.window.len() as u64;
                    let (start, page) = files.index_page(&self.sstable, next, self.keep).await?;
                    let page = page.get((next - start) as usize..).unwrap_or_default();
                    self.window.extend_from_slice(page);
                }
            }
        }
    }
}
