//! SSTables that another node sends: how their bytes become files of this one.
//!
//! A file arrives on whichever shard has its connection, and is written there. [`Arrivals`] on the
//! first shard say where, and adopt what came.
//!
//! Components of an SSTable that is sent whole are written as they come. Of one that is sent in
//! sections the partitions are decoded and written anew, in the table's present layout.
//!
//! [`Arrivals`]: crate::Arrivals

use std::path::PathBuf;
use std::sync::Arc;

use crc32fast::Hasher;
use env::{Class, Directory, Env};
use rows::{Bound, ColumnMap, RowBuilder, RowRef, Unfiltered, compare};
use schema::Table;
use sstable::checksum::parse_digest;
use sstable::data::{DataCursor, Next, Shape, StreamShape};
use sstable::descriptor::{Component, Descriptor, Version};
use sstable::statistics::HeaderComponent;
use types::{Token, TokenRange};

use crate::engine::Engine;
use crate::error::StorageError;
use crate::io::FileWriter;
use crate::maintenance::fits;
use crate::memtable::PartitionKey;
use crate::node_tables::writer_options;
use crate::read::column_map;
use crate::sstables::{Output, Stamp};

/// Partitions that a filter is made for at most, whatever the sender says: its filter has 80 MB.
/// With more of them it has more false positives, until a compaction.
const PARTITIONS_MAX: u64 = 1 << 26;
/// The least bytes that a partition has: a key, its length, a deletion, an end.
const PARTITION_BYTES_LEAST: u64 = 16;
/// Bytes of data that room is made for in memory before they come, at most: of the places of their
/// chunks, 50 MB with chunks of 16 KiB.
const BYTES_MAX: u64 = 64 << 30;

/// No digest has more bytes.
const DIGEST_BYTES_MAX: usize = 64;

/// Where an SSTable that arrives is to be.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its table.
    pub table: Arc<Table>,
    /// The directory.
    pub directory: PathBuf,
    /// Its name.
    pub descriptor: Descriptor,
}

impl Place {
    /// The path of a component.
    pub fn path(&self, component: &Component) -> PathBuf {
        self.directory.join(self.descriptor.file(component))
    }
}

/// An SSTable of which all components come as they are.
#[derive(Debug)]
pub struct WholeFile {
    env: Env,
    place: Place,
    /// Open since before the first file has a name.
    names: Option<Directory>,
    components: Vec<Component>,
    data: Option<u32>,
    digest: Option<Vec<u8>>,
}

impl WholeFile {
    /// None has come yet.
    pub fn new(env: &Env, place: Place) -> Self {
        let env = env.clone();
        Self { env, place, names: None, components: Vec::new(), data: None, digest: None }
    }

    /// Begins with a component.
    ///
    /// # Errors
    /// If its file cannot be created.
    pub async fn component(
        &mut self,
        component: Component,
    ) -> Result<ComponentFile<'_>, StorageError> {
        if self.names.is_none() {
            self.names = Some(self.open_directory().await?);
        }
        let path = self.place.path(&component);
        let stream = match component {
            Component::Data => FileWriter::create_direct(&self.env, path, Class::Streaming).await?,
            _ => FileWriter::create(&self.env, path, Class::Streaming).await?,
        };
        let digest = (component == Component::Digest).then(Vec::new);
        Ok(ComponentFile { of: self, component, stream, checksum: Hasher::new(), digest })
    }

    async fn open_directory(&self) -> Result<Directory, StorageError> {
        let directory = &self.place.directory;
        let opened = self.env.open_dir(directory).await;
        opened.map_err(|e| StorageError::io("cannot open", directory, e))
    }

    /// All components have come: the table of contents is written, and what came is durable.
    ///
    /// # Errors
    /// If the data is not what its digest says, or cannot be made durable.
    pub async fn finish(self) -> Result<(), StorageError> {
        let path = self.place.path(&Component::Data);
        let refused = |what: String| StorageError::Refused { path: path.clone(), what };
        if let (Some(computed), Some(digest)) = (self.data, &self.digest) {
            let text = String::from_utf8_lossy(digest);
            let stored = parse_digest(&text).map_err(|error| refused(error.to_string()))?;
            if computed != stored {
                let what = format!(
                    "what was received fails its checksum: {computed:08x} computed, {stored:08x} \
                     in its digest"
                );
                return Err(refused(what));
            }
        }
        let names = self.components.iter().chain([&Component::Toc]);
        let mut contents = String::new();
        for name in names {
            contents.push_str(&name.to_string());
            contents.push('\n');
        }
        let names = match self.names {
            Some(names) => names,
            None => self.open_directory().await?,
        };
        let toc = self.place.path(&Component::Toc);
        let mut stream = FileWriter::create(&self.env, toc, Class::Streaming).await?;
        stream.write(&mut contents.into_bytes()).await?;
        stream.sync().await?;
        let directory = &self.place.directory;
        let synced = names.sync().await;
        synced.map_err(|e| StorageError::io("cannot sync", directory, e))
    }
}

/// A component that is coming.
pub struct ComponentFile<'a> {
    of: &'a mut WholeFile,
    component: Component,
    stream: FileWriter,
    checksum: Hasher,
    digest: Option<Vec<u8>>,
}

impl std::fmt::Debug for ComponentFile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ComponentFile({})", self.component)
    }
}

impl ComponentFile<'_> {
    /// Appends bytes, of which nothing is left.
    ///
    /// # Errors
    /// If they cannot be written.
    pub async fn write(&mut self, bytes: &mut Vec<u8>) -> Result<(), StorageError> {
        if self.component == Component::Data {
            self.checksum.update(bytes);
        }
        if let Some(digest) = &mut self.digest {
            let room = DIGEST_BYTES_MAX.saturating_sub(digest.len());
            digest.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
        self.stream.write(bytes).await
    }

    /// All of it has come.
    ///
    /// # Errors
    /// If it cannot be made durable.
    pub async fn end(mut self) -> Result<(), StorageError> {
        self.stream.end().await?;
        if !self.of.env.planted("stream_published_before_sync") {
            self.stream.sync().await?;
        }
        if self.component == Component::Data {
            self.of.data = Some(self.checksum.finalize());
        }
        if self.digest.is_some() {
            self.of.digest = self.digest;
        }
        self.of.components.push(self.component);
        Ok(())
    }
}

/// What is known of an SSTable of which sections come.
#[derive(Clone, Debug)]
pub struct SectionsOptions {
    /// The version of the SSTable that they come from.
    pub version: Version,
    /// What its rows are written with.
    pub header: HeaderComponent,
    /// How many partitions come, about.
    pub partitions: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// The level of the SSTable.
    pub level: i32,
    /// When it was repaired, in milliseconds since 1970; 0 for never.
    pub repaired_at: i64,
    /// Where its partitions may be: normalized.
    pub owned: Arc<[TokenRange]>,
}

/// Bytes of sections, one after the other, without compression.
#[expect(async_fn_in_trait, reason = "they are read on the shard that has the connection")]
pub trait SectionBytes {
    /// Why there are none.
    type Error;

    /// The next ones. There are some as long as not all have come.
    ///
    /// # Errors
    /// If the connection broke, or they are not what they should be.
    async fn next(&mut self) -> Result<Vec<u8>, Self::Error>;
}

/// Why sections did not become an SSTable.
#[derive(Debug)]
pub enum SectionsError<E> {
    /// They did not come.
    Bytes(E),
    /// They are no partitions of the table, or could not be written.
    Storage(StorageError),
}

impl<E> From<StorageError> for SectionsError<E> {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

/// Writes the partitions of sections; false if there is nothing in them.
///
/// # Errors
/// If the bytes are no partitions of the table in order, are not this node's, or cannot be written.
pub async fn write_sections<B: SectionBytes>(
    engine: &Engine,
    place: &Place,
    options: SectionsOptions,
    bytes: &mut B,
) -> Result<bool, SectionsError<B::Error>> {
    let mut writer_options = writer_options(engine, &place.table)?;
    writer_options.stats = options.header.stats;
    let most = (options.bytes / PARTITION_BYTES_LEAST).clamp(1, PARTITIONS_MAX);
    writer_options.partitions = options.partitions.clamp(1, most);
    writer_options.bytes = options.bytes.min(BYTES_MAX);
    writer_options.level = Stamp::level(options.level);
    writer_options.repaired_at = options.repaired_at;
    let Place { table, directory, descriptor } = place;
    let (version, header) = (options.version, &options.header);
    let refused = |what: String| {
        let path = place.path(&Component::Data);
        StorageError::Refused { path, what: format!("what was received: {what}") }
    };
    let shape = StreamShape::new(version, header, table.is_counter(), options.bytes);
    let shape = Arc::new(shape.map_err(|error| refused(error.to_string()))?);
    fits(table, header, shape.layout()).map_err(refused)?;
    let file = place.path(&Component::Data);
    let output = Output::create(
        (engine.env(), Class::Streaming),
        engine.options.passes_page_cache,
        directory,
        *descriptor,
        writer_options,
        engine.watch(table, file),
    );
    let map = column_map(shape.layout(), table);
    let sections = Sections {
        env: engine.env(),
        place,
        owned: &options.owned,
        map: (!map.is_identity()).then_some(map),
        length: options.bytes,
        data: DataCursor::new(&shape, 0),
        scratch: RowBuilder::new(),
        packed: Vec::new(),
        output: output.await?,
    };
    sections.write(bytes).await
}

/// Sections on their way into an SSTable.
struct Sections<'a> {
    env: &'a Env,
    place: &'a Place,
    owned: &'a [TokenRange],
    map: Option<ColumnMap>,
    length: u64,
    data: DataCursor<StreamShape>,
    scratch: RowBuilder,
    packed: Vec<u8>,
    output: Output,
}

impl Sections<'_> {
    fn refused(&self, what: impl std::fmt::Display) -> StorageError {
        let path = self.place.path(&Component::Data);
        StorageError::Refused { path, what: format!("what was received: {what}") }
    }

    async fn feed<B: SectionBytes>(
        &mut self,
        bytes: &mut B,
    ) -> Result<(), SectionsError<B::Error>> {
        let next = bytes.next().await.map_err(SectionsError::Bytes)?;
        if next.is_empty() {
            return Err(self.refused("it ends inside a partition").into());
        }
        self.data.feed(&next);
        Ok(())
    }

    async fn write<B: SectionBytes>(
        mut self,
        bytes: &mut B,
    ) -> Result<bool, SectionsError<B::Error>> {
        let mut last: Option<PartitionKey> = None;
        while self.data.position() < self.length {
            last = Some(self.partition(bytes, last).await?);
            self.env.maybe_yield().await;
        }
        Ok(self.output.finish().await?)
    }

    /// Takes over a partition that is behind the last one.
    async fn partition<B: SectionBytes>(
        &mut self,
        bytes: &mut B,
        last: Option<PartitionKey>,
    ) -> Result<PartitionKey, SectionsError<B::Error>> {
        let start = loop {
            match self.data.partition_start().map_err(|error| self.refused(error))? {
                Some(start) => break start,
                None => self.feed(bytes).await?,
            }
        };
        let key = PartitionKey::new(start.key.as_slice());
        if last.is_some_and(|last| key <= last) {
            return Err(self.refused("its partitions are out of order").into());
        }
        if !TokenRange::any_contains(self.owned, Token::of(&start.key)) {
            let (table, token) = (&self.place.table, Token::of(&start.key));
            let what = format!(
                "a key with token {token}, which is not in a range of {}.{} that this node owns or \
                 is about to own",
                table.keyspace, table.name
            );
            return Err(self.refused(what).into());
        }
        let mapped = start.static_row.as_ref().and_then(|row| {
            let row = RowRef::from_packed(row);
            let mapped = match &self.map {
                Some(map) => map.apply(row, &self.place.table.layout, &mut self.scratch),
                None => Some(row),
            };
            mapped.map(|row| row.as_packed().to_vec())
        });
        let static_row = mapped.as_deref().map(RowRef::from_packed);
        let mut is_started = start.deletion != rows::Deletion::LIVE || static_row.is_some();
        if is_started {
            self.output.start(&start.key, start.deletion, static_row)?;
        }
        let mut before: Option<Bound> = None;
        while self.next(bytes, &mut before).await? {
            let unfiltered = match (&self.map, Unfiltered::from_packed(&self.packed)) {
                (Some(map), Unfiltered::Row(row)) => {
                    // where only dropped columns were in a row, nothing is left of it
                    let mapped = map.apply(row, &self.place.table.layout, &mut self.scratch);
                    let Some(row) = mapped else { continue };
                    Unfiltered::Row(row)
                }
                (_, unfiltered) => unfiltered,
            };
            if !std::mem::replace(&mut is_started, true) {
                self.output.start(&start.key, start.deletion, static_row)?;
            }
            self.output.append(unfiltered)?;
            self.output.drain().await?;
            self.env.maybe_yield().await;
        }
        if is_started {
            self.output.end()?;
        }
        Ok(key)
    }

    /// Decodes the partition's next row or marker, which must be behind the one before. False at
    /// the partition's end.
    async fn next<B: SectionBytes>(
        &mut self,
        bytes: &mut B,
        before: &mut Option<Bound>,
    ) -> Result<bool, SectionsError<B::Error>> {
        loop {
            match self.data.next(&mut self.packed).map_err(|error| self.refused(error))? {
                Next::End => return Ok(false),
                Next::NeedMore => self.feed(bytes).await?,
                Next::Unfiltered => break,
            }
        }
        let position = Unfiltered::from_packed(&self.packed).position();
        let layout = &self.place.table.layout;
        let is_behind = |before: &Bound| compare(layout, before.as_ref(), position).is_lt();
        if !before.as_ref().is_none_or(is_behind) {
            return Err(self.refused("rows of a partition are out of order").into());
        }
        match before {
            Some(before) => before.set(position),
            None => *before = Some(position.to_owned()),
        }
        Ok(true)
    }
}
