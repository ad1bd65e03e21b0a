//! Caches saved for the next start, and read there.
//!
//! What is read are names: which keys were in which SSTable, which partitions' first rows, which
//! counters were kept. What is then kept of them is read from the data, as any read does, so no
//! file can make an answer wrong: one that is old, another node's, of another schema or damaged
//! costs reads at the most. Files are written beside the old ones and take their names one by one;
//! nothing is synced. Whatever a crash leaves is either whole, or is noticed by its checksums, or
//! names what is not there.
//!
//! A Cassandra believes the places that its key cache saved. As it would see it, what is saved here
//! is as right as its own: `.metadata` goes first and comes last, and without it the other two are
//! not read.
//!
//! The next start serves at once, and reads what the names stand for in the background.

mod format;
mod names;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use env::{File, OpenOptions};
use rows::Layout;
use schema::TableId;
use sstable::descriptor::Descriptor;
use types::WriteBytes;

use self::format::{Metadata, SCHEMA_BYTES, file_name, read_counter, read_entry};
use self::names::{Kept, KeptEntry, kept_names};
use crate::caches::CacheKind;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::PartitionKey;

/// Bytes of a chunk that has a checksum of its own (Cassandra's).
const CHUNK_BYTES: usize = 64 << 10;
/// Bytes of a chunk that a file may ask for.
const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Bytes that an entry may take: a promoted index of millions of rows.
const ENTRY_BYTES_MAX: usize = 16 << 20;
/// Bytes of the small files that are worth reading.
const METADATA_BYTES_MAX: u64 = 16 << 20;
const CRC_BYTES_MAX: u64 = 16 << 20;
/// Entries that a shard looks at at once.
const PAGE: usize = 1024;

/// What a saved cache names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedName {
    /// The table.
    pub table: TableId,
    /// The partition.
    pub key: PartitionKey,
    /// What of it.
    pub what: SavedWhat,
}

/// What of a partition is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedWhat {
    /// Its place in the SSTable of this number.
    Place(u64),
    /// Its first rows.
    Rows,
    /// A counter: its row, packed, the static one for none, and its column in the table's layout.
    Counter(Option<Vec<u8>>, u16),
}

/// The path of one of the files of a cache.
fn path_of(directory: &Path, kind: CacheKind, extension: &str) -> Option<PathBuf> {
    Some(directory.join(file_name(kind, extension)?))
}

/// Writes a file, and sums up its chunks.
struct ChunkWriter {
    file: File,
    path: PathBuf,
    at: u64,
    chunk: Vec<u8>,
    crcs: Vec<u8>,
}

impl ChunkWriter {
    async fn put(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.chunk.extend_from_slice(bytes);
        while self.chunk.len() >= CHUNK_BYTES {
            let rest = self.chunk.split_off(CHUNK_BYTES);
            let full = std::mem::replace(&mut self.chunk, rest);
            self.write(full).await?;
        }
        Ok(())
    }

    async fn write(&mut self, chunk: Vec<u8>) -> Result<(), StorageError> {
        self.crcs.put_u32(crc32fast::hash(&chunk));
        let length = chunk.len() as u64;
        let (written, _) = self.file.write_all_at(chunk, self.at).await;
        written.map_err(|error| StorageError::io("cannot write", &self.path, error))?;
        self.at += length;
        Ok(())
    }

    /// Writes what is left; the checksums of all.
    async fn finish(mut self) -> Result<Vec<u8>, StorageError> {
        let last = std::mem::take(&mut self.chunk);
        if !last.is_empty() {
            self.write(last).await?;
        }
        Ok(self.crcs)
    }
}

/// Makes a file anew, without syncing it.
async fn create(engine: &Engine, path: &Path) -> Result<File, StorageError> {
    let options = OpenOptions { truncate: true, ..OpenOptions::READ_WRITE };
    let file = File::open(engine.env(), path, options).await;
    file.map_err(|error| StorageError::io("cannot create", path, error))
}

async fn write_whole(engine: &Engine, path: &Path, bytes: Vec<u8>) -> Result<(), StorageError> {
    let (written, _) = create(engine, path).await?.write_all_at(bytes, 0).await;
    written.map_err(|error| StorageError::io("cannot write", path, error))
}

/// Where a file is written before it takes its name.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    PathBuf::from(name)
}

/// Gives each table and SSTable its place.
#[derive(Default)]
struct Places {
    metadata: Metadata,
    tables: BTreeMap<TableId, usize>,
    sstables: BTreeMap<u64, usize>,
}

impl Places {
    fn of(&mut self, entry: &KeptEntry) -> usize {
        let tables = &mut self.metadata.tables;
        let table = *self.tables.entry(entry.table).or_insert_with(|| {
            tables.push(Some(entry.table));
            tables.len() - 1
        });
        let Some((number, descriptor)) = entry.sstable else { return table };
        let sstables = &mut self.metadata.sstables;
        *self.sstables.entry(number).or_insert_with(|| {
            sstables.push((table, Some(descriptor)));
            sstables.len() - 1
        })
    }
}

/// Saves what the shards keep of a cache: at most so many entries, what was asked for of late
/// first; 0 is all. Gives their number. On the first shard.
///
/// # Errors
/// If the files cannot be written: there are none then, or the old ones.
pub async fn save_cache(
    engine: &Rc<Engine>,
    kind: CacheKind,
    directory: &Path,
    most: u32,
) -> Result<u64, StorageError> {
    let all = [path_of(directory, kind, "db"), path_of(directory, kind, "crc")];
    let ([Some(data), Some(crc)], Some(metadata)) = (all, path_of(directory, kind, "metadata"))
    else {
        return Ok(0);
    };
    let mut writer = ChunkWriter {
        file: create(engine, &beside(&data)).await?,
        path: beside(&data),
        at: 0,
        chunk: Vec::new(),
        crcs: (CHUNK_BYTES as u32).to_be_bytes().to_vec(),
    };
    writer.put(&engine.schema().version()).await?;
    let most = if most == 0 { u64::MAX } else { most.into() };
    let (mut places, mut saved, mut bytes) = (Places::default(), 0, Vec::new());
    for (is_used, shard) in [true, false]
        .into_iter()
        .flat_map(|used| (0..engine.shards().count()).map(move |s| (used, s)))
    {
        let mut from = Some(0);
        while let Some(place) = from.filter(|_| saved < most) {
            let give = move |engine: &Rc<Engine>| kept_names(engine, kind, place, PAGE, is_used);
            let Kept { entries, next } = engine.shards().call(shard, give).await?;
            for entry in entries.into_iter().take((most - saved) as usize) {
                bytes.clear();
                bytes.put_uvint(places.of(&entry) as u64);
                bytes.put(&entry.bytes);
                writer.put(&bytes).await?;
                saved += 1;
            }
            from = next;
        }
    }
    let crcs = writer.finish().await?;
    write_whole(engine, &beside(&crc), crcs).await?;
    write_whole(engine, &beside(&metadata), places.metadata.encode(kind)).await?;
    remove(engine, &[&metadata, &data, &crc]).await?;
    for path in [&data, &crc, &metadata] {
        match saved {
            0 => remove(engine, &[&beside(path)]).await?,
            _ => {
                let renamed = engine.env().rename(beside(path), path).await;
                renamed.map_err(|error| StorageError::io("cannot rename", path, error))?;
            }
        }
    }
    Ok(saved)
}

async fn remove(engine: &Engine, paths: &[&Path]) -> Result<(), StorageError> {
    for path in paths {
        match engine.env().remove_file(path).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StorageError::io("cannot remove", *path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A saved cache that is being read.
pub struct SavedCache {
    engine: Rc<Engine>,
    kind: CacheKind,
    metadata: Metadata,
    /// Of each SSTable that is here, its number.
    numbers: Vec<Option<u64>>,
    path: PathBuf,
    file: File,
    /// Bytes that the file has, and those that were read.
    length: u64,
    at: u64,
    chunk: usize,
    crcs: std::vec::IntoIter<[u8; 4]>,
    buffer: Vec<u8>,
    /// Where in the buffer the next entry begins.
    next: usize,
}

impl SavedCache {
    /// Opens what was saved of a cache; none if nothing was.
    ///
    /// # Errors
    /// If the files cannot be read, are damaged or of another schema.
    pub async fn open(
        engine: &Rc<Engine>,
        kind: CacheKind,
        directory: &Path,
    ) -> Result<Option<Self>, StorageError> {
        let all = ["db", "crc", "metadata"].map(|extension| path_of(directory, kind, extension));
        let [Some(path), Some(crc), Some(metadata)] = all else { return Ok(None) };
        for path in [&path, &crc, &metadata] {
            let exists = engine.env().exists(path).await;
            if !exists.map_err(|error| StorageError::io("cannot stat", path, error))? {
                return Ok(None);
            }
        }
        let read = async |path: &PathBuf, most| {
            let bytes = engine.env().read_file(path, most).await;
            bytes.map_err(|error| StorageError::io("cannot read", path, error))
        };
        let bytes = read(&metadata, METADATA_BYTES_MAX).await?;
        let metadata = Metadata::decode(kind, &bytes)
            .map_err(|error| StorageError::corrupt(&metadata, error))?;
        let bytes = read(&crc, CRC_BYTES_MAX).await?;
        let (words, _) = bytes.as_chunks::<4>();
        let (chunk, crcs) = words.split_first().unwrap_or((&[0; 4], &[]));
        let chunk = u32::from_be_bytes(*chunk) as usize;
        if !(1..=CHUNK_BYTES_MAX).contains(&chunk) {
            return Err(StorageError::corrupt(
                &crc,
                format!("its chunks have {chunk} bytes, which is not supported"),
            ));
        }
        let failed = |error| StorageError::io("cannot read", &path, error);
        let file = File::open(engine.env(), &path, OpenOptions::READ).await.map_err(failed)?;
        let length = file.len().await.map_err(failed)?;
        let numbers = numbers_of(engine, &metadata);
        let mut cache = Self {
            engine: Rc::clone(engine),
            kind,
            metadata,
            numbers,
            path,
            file,
            length,
            at: 0,
            chunk,
            crcs: Vec::from(crcs).into_iter(),
            buffer: Vec::new(),
            next: 0,
        };
        while cache.buffer.len() < SCHEMA_BYTES {
            if !cache.read_chunk().await? {
                return Err(StorageError::corrupt(&cache.path, "it has no schema version"));
            }
        }
        if cache.buffer.get(..SCHEMA_BYTES) != Some(&engine.schema().version()[..]) {
            let what = "it was saved under another schema, ignored it".to_owned();
            return Err(StorageError::Refused { path: cache.path, what });
        }
        cache.next = SCHEMA_BYTES;
        Ok(Some(cache))
    }

    /// Reads and checks another chunk; false at the end.
    async fn read_chunk(&mut self) -> Result<bool, StorageError> {
        let length = (self.length - self.at).min(self.chunk as u64) as usize;
        if length == 0 {
            return Ok(false);
        }
        self.buffer.drain(..self.next);
        self.next = 0;
        let (read, bytes) =
            self.file.read_exact_at(Vec::with_capacity(length), self.at, length).await;
        read.map_err(|error| StorageError::io("cannot read", &self.path, error))?;
        if self.crcs.next().map(u32::from_be_bytes) != Some(crc32fast::hash(&bytes)) {
            let what = format!("the chunk at {} fails its checksum", self.at);
            return Err(StorageError::corrupt(&self.path, what));
        }
        self.at += length as u64;
        self.buffer.extend_from_slice(&bytes);
        Ok(true)
    }

    /// The next names, at most so many, of what this node has; none at the end.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub async fn next(&mut self, most: usize) -> Result<Vec<SavedName>, StorageError> {
        let mut names = Vec::new();
        while names.len() < most {
            let rest = self.buffer.get(self.next..).unwrap_or_default();
            let is_end = self.at >= self.length;
            if rest.is_empty() && is_end {
                break;
            }
            let layout = |place| layout_of(&self.engine, &self.metadata, place);
            match read_entry(self.kind, &self.metadata, layout, rest) {
                Ok(entry) => {
                    names.extend(self.name_of(&entry));
                    self.next += entry.length;
                }
                // it may go on in the next chunk
                Err(_) if !is_end && rest.len() < ENTRY_BYTES_MAX => {
                    self.read_chunk().await?;
                }
                Err(what) => return Err(StorageError::corrupt(&self.path, what)),
            }
        }
        Ok(names)
    }

    /// What an entry names, if that is here.
    fn name_of(&self, entry: &format::Entry<'_>) -> Option<SavedName> {
        let (table, what) = match self.kind {
            CacheKind::Chunks => return None,
            CacheKind::Keys => {
                let (table, _) = *self.metadata.sstables.get(entry.place)?;
                (table, SavedWhat::Place((*self.numbers.get(entry.place)?)?))
            }
            CacheKind::Rows => (entry.place, SavedWhat::Rows),
            CacheKind::Counters => {
                let layout = layout_of(&self.engine, &self.metadata, entry.place)?;
                let (row, column) =
                    layout.counter.then(|| read_counter(&layout, entry.counter)).flatten()?;
                (entry.place, SavedWhat::Counter(row, column))
            }
        };
        let table = (*self.metadata.tables.get(table)?)?;
        Some(SavedName { table, key: PartitionKey::new(entry.key), what })
    }
}

fn layout_of(engine: &Engine, metadata: &Metadata, place: usize) -> Option<Arc<Layout>> {
    let table = (*metadata.tables.get(place)?)?;
    let store = engine.store(table).ok()?;
    Some(Arc::clone(&store.table().layout))
}

/// Of each SSTable that a saved cache names, the number that it has here.
fn numbers_of(engine: &Engine, metadata: &Metadata) -> Vec<Option<u64>> {
    let mut here: BTreeMap<(TableId, Descriptor), u64> = BTreeMap::new();
    for id in metadata.tables.iter().flatten() {
        let Ok(store) = engine.store(*id) else { continue };
        for sstable in store.live().tables() {
            here.insert((*id, sstable.table.descriptor), sstable.number);
        }
    }
    let number = |(table, descriptor): &(usize, Option<Descriptor>)| {
        let table = (*metadata.tables.get(*table)?)?;
        here.get(&(table, (*descriptor)?)).copied()
    };
    metadata.sstables.iter().map(number).collect()
}
