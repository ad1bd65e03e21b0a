//! SSTables as a shard reads them: open files, cached chunks and pages of indexes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use env::{ALIGNMENT, AlignedBuf, Env, File, OpenOptions};
use sstable::bti;
use sstable::descriptor::{Component, Format};
use sstable::table::{ChunkRange, Index};
use types::hash::HashMap;

use super::SSTable;
use crate::caches::{CacheStats, ChunkCache, ChunkKey, Clock};
use crate::error::StorageError;
use crate::io::Recent;
use crate::memtable::KeyRef;
use crate::options::Options;
use crate::read::{DataFile, Keeping, Located, Pass};

/// Who goes through `Index.db` from its beginning to its end reads so many pages of it at once.
const PAGES_AT_ONCE: u64 = 16;
/// The least that a chunk takes in the page cache: of as many as it can have is known whether they
/// were read of late. Of more, and chunks that come too seldom to stay would go through it.
const CHUNK_CACHED_BYTES: usize = 4096;
/// Bytes of the buffers that a shard keeps for reads of chunks: for as many as the device has of it
/// at once, mostly.
const BUFFER_BYTES_KEPT: usize = 4 << 20;

/// A shard's open files of SSTables, its cached chunks, and where it found keys.
pub(crate) struct Files {
    env: Env,
    open: RefCell<HashMap<u64, Rc<Handles>>>,
    /// Of the SSTables whose files are open.
    open_bytes: Cell<u64>,
    chunks: RefCell<ChunkCache>,
    /// By an SSTable's number and a key, one after the other. Those of SSTables that are gone are
    /// never asked for, and go first.
    keys: RefCell<Clock<Rc<[u8]>, Located>>,
    name: RefCell<Vec<u8>>,
    /// Do passes over whole SSTables read past the page cache?
    passes_page_cache: bool,
    /// Which chunks were read of late, where the others are read past it.
    recent: Option<Recent>,
    /// What the page cache may have, then.
    page_cache_bytes: u64,
    buffers: RefCell<Vec<AlignedBuf>>,
    buffer_bytes: Cell<usize>,
}

/// The files that reads go to.
#[derive(Debug)]
struct Handles {
    /// Of the SSTable.
    bytes: u64,
    data: File,
    /// The same past the page cache, where chunks may be read so.
    direct: Option<File>,
    /// `Index.db` or `Partitions.db`.
    index: File,
    /// `Rows.db`.
    rows: Option<File>,
}

/// A file of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexFile {
    /// That finds keys: `Index.db` or `Partitions.db`.
    Keys,
    /// That finds rows within a partition, where that is another: `Rows.db`.
    Rows,
}

impl IndexFile {
    /// The component that it is of a table, and its bytes.
    pub fn of(self, sstable: &SSTable) -> (Component, u64) {
        match (&sstable.table.index, self) {
            (Index::Big { length, .. }, _) => (Component::Index, *length),
            (Index::Bti { partitions, .. }, Self::Keys) => {
                (Component::Partitions, partitions.length)
            }
            (Index::Bti { rows_length, .. }, Self::Rows) => (Component::Rows, *rows_length),
        }
    }
}

/// The pages of a file with tries.
pub(crate) struct TriePages<'a> {
    pub files: &'a Files,
    pub sstable: &'a SSTable,
    pub file: IndexFile,
    pub keep: bool,
}

impl bti::Pages for TriePages<'_> {
    type Error = StorageError;

    async fn page(&self, position: u64) -> Result<(u64, Rc<Vec<u8>>), StorageError> {
        self.files.index_page(self.sstable, self.file, position, self.keep).await
    }

    fn component(&self) -> &'static str {
        match self.file {
            IndexFile::Keys => "Partitions.db",
            IndexFile::Rows => "Rows.db",
        }
    }

    fn corrupt(&self, error: sstable::Error) -> StorageError {
        StorageError::corrupt(self.sstable.path(&self.file.of(self.sstable).0), error)
    }
}

impl Files {
    /// Of a shard, with its part of each limit.
    pub fn new(env: &Env, options: &Options) -> Self {
        let part = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX) / env.shards();
        let recent = |bytes: u64| Recent::new(part(bytes) / CHUNK_CACHED_BYTES);
        Self {
            env: env.clone(),
            open: RefCell::default(),
            open_bytes: Cell::default(),
            chunks: RefCell::new(ChunkCache::new(part(options.chunk_cache_bytes))),
            keys: RefCell::new(Clock::new(part(options.key_cache_bytes), 0)),
            name: RefCell::default(),
            passes_page_cache: options.passes_page_cache,
            recent: options.page_cache_bytes.map(recent),
            page_cache_bytes: options.page_cache_bytes.unwrap_or_default(),
            buffers: RefCell::default(),
            buffer_bytes: Cell::default(),
        }
    }

    /// The outside.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// What the cache of chunks holds and did.
    pub fn chunk_stats(&self) -> CacheStats {
        self.chunks.borrow().stats()
    }

    /// What the cache of places of keys holds and did.
    pub fn key_stats(&self) -> CacheStats {
        self.keys.borrow().stats()
    }

    pub fn set_chunk_limit(&self, bytes: usize) {
        self.chunks.borrow_mut().set_limit(bytes);
    }

    pub fn set_key_limit(&self, bytes: usize) {
        self.keys.borrow_mut().set_limit(bytes);
    }

    pub fn clear_chunks(&self) {
        self.chunks.borrow_mut().clear();
    }

    pub fn clear_keys(&self) {
        self.keys.borrow_mut().clear();
    }

    /// May places of keys be kept?
    pub fn keeps_keys(&self) -> bool {
        self.keys.borrow().limit() > 0
    }

    fn named_key<T>(
        &self,
        sstable: &SSTable,
        key: KeyRef<'_>,
        f: impl FnOnce(&mut Clock<Rc<[u8]>, Located>, &[u8]) -> T,
    ) -> T {
        let name = &mut *self.name.borrow_mut();
        name.clear();
        name.extend_from_slice(&sstable.number.to_be_bytes());
        name.extend_from_slice(key.bytes);
        f(&mut self.keys.borrow_mut(), name)
    }

    /// Where a key is in an SSTable, if it was found there of late.
    pub fn kept_place(&self, sstable: &SSTable, key: KeyRef<'_>) -> Option<Located> {
        self.named_key(sstable, key, |keys, name| keys.get(name).cloned())
    }

    /// As [`Clock::page`]: names and where they are.
    pub fn kept_places(
        &self,
        from: usize,
        count: usize,
        is_used: bool,
    ) -> (Vec<(Rc<[u8]>, Located)>, Option<usize>) {
        let keys = self.keys.borrow();
        let (names, next) = keys.page(from, count, is_used);
        let located = |name: Rc<[u8]>| keys.peek(&name).cloned().map(|it| (name, it));
        (names.into_iter().filter_map(located).collect(), next)
    }

    /// Remembers where a key is in an SSTable: if there is room, or it was to be before, of late.
    pub fn keep_place(&self, sstable: &SSTable, key: KeyRef<'_>, located: &Located) {
        self.named_key(sstable, key, |keys, name| {
            let bytes = size_of::<[usize; 2]>() + name.len() + located.heap_bytes();
            if keys.admits(name, bytes) {
                keys.put(name.into(), located.clone(), bytes);
            }
        });
    }

    /// Tables whose files are open.
    pub fn open_count(&self) -> usize {
        self.open.borrow().len()
    }

    async fn handles(&self, sstable: &SSTable) -> Result<Rc<Handles>, StorageError> {
        if let Some(handles) = self.open.borrow().get(&sstable.number) {
            return Ok(Rc::clone(handles));
        }
        let open_as = async |component, options| {
            let path = sstable.path(&component);
            let file = File::open(&self.env, &path, options).await;
            file.map_err(|error| StorageError::io("cannot open", path, error))
        };
        let open = |component| open_as(component, OpenOptions::READ);
        let direct = match self.recent {
            Some(_) => Some(open_as(Component::Data, OpenOptions::READ.direct()).await?),
            None => None,
        };
        let (keys, rows) = match sstable.table.descriptor.format {
            Format::Big => (Component::Index, None),
            Format::Bti => (Component::Partitions, Some(Component::Rows)),
        };
        let handles = Rc::new(Handles {
            bytes: sstable.bytes_on_disk,
            data: open(Component::Data).await?,
            direct: direct.filter(File::is_direct),
            index: open(keys).await?,
            rows: match rows {
                Some(rows) => Some(open(rows).await?),
                None => None,
            },
        });
        let mut open = self.open.borrow_mut();
        // another read may have opened them meanwhile
        Ok(Rc::clone(open.entry(sstable.number).or_insert_with(|| {
            self.open_bytes.update(|bytes| bytes + handles.bytes);
            handles
        })))
    }

    /// Forgets the files of a table that is gone.
    pub fn forget(&self, number: u64) {
        if let Some(handles) = self.open.borrow_mut().remove(&number) {
            self.open_bytes.update(|bytes| bytes - handles.bytes);
        }
        self.chunks.borrow_mut().forget(number);
    }

    /// The decompressed chunk that holds a position of the data, and where the chunk starts.
    pub async fn chunk(
        &self,
        sstable: &SSTable,
        position: u64,
        keeping: &Keeping,
    ) -> Result<(u64, Rc<Vec<u8>>), StorageError> {
        self.chunk_until(sstable, position, 0, keeping).await
    }

    /// The same for who wants the bytes up to `until`.
    pub async fn chunk_until(
        &self,
        sstable: &SSTable,
        position: u64,
        until: u64,
        keeping: &Keeping,
    ) -> Result<(u64, Rc<Vec<u8>>), StorageError> {
        let corrupt = |error| StorageError::corrupt(sstable.path(&Component::Data), error);
        let range = sstable.table.chunk_at(position).map_err(corrupt)?;
        if let Keeping::Pass(pass) = keeping
            && let Some(last) = pass.last(range.start)
        {
            return Ok(last);
        }
        let key = ChunkKey::Data(sstable.number, range.index as u64);
        if let Some(chunk) = self.chunks.borrow_mut().get(&key) {
            return Ok((range.start, Rc::clone(chunk)));
        }
        let decode = |stored: &[u8]| sstable.table.decode_chunk(range, stored).map_err(corrupt);
        let chunk = match keeping {
            // boxed: reads of what is in memory would carry its room along
            Keeping::Cache => Box::pin(self.cache_chunk(sstable, range, until)).await?,
            Keeping::Pass(pass) => {
                let chunk = match pass.with_stored(range.offset, range.length, decode) {
                    Some(chunk) => chunk?,
                    // boxed: reads of single rows, which never come here, would carry its room
                    // along
                    None => Box::pin(self.fetch(sstable, pass, range)).await?,
                };
                let chunk = Rc::new(chunk);
                pass.set_last((range.start, Rc::clone(&chunk)));
                chunk
            }
        };
        Ok((range.start, chunk))
    }

    /// Reads a chunk that the cache is to have, and with it the next one if the bytes up to `until`
    /// end there: together they are one read of the device.
    async fn cache_chunk(
        &self,
        sstable: &SSTable,
        range: ChunkRange,
        until: u64,
    ) -> Result<Rc<Vec<u8>>, StorageError> {
        let key = |chunk: ChunkRange| ChunkKey::Data(sstable.number, chunk.index as u64);
        let next = range.start + range.uncompressed as u64;
        let next = (next < until).then(|| sstable.table.chunk_at(next));
        let next = next.and_then(Result::ok).filter(|next| {
            let is_last = until <= next.start + next.uncompressed as u64;
            let follows = next.offset == range.offset + range.length as u64;
            is_last && follows && !self.chunks.borrow().has(&key(*next))
        });
        let (chunk, more, comes_again) = match self.read_chunks(sstable, range, next).await {
            // the second may be what cannot be read, and not be needed
            Err(_) if next.is_some() => self.read_chunks(sstable, range, None).await?,
            read => read?,
        };
        let mut cache = self.chunks.borrow_mut();
        let chunk = Rc::new(chunk);
        cache.put(key(range), &chunk, comes_again);
        if let (Some(next), Some(more)) = (next, more) {
            cache.put(key(next), &Rc::new(more), comes_again);
        }
        Ok(chunk)
    }

    /// Reads a piece of the data for a pass: the chunk with which it begins.
    async fn fetch(
        &self,
        sstable: &SSTable,
        pass: &Pass,
        range: ChunkRange,
    ) -> Result<Vec<u8>, StorageError> {
        let corrupt = |error| StorageError::corrupt(sstable.path(&Component::Data), error);
        let decode = |stored: &[u8]| sstable.table.decode_chunk(range, stored).map_err(corrupt);
        if pass.is_large() {
            let handles = self.handles(sstable).await?;
            let path = sstable.path(&Component::Data);
            let file = DataFile {
                env: &self.env,
                file: &handles.data,
                direct: self.passes_page_cache.then_some(path.as_path()),
                data_length: sstable.table.data_length,
            };
            // What cannot be read may lie behind the chunk.
            if pass.fetch(file, range.offset, range.length).await.is_ok()
                && let Some(chunk) = pass.with_stored(range.offset, range.length, decode)
            {
                return chunk;
            }
        }
        decode(&self.stored(sstable, range.offset, range.length).await?)
    }

    /// Reads a chunk for its own sake, at once with the one that follows it if that is given: of
    /// the latter nothing is said if it is damaged. And whether they are likely to come again: what
    /// passes the page cache by is not.
    ///
    /// Where reads are all over a table that is larger than memory a chunk seldom comes again: the
    /// page cache would be the dearer way to the device, and lose what does come again, such as the
    /// index. So it has that, and the rest passes it by. Where half of the page cache could hold
    /// all SSTables that are read, it gets all.
    async fn read_chunks(
        &self,
        sstable: &SSTable,
        first: ChunkRange,
        second: Option<ChunkRange>,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>, bool), StorageError> {
        let path = || sstable.path(&Component::Data);
        let failed = |error| StorageError::io("cannot read", path(), error);
        let offset = first.offset;
        let length = first.length + second.map_or(0, |second| second.length);
        let decode = |stored: &[u8], comes_again| {
            let (one, other) = stored.split_at(first.length.min(stored.len()));
            let one = sstable.table.decode_chunk(first, one);
            let one = one.map_err(|error| StorageError::corrupt(path(), error))?;
            let other = second.and_then(|second| sstable.table.decode_chunk(second, other).ok());
            Ok((one, other, comes_again))
        };
        let handles = self.handles(sstable).await?;
        // whole blocks, of the last of which the file may have a part
        let before = (offset % ALIGNMENT as u64) as usize;
        let blocks = (before + length).next_multiple_of(ALIGNMENT);
        let mut buffer = self.take_buffer(blocks);
        let fits = self.open_bytes.get() <= self.page_cache_bytes / 2;
        let direct = handles.direct.as_ref().zip(self.recent.as_ref()).filter(|_| !fits);
        let key = ChunkKey::Data(sstable.number, first.index as u64);
        if let Some((direct, _)) = direct.filter(|(_, recent)| !recent.read(&key)) {
            let (result, bytes) = direct.read_at(buffer, offset - before as u64, blocks).await;
            buffer = bytes;
            result.map_err(failed)?;
            // what came short is read again
            if let Some(stored) = buffer.get(before..before + length) {
                let decoded = decode(stored, false);
                self.give_back(buffer);
                return decoded;
            }
        }
        let (is_there, mut buffer) = handles.data.read_now(buffer, offset, length);
        if !is_there {
            let result;
            (result, buffer) = handles.data.read_exact_at(buffer, offset, length).await;
            result.map_err(failed)?;
        }
        let decoded = decode(&buffer, true);
        self.give_back(buffer);
        decoded
    }

    fn take_buffer(&self, bytes: usize) -> AlignedBuf {
        let spare = self.buffers.borrow_mut().pop();
        self.buffer_bytes.update(|kept| kept - spare.as_ref().map_or(0, AlignedBuf::capacity));
        let spare = spare.filter(|buffer| buffer.capacity() >= bytes);
        spare.unwrap_or_else(|| AlignedBuf::with_capacity(bytes))
    }

    fn give_back(&self, buffer: AlignedBuf) {
        let kept = self.buffer_bytes.get() + buffer.capacity();
        if kept <= BUFFER_BYTES_KEPT {
            self.buffer_bytes.set(kept);
            self.buffers.borrow_mut().push(buffer);
        }
    }

    /// Reads stored bytes of the data.
    async fn stored(
        &self,
        sstable: &SSTable,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StorageError> {
        let handles = self.handles(sstable).await?;
        let buffer = Vec::with_capacity(length);
        let (result, stored) = handles.data.read_exact_at(buffer, offset, length).await;
        result.map_err(|e| StorageError::io("cannot read", sstable.path(&Component::Data), e))?;
        Ok(stored)
    }

    /// The page of a file of the index that holds a position, and where the page starts; more of
    /// them behind it where pages are not kept, for who goes on there.
    pub async fn index_page(
        &self,
        sstable: &SSTable,
        file: IndexFile,
        position: u64,
        keep: bool,
    ) -> Result<(u64, Rc<Vec<u8>>), StorageError> {
        let size = sstable.table.index_page_bytes() as u64;
        let page = position / size;
        let start = page * size;
        let key = match file {
            IndexFile::Keys => ChunkKey::Index(sstable.number, page),
            IndexFile::Rows => ChunkKey::Rows(sstable.number, page),
        };
        if let Some(bytes) = self.chunks.borrow_mut().get(&key) {
            return Ok((start, Rc::clone(bytes)));
        }
        // the next node of a trie may be anywhere
        let is_walk = !keep && sstable.table.descriptor.format == Format::Big;
        let pages = if is_walk { PAGES_AT_ONCE } else { 1 };
        let read = Box::pin(async {
            match self.read_index(sstable, file, page, pages).await {
                // what cannot be read may lie behind the page
                Err(_) if pages > 1 => self.read_index(sstable, file, page, 1).await,
                read => read,
            }
        });
        let bytes = Rc::new(read.await?);
        if keep {
            self.chunks.borrow_mut().put(key, &bytes, true);
        }
        Ok((start, bytes))
    }

    /// Reads so many pages of a file of the index, or those that there are.
    async fn read_index(
        &self,
        sstable: &SSTable,
        file: IndexFile,
        page: u64,
        pages: u64,
    ) -> Result<Vec<u8>, StorageError> {
        let size = sstable.table.index_page_bytes() as u64;
        let start = page * size;
        let (component, length) = file.of(sstable);
        let length = length.saturating_sub(start).min(pages * size) as usize;
        let handles = self.handles(sstable).await?;
        let from = match file {
            IndexFile::Keys => &handles.index,
            IndexFile::Rows => handles.rows.as_ref().unwrap_or(&handles.index),
        };
        let (is_there, mut bytes) = from.read_now(Vec::with_capacity(length), start, length);
        if !is_there {
            let result;
            (result, bytes) = from.read_exact_at(bytes, start, length).await;
            result.map_err(|e| StorageError::io("cannot read", sstable.path(&component), e))?;
        }
        if file == IndexFile::Keys {
            let checked = sstable.table.check_index_pages(page, &bytes);
            checked.map_err(|e| StorageError::corrupt(sstable.path(&component), e))?;
        }
        Ok(bytes)
    }
}
