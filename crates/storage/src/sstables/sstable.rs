//! An SSTable as the node knows it: opened from its small components, named by a number.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use env::{Env, File, OpenOptions};
use sstable::bti::PARTITIONS_TAIL_MAX;
use sstable::descriptor::{Component, Descriptor, Format};
use sstable::table::{IndexParts, Parts, Table};

use types::Uuid;

use crate::error::StorageError;
use crate::repair_status::RepairStatus;

/// No small component is larger: what would be is no component of a table that anybody could open.
const COMPONENT_BYTES_MAX: u64 = 1 << 30;
/// Bytes of components that are held in memory from which on a helper decodes them: it takes the
/// shard too long.
const LARGE_BYTES: usize = 64 << 10;

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
    /// The change of the table's set by which the newest of its content came in: a task that began
    /// after it has seen all of that.
    pub(crate) epoch: u64,
    /// Its level, as its metadata name it.
    level: AtomicUsize,
    /// Its state, as its metadata name it. The first shard changes it; others look at it where they
    /// choose what to stream, never on the path of a request.
    repair: Mutex<RepairStatus>,
    /// Something of it could not be read: no compaction begins on it of itself.
    is_suspect: AtomicBool,
}

/// What an SSTable that came from another node says of itself from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its level.
    pub level: i32,
    /// When it was repaired, in milliseconds since 1970; 0 for never.
    pub repaired_at: i64,
    /// The incremental repair that it waits for.
    pub pending_repair: Option<Uuid>,
}

/// The highest level that there is (`LeveledGenerations.MAX_LEVEL_COUNT`).
const LEVEL_MAX: i32 = 8;

impl Stamp {
    /// The level that is nearest to what another node says.
    pub(crate) fn level(said: i32) -> i32 {
        said.clamp(0, LEVEL_MAX)
    }
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
    /// If a component cannot be read, is damaged or missing.
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
                Ok(None) => Err(StorageError::incomplete(path)),
                Err(error) => Err(StorageError::io("cannot stat", path, error)),
            }
        };
        let needed = async |component: Component| {
            let missing = || {
                let path = directory.join(descriptor.file(&component));
                StorageError::incomplete(path)
            };
            read(component.clone()).await?.ok_or_else(missing)
        };
        let index = match descriptor.format {
            Format::Big => IndexParts::Big {
                summary: needed(Component::Summary).await?,
                length: facts(Component::Index).await?.len,
            },
            Format::Bti => {
                let keys = facts(Component::Partitions).await?.len;
                let path = directory.join(descriptor.file(&Component::Partitions));
                IndexParts::Bti {
                    tail: read_tail(env, &path, keys, PARTITIONS_TAIL_MAX).await?,
                    length: keys,
                    rows_length: facts(Component::Rows).await?.len,
                }
            }
        };
        let data = facts(Component::Data).await?;
        let now = env.unix_micros() / 1000;
        let parts = Parts {
            statistics: needed(Component::Statistics).await?,
            filter: read(Component::Filter).await?,
            compression: read(Component::CompressionInfo).await?,
            checksums: read(Component::Crc).await?,
            data_length: data.len,
            index,
        };
        if parts.compression.is_none() && parts.checksums.is_none() {
            let path = directory.join(descriptor.file(&Component::CompressionInfo));
            return Err(StorageError::Incomplete { path, what: "both it and CRC.db are missing" });
        }
        let small = [&parts.filter, &parts.compression, &parts.checksums];
        let small: usize = small.iter().filter_map(|part| part.as_ref()).map(Vec::len).sum();
        let index_bytes = match &parts.index {
            IndexParts::Big { summary, length } => summary.len() as u64 + length,
            IndexParts::Bti { length, rows_length, .. } => length + rows_length,
        };
        let bytes_on_disk =
            parts.data_length + index_bytes + (small + parts.statistics.len()) as u64;
        let path = directory.join(descriptor.file(&Component::Data));
        let descriptor = *descriptor;
        let decode = move || Table::open(descriptor, parts, counter);
        // of many chunks or keys too long for the shard
        let table = if small >= LARGE_BYTES { env.helper(decode).await } else { decode() };
        let table = table.map_err(|error| StorageError::corrupt(path, error))?;
        Ok(Self {
            number,
            directory: directory.to_path_buf(),
            bytes_on_disk,
            created_millis: data.modified_millis.unwrap_or(now),
            epoch: 0,
            level: AtomicUsize::new(usize::try_from(table.statistics.stats.level).unwrap_or(0)),
            repair: Mutex::new(RepairStatus::of(
                table.statistics.stats.repaired_at,
                table.statistics.stats.pending_repair,
            )),
            is_suspect: AtomicBool::new(false),
            table: Arc::new(table),
        })
    }

    /// The same, as part of a table since the change of this number.
    pub(crate) fn of_epoch(mut self, epoch: u64) -> Arc<Self> {
        self.epoch = epoch;
        Arc::new(self)
    }

    /// Where it is, and its name there.
    pub(crate) fn place(&self) -> (PathBuf, Descriptor) {
        (self.directory.clone(), self.table.descriptor)
    }

    /// Something of it could not be read.
    pub(crate) fn suspect(&self) {
        self.is_suspect.store(true, Ordering::Relaxed);
    }

    /// Could something of it not be read?
    pub(crate) fn is_suspect(&self) -> bool {
        self.is_suspect.load(Ordering::Relaxed)
    }

    /// Its level.
    pub fn level(&self) -> usize {
        self.level.load(Ordering::Relaxed)
    }

    /// Gives it another level, and makes that durable: its metadata are written anew.
    pub(crate) async fn set_level(&self, env: &Env, level: usize) -> Result<(), StorageError> {
        let descriptor = &self.table.descriptor;
        // Metadata of another version keep the level that they have; a start puts it where it is
        // now.
        if descriptor.version.is_written() {
            self.write_statistics(env, level, self.repair_status()).await?;
        }
        self.level.store(level, Ordering::Relaxed);
        Ok(())
    }

    /// What incremental repair knows of it.
    pub fn repair_status(&self) -> RepairStatus {
        *self.repair.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Can its metadata be written anew? Those of another version cannot: to change its state it
    /// is rewritten.
    pub(crate) fn is_stampable(&self) -> bool {
        self.table.descriptor.version.is_written()
    }

    /// Gives it another state, and makes that durable: its metadata are written anew.
    pub(crate) async fn set_repair_status(
        &self,
        env: &Env,
        status: RepairStatus,
    ) -> Result<(), StorageError> {
        assert!(self.is_stampable(), "the metadata of an SSTable of another version stay");
        if self.repair_status() != status {
            if !env.planted("repair_status_not_written") {
                self.write_statistics(env, self.level(), status).await?;
            }
            *self.repair.lock().unwrap_or_else(PoisonError::into_inner) = status;
        }
        Ok(())
    }

    /// Its metadata say so from now on; those of another version stay, but for the level.
    pub(crate) async fn stamp(&self, env: &Env, stamp: Stamp) -> Result<(), StorageError> {
        let stamp = Stamp { level: Stamp::level(stamp.level), ..stamp };
        self.level.store(stamp.level as usize, Ordering::Relaxed);
        let status = RepairStatus::of(stamp.repaired_at, stamp.pending_repair.map(Uuid::to_bytes));
        let is_so =
            self.table.statistics.stats.level == stamp.level && self.repair_status() == status;
        if is_so || !self.is_stampable() {
            return Ok(());
        }
        self.write_statistics(env, self.level(), status).await?;
        *self.repair.lock().unwrap_or_else(PoisonError::into_inner) = status;
        Ok(())
    }

    /// Writes its metadata anew.
    async fn write_statistics(
        &self,
        env: &Env,
        level: usize,
        status: RepairStatus,
    ) -> Result<(), StorageError> {
        let mut statistics = self.table.statistics.clone();
        statistics.stats.level = level as i32;
        statistics.stats.repaired_at = status.repaired_at();
        statistics.stats.pending_repair = status.session().map(Uuid::to_bytes);
        let path = self.path(&Component::Statistics);
        let bytes = statistics.encode(self.table.descriptor.version);
        let bytes = bytes.map_err(|e| StorageError::corrupt(&path, e))?;
        let written = env.write_file_atomically(&path, bytes).await;
        written.map_err(|error| StorageError::io("cannot write", path, error))
    }

    /// The path of a component.
    pub fn path(&self, component: &Component) -> PathBuf {
        self.directory.join(self.table.descriptor.file(component))
    }
}

/// The last bytes of a file, at most so many.
async fn read_tail(
    env: &Env,
    path: &Path,
    length: u64,
    most: u64,
) -> Result<Vec<u8>, StorageError> {
    let failed = |e| StorageError::io("cannot read", path, e);
    let file = File::open(env, path, OpenOptions::READ).await.map_err(failed)?;
    let bytes = length.min(most);
    let buffer = Vec::with_capacity(bytes as usize);
    let (result, tail) = file.read_exact_at(buffer, length - bytes, bytes as usize).await;
    result.map_err(failed)?;
    Ok(tail)
}

/// Refuses an SSTable of a version or format that is not read; `advice` is what else the operator
/// can do than to rewrite it.
pub(crate) fn refuse_unreadable(
    descriptor: &Descriptor,
    path: PathBuf,
    advice: &str,
) -> Result<(), StorageError> {
    let Descriptor { version, format, .. } = descriptor;
    if version.is_readable(*format) {
        return Ok(());
    }
    let what = format!(
        "this release does not read SSTables of format {version}-{format}; rewrite it with \
         nodetool upgradesstables of Cassandra 4.1 or 5.0{advice}"
    );
    Err(StorageError::UnsupportedVersion { path, what })
}
