//! The index of an SSTable that is being written, of either format.

use rows::codec::EncodeError;
use rows::{Bound, Deletion, Layout};
use types::Token;

use crate::bti::{PartitionPlace, PartitionsWriter, RowBlock, RowsWriter};
use crate::descriptor::{Format, Version};
use crate::index::{Block, BlockWriter};
use crate::seal::Pages;
use crate::summary;
use crate::table;

/// A block of the partition in the making.
pub struct Indexed {
    /// Its first place and its last.
    pub first: Bound,
    pub last: Bound,
    /// Where it starts and where it ends, from the partition's start.
    pub start: u64,
    pub end: u64,
    /// The range tombstones that are open there.
    pub open_at_start: Deletion,
    pub open_at_end: Deletion,
}

/// A partition that has ended.
pub struct Ended<'a> {
    pub key: &'a [u8],
    pub token: Token,
    /// Where it starts in the uncompressed Data.db.
    pub start: u64,
    /// Bytes of it before its rows, and up to the end of them.
    pub header_length: u64,
    pub rows_end: u64,
    pub deletion: Deletion,
}

/// The index.
pub enum IndexFile {
    Big(Box<Big>),
    Bti(Box<Bti>),
}

/// `Index.db` and what `Summary.db` is made of.
pub struct Big {
    blocks: BlockWriter,
    ready: Vec<u8>,
    length: u64,
    pages: Pages,
    summary: summary::Builder,
}

/// `Partitions.db` and `Rows.db`.
#[derive(Default)]
pub struct Bti {
    partitions: PartitionsWriter,
    rows: RowsWriter,
    ready: Vec<u8>,
    rows_ready: Vec<u8>,
}

/// What is known of the index once it has ended.
pub struct Finished {
    /// The first key and the last.
    pub keys: (Vec<u8>, Vec<u8>),
    /// The summary of a big one, the checksums of its pages, and its bytes.
    pub big: Option<(Vec<u8>, Vec<u32>, u64)>,
}

impl IndexFile {
    /// An empty one.
    pub fn new(version: Version, min_index_interval: u32) -> Self {
        match version.index_format() {
            Format::Big => Self::Big(Box::new(Big {
                blocks: BlockWriter::new(table::format(version)),
                ready: Vec::new(),
                length: 0,
                pages: Pages::default(),
                summary: summary::Builder::new(min_index_interval),
            })),
            Format::Bti => Self::Bti(Box::default()),
        }
    }

    /// A partition begins.
    pub fn start_partition(&mut self) {
        match self {
            Self::Big(big) => big.blocks.clear(),
            Self::Bti(bti) => bti.rows.clear(),
        }
    }

    /// Appends a block of the partition.
    pub fn push(&mut self, layout: &Layout, block: Indexed) -> Result<(), EncodeError> {
        let Indexed { first, last, start, end, open_at_start, open_at_end } = block;
        match self {
            Self::Big(big) => {
                let open = Some(open_at_end).filter(|open| !open.is_live());
                let block = Block { first, last, offset: start, width: end - start, open };
                big.blocks.push(layout, &block)
            }
            Self::Bti(bti) => {
                let block = RowBlock { offset: start, open: open_at_start };
                bti.rows.push(layout, first.as_ref(), last.as_ref(), block);
                bti.rows.take(&mut bti.rows_ready);
                Ok(())
            }
        }
    }

    /// Ends the partition.
    pub fn end_partition(&mut self, ended: &Ended<'_>) {
        match self {
            Self::Big(big) => big.end_partition(ended),
            Self::Bti(bti) => bti.end_partition(ended),
        }
    }

    /// Bytes of `Index.db` or `Partitions.db` that are ready.
    pub fn ready(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Big(big) => &mut big.ready,
            Self::Bti(bti) => &mut bti.ready,
        }
    }

    /// Bytes of `Rows.db` that are ready, where there is one.
    pub fn rows_ready(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Big(_) => None,
            Self::Bti(bti) => Some(&mut bti.rows_ready),
        }
    }

    /// Ends the index; none if it has no partitions.
    pub fn finish(&mut self) -> Option<Finished> {
        match self {
            Self::Big(big) => {
                let builder = std::mem::replace(&mut big.summary, summary::Builder::new(1));
                let summary = builder.finish()?;
                let keys = (summary.first.clone(), summary.last.clone());
                let pages = std::mem::take(&mut big.pages).finish();
                Some(Finished { keys, big: Some((summary.encode(), pages, big.length)) })
            }
            Self::Bti(bti) => {
                let keys = bti.partitions.finish()?;
                bti.partitions.take(&mut bti.ready);
                Some(Finished { keys, big: None })
            }
        }
    }
}

impl Big {
    fn end_partition(&mut self, ended: &Ended<'_>) {
        self.summary.add(ended.key, self.length);
        let before = self.ready.len();
        let Ended { key, start, header_length, deletion, .. } = *ended;
        self.blocks.write_entry(key, start, header_length, deletion, &mut self.ready);
        self.length += (self.ready.len() - before) as u64;
        let entry = self.ready.get(before..).expect("an index entry follows those before it");
        assert!(!entry.is_empty(), "each partition has an entry in the index");
        self.pages.update(entry);
    }
}

impl Bti {
    fn end_partition(&mut self, ended: &Ended<'_>) {
        let Ended { key, token, start, rows_end, deletion, .. } = *ended;
        let entry = self.rows.end_partition(key, start, deletion, rows_end);
        self.rows.take(&mut self.rows_ready);
        let place = entry.map_or(PartitionPlace::Data(start), PartitionPlace::Rows);
        self.partitions.add(token, key, place);
        self.partitions.take(&mut self.ready);
    }
}
