//! An SSTable that is open: everything but the bytes of its data and index.

use std::cmp::Ordering;
use std::sync::Arc;

use rows::Layout;
use rows::codec::{Format, Header};
use types::Token;
use types::hash128;

use crate::bti::Partitions;
use crate::checksum::{ChunkChecksums, verify};
use crate::compression_info::CompressionInfo;
use crate::compressor::{Codec, Compressor};
use crate::descriptor::{Descriptor, Version};
use crate::error::{Result, corrupt};
use crate::filter::Filter;
use crate::seal::{INDEX_PAGE_BYTES, Seal, statistics_checksum};
use crate::statistics::Statistics;
use crate::summary::Summary;

/// How the data file's bytes are stored.
#[derive(Clone, Debug)]
pub enum Storage {
    /// In compressed chunks.
    Compressed(CompressionInfo, Compressor),
    /// As they are, with a checksum a chunk.
    Plain(ChunkChecksums),
}

/// What of the index is read when a table is opened.
#[derive(Clone, Debug)]
pub enum IndexParts {
    /// Of big format.
    Big {
        /// `Summary.db`.
        summary: Vec<u8>,
        /// Bytes of `Index.db`.
        length: u64,
    },
    /// Of BTI format.
    Bti {
        /// The last bytes of `Partitions.db`: [`crate::bti::PARTITIONS_TAIL_MAX`], or all.
        tail: Vec<u8>,
        /// Bytes of `Partitions.db`.
        length: u64,
        /// Bytes of `Rows.db`.
        rows_length: u64,
    },
}

/// The index of a table: what of it stays in memory.
#[derive(Debug)]
pub enum Index {
    /// `Index.db`.
    Big {
        /// A sample of it.
        summary: Summary,
        /// Its bytes.
        length: u64,
    },
    /// `Partitions.db` and `Rows.db`.
    Bti {
        /// What stands at the end of the former.
        partitions: Partitions,
        /// Bytes of the latter.
        rows_length: u64,
    },
}

impl Index {
    fn parse(parts: IndexParts) -> Result<(Self, Option<Seal>)> {
        Ok(match parts {
            IndexParts::Big { summary, length } => {
                let (summary, seal) = Seal::split(&summary)?;
                (Self::Big { summary: Summary::parse(summary)?, length }, seal)
            }
            IndexParts::Bti { tail, length, rows_length } => {
                (Self::Bti { partitions: Partitions::parse(&tail, length)?, rows_length }, None)
            }
        })
    }

    /// The first key and the last.
    pub fn keys(&self) -> (&[u8], &[u8]) {
        match self {
            Self::Big { summary, .. } => (&summary.first, &summary.last),
            Self::Bti { partitions, .. } => (&partitions.first, &partitions.last),
        }
    }

    /// The sample of a table of big format.
    pub fn summary(&self) -> Option<&Summary> {
        match self {
            Self::Big { summary, .. } => Some(summary),
            Self::Bti { .. } => None,
        }
    }

    /// Bytes of the index's files.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Big { length, .. } => *length,
            Self::Bti { partitions, rows_length } => partitions.length + rows_length,
        }
    }
}

/// The small components of a table, as read from its files.
#[derive(Clone, Debug)]
pub struct Parts {
    /// `Statistics.db`.
    pub statistics: Vec<u8>,
    /// `Filter.db`, where there is one.
    pub filter: Option<Vec<u8>>,
    /// `CompressionInfo.db`, where there is one.
    pub compression: Option<Vec<u8>>,
    /// `CRC.db`, where there is one.
    pub checksums: Option<Vec<u8>>,
    /// Bytes of `Data.db`.
    pub data_length: u64,
    /// The index.
    pub index: IndexParts,
}

/// An open SSTable.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub descriptor: Descriptor,
    /// What it says about its content.
    pub statistics: Statistics,
    /// The layout of its rows.
    pub layout: Arc<Layout>,
    /// What its rows are encoded relative to.
    pub header: Header,
    /// The filter of its keys; absent, every key may be in it.
    pub filter: Option<Filter>,
    /// Its index.
    pub index: Index,
    /// The tokens of its first key and its last.
    tokens: (Token, Token),
    /// How its data is stored.
    pub storage: Storage,
    /// Bytes of `Data.db`.
    pub data_length: u64,
    /// Checksums of the rest, where we wrote it.
    pub seal: Option<Seal>,
}

/// A chunk of the data file: which bytes to read, and what they become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRange {
    /// Its number.
    pub index: usize,
    /// Where it starts in the file.
    pub offset: u64,
    /// Bytes to read, the checksum included.
    pub length: usize,
    /// Where it starts in the uncompressed data.
    pub start: u64,
    /// Its uncompressed bytes.
    pub uncompressed: usize,
    is_raw: bool,
}

impl Table {
    /// Opens a table from its parts. A table of counters says so by its schema.
    ///
    /// # Errors
    /// If a part is missing, damaged or of a version we do not read.
    pub fn open(descriptor: Descriptor, parts: Parts, counter: bool) -> Result<Self> {
        let version = descriptor.version;
        let statistics = Statistics::parse(&parts.statistics, version)?;
        let layout = Arc::new(statistics.header.layout(counter)?);
        let header = statistics.header.header(format(version), &layout)?;
        let (index, seal) = Index::parse(parts.index)?;
        if let Some(seal) = &seal {
            let chunks = parts.compression.as_ref().or(parts.checksums.as_ref());
            let checksum = |part: Option<&Vec<u8>>| part.map_or(0, |bytes| crc32fast::hash(bytes));
            let found = [
                ("Data.db", parts.data_length, seal.data_length),
                ("Index.db", index.bytes(), seal.index_length),
                (
                    "Statistics.db",
                    u64::from(statistics_checksum(&statistics.stats)),
                    u64::from(seal.statistics),
                ),
                ("CompressionInfo.db or CRC.db", checksum(chunks).into(), seal.chunks.into()),
            ];
            if let Some((component, ..)) = found.iter().find(|(_, found, sealed)| found != sealed) {
                return corrupt(component, "its checksum differs from the one in Summary.db");
            }
        }
        let is_ours = |filter: &Vec<u8>| {
            seal.as_ref().is_none_or(|seal| crc32fast::hash(filter) == seal.filter)
        };
        // A Cassandra that opens the table may write a filter of another chance beside the summary
        // that is there. One that nobody vouches for is not asked: then every key may be there.
        let filter = parts.filter.filter(is_ours);
        let filter = filter.map(|bytes| Filter::parse(&bytes, version)).transpose()?;
        if let Some((first, last)) = &statistics.stats.keys
            && index.keys() != (first, last)
        {
            return corrupt(
                "Statistics.db",
                "its first and last key differ from those of the index",
            );
        }
        let storage = match (parts.compression, parts.checksums) {
            (Some(bytes), _) => {
                let info = CompressionInfo::parse(&bytes, version)?;
                let options = info.options.iter().cloned().collect();
                let compressor = Compressor::parse(&info.class, &options)?;
                Storage::Compressed(info, compressor)
            }
            (None, Some(bytes)) => Storage::Plain(ChunkChecksums::parse(&bytes)?),
            (None, None) => return corrupt("CRC.db", "both it and CompressionInfo.db are missing"),
        };
        if let (Some(seal), Storage::Compressed(info, _)) = (&seal, &storage)
            && !seal.data.is_empty()
            && seal.data.len() as u64 != info.data_chunks()
        {
            return corrupt(
                "Summary.db",
                "the number of its checksums differs from the number of chunks",
            );
        }
        let data_length = parts.data_length;
        let (first, last) = index.keys();
        let tokens = (Token::of(first), Token::of(last));
        if (tokens.0, first) > (tokens.1, last) {
            return corrupt("the index", "its first key is after its last");
        }
        Ok(Self {
            descriptor,
            statistics,
            layout,
            header,
            filter,
            index,
            tokens,
            storage,
            data_length,
            seal,
        })
    }

    /// Bytes of a page of the index: what it is read and verified by.
    pub fn index_page_bytes(&self) -> usize {
        self.seal.as_ref().map_or(INDEX_PAGE_BYTES, |seal| seal.page_bytes)
    }

    /// Verifies pages of `Index.db`, from the given one on, of [`Self::index_page_bytes`] each.
    ///
    /// # Errors
    /// If one fails its checksum, where there is one.
    pub fn check_index_pages(&self, first: u64, bytes: &[u8]) -> Result<()> {
        let Some(seal) = &self.seal else { return Ok(()) };
        for (page, bytes) in (first..).zip(bytes.chunks(seal.page_bytes)) {
            let sealed = usize::try_from(page).ok().and_then(|page| seal.pages.get(page));
            if sealed != Some(&crc32fast::hash(bytes)) {
                return corrupt("Index.db", format!("page {page} fails its checksum"));
            }
        }
        Ok(())
    }

    /// Bytes of data before compression.
    pub fn uncompressed_length(&self) -> u64 {
        match &self.storage {
            Storage::Compressed(info, _) => info.uncompressed_length,
            Storage::Plain(_) => self.data_length,
        }
    }

    /// May the table hold this key? By its range and its filter.
    pub fn may_contain(&self, token: Token, key: &[u8]) -> bool {
        let (first, last) = self.index.keys();
        let within =
            (self.tokens.0, first) <= (token, key) && (token, key) <= (self.tokens.1, last);
        let filter = |filter: &Filter| filter.may_contain(hash128(key).map(u64::cast_signed));
        within && self.filter.as_ref().is_none_or(filter)
    }

    /// The first token and the last.
    pub fn tokens(&self) -> (Token, Token) {
        self.tokens
    }

    /// The chunk that holds the uncompressed byte at `position`.
    ///
    /// # Errors
    /// If there is none.
    pub fn chunk_at(&self, position: u64) -> Result<ChunkRange> {
        match &self.storage {
            Storage::Compressed(info, _) => {
                let index = info.index_of(position);
                let chunk = info.chunk(index, self.data_length)?;
                Ok(ChunkRange {
                    index,
                    offset: chunk.offset,
                    length: chunk.stored as usize + 4,
                    start: index as u64 * u64::from(info.chunk_length),
                    uncompressed: chunk.uncompressed as usize,
                    is_raw: chunk.is_raw,
                })
            }
            Storage::Plain(checksums) => {
                let size = u64::from(checksums.chunk_size);
                let start = position - position % size;
                let Some(left) = self.data_length.checked_sub(start).filter(|left| *left > 0)
                else {
                    return corrupt(
                        "Data.db",
                        format!("it ends before byte {position}, which the index points to"),
                    );
                };
                let length = left.min(size) as usize;
                let index = (start / size) as usize;
                let uncompressed = length;
                Ok(ChunkRange { index, offset: start, length, start, uncompressed, is_raw: true })
            }
        }
    }

    /// Verifies a chunk's bytes and decompresses them.
    ///
    /// # Errors
    /// If they fail their checksum or do not decompress to what they should.
    pub fn decode_chunk(&self, chunk: ChunkRange, stored: &[u8]) -> Result<Vec<u8>> {
        match &self.storage {
            Storage::Plain(checksums) => {
                checksums.verify(chunk.index, stored)?;
                Ok(stored.to_vec())
            }
            Storage::Compressed(_, compressor) => {
                let whole = Some(stored).filter(|stored| stored.len() == chunk.length);
                let Some((body, crc)) = whole.and_then(|stored| stored.split_last_chunk::<4>())
                else {
                    return corrupt("Data.db", format!("chunk {} is cut off", chunk.index));
                };
                let what = || format!("chunk {}", chunk.index);
                verify("Data.db", what, body, u32::from_be_bytes(*crc))?;
                let sealed = self.seal.as_ref().and_then(|seal| seal.data.get(chunk.index));
                if sealed.is_some_and(|sealed| *sealed != u32::from_be_bytes(*crc)) {
                    let what = format!(
                        "chunk {} is not the one that was written, though its checksum is right",
                        chunk.index
                    );
                    return corrupt("Data.db", what);
                }
                if chunk.is_raw {
                    let raw = body.get(..chunk.uncompressed);
                    let raw = raw.expect("a chunk that is stored uncompressed has its full length");
                    return Ok(raw.to_vec());
                }
                let mut out = Vec::with_capacity(chunk.uncompressed);
                Codec::new(*compressor).decompress(body, chunk.uncompressed, &mut out)?;
                Ok(out)
            }
        }
    }
}

/// The row format of a version.
pub fn format(version: Version) -> Format {
    if version.has_uint_deletion_time() { Format::SstableOa } else { Format::SstableNb }
}

/// The order of a table's key and one that is sought.
pub fn order(of: &[u8], token: Token, key: &[u8]) -> Ordering {
    (Token::of(of), of).cmp(&(token, key))
}
