//! Writing an SSTable's files.

use env::{Class, Directory, Env};
use rows::codec::PlainRow;
use rows::{ClusteringRef, Deletion, RowRef, Unfiltered};
use sstable::descriptor::{Component, Descriptor, Format};
use sstable::writer::{Writer, WriterOptions};
use std::path::{Path, PathBuf};

use super::Watch;
use crate::error::StorageError;
use crate::io::{FileWriter, WRITE_BYTES};

/// Partitions, or kilobytes of data, from which on what is kept of all of them in memory - a Bloom
/// filter, the places of chunks - takes the shard too long to make or to encode: a helper does it.
const LARGE_ROWS: u64 = 1 << 12;

/// An SSTable being written to its directory.
pub(crate) struct Output {
    env: Env,
    class: Class,
    directory: PathBuf,
    /// Open since before the files have names.
    names: Directory,
    descriptor: Descriptor,
    writer: Writer,
    large: bool,
    data: FileWriter,
    index: FileWriter,
    /// `Rows.db`, where there is one.
    rows: Option<FileWriter>,
    watch: Option<Watch>,
}

impl Output {
    /// Creates the files; the disk's time for them is this class's. The data may bypass the page
    /// cache.
    pub async fn create(
        (env, class): (&Env, Class),
        bypasses_page_cache: bool,
        directory: &Path,
        descriptor: Descriptor,
        options: WriterOptions,
        watch: Option<Watch>,
    ) -> Result<Self, StorageError> {
        let path = |component| directory.join(descriptor.file(&component));
        let opened = env.open_dir(directory).await;
        let names = opened.map_err(|e| StorageError::io("cannot open", directory, e))?;
        let data = match bypasses_page_cache {
            true => FileWriter::create_direct(env, path(Component::Data), class).await?,
            false => FileWriter::create(env, path(Component::Data), class).await?,
        };
        let (keys, rows) = match descriptor.format {
            Format::Big => (Component::Index, None),
            Format::Bti => (Component::Partitions, Some(path(Component::Rows))),
        };
        let index = FileWriter::create(env, path(keys), class).await?;
        let rows = match rows {
            Some(path) => Some(FileWriter::create(env, path, class).await?),
            None => None,
        };
        let directory = directory.to_path_buf();
        let large = options.partitions.max(options.bytes >> 10) >= LARGE_ROWS;
        let begin = move || Writer::new(options);
        let writer = if large { env.helper(begin).await } else { begin() };
        Ok(Self {
            env: env.clone(),
            class,
            directory,
            names,
            descriptor,
            writer,
            large,
            data,
            index,
            rows,
            watch,
        })
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

    /// Appends a row as it lies among these bytes of another SSTable: nothing that is watched for
    /// is in one.
    pub fn append_plain(
        &mut self,
        place: ClusteringRef<'_>,
        row: &PlainRow,
        bytes: &[u8],
    ) -> Result<(), StorageError> {
        let appended = self.writer.append_plain(place, row, bytes);
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

    /// Bytes of its data so far, before compression.
    pub fn uncompressed_length(&self) -> u64 {
        self.writer.uncompressed_length()
    }

    /// Partitions in it.
    pub fn partitions(&self) -> u64 {
        self.writer.partitions()
    }

    /// An error of the writer.
    fn error(&self, error: impl std::fmt::Display) -> StorageError {
        StorageError::corrupt(self.data.path(), error)
    }

    /// Writes what has gathered, if it is worth it. To be called between rows. Returns the bytes
    /// written.
    pub async fn drain(&mut self) -> Result<u64, StorageError> {
        let mut written = 0;
        if self.writer.data().len() >= WRITE_BYTES {
            written += self.writer.data().len() as u64;
            self.data.write(self.writer.data()).await?;
        }
        if self.writer.index().len() >= WRITE_BYTES {
            self.index.write(self.writer.index()).await?;
        }
        self.drain_rows(WRITE_BYTES).await?;
        Ok(written)
    }

    /// Writes what has gathered for `Rows.db`, if it is so much.
    async fn drain_rows(&mut self, least: usize) -> Result<(), StorageError> {
        let both = self.rows.as_mut().zip(self.writer.rows());
        let Some((file, bytes)) = both.filter(|(_, bytes)| bytes.len() >= least) else {
            return Ok(());
        };
        file.write(bytes).await
    }

    /// Completes the table and makes it durable; `false` if nothing was written (the files remain).
    pub async fn finish(mut self) -> Result<bool, StorageError> {
        let finish = move |mut writer: Writer| (writer.finish(), writer);
        let (finished, writer) = match self.large {
            true => {
                let writer = self.writer;
                self.env.helper(move || finish(writer)).await
            }
            false => finish(self.writer),
        };
        self.writer = writer;
        let Some(small) = finished.map_err(|e| self.error(e))? else { return Ok(false) };
        self.data.write(self.writer.data()).await?;
        self.index.write(self.writer.index()).await?;
        self.drain_rows(0).await?;
        self.data.end().await?;
        let (stored, in_file) = (self.writer.stored_length(), self.data.length());
        assert_eq!(in_file, stored, "the data file has all bytes that the index points to");
        let sync = !self.env.planted("flush_published_before_sync");
        if sync {
            self.data.sync().await?;
            self.index.sync().await?;
            if let Some(rows) = &mut self.rows {
                rows.sync().await?;
            }
        }
        for (component, mut bytes) in small {
            let path = self.directory.join(self.descriptor.file(&component));
            let mut file = FileWriter::create(&self.env, path, self.class).await?;
            file.write(&mut bytes).await?;
            if sync {
                file.sync().await?;
            }
        }
        let synced = self.names.sync().await;
        synced.map_err(|e| StorageError::io("cannot sync", &self.directory, e))?;
        self.env.mark("sstable.durable");
        Ok(true)
    }
}
