//! Files that a disk may have damaged, and mutations as they come from the commit log, hints and
//! peers. Where a checksum guards a structure it is made to fit: what is looked for lies behind it.

use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};

use rows::codec::{
    Decoded, Decoder, EncodingStats, Format, Header, MutationDecoder, MutationEncoder, PlainReader,
};
use rows::{BoundKind, BoundRef, Clustering, Layout};
use sstable::bti::{
    PAGE_BYTES, Pages, PartitionPlace, Partitions, RowBlock, RowsEntry, TrieCursor, bound_bytes,
};
use sstable::compression_info::CompressionInfo;
use sstable::descriptor::{NB, OA};
use sstable::filter::Filter;
use sstable::index::{Found, Promoted, read_entry};
use sstable::statistics::Statistics;
use sstable::summary::Summary;
use types::{CqlType, Reader};

/// Parts of a statistics component: validation, compaction, stats, header.
const STATISTICS_PARTS: usize = 4;
/// Entries of a trie that a walk looks at: nodes may be shared, so that a small file has many.
const STEPS: usize = 1000;

fn layout() -> &'static Arc<Layout> {
    static LAYOUT: OnceLock<Arc<Layout>> = OnceLock::new();
    LAYOUT.get_or_init(|| {
        let table = schema::Table::builder("ks", "t", schema::TableId([1; 16]))
            .column("k", CqlType::Int, schema::ColumnKind::PartitionKey)
            .column("c", CqlType::Int, schema::ColumnKind::Clustering)
            .column("d", CqlType::Text, schema::ColumnKind::Clustering)
            .column("s", CqlType::Text, schema::ColumnKind::Static)
            .column("v", CqlType::Text, schema::ColumnKind::Regular)
            .column("w", CqlType::BigInt, schema::ColumnKind::Regular)
            .column(
                "m",
                CqlType::Map {
                    key: Arc::new(CqlType::Int),
                    value: Arc::new(CqlType::Text),
                    frozen: false,
                },
                schema::ColumnKind::Regular,
            );
        Arc::clone(&table.build().layout)
    })
}

/// A component of an SSTable: the first byte says which.
pub fn sstable(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    match choice % 7 {
        0 => {
            if let Ok(statistics) = Statistics::parse(&statistics(bytes), OA)
                && let Ok(again) = statistics.encode(OA)
            {
                Statistics::parse(&again, OA).expect("what was written");
            }
            if let Ok(statistics) = Statistics::parse(&statistics(bytes), NB) {
                if let Ok(layout) = statistics.header.layout(false) {
                    let _ = statistics.header.header(Format::SstableNb, &layout);
                }
                let again = statistics.encode(NB).expect("nb has no types in its statistics");
                let again = Statistics::parse(&again, NB).expect("what was written");
                // a NaN is not equal to itself
                assert_eq!(format!("{again:?}"), format!("{statistics:?}"), "statistics read back");
            }
        }
        1 => drop(Summary::parse(bytes)),
        2 => drop(Filter::parse(bytes, NB)),
        3 => {
            if let Ok(info) = CompressionInfo::parse(bytes, NB) {
                for at in [0, 1, 1 << 20, u64::MAX] {
                    let _ = info.chunk(info.index_of(at), 1 << 30);
                }
            }
        }
        4 => {
            if let Ok(Found::Entry(entry)) = read_entry(bytes, bytes.len() as u64) {
                let _ = Promoted::read(layout(), Format::SstableNb, entry.promoted);
                let _ = Promoted::read(layout(), Format::SstableOa, entry.promoted);
            }
        }
        5 => plain_row(bytes),
        _ => {
            if let Ok(text) = str::from_utf8(bytes) {
                sstable::toc::parse(text);
            }
        }
    }
}

/// A row that could be taken over as it lies is one to the decoder, too, and the same under another
/// header.
fn plain_row(bytes: &[u8]) {
    static LAYOUT: OnceLock<Arc<Layout>> = OnceLock::new();
    let layout = LAYOUT.get_or_init(|| {
        let table = schema::Table::builder("ks", "t", schema::TableId([2; 16]))
            .column("k", CqlType::Int, schema::ColumnKind::PartitionKey)
            .column("c", CqlType::Text, schema::ColumnKind::Clustering)
            .column("v", CqlType::Text, schema::ColumnKind::Regular)
            .column("w", CqlType::BigInt, schema::ColumnKind::Regular);
        Arc::clone(&table.build().layout)
    });
    let header = Header::of_layout(Format::SstableNb, EncodingStats::NONE, layout);
    let Some((row, end)) = PlainReader::default().row(layout, &header, bytes, 0) else { return };
    let mut decoder = Decoder::new();
    let decoded = decoder.unfiltered(layout, &header, bytes).expect("a row");
    let Decoded::Unfiltered { unfiltered, consumed } = decoded else { panic!("{decoded:?}") };
    assert_eq!(consumed, end, "the row's end");
    let stats = EncodingStats { min_timestamp: 5, ..EncodingStats::NONE };
    let other = Header::of_layout(Format::SstableNb, stats, layout);
    let mut written = Vec::new();
    row.write(&other, bytes, 3, &mut written);
    let mut again = Decoder::new();
    let again = again.unfiltered(layout, &other, &written).expect("a row that was written");
    let Decoded::Unfiltered { unfiltered: again, .. } = again else { panic!("{again:?}") };
    assert_eq!(again, unfiltered, "the row under another header");
}

/// A statistics component of parts with these bytes, all with two bytes of length before them but
/// the last.
fn statistics(mut bytes: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    while parts.len() + 1 < STATISTICS_PARTS {
        let length =
            bytes.first_chunk::<2>().map_or(0, |two| usize::from(u16::from_le_bytes(*two)));
        let rest = bytes.get(2..).unwrap_or_default();
        let (part, after) = rest.split_at(length.min(rest.len()));
        parts.push(part);
        bytes = after;
    }
    parts.push(bytes);
    let mut out = (STATISTICS_PARTS as u32).to_be_bytes().to_vec();
    out.extend(crc32fast::hash(&out).to_be_bytes());
    let mut entries = (STATISTICS_PARTS as u32).to_be_bytes().to_vec();
    let mut start = out.len() + STATISTICS_PARTS * 8 + 4;
    for (kind, part) in parts.iter().enumerate() {
        entries.extend((kind as u32).to_be_bytes());
        entries.extend((start as u32).to_be_bytes());
        start += part.len() + 4;
    }
    out.extend(&entries[4..]);
    out.extend(crc32fast::hash(&entries).to_be_bytes());
    for part in parts {
        out.extend(part);
        out.extend(crc32fast::hash(part).to_be_bytes());
    }
    out
}

/// A file with tries that lies in memory.
struct Memory<'a>(&'a [u8]);

impl Pages for Memory<'_> {
    type Error = sstable::Error;

    async fn page(&self, position: u64) -> sstable::Result<(u64, Rc<Vec<u8>>)> {
        let start = position - position % PAGE_BYTES;
        let page = self.0.get(start as usize..).unwrap_or_default();
        let page = page.get(..PAGE_BYTES as usize).unwrap_or(page);
        Ok((start, Rc::new(page.to_vec())))
    }

    fn component(&self) -> &'static str {
        "Rows.db"
    }

    fn corrupt(&self, error: sstable::Error) -> sstable::Error {
        error
    }
}

/// The indexes of a BTI table, and the keys of its tries: walks end, and an entry that is found can
/// be found again.
pub fn trie(data: &[u8]) {
    let _ = Partitions::parse(data, data.len() as u64);
    let Some(([from, length], bytes)) = data.split_first_chunk::<2>() else { return };
    let (key, file) = bytes.split_at(usize::from(*length).min(bytes.len()));
    let _ = RowsEntry::parse(file, u64::from(*from));
    let clustering = Clustering::new([Some(key), Some(key)]);
    let bound = BoundRef::new(BoundKind::InclStart, clustering.as_ref());
    let _ = bound_bytes(layout(), bound);
    let kinds = [CqlType::Decimal, CqlType::VarInt, CqlType::BigInt, CqlType::Uuid];
    for kind in kinds {
        let _ = kind.byte_comparable(key, &mut Vec::new());
    }
    let root = file.len().saturating_sub(usize::from(*from) + 1) as u64;
    let walk = async {
        let pages = Memory(file);
        let mut cursor = TrieCursor::new(root);
        if let Some((flags, payload)) = cursor.exact(&pages, key).await? {
            let _ = PartitionPlace::parse(flags, &payload, Some(0));
            let _ = RowBlock::parse(flags, &payload);
        }
        let mut there = cursor.floor(&pages, key).await?;
        for _ in 0..STEPS {
            if !there || !cursor.next(&pages).await? {
                break;
            }
        }
        there = cursor.first(&pages).await?;
        if there && cursor.next(&pages).await? {
            assert!(cursor.previous(&pages).await?, "there was one before");
        }
        sstable::Result::Ok(())
    };
    let polled = pin!(walk).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_ready(), "memory is always ready");
}

/// A mutation of messaging version 12.
pub fn mutation(data: &[u8]) {
    let layout_of = |_: &[u8; 16]| Some(Arc::clone(layout()));
    let mut reader = Reader::new(data);
    let Ok(mutation) = MutationDecoder::new().mutation(&mut reader, &layout_of) else { return };
    let mut bytes = Vec::new();
    if MutationEncoder::new().mutation(&mutation, &mut bytes).is_err() {
        return;
    }
    let mut reader = Reader::new(&bytes);
    let again = MutationDecoder::new().mutation(&mut reader, &layout_of);
    let again = again.expect("a mutation that was written");
    let mut bytes_again = Vec::new();
    MutationEncoder::new().mutation(&again, &mut bytes_again).expect("a mutation that was read");
    assert_eq!(bytes, bytes_again, "a mutation written, read and written");
}
