//! Saved caches as Cassandra writes them (`AutoSavingCache`, version `g`): three files of each.
//!
//! ```text
//! .metadata = uvint n | n tables; of the key cache: uvint n | n SSTables
//! table     = 16 bytes id | u16 length | name of an index, of none: empty
//! SSTable   = uvint place of its table | u16 length | format | u16 length | version
//!             | u16 length | id
//! .crc      = i32 bytes of a chunk | CRC32 of each chunk of the other file
//! .db       = 16 bytes version of the schema | entries
//! entry     = uvint place of a table, or in the key cache of an SSTable | i32 length | key
//!             in the counter cache: | i32 length | name of the counter
//!             in the key cache: | uvint position | u8 kind | index of rows
//! name of a counter = (u16 length | value | 0) for each clustering value and the column's name
//! ```
//!
//! Of an entry of the key cache only SSTable and key are believed.

use std::sync::Arc;

use rows::{ClusteringBuilder, Layout, codec};
use schema::TableId;
use sstable::descriptor::{Descriptor, Format, Id, Version};
use sstable::index::Promoted;
use sstable::table::format;
use types::{ReadError, Reader, WriteBytes};

use crate::caches::{CacheKind, CounterName};
use crate::read::{Located, RowsIndex};

/// The version of the files.
const VERSION: &str = "g";
/// Bytes of the version of a schema.
pub(super) const SCHEMA_BYTES: usize = 16;
/// What the key cache has of the rows of a partition: nothing; the promoted index; where that is.
const NOT_INDEXED: u8 = 0;
const INDEXED: u8 = 1;
const INDEXED_SHALLOW: u8 = 2;
/// Bytes of a key at most.
const KEY_BYTES_MAX: usize = u16::MAX as usize;
/// Bytes that a table, or an SSTable, takes at least.
const TABLE_BYTES_MIN: usize = 18;
const SSTABLE_BYTES_MIN: usize = 7;

/// The name of one of the files; none: this cache is not saved.
pub(super) fn file_name(kind: CacheKind, extension: &str) -> Option<String> {
    let cache = match kind {
        CacheKind::Chunks => return None,
        CacheKind::Keys => "KeyCache",
        CacheKind::Rows => "RowCache",
        CacheKind::Counters => "CounterCache",
    };
    Some(format!("{cache}-{VERSION}.{extension}"))
}

/// What entries name by their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Metadata {
    /// Tables; those of indexes are none here.
    pub tables: Vec<Option<TableId>>,
    /// SSTables with the places of their tables; none: of a format that nobody knows.
    pub sstables: Vec<(usize, Option<Descriptor>)>,
}

impl Metadata {
    pub fn encode(&self, kind: CacheKind) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_uvint(self.tables.len() as u64);
        for table in &self.tables {
            out.put(&table.map_or([0; 16], |id| id.0));
            out.put_u16(0);
        }
        if kind != CacheKind::Keys {
            return out;
        }
        out.put_uvint(self.sstables.len() as u64);
        for (table, descriptor) in &self.sstables {
            let Some(descriptor) = descriptor else { continue };
            out.put_uvint(*table as u64);
            let id = descriptor.id.to_bytes();
            for part in [
                descriptor.format.to_string().as_bytes(),
                descriptor.version.to_string().as_bytes(),
                &id,
            ] {
                let put = out.put_short_bytes(part);
                put.expect("format, version and identifier of a table take a few bytes");
            }
        }
        out
    }

    pub fn decode(kind: CacheKind, bytes: &[u8]) -> Result<Self, ReadError> {
        let mut reader = Reader::new(bytes);
        let mut found = Self::default();
        for _ in 0..reader.count(TABLE_BYTES_MIN)? {
            let id = TableId(reader.array()?);
            let index = reader.short_bytes()?;
            found.tables.push(index.is_empty().then_some(id));
        }
        if kind == CacheKind::Keys {
            for _ in 0..reader.count(SSTABLE_BYTES_MIN)? {
                let table = reader.uvint32()? as usize;
                let (format, version) = (reader.utf()?, reader.utf()?);
                let id = Id::from_bytes(reader.short_bytes()?);
                found.sstables.push((table, descriptor(&format, &version, id)));
            }
        }
        reader.finish()?;
        Ok(found)
    }
}

fn descriptor(format: &str, version: &str, id: Option<Id>) -> Option<Descriptor> {
    let format = match format {
        "big" => Format::Big,
        "bti" => Format::Bti,
        _ => return None,
    };
    Some(Descriptor { version: Version::parse(version)?, id: id?, format })
}

/// What an entry names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// The place of the table, or of the SSTable.
    pub place: usize,
    pub key: &'a [u8],
    /// The name of the counter, if it is of one.
    pub counter: &'a [u8],
    /// Bytes that it takes.
    pub length: usize,
}

/// The entry at the start of `bytes`. `layout` is that of the table at a place; of the rows of an
/// SSTable whose table is not there nothing can be skipped.
pub(super) fn read_entry<'a>(
    kind: CacheKind,
    metadata: &Metadata,
    layout: impl Fn(usize) -> Option<Arc<Layout>>,
    bytes: &'a [u8],
) -> Result<Entry<'a>, String> {
    let bad = |error: ReadError| error.to_string();
    let mut reader = Reader::new(bytes);
    let place = reader.uvint32().map_err(bad)? as usize;
    let key = reader.int_bytes().map_err(bad)?;
    if key.len() > KEY_BYTES_MAX {
        return Err(format!("a key has {} bytes, which is too long", key.len()));
    }
    let mut counter = &bytes[..0];
    match kind {
        CacheKind::Chunks | CacheKind::Rows => {}
        CacheKind::Counters => counter = reader.int_bytes().map_err(bad)?,
        CacheKind::Keys => {
            let (table, descriptor) = metadata
                .sstables
                .get(place)
                .and_then(|(table, descriptor)| Some((*table, (*descriptor)?)))
                .ok_or_else(|| {
                    format!("an entry is of SSTable number {place}, which the file does not list")
                })?;
            skip_located(&mut reader, descriptor.version, || layout(table))?;
        }
    }
    Ok(Entry { place, key, counter, length: reader.position() })
}

fn skip_located(
    reader: &mut Reader<'_>,
    version: Version,
    layout: impl FnOnce() -> Option<Arc<Layout>>,
) -> Result<(), String> {
    let bad = |error: ReadError| error.to_string();
    reader.uvint().map_err(bad)?;
    match reader.u8().map_err(bad)? {
        NOT_INDEXED => {}
        INDEXED => {
            let layout = layout().ok_or("the table of an entry does not exist")?;
            let read = Promoted::read_blocks(&layout, format(version), reader);
            read.map_err(|error| error.to_string())?;
        }
        INDEXED_SHALLOW => {
            reader.uvint().map_err(bad)?;
            reader.uvint().map_err(bad)?;
            let read = codec::read_partition_deletion(format(version), reader);
            read.map_err(|error| error.to_string())?;
            reader.uvint().map_err(bad)?;
            reader.uvint().map_err(bad)?;
        }
        kind => return Err(format!("an entry has the unknown kind {kind}")),
    }
    Ok(())
}

/// Writes an entry of the row cache, but for its place.
pub(super) fn write_rows(key: &[u8], out: &mut Vec<u8>) {
    out.put_int_bytes(key);
}

/// Writes an entry of the key cache, but for its place. False if it has no form there.
pub(super) fn write_place(
    key: &[u8],
    located: &Located,
    (layout, version): (&Layout, Version),
    out: &mut Vec<u8>,
) -> bool {
    out.put_int_bytes(key);
    out.put_uvint(located.position);
    match &located.rows {
        RowsIndex::None => out.put_u8(NOT_INDEXED),
        RowsIndex::Parsed(promoted) if format(version) == codec::Format::SstableNb => {
            out.put_u8(INDEXED);
            return promoted.write_blocks(layout, out).is_ok();
        }
        _ => return false,
    }
    true
}

/// Writes an entry of the counter cache, but for its place. False if it has no form there.
pub(super) fn write_counter(
    key: &[u8],
    counter: CounterName<'_>,
    layout: &Layout,
    out: &mut Vec<u8>,
) -> bool {
    let column = layout.columns(counter.row.is_none()).get(usize::from(counter.column));
    let Some(column) = column else { return false };
    let mut name = Vec::new();
    let values = counter.row.into_iter().flat_map(|row| row.iter());
    for value in values.chain([Some(column.name.as_bytes())]) {
        let Some(value) = value else { return false };
        if name.put_short_bytes(value).is_err() {
            return false;
        }
        name.put_u8(0);
    }
    out.put_int_bytes(key);
    out.put_int_bytes(&name);
    true
}

/// The counter of a name, in a table of this layout: its row, packed, and its column.
pub(super) fn read_counter(layout: &Layout, name: &[u8]) -> Option<(Option<Vec<u8>>, u16)> {
    let mut reader = Reader::new(name);
    let mut values = Vec::new();
    while !reader.is_empty() {
        values.push(reader.short_bytes().ok()?);
        reader.u8().ok()?;
    }
    let column = std::str::from_utf8(values.pop()?).ok()?;
    if values.is_empty()
        && let Some(column) = layout.find(true, column)
    {
        return Some((None, column));
    }
    if values.len() != layout.clustering.len() {
        return None;
    }
    let mut clustering = ClusteringBuilder::default();
    for (value, of) in values.iter().zip(&layout.clustering) {
        of.ty.validate(value).ok()?;
        clustering.push(Some(value));
    }
    let row = clustering.finish().as_packed().to_vec();
    Some((Some(row), layout.find(false, column)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use schema::{ColumnKind, Table};
    use types::CqlType;

    use super::*;

    /// Saved by Cassandra 5.0.9, of tables `ck.c (k int, c text, s counter static, v counter, w
    /// counter, PRIMARY KEY (k, c))`, `ck.r (k text, c int, v blob, PRIMARY KEY (k, c))` and
    /// `ck.wide (k int, c int, v text, PRIMARY KEY (k, c))`.
    fn golden(kind: CacheKind) -> (Metadata, &'static [u8]) {
        macro_rules! saved {
            ($name:literal) => {
                (
                    &include_bytes!(concat!("../../testdata/caches/", $name, "-g.metadata"))[..],
                    &include_bytes!(concat!("../../testdata/caches/", $name, "-g.db"))[..],
                )
            };
        }
        let (metadata, data) = match kind {
            CacheKind::Keys => saved!("KeyCache"),
            CacheKind::Rows => saved!("RowCache"),
            _ => saved!("CounterCache"),
        };
        let decoded = Metadata::decode(kind, metadata).unwrap();
        assert_eq!(decoded.encode(kind), metadata);
        for end in 0..metadata.len() {
            assert!(Metadata::decode(kind, &metadata[..end]).is_err());
        }
        (decoded, &data[SCHEMA_BYTES..])
    }

    fn wide() -> Arc<Layout> {
        let builder = Table::builder("ck", "wide", TableId([1; 16]))
            .column("k", CqlType::Int, ColumnKind::PartitionKey)
            .column("c", CqlType::Int, ColumnKind::Clustering)
            .column("v", CqlType::Text, ColumnKind::Regular);
        Arc::clone(&builder.build().layout)
    }

    fn counters() -> Arc<Layout> {
        let builder = Table::builder("ck", "c", TableId([1; 16]))
            .column("k", CqlType::Int, ColumnKind::PartitionKey)
            .column("c", CqlType::Text, ColumnKind::Clustering)
            .column("s", CqlType::Counter, ColumnKind::Static)
            .column("v", CqlType::Counter, ColumnKind::Regular)
            .column("w", CqlType::Counter, ColumnKind::Regular);
        Arc::clone(&builder.build().layout)
    }

    fn entries(kind: CacheKind) -> (Metadata, Vec<(Entry<'static>, &'static [u8])>) {
        let (metadata, mut rest) = golden(kind);
        let mut found = Vec::new();
        while !rest.is_empty() {
            let entry = read_entry(kind, &metadata, |_| Some(wide()), rest).unwrap();
            for end in 0..entry.length {
                assert!(read_entry(kind, &metadata, |_| Some(wide()), &rest[..end]).is_err());
            }
            let (bytes, after) = rest.split_at(entry.length);
            found.push((entry, bytes));
            rest = after;
        }
        (metadata, found)
    }

    #[test]
    fn counters_that_cassandra_saved_are_read_and_written() {
        let (metadata, found) = entries(CacheKind::Counters);
        assert_eq!((metadata.tables.len(), found.len()), (1, 9));
        let layout = counters();
        let mut names = Vec::new();
        for (entry, bytes) in found {
            let (row, column) = read_counter(&layout, entry.counter).unwrap();
            let row = row.as_deref().map(rows::ClusteringRef::from_packed);
            let mut written = vec![entry.place as u8];
            let name = CounterName { row, column };
            assert!(write_counter(entry.key, name, &layout, &mut written));
            assert_eq!(written, bytes);
            let row =
                row.map(|row| String::from_utf8_lossy(row.get(0).unwrap().unwrap()).into_owned());
            names.push((entry.key[3], row, column));
        }
        names.sort();
        let of = |key, row: &str, column| (key, Some(row.to_owned()), column);
        assert_eq!(names[..4], [of(0, "z", 0), of(1, "a", 0), of(1, "b", 0), of(1, "b", 1)]);
        assert!(names.contains(&(2, None, 0)));
        assert_eq!(read_counter(&wide(), b"\0\x01z\0\0\x01v\0"), None);
    }

    #[test]
    fn rows_that_cassandra_saved_are_read_and_written() {
        let (_, found) = entries(CacheKind::Rows);
        let [(entry, bytes)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((entry.place, entry.key), (0, &b"x"[..]));
        let mut written = vec![0];
        write_rows(entry.key, &mut written);
        assert_eq!(written, *bytes);
    }

    #[test]
    fn places_that_cassandra_saved_are_read_and_written() {
        let (metadata, found) = entries(CacheKind::Keys);
        assert_eq!((metadata.tables.len(), metadata.sstables.len(), found.len()), (6, 11, 13));
        let names: Vec<String> = metadata
            .sstables
            .iter()
            .map(|(_, descriptor)| descriptor.unwrap().to_string())
            .collect();
        assert_eq!(names[..3], ["nb-6-big", "nb-1-big", "nb-5-big"]);
        let mut wide_ones = 0;
        for (entry, bytes) in found {
            // what is between the key and the end of the entry
            let after = uvint_bytes(entry.place) + 4 + entry.key.len();
            let mut reader = Reader::new(&bytes[after..]);
            let position = reader.uvint().unwrap();
            let rows = match reader.u8().unwrap() {
                NOT_INDEXED => RowsIndex::None,
                _ => {
                    wide_ones += 1;
                    let nb = format(sstable::descriptor::NB);
                    let promoted = Promoted::read_blocks(&wide(), nb, &mut reader).unwrap();
                    assert_eq!(promoted.blocks.len(), 7);
                    RowsIndex::Parsed(std::rc::Rc::new(promoted))
                }
            };
            let mut written = Vec::new();
            written.put_uvint(entry.place as u64);
            let located = Located { position, end: None, rows };
            let of = (&*wide(), sstable::descriptor::NB);
            assert!(write_place(entry.key, &located, of, &mut written));
            assert_eq!(written, bytes);
        }
        assert_eq!(wide_ones, 1);
    }

    fn uvint_bytes(value: usize) -> usize {
        types::vint::uvint_size(value as u64)
    }

    #[test]
    fn ids_of_sstables_are_read_as_they_are_written() {
        for name in ["nb-7-big", "nb-3gzn_19jc_1s5cw2mjyx8ch4p9kf-big"] {
            let Ok((of, _)) = Descriptor::parse(&format!("{name}-Data.db")) else { continue };
            assert_eq!(Id::from_bytes(&of.id.to_bytes()), Some(of.id));
        }
        let uuid = Id::Uuid(0x9e39_5480_e69c_11f1_83c9_b116_c8d0_5887);
        assert_eq!(Id::from_bytes(&uuid.to_bytes()), Some(uuid));
        assert_eq!(Id::from_bytes(b"abc"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes: Vec<u8>, kind in 0..3_usize) {
            let kind = [CacheKind::Keys, CacheKind::Rows, CacheKind::Counters][kind];
            let _ = Metadata::decode(kind, &bytes);
            let (metadata, _) = golden(kind);
            let _ = read_entry(kind, &metadata, |_| Some(wide()), &bytes);
            let _ = read_counter(&counters(), &bytes);
        }
    }
}
