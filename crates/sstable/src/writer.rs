//! Writing an SSTable of version `nb`, `oa` or `da` (`BigTableWriter`, `BtiTableWriter`,
//! `SortedTableWriter`, `CompressedSequentialWriter`), as bytes that the caller puts into files.
//!
//! Data and index come out while rows go in, so that memory stays bounded however large a partition
//! is; only the promoted index of the partition in the making, or the path to the last entry of a
//! trie, is held back.

use std::sync::Arc;

use rows::codec::{
    EncodeError, Encoder, EncodingStats, Header, PlainRow, write_partition_deletion,
};
use rows::{
    Bound, BoundRef, CellRef, ClusteringRef, Deletion, Layout, RowBuilder, RowRef, Unfiltered,
    compare,
};
use types::{Token, hash128};

use crate::checksum::{ChunkChecksums, encode_digest};
use crate::collector::Collector;
use crate::compression_info::CompressionInfo;
use crate::compression_params::CompressionParams;
use crate::compressor::Codec;
use crate::descriptor::{Component, Version};
use crate::error::Error;
use crate::filter::{self, Filter, Spec};
use crate::index_file::{Ended, Finished, IndexFile, Indexed};
use crate::seal::{INDEX_PAGE_BYTES, Seal, statistics_checksum};
use crate::statistics::{HeaderComponent, LogPosition, PARTITIONER, Statistics};
use crate::table;
use crate::toc;

/// Bytes of a chunk of an uncompressed table: one checksum each in CRC.db.
pub const PLAIN_CHUNK_BYTES: u32 = 64 * 1024;
/// Chunks that memory is taken for at once, at most: twelve bytes each.
const CHUNKS_EXPECTED_MAX: u64 = 1 << 24;

/// What is asserted of whoever appends to a partition or ends it.
const STARTED: &str = "rows are appended to a partition that was started and has not ended";

/// Why a row or partition cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It does not fit the layout.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A chunk cannot be compressed, or a component not be encoded.
    #[error(transparent)]
    Component(#[from] Error),
    /// A partition key that the format has no length for.
    #[error("a partition key of {0} bytes is too long to be written")]
    Key(usize),
    /// Rows of a damaged file that is compacted.
    #[error("the rows of the partition at {0} are out of order")]
    Order(u64),
}

/// How to write a table.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// The version of the files.
    pub version: Version,
    /// The layout of the rows.
    pub layout: Arc<Layout>,
    /// Class string of the partition key's type.
    pub key_type: String,
    /// Minima of what will be written.
    pub stats: EncodingStats,
    /// The table's compression, if any.
    pub compression: Option<CompressionParams>,
    /// The table's `bloom_filter_fp_chance`.
    pub filter_chance: f64,
    /// How many partitions to expect.
    pub partitions: u64,
    /// How many bytes of data to expect, before they are compressed: memory for what is kept of
    /// each chunk is taken at once, where growing would copy it.
    pub bytes: u64,
    /// The table's `min_index_interval`.
    pub min_index_interval: u32,
    /// `column_index_size`, in bytes.
    pub column_index_bytes: u64,
    /// The parts of the commit log that are written here.
    pub log_intervals: Vec<(LogPosition, LogPosition)>,
    /// Whose commit log that is.
    pub host_id: Option<[u8; 16]>,
    /// Level of leveled compaction.
    pub level: i32,
    /// When all that is written was repaired, in milliseconds; 0 for never.
    pub repaired_at: i64,
    /// The incremental repair that all that is written waits for.
    pub pending_repair: Option<[u8; 16]>,
}

/// The partition in the making.
struct Partition {
    key: Vec<u8>,
    hash: [u64; 2],
    deletion: Deletion,
    start: u64,
    header_length: u64,
    /// From the partition's start to the row or marker before.
    previous: u64,
    block: Option<OpenBlock>,
    /// Where the blocks before end, from the partition's start.
    blocks_end: u64,
    /// The last place of the block before.
    last: Option<Bound>,
    open: Deletion,
}

/// The block in the making.
struct OpenBlock {
    start: u64,
    first: Bound,
    last: Bound,
    /// The range tombstone that is open at its start.
    open: Deletion,
}

/// The writer.
pub struct Writer {
    options: WriterOptions,
    header: Header,
    encoder: Encoder,
    empty_static: Vec<u8>,
    data: DataFile,
    index: IndexFile,
    filter: Option<filter::Builder>,
    collector: Collector,
    partition: Option<Partition>,
    /// Token and key of the partition before.
    last: Option<(Token, Vec<u8>)>,
    partitions: u64,
}

/// A small component that is written when the table is finished.
pub type Small = (Component, Vec<u8>);

impl Writer {
    /// A writer of a table.
    pub fn new(options: WriterOptions) -> Self {
        let format = table::format(options.version);
        let header = Header::of_layout(format, options.stats, &options.layout);
        let mut builder = RowBuilder::new();
        builder.start_static();
        let empty_static = builder.finish_row(&options.layout).as_packed().to_vec();
        let spec = Spec::for_chance(options.filter_chance);
        Self {
            header,
            encoder: Encoder::new(),
            empty_static,
            data: DataFile::new(options.compression.clone(), options.bytes),
            index: IndexFile::new(options.version, options.min_index_interval),
            filter: spec
                .and_then(|spec| Filter::new(options.partitions.max(1), spec))
                .map(filter::Builder::new),
            collector: Collector::default(),
            partition: None,
            last: None,
            partitions: 0,
            options,
        }
    }

    /// Starts a partition; they come in the order of tokens, then keys: asserted. Who copies the
    /// partitions of a file checks their order first.
    ///
    /// # Errors
    /// If the key is too long, a chunk cannot be compressed, or the static row not be encoded.
    pub fn start_partition(
        &mut self,
        key: &[u8],
        deletion: Deletion,
        static_row: Option<RowRef<'_>>,
    ) -> Result<(), WriteError> {
        assert!(self.partition.is_none(), "a partition ends before the next one starts");
        let hash = hash128(key);
        let token = if key.is_empty() { Token::MIN } else { Token::from_hash(hash) };
        let is_next = self.last.as_ref().is_none_or(|(t, k)| (*t, k.as_slice()) < (token, key));
        assert!(is_next, "partitions are written in order of token and key");
        let length = u16::try_from(key.len()).map_err(|_| WriteError::Key(key.len()))?;
        let start = self.data.position();
        let raw = self.data.raw();
        raw.extend(length.to_be_bytes());
        raw.extend_from_slice(key);
        write_partition_deletion(table::format(self.options.version), deletion, raw);
        self.collector.start_partition(key, deletion);
        if !self.options.layout.statics.is_empty() {
            let row = static_row.unwrap_or(RowRef::from_packed(&self.empty_static));
            if !row.is_empty() {
                self.collector.row(&self.options.layout, row);
            }
            let seen = |cell: &CellRef<'_>| self.collector.cell(cell);
            self.encoder.row_seen(&self.options.layout, &self.header, row, 0, raw, seen)?;
        }
        self.index.start_partition();
        self.partition = Some(Partition {
            key: key.to_vec(),
            hash,
            deletion,
            start,
            header_length: self.data.position() - start,
            previous: 0,
            block: None,
            blocks_end: self.data.position() - start,
            last: None,
            open: Deletion::LIVE,
        });
        Ok(self.data.seal_chunks(false)?)
    }

    /// Appends a row or marker to the partition.
    ///
    /// # Errors
    /// If it does not fit the layout, or a chunk cannot be compressed.
    pub fn append(&mut self, unfiltered: Unfiltered<'_>) -> Result<(), WriteError> {
        let (at, previous, open) = self.next_at();
        let (layout, raw) = (&self.options.layout, self.data.raw());
        match unfiltered {
            Unfiltered::Row(row) => {
                self.collector.row(layout, row);
                let seen = |cell: &CellRef<'_>| self.collector.cell(cell);
                self.encoder.row_seen(layout, &self.header, row, previous, raw, seen)?;
            }
            Unfiltered::Marker(marker) => {
                self.encoder.marker(layout, &self.header, marker, previous, raw)?;
                let partition = self.partition.as_mut().expect(STARTED);
                partition.open = marker.opens(false).unwrap_or(Deletion::LIVE);
                self.collector.marker(layout, marker);
            }
        }
        self.appended(at, unfiltered.position(), open)
    }

    /// Appends a row as it lies in another SSTable ([`crate::plain::PlainPartition`]), among these
    /// bytes.
    ///
    /// # Errors
    /// If a chunk cannot be compressed.
    pub fn append_plain(
        &mut self,
        place: ClusteringRef<'_>,
        row: &PlainRow,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        let (at, previous, open) = self.next_at();
        self.collector.plain_row(&self.options.layout, place, row);
        row.write(&self.header, bytes, previous, self.data.raw());
        self.appended(at, place.into(), open)
    }

    /// From the partition's start to where the next row or marker begins, the bytes of the one
    /// before, and the range tombstone that is open there.
    fn next_at(&mut self) -> (u64, u64, Deletion) {
        let partition = self.partition.as_mut().expect(STARTED);
        let at = self.data.position() - partition.start;
        let previous = std::mem::replace(&mut partition.previous, at);
        assert!(previous < at, "a row or marker begins behind the one before");
        (at, at - previous, partition.open)
    }

    /// A row or marker was appended that begins there, where a range tombstone was open.
    fn appended(&mut self, at: u64, place: BoundRef<'_>, open: Deletion) -> Result<(), WriteError> {
        let partition = self.partition.as_mut().expect(STARTED);
        match &mut partition.block {
            Some(block) => block.last.set(place),
            block @ None => {
                let (first, last) = (place.to_owned(), place.to_owned());
                *block = Some(OpenBlock { start: at, first, last, open });
            }
        }
        let end = self.data.position() - partition.start;
        assert!(end > at, "a row or marker has at least one byte");
        let full = |block: &OpenBlock| end - block.start >= self.options.column_index_bytes;
        if partition.block.as_ref().is_some_and(full) {
            close_block(&self.options.layout, partition, end, &mut self.index)?;
        }
        Ok(self.data.seal_chunks(false)?)
    }

    /// Ends the partition.
    ///
    /// # Errors
    /// If a chunk cannot be compressed.
    pub fn end_partition(&mut self) -> Result<(), WriteError> {
        let mut partition = self.partition.take().expect(STARTED);
        let rows_end = self.data.position() - partition.start;
        Encoder::end(self.data.raw());
        let length = self.data.position() - partition.start;
        close_block(&self.options.layout, &mut partition, length, &mut self.index)?;
        assert!(length >= partition.blocks_end, "the blocks of a partition lie within it");
        if let Some(filter) = &mut self.filter {
            filter.add(partition.hash.map(u64::cast_signed));
        }
        let Partition { key, hash, start, header_length, deletion, .. } = partition;
        let token = if key.is_empty() { Token::MIN } else { Token::from_hash(hash) };
        let ended = Ended { key: &key, token, start, header_length, rows_end, deletion };
        self.index.end_partition(&ended);
        self.collector.end_partition(length);
        self.last = Some((token, key));
        self.partitions += 1;
        Ok(self.data.seal_chunks(false)?)
    }

    /// Bytes for `Data.db` that are ready, to be appended to the file and cleared.
    pub fn data(&mut self) -> &mut Vec<u8> {
        &mut self.data.ready
    }

    /// Bytes for `Index.db` or `Partitions.db` that are ready, to be appended to the file and
    /// cleared.
    pub fn index(&mut self) -> &mut Vec<u8> {
        self.index.ready()
    }

    /// Bytes for `Rows.db` that are ready, to be appended to the file and cleared; none where there
    /// is no such file.
    pub fn rows(&mut self) -> Option<&mut Vec<u8>> {
        self.index.rows_ready()
    }

    /// When it was repaired, in milliseconds, instead of what the options say; 0 for never.
    pub fn set_repaired_at(&mut self, millis: i64) {
        self.options.repaired_at = millis;
    }

    /// Partitions written.
    pub fn partitions(&self) -> u64 {
        self.partitions
    }

    /// Bytes of `Data.db` so far, as stored; what does not fill a chunk yet is not counted.
    pub fn stored_length(&self) -> u64 {
        self.data.length
    }

    /// Bytes of data before compression.
    pub fn uncompressed_length(&self) -> u64 {
        self.data.position()
    }

    /// Ends the table: the rest of `Data.db` is in [`Writer::data`], the small components are
    /// returned, the table of contents last. `None` if nothing was written.
    ///
    /// # Errors
    /// If a chunk cannot be compressed or a component not be encoded.
    pub fn finish(&mut self) -> Result<Option<Vec<Small>>, WriteError> {
        assert!(self.partition.is_none(), "all partitions of an SSTable ended before it ends");
        self.data.seal_chunks(true)?;
        self.check_data();
        let Some(index) = self.index.finish() else {
            assert!(self.partitions == 0, "an SSTable with partitions has an index of their keys");
            return Ok(None);
        };
        let Finished { keys, big } = index;
        let is_in_order = (Token::of(&keys.0), &keys.0) <= (Token::of(&keys.1), &keys.1);
        assert!(is_in_order, "the first key of a table is not after its last");
        let mut small: Vec<Small> = Vec::new();
        small.push((Component::Digest, encode_digest(self.data.digest()).into_bytes()));
        let mut ratio = -1.0;
        let (chunks, mut filter) = (small.len(), 0);
        match &self.data.map {
            Map::Compressed(info, _) => {
                ratio = self.data.length as f64 / info.uncompressed_length as f64;
                let bytes = info.encode().ok_or_else(|| too_long("CompressionInfo.db"))?;
                small.push((Component::CompressionInfo, bytes));
            }
            Map::Plain(checksums) => small.push((Component::Crc, checksums.encode())),
        }
        let (_, chunks) = small.get(chunks).expect("the map of the chunks was encoded just now");
        let chunks = crc32fast::hash(chunks);
        if let Some(own) = &mut self.filter {
            let bytes = own.filter().encode();
            filter = crc32fast::hash(&bytes);
            small.push((Component::Filter, bytes));
        }
        let statistics = self.statistics(keys, ratio);
        let mut own = vec![Component::Data];
        match big {
            Some((mut summary, pages, index_length)) => {
                let seal = Seal {
                    page_bytes: INDEX_PAGE_BYTES,
                    data_length: self.data.length,
                    index_length,
                    statistics: statistics_checksum(&statistics.stats),
                    chunks,
                    filter,
                    pages,
                    data: std::mem::take(&mut self.data.checksums),
                };
                let pages = index_length.div_ceil(INDEX_PAGE_BYTES as u64);
                assert_eq!(seal.pages.len() as u64, pages, "each page of the index has a checksum");
                seal.append(&mut summary);
                small.push((Component::Summary, summary));
                own.push(Component::Index);
            }
            None => own.extend([Component::Partitions, Component::Rows]),
        }
        small.push((Component::Statistics, statistics.encode(self.options.version)?));
        own.push(Component::Toc);
        let names: Vec<Component> =
            own.into_iter().chain(small.iter().map(|(component, _)| component.clone())).collect();
        small.push((Component::Toc, toc::encode(&names).into_bytes()));
        Ok(Some(small))
    }
}

impl Writer {
    /// What is known of all that was written.
    fn statistics(&mut self, keys: (Vec<u8>, Vec<u8>), ratio: f64) -> Statistics {
        let cardinality = self.collector.cardinality();
        let options = &self.options;
        let mut stats = std::mem::take(&mut self.collector).finish(
            options.log_intervals.clone(),
            options.host_id,
            ratio,
            options.level,
            options.repaired_at,
        );
        stats.pending_repair = options.pending_repair;
        stats.keys = Some(keys);
        let counted = stats.partition_sizes.count();
        assert_eq!(counted, self.partitions as i64, "statistics count the partitions written");
        let are_minima = stats.min_timestamp <= stats.max_timestamp
            && stats.min_local_deletion_time <= stats.max_local_deletion_time
            && stats.min_ttl <= stats.max_ttl;
        assert!(are_minima, "no least time in the statistics is above the greatest");
        Statistics {
            partitioner: PARTITIONER.into(),
            filter_chance: options.filter_chance,
            cardinality,
            stats,
            header: HeaderComponent::new(options.stats, options.key_type.clone(), &options.layout),
        }
    }

    /// That the map of the chunks is that of the data, all of which is in chunks now.
    fn check_data(&self) {
        let data = &self.data;
        let written = data.position();
        assert!(data.raw.is_empty(), "a table ends with all of its data in chunks");
        match &data.map {
            Map::Compressed(info, _) => {
                let (chunks, due) = (info.offsets.len(), info.data_chunks());
                assert_eq!(info.uncompressed_length, written, "the chunks hold what was written");
                assert_eq!(chunks as u64, due, "all chunks but the last are full");
                assert_eq!(data.checksums.len(), chunks, "each chunk has a checksum");
                let ascend = info.offsets.is_sorted_by(|a, b| a < b);
                assert!(ascend, "each chunk lies behind the one before");
            }
            Map::Plain(checksums) => {
                let due = written.div_ceil(u64::from(PLAIN_CHUNK_BYTES));
                let found = checksums.checksums.len() as u64;
                assert_eq!(data.length, written, "data that is not compressed is written as it is");
                assert_eq!(found, due, "each chunk has a checksum");
            }
        }
    }
}

fn too_long(component: &'static str) -> Error {
    Error::Corrupt { component, what: "a name is too long".into() }
}

fn close_block(
    layout: &Layout,
    partition: &mut Partition,
    end: u64,
    index: &mut IndexFile,
) -> Result<(), WriteError> {
    // none where the partition ends with a block, or has no rows
    let Some(OpenBlock { start, first, last, open }) = partition.block.take() else {
        return Ok(());
    };
    // To compare each row with the one before would take a tenth of a flush: a search goes over the
    // blocks. What is in one is in the order in which it came of a memtable or a merge; only a
    // damaged file has it otherwise.
    let before = partition.last.as_ref();
    let follows = before.is_none_or(|before| compare(layout, before, &first).is_le());
    if !follows || compare(layout, &first, &last).is_gt() {
        return Err(WriteError::Order(partition.start));
    }
    assert_eq!(start, partition.blocks_end, "a block begins where the one before ends");
    assert!(end > start, "a block has at least one byte");
    partition.blocks_end = end;
    partition.last = Some(last.clone());
    let (open_at_start, open_at_end) = (open, partition.open);
    let block = Indexed { first, last, start, end, open_at_start, open_at_end };
    Ok(index.push(layout, block)?)
}

enum Map {
    Compressed(CompressionInfo, Box<Codec>),
    Plain(ChunkChecksums),
}

/// `Data.db`: bytes in, chunks out.
struct DataFile {
    /// Uncompressed bytes that do not fill a chunk yet.
    raw: Vec<u8>,
    /// Uncompressed bytes in chunks.
    sealed: u64,
    ready: Vec<u8>,
    /// Bytes of the file so far.
    length: u64,
    digest: crc32fast::Hasher,
    /// Of compressed chunks.
    checksums: Vec<u32>,
    map: Map,
    chunk_bytes: usize,
}

impl DataFile {
    fn new(compression: Option<CompressionParams>, bytes: u64) -> Self {
        let chunks = |length: u32| (bytes / u64::from(length.max(1)) + 1).min(CHUNKS_EXPECTED_MAX);
        let mut checksums = Vec::new();
        let map = match &compression {
            Some(params) => {
                let chunks = chunks(params.chunk_length) as usize;
                checksums.reserve(chunks);
                let info = CompressionInfo {
                    class: params.compressor.class().to_string(),
                    options: params.options.clone().into_iter().collect(),
                    chunk_length: params.chunk_length,
                    max_compressed_length: params.max_compressed_length(),
                    uncompressed_length: 0,
                    offsets: Vec::with_capacity(chunks),
                };
                Map::Compressed(info, Box::new(Codec::new(params.compressor)))
            }
            None => Map::Plain(ChunkChecksums::new(PLAIN_CHUNK_BYTES)),
        };
        let chunk_bytes = compression.map_or(PLAIN_CHUNK_BYTES, |params| params.chunk_length);
        Self {
            raw: Vec::with_capacity(2 * chunk_bytes as usize),
            sealed: 0,
            ready: Vec::new(),
            length: 0,
            digest: crc32fast::Hasher::new(),
            checksums,
            map,
            chunk_bytes: chunk_bytes as usize,
        }
    }

    fn raw(&mut self) -> &mut Vec<u8> {
        &mut self.raw
    }

    fn position(&self) -> u64 {
        self.sealed + self.raw.len() as u64
    }

    fn digest(&self) -> u32 {
        self.digest.clone().finalize()
    }

    /// Turns full chunks into file bytes; at the end of the table, the last one too.
    fn seal_chunks(&mut self, last: bool) -> Result<(), Error> {
        let mut at = 0;
        while self.raw.len() - at >= self.chunk_bytes || (last && at < self.raw.len()) {
            let end = (at + self.chunk_bytes).min(self.raw.len());
            let before = self.ready.len();
            let chunk = &self.raw[at..end];
            match &mut self.map {
                Map::Plain(checksums) => {
                    checksums.push(chunk);
                    self.ready.extend_from_slice(chunk);
                }
                Map::Compressed(info, codec) => {
                    info.offsets.push(self.length);
                    info.uncompressed_length += chunk.len() as u64;
                    codec.compress(chunk, &mut self.ready)?;
                    if self.ready.len() - before >= info.max_compressed_length as usize {
                        self.ready.truncate(before);
                        self.ready.extend_from_slice(chunk);
                        let pad = (info.max_compressed_length as usize).saturating_sub(chunk.len());
                        self.ready.resize(self.ready.len() + pad, 0);
                    }
                    let stored = self.ready.len() - before;
                    let most = (info.max_compressed_length as usize).max(chunk.len());
                    assert!(
                        stored > 0 && stored <= most,
                        "a stored chunk has no more bytes than its limit"
                    );
                    let crc = crc32fast::hash(&self.ready[before..]);
                    self.ready.extend(crc.to_be_bytes());
                    self.checksums.push(crc);
                }
            }
            self.digest.update(&self.ready[before..]);
            self.length += (self.ready.len() - before) as u64;
            at = end;
        }
        self.sealed += at as u64;
        self.raw.drain(..at);
        assert!(
            self.raw.len() < self.chunk_bytes,
            "the bytes that are not in chunks are fewer than a chunk"
        );
        Ok(())
    }
}
