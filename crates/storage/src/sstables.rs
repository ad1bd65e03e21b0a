//! The node's SSTables of a table, as shards read them: files, cached chunks, live sets.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use env::{Env, File, OpenOptions};
use sstable::descriptor::{Component, Descriptor, NB};
use sstable::table::{Parts, Table};
use types::hash::HashMap;

use crate::chunk_cache::{ChunkCache, ChunkCacheStats, ChunkKey};
use crate::error::StorageError;
use crate::memtable::KeyRef;

/// Bytes of a page of an index file, as they are cached.
pub(crate) const INDEX_PAGE_BYTES: u64 = 16 << 10;
/// No small component is larger: what would be is no component of a table that anybody could open.
const COMPONENT_BYTES_MAX: u64 = 1 << 30;

/// One SSTable on disk.
#[derive(Debug)]
pub struct SSTable {
    /// Number that no other SSTable of this process has.
    pub number: u64,
    /// The directory of its files.
    pub directory: PathBuf,
    /// Its content's description.
    pub table: Arc<Table>,
    /// Bytes of all its files.
    pub bytes_on_disk: u64,
    /// When its data was written, in milliseconds.
    pub created_millis: i64,
    /// The change of the table's set by which the newest of its content came in: a task that began after it has seen
    /// all of that.
    pub(crate) epoch: u64,
    /// Its level, as its metadata name it: the one thing of it that may change.
    level: AtomicUsize,
}

/// Gives SSTables their numbers.
#[derive(Debug, Default)]
pub(crate) struct Numbers(AtomicU64);

impl Numbers {
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl SSTable {
    /// Opens the table of a descriptor in a directory.
    ///
    /// # Errors
    /// If a component cannot be read or is damaged.
    pub async fn open(
        env: &Env,
        directory: &Path,
        descriptor: &Descriptor,
        number: u64,
        counter: bool,
    ) -> Result<Self, StorageError> {
        let read = async |component: Component| {
            let path = directory.join(descriptor.file(&component));
            match env.read_file(&path, COMPONENT_BYTES_MAX).await {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(StorageError::io("cannot read", path, error)),
            }
        };
        let facts = async |component: Component| {
            let path = directory.join(descriptor.file(&component));
            match env.metadata(&path).await {
                Ok(Some(metadata)) => Ok(metadata),
                Ok(None) => Err(StorageError::corrupt(path, "the file is missing")),
                Err(error) => Err(StorageError::io("cannot look at", path, error)),
            }
        };
        let missing = |component| {
            StorageError::corrupt(
                directory.join(descriptor.file(&component)),
                "the file is missing",
            )
        };
        let data = facts(Component::Data).await?;
        let now = env.unix_micros() / 1000;
        let parts = Parts {
            statistics: read(Component::Statistics)
                .await?
                .ok_or_else(|| missing(Component::Statistics))?,
            summary: read(Component::Summary).await?,
            filter: read(Component::Filter).await?,
            compression: read(Component::CompressionInfo).await?,
            checksums: read(Component::Crc).await?,
            data_length: data.len,
            index_length: facts(Component::Index).await?.len,
        };
        let small = [&parts.summary, &parts.filter, &parts.compression, &parts.checksums];
        let small: usize = small.iter().filter_map(|part| part.as_ref()).map(Vec::len).sum();
        let bytes_on_disk =
            parts.data_length + parts.index_length + (small + parts.statistics.len()) as u64;
        let path = directory.join(descriptor.file(&Component::Data));
        let table = Table::open(*descriptor, parts, counter)
            .map_err(|error| StorageError::corrupt(path, error))?;
        Ok(Self {
            number,
            directory: directory.to_path_buf(),
            bytes_on_disk,
            created_millis: data.modified_millis.unwrap_or(now),
            epoch: 0,
            level: AtomicUsize::new(usize::try_from(table.statistics.stats.level).unwrap_or(0)),
            table: Arc::new(table),
        })
    }

    /// Its level.
    pub fn level(&self) -> usize {
        self.level.load(Ordering::Relaxed)
    }

    /// Gives it another level, and makes that durable: its metadata are written anew.
    pub(crate) async fn set_level(&self, env: &Env, level: usize) -> Result<(), StorageError> {
        let descriptor = &self.table.descriptor;
        // Metadata of an older version keep the level that they have; a start puts it where it is now.
        if descriptor.version == NB {
            let mut statistics = self.table.statistics.clone();
            statistics.stats.level = level as i32;
            let path = self.path(&Component::Statistics);
            let written = env.write_file_atomically(&path, statistics.encode()).await;
            written.map_err(|error| StorageError::io("cannot write", path, error))?;
        }
        self.level.store(level, Ordering::Relaxed);
        Ok(())
    }

    /// The path of a component.
    pub fn path(&self, component: &Component) -> PathBuf {
        self.directory.join(self.table.descriptor.file(component))
    }
}

/// The live SSTables of a table: an immutable snapshot, delivered to every shard by message.
#[derive(Debug, Default)]
pub struct LiveSet {
    tables: Vec<Arc<SSTable>>,
}

impl LiveSet {
    /// Of these tables.
    pub fn new(tables: Vec<Arc<SSTable>>) -> Arc<Self> {
        Arc::new(Self { tables })
    }

    /// All of them.
    pub fn tables(&self) -> &[Arc<SSTable>] {
        &self.tables
    }

    /// Those that may hold a part of a partition.
    pub(crate) fn candidates<'a>(
        &'a self,
        key: KeyRef<'a>,
    ) -> impl Iterator<Item = &'a Arc<SSTable>> {
        self.tables.iter().filter(move |sstable| sstable.table.may_contain(key.token, key.bytes))
    }

    /// This set with some tables replaced by others.
    pub(crate) fn with(
        &self,
        gone: &[u64],
        new: impl IntoIterator<Item = Arc<SSTable>>,
    ) -> Arc<Self> {
        let stay = self.tables.iter().filter(|sstable| !gone.contains(&sstable.number));
        Self::new(stay.cloned().chain(new).collect())
    }
}

/// A shard's open files of SSTables, and its cached chunks.
pub(crate) struct Files {
    env: Env,
    open: RefCell<HashMap<u64, Rc<Handles>>>,
    cache: RefCell<ChunkCache>,
}

/// The files that reads go to.
#[derive(Debug)]
struct Handles {
    data: File,
    index: File,
}

impl Files {
    pub fn new(env: &Env, cache_bytes: u64) -> Self {
        Self {
            env: env.clone(),
            open: RefCell::default(),
            cache: RefCell::new(ChunkCache::new(cache_bytes as usize)),
        }
    }

    /// What the cache of chunks holds and did.
    pub fn cache_stats(&self) -> ChunkCacheStats {
        self.cache.borrow().stats()
    }

    /// Tables whose files are open.
    pub fn open_count(&self) -> usize {
        self.open.borrow().len()
    }

    async fn handles(&self, sstable: &SSTable) -> Result<Rc<Handles>, StorageError> {
        if let Some(handles) = self.open.borrow().get(&sstable.number) {
            return Ok(Rc::clone(handles));
        }
        let open = async |component| {
            let path = sstable.path(&component);
            let file = File::open(&self.env, &path, OpenOptions::READ).await;
            file.map_err(|error| StorageError::io("cannot open", path, error))
        };
        let handles = Rc::new(Handles {
            data: open(Component::Data).await?,
            index: open(Component::Index).await?,
        });
        let mut open = self.open.borrow_mut();
        Ok(Rc::clone(open.entry(sstable.number).or_insert(handles)))
    }

    /// Forgets the files of a table that is gone.
    pub fn forget(&self, number: u64) {
        self.open.borrow_mut().remove(&number);
        self.cache.borrow_mut().forget(number);
    }

    /// The decompressed chunk that holds a position of the data, and where the chunk starts.
    pub async fn chunk(
        &self,
        sstable: &SSTable,
        position: u64,
        keep: bool,
    ) -> Result<(u64, Rc<Vec<u8>>), StorageError> {
        let corrupt = |error| StorageError::corrupt(sstable.path(&Component::Data), error);
        let range = sstable.table.chunk_at(position).map_err(corrupt)?;
        let key = ChunkKey::Data(sstable.number, range.index as u64);
        if let Some(chunk) = self.cache.borrow_mut().get(key) {
            return Ok((range.start, chunk));
        }
        let handles = self.handles(sstable).await?;
        let buffer = Vec::with_capacity(range.length);
        let (result, stored) = handles.data.read_exact_at(buffer, range.offset, range.length).await;
        result.map_err(|e| StorageError::io("cannot read", sstable.path(&Component::Data), e))?;
        let chunk = Rc::new(sstable.table.decode_chunk(range, &stored).map_err(corrupt)?);
        if keep {
            self.cache.borrow_mut().put(key, Rc::clone(&chunk));
        }
        Ok((range.start, chunk))
    }

    /// The page of the index file that holds a position, and where the page starts.
    pub async fn index_page(
        &self,
        sstable: &SSTable,
        position: u64,
        keep: bool,
    ) -> Result<(u64, Rc<Vec<u8>>), StorageError> {
        let page = position / INDEX_PAGE_BYTES;
        let start = page * INDEX_PAGE_BYTES;
        let key = ChunkKey::Index(sstable.number, page);
        if let Some(bytes) = self.cache.borrow_mut().get(key) {
            return Ok((start, bytes));
        }
        let left = sstable.table.index_length.saturating_sub(start);
        let length = left.min(INDEX_PAGE_BYTES) as usize;
        let handles = self.handles(sstable).await?;
        let buffer = Vec::with_capacity(length);
        let (result, bytes) = handles.index.read_exact_at(buffer, start, length).await;
        result.map_err(|e| StorageError::io("cannot read", sstable.path(&Component::Index), e))?;
        let bytes = Rc::new(bytes);
        if keep {
            self.cache.borrow_mut().put(key, Rc::clone(&bytes));
        }
        Ok((start, bytes))
    }
}
