//! Writing an SSTable's files, for flush and compaction.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::{Class, Env, File, OpenOptions};
use rows::{Deletion, RowRef, Unfiltered};
use schema::Table;
use sstable::descriptor::{Component, Descriptor};
use sstable::writer::{Writer, WriterOptions};

use crate::engine::Engine;
use crate::error::StorageError;
use crate::watch::Watch;

/// Bytes gathered before they are written to a file.
const WRITE_BYTES: usize = 256 << 10;
/// Bytes of a file that are sent to the device at a time.
const SEND_BYTES: u64 = WRITE_BYTES as u64;

/// An SSTable being written to its directory.
pub(crate) struct Output {
    env: Env,
    class: Class,
    directory: PathBuf,
    descriptor: Descriptor,
    writer: Writer,
    data: Stream,
    index: Stream,
    watch: Option<Watch>,
}

struct Stream {
    file: File,
    path: PathBuf,
    length: u64,
    /// What of it is on its way to the device.
    sent: u64,
}

impl Stream {
    async fn create(env: &Env, path: PathBuf, class: Class) -> Result<Self, StorageError> {
        let file = File::open(env, &path, OpenOptions::CREATE_NEW).await;
        let file = file.map_err(|e| StorageError::io("cannot create", &path, e))?;
        Ok(Self { file: file.with_class(class), path, length: 0, sent: 0 })
    }

    async fn write(&mut self, bytes: &mut Vec<u8>) -> Result<(), StorageError> {
        let length = bytes.len() as u64;
        let (result, mut buffer) = self.file.write_all_at(std::mem::take(bytes), self.length).await;
        result.map_err(|e| StorageError::io("cannot write", &self.path, e))?;
        self.length += length;
        buffer.clear();
        *bytes = buffer;
        self.send().await
    }

    /// Sends what was written to the device step by step, each when the one before has arrived: the device never has
    /// more than two of them, and the sync finds little left to do.
    async fn send(&mut self) -> Result<(), StorageError> {
        while self.length - self.sent >= SEND_BYTES {
            let from = self.sent.saturating_sub(SEND_BYTES);
            let sent = self.sent + SEND_BYTES;
            let taken = self.file.write_back(from, sent - from).await;
            taken.map_err(|e| StorageError::io("cannot write", &self.path, e))?;
            self.sent = sent;
        }
        Ok(())
    }

    async fn sync(&self) -> Result<(), StorageError> {
        let synced = self.file.sync_all().await;
        synced.map_err(|e| StorageError::io("cannot sync", &self.path, e))
    }
}

impl Output {
    /// Creates the files; the disk's time for them is this class's.
    pub async fn create(
        engine: &Engine,
        class: Class,
        table: &Arc<Table>,
        directory: &Path,
        descriptor: Descriptor,
        options: WriterOptions,
    ) -> Result<Self, StorageError> {
        let env = engine.env();
        let path = |component| directory.join(descriptor.file(&component));
        let data = Stream::create(env, path(Component::Data), class).await?;
        let index = Stream::create(env, path(Component::Index), class).await?;
        let directory = directory.to_path_buf();
        let writer = Writer::new(options);
        let watch = engine.watch(table, data.path.clone());
        Ok(Self { env: env.clone(), class, directory, descriptor, writer, data, index, watch })
    }

    /// Begins a partition.
    pub fn start(
        &mut self,
        key: &[u8],
        deletion: Deletion,
        static_row: Option<RowRef<'_>>,
    ) -> Result<(), StorageError> {
        if let Some(watch) = &mut self.watch {
            watch.start(key, self.writer.uncompressed_length(), deletion, static_row);
        }
        let started = self.writer.start_partition(key, deletion, static_row);
        started.map_err(|e| self.error(e))
    }

    /// Goes on with it.
    pub fn append(&mut self, unfiltered: Unfiltered<'_>) -> Result<(), StorageError> {
        if let Some(watch) = &mut self.watch {
            watch.append(unfiltered);
        }
        let appended = self.writer.append(unfiltered);
        appended.map_err(|e| self.error(e))
    }

    /// Ends it.
    pub fn end(&mut self) -> Result<(), StorageError> {
        let ended = self.writer.end_partition();
        ended.map_err(|e| self.error(e))?;
        if let Some(watch) = &self.watch {
            watch.end(self.writer.uncompressed_length());
        }
        Ok(())
    }

    /// It does not count as repaired.
    pub fn unrepaired(&mut self) {
        self.writer.set_repaired_at(0);
    }

    /// Bytes of its data so far, as stored.
    pub fn stored_length(&self) -> u64 {
        self.writer.stored_length()
    }

    /// Partitions in it.
    pub fn partitions(&self) -> u64 {
        self.writer.partitions()
    }

    /// An error of the writer.
    fn error(&self, error: impl std::fmt::Display) -> StorageError {
        StorageError::corrupt(&self.data.path, error)
    }

    /// Writes what has gathered, if it is worth it. To be called between rows. Returns the bytes written.
    pub async fn drain(&mut self) -> Result<u64, StorageError> {
        let mut written = 0;
        if self.writer.data().len() >= WRITE_BYTES {
            written += self.writer.data().len() as u64;
            self.data.write(self.writer.data()).await?;
        }
        if self.writer.index().len() >= WRITE_BYTES {
            self.index.write(self.writer.index()).await?;
        }
        Ok(written)
    }

    /// Completes the table and makes it durable; `false` if nothing was written (the files remain).
    pub async fn finish(mut self) -> Result<bool, StorageError> {
        let finished = self.writer.finish();
        let Some(small) = finished.map_err(|e| self.error(e))? else { return Ok(false) };
        self.data.write(self.writer.data()).await?;
        self.index.write(self.writer.index()).await?;
        let sync = !self.env.planted("flush_published_before_sync");
        if sync {
            self.data.sync().await?;
            self.index.sync().await?;
        }
        for (component, mut bytes) in small {
            let path = self.directory.join(self.descriptor.file(&component));
            let mut stream = Stream::create(&self.env, path, self.class).await?;
            stream.write(&mut bytes).await?;
            if sync {
                stream.sync().await?;
            }
        }
        let synced = self.env.sync_dir(&self.directory).await;
        synced.map_err(|e| StorageError::io("cannot sync", &self.directory, e))?;
        self.env.mark("sstable.durable");
        Ok(true)
    }
}
