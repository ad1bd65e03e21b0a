//! Files that a disk may have damaged, and mutations as they come from the commit log, hints and peers. Where a checksum
//! guards a structure it is made to fit: what is looked for lies behind it.

use std::sync::{Arc, OnceLock};

use rows::Layout;
use rows::codec::{Format, MutationDecoder, MutationEncoder};
use sstable::compression_info::CompressionInfo;
use sstable::descriptor::NB;
use sstable::filter::Filter;
use sstable::index::{Found, Promoted, read_entry};
use sstable::statistics::Statistics;
use sstable::summary::Summary;
use types::{CqlType, Reader};

/// Parts of a statistics component: validation, compaction, stats, header.
const STATISTICS_PARTS: usize = 4;

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
    match choice % 6 {
        0 => {
            if let Ok(statistics) = Statistics::parse(&statistics(bytes)) {
                let _ = statistics.header.layout(false);
                let again = Statistics::parse(&statistics.encode()).expect("what was written");
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
            }
        }
        _ => {
            if let Ok(text) = str::from_utf8(bytes) {
                sstable::toc::parse(text);
            }
        }
    }
}

/// A statistics component of parts with these bytes, all with two bytes of length before them but the last.
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
