//! `Statistics.db` (`MetadataSerializer`, `StatsMetadata`, `ValidationMetadata`,
//! `CompactionMetadata`, `SerializationHeader.Component`): read as `na`, `nb`, `oa` and `da` have
//! it, written as the last three.
//!
//! ```text
//! i32 n=4 | crc32(n) | n * { i32 type, i32 offset } | crc32(n, all of them)
//! | n * { component | crc32 }
//! types: 0 validation, 1 compaction, 2 stats, 3 header; all integers big endian
//! ```
//!
//! From `oa` on, stats keep deletion times as unsigned 32 bits, the clusterings that they cover as
//! two bounds behind a list of their types, and at their end whether a whole partition was deleted,
//! the first and last key and the share of the ring that the table covers. Zeros may follow:
//! Cassandra counts the tombstones' histogram larger than it writes it.

use std::collections::BTreeSet;

use rows::codec::{EncodingStats, Format, Header, read_bound, write_bound};
use rows::{Bound, BoundKind, BoundRef, ClusteringBuilder, ClusteringColumn, ColumnLayout, Layout};
use types::CqlType;
use types::{ReadError, Reader as VReader, WriteBytes};

use crate::bytes::{Reader, put_int, put_utf};
use crate::descriptor::Version;
use crate::error::{Error, Result, corrupt};
use crate::histogram::EstimatedHistogram;
use crate::tombstone_histogram::TombstoneHistogram;

const NAME: &str = "Statistics.db";
/// The only partitioner we know.
pub const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
/// No more columns of a kind than this are believed: the schema's own bound.
const COLUMNS_MAX: u64 = u16::MAX as u64;

/// A place in a commit log, as Cassandra counts: segment and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// Id of the segment.
    pub segment: i64,
    /// Offset in it.
    pub offset: i32,
}

impl LogPosition {
    /// None (`CommitLogPosition.NONE`).
    pub const NONE: Self = Self { segment: -1, offset: 0 };
}

/// What an SSTable says about its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Sizes of partitions in bytes.
    pub partition_sizes: EstimatedHistogram,
    /// Cells of partitions.
    pub cell_counts: EstimatedHistogram,
    /// Of all timestamps; `i64::MIN` for none.
    pub min_timestamp: i64,
    /// Of all timestamps; `i64::MAX` for none.
    pub max_timestamp: i64,
    /// Of all local deletion times and expirations, in seconds; `i64::MAX` where something never
    /// expires.
    pub min_local_deletion_time: i64,
    /// The same, largest.
    pub max_local_deletion_time: i64,
    /// Of all times to live, 0 where something has none.
    pub min_ttl: i32,
    /// The same, largest.
    pub max_ttl: i32,
    /// Compressed by uncompressed size; -1 without compression.
    pub compression_ratio: f64,
    /// When tombstones and expiring cells may go.
    pub tombstone_drop_times: TombstoneHistogram,
    /// Level of leveled compaction.
    pub level: i32,
    /// When it was repaired, in milliseconds; 0 for never.
    pub repaired_at: i64,
    /// Where rows and ranges begin: no row before it is in here. `nb` keeps its values up to the
    /// first null.
    pub start: Bound,
    /// Where they end.
    pub end: Bound,
    /// Counter shards from before 2.1?
    pub has_legacy_counter_shards: bool,
    /// Sum of the columns that each row sets.
    pub columns_set: i64,
    /// Number of rows, static ones included.
    pub rows: i64,
    /// The parts of the commit log that are in here: valid for the host that wrote them.
    pub log_intervals: Vec<(LogPosition, LogPosition)>,
    /// The incremental repair that it waits for.
    pub pending_repair: Option<[u8; 16]>,
    /// A transient replica's?
    pub is_transient: bool,
    /// The host whose commit log the intervals name.
    pub host_id: Option<[u8; 16]>,
    /// Was a whole partition deleted? Before `oa` nobody knows.
    pub has_partition_deletions: bool,
    /// The first key and the last, where the version has them.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
    /// The share of the ring that it covers, where the version has it and its writer knew it.
    pub token_coverage: Option<f64>,
}

/// The types and bases that `Data.db` is written with.
#[derive(Clone, Debug, PartialEq)]
pub struct HeaderComponent {
    /// Bases of the deltas.
    pub stats: EncodingStats,
    /// Class string of the partition key's type.
    pub key_type: String,
    /// Class strings of the clustering columns' types.
    pub clustering_types: Vec<String>,
    /// Names and class strings of the static columns, in Cassandra's order.
    pub statics: Vec<(String, String)>,
    /// The same of the regular ones.
    pub regulars: Vec<(String, String)>,
}

impl HeaderComponent {
    /// Of a table's layout; `key_type` is the class string of its partition key.
    pub fn new(stats: EncodingStats, key_type: String, layout: &Layout) -> Self {
        let columns = |columns: &[ColumnLayout]| {
            columns.iter().map(|c| (c.name.to_string(), c.ty.to_marshal_string())).collect()
        };
        let clustering = |c: &ClusteringColumn| c.ty.to_marshal_string_clustering(c.reversed);
        Self {
            stats,
            key_type,
            clustering_types: layout.clustering.iter().map(clustering).collect(),
            statics: columns(&layout.statics),
            regulars: columns(&layout.regulars),
        }
    }

    /// The layout that the file's rows have.
    ///
    /// # Errors
    /// If a class string makes no sense.
    pub fn layout(&self, counter: bool) -> Result<Layout> {
        let columns = |columns: &[(String, String)]| -> Result<Vec<ColumnLayout>> {
            let column = |(name, class): &(String, String)| {
                Ok(ColumnLayout { name: name.as_str().into(), ty: parse_type(class)?.0 })
            };
            columns.iter().map(column).collect()
        };
        let (statics, regulars) = (columns(&self.statics)?, columns(&self.regulars)?);
        Ok(Layout::new(clustering_columns(&self.clustering_types)?, statics, regulars, counter))
    }

    /// What the file's rows are written with. They have the columns in the order in which these are
    /// named: in files of earlier Helenus those that begin beyond ASCII come last, not first as in
    /// the layout.
    ///
    /// # Errors
    /// If a column is named twice.
    pub fn header(&self, format: Format, layout: &Layout) -> Result<Header> {
        let places = |is_static: bool, columns: &[(String, String)]| {
            columns.iter().filter_map(|(name, _)| layout.find(is_static, name)).collect::<Vec<_>>()
        };
        let (statics, regulars) = (places(true, &self.statics), places(false, &self.regulars));
        for places in [&statics, &regulars] {
            if places.iter().collect::<BTreeSet<_>>().len() < places.len() {
                return corrupt(NAME, "its header has a column twice");
            }
        }
        Ok(Header::of_columns(format, self.stats, layout, statics, regulars))
    }

    /// Appends its bytes, as `Statistics.db` and streams have them.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.stats.write(out);
        out.put_vint_bytes(self.key_type.as_bytes());
        out.put_uvint(self.clustering_types.len() as u64);
        for class in &self.clustering_types {
            out.put_vint_bytes(class.as_bytes());
        }
        for columns in [&self.statics, &self.regulars] {
            out.put_uvint(columns.len() as u64);
            for (name, class) in columns {
                out.put_vint_bytes(name.as_bytes());
                out.put_vint_bytes(class.as_bytes());
            }
        }
    }

    /// Steps over one, which only what it is says how long it is.
    ///
    /// # Errors
    /// If the bytes end before it does, or name more columns than a table can have.
    pub fn pass_over(reader: &mut VReader<'_>) -> std::result::Result<(), ReadError> {
        let list = |reader: &mut VReader<'_>, texts: u64| {
            let count = reader.uvint()?;
            if count > COLUMNS_MAX {
                return Err(ReadError::Length(count as i64));
            }
            (0..count * texts).try_for_each(|_| reader.vint_bytes().map(drop))
        };
        EncodingStats::read(reader)?;
        reader.vint_bytes()?;
        list(reader, 1)?;
        list(reader, 2)?;
        list(reader, 2)
    }

    /// Reads what [`Self::write`] wrote.
    ///
    /// # Errors
    /// If it is not what it should be.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut reader = VReader::new(bytes);
        let read = |e| Error::Corrupt { component: NAME, what: format!("header: {e}") };
        let stats = EncodingStats::read(&mut reader).map_err(read)?;
        let key_type = text(reader.vint_bytes().map_err(read)?)?;
        let clustering_types = texts(&mut reader)?;
        let mut lists = [Vec::new(), Vec::new()];
        for list in &mut lists {
            for _ in 0..count(&mut reader)? {
                let name = text(reader.vint_bytes().map_err(read)?)?;
                list.push((name, text(reader.vint_bytes().map_err(read)?)?));
            }
        }
        let [statics, regulars] = lists;
        Ok(Self { stats, key_type, clustering_types, statics, regulars })
    }
}

fn count(reader: &mut VReader<'_>) -> Result<u64> {
    match reader.uvint() {
        Ok(n) if n <= COLUMNS_MAX => Ok(n),
        Ok(n) => corrupt(NAME, format!("{n} columns")),
        Err(e) => corrupt(NAME, format!("header: {e}")),
    }
}

/// A list of texts, each behind its length.
fn texts(reader: &mut VReader<'_>) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for _ in 0..count(reader)? {
        let bytes = reader.vint_bytes();
        let bytes = bytes.map_err(|e| Error::Corrupt { component: NAME, what: e.to_string() })?;
        texts.push(text(bytes)?);
    }
    Ok(texts)
}

fn parse_type(class: &str) -> Result<(CqlType, bool)> {
    CqlType::parse_marshal(class)
        .map_err(|e| Error::Corrupt { component: NAME, what: format!("type {class}: {e}") })
}

fn clustering_columns(classes: &[String]) -> Result<Vec<ClusteringColumn>> {
    let column = |class: &String| {
        let (ty, reversed) = parse_type(class)?;
        Ok(ClusteringColumn { ty, reversed })
    };
    classes.iter().map(column).collect()
}

fn text(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec()).or_else(|_| corrupt(NAME, "a name is not UTF-8"))
}

/// All of `Statistics.db`.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// The class of the partitioner.
    pub partitioner: String,
    /// `bloom_filter_fp_chance` at the time of writing.
    pub filter_chance: f64,
    /// The sketch of the keys (HyperLogLog++), as stored.
    pub cardinality: Vec<u8>,
    /// The content's statistics.
    pub stats: Stats,
    /// Types and bases.
    pub header: HeaderComponent,
}

impl Statistics {
    /// The component's bytes.
    ///
    /// # Errors
    /// If a class string of the header makes no sense.
    pub fn encode(&self, version: Version) -> Result<Vec<u8>> {
        let mut validation = Vec::new();
        let name = put_utf(&mut validation, &self.partitioner);
        name.expect("the name of the partitioner is shorter than 64 KiB");
        validation.extend(self.filter_chance.to_be_bytes());
        let mut compaction = Vec::new();
        put_int(&mut compaction, self.cardinality.len());
        compaction.extend(&self.cardinality);
        let mut stats = Vec::new();
        self.stats.encode(version, &self.header.clustering_types, &mut stats)?;
        let mut header = Vec::new();
        self.header.write(&mut header);
        Ok(assemble(&[&validation, &compaction, &stats, &header]))
    }

    /// Reads the component's bytes; every checksum must fit.
    ///
    /// # Errors
    /// If they are not what they should be.
    pub fn parse(bytes: &[u8], version: Version) -> Result<Self> {
        let parts = disassemble(bytes)?;
        let mut validation = Reader::new(NAME, parts[0]);
        let partitioner = validation.utf()?.to_string();
        if partitioner != PARTITIONER {
            return corrupt(NAME, format!("partitioner {partitioner}"));
        }
        let filter_chance = validation.f64()?;
        let cardinality = Reader::new(NAME, parts[1]).int_bytes()?.to_vec();
        let stats = Stats::decode(parts[2], version)?;
        let header = HeaderComponent::parse(parts[3])?;
        Ok(Self { partitioner, filter_chance, cardinality, stats, header })
    }
}

fn assemble(parts: &[&[u8]; 4]) -> Vec<u8> {
    let mut out = Vec::new();
    put_int(&mut out, parts.len());
    let crc = crc32fast::hash(&out);
    let mut toc = out.clone();
    out.extend(crc.to_be_bytes());
    let mut offset = 4 + 4 + parts.len() * 8 + 4;
    for (kind, part) in parts.iter().enumerate() {
        for entry in [kind, offset] {
            put_int(&mut out, entry);
            put_int(&mut toc, entry);
        }
        offset += part.len() + 4;
    }
    out.extend(crc32fast::hash(&toc).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
        out.extend(crc32fast::hash(part).to_be_bytes());
    }
    out
}

fn check(what: &'static str, bytes: &[u8], stored: u32) -> Result<()> {
    crate::checksum::verify(NAME, || what.to_string(), bytes, stored)
}

fn disassemble(bytes: &[u8]) -> Result<[&[u8]; 4]> {
    let mut reader = Reader::new(NAME, bytes);
    let head = reader.array::<4>()?;
    check("its count", &head, reader.u32()?)?;
    let n = i32::from_be_bytes(head);
    if n != 4 {
        return corrupt(NAME, format!("{n} components"));
    }
    let entries = reader.take(4 * 8)?;
    check("its contents", &[&head[..], entries].concat(), reader.u32()?)?;
    let mut starts = [0; 5];
    starts[4] = bytes.len();
    for (kind, entry) in entries.chunks_exact(8).enumerate() {
        let mut entry = Reader::new(NAME, entry);
        if entry.i32()? != kind as i32 {
            return corrupt(NAME, "its components are out of order");
        }
        starts[kind] = entry.u32()? as usize;
    }
    let mut parts: [&[u8]; 4] = [&[]; 4];
    for (kind, part) in parts.iter_mut().enumerate() {
        let range = starts[kind]..starts[kind + 1];
        let whole = bytes.get(range).filter(|whole| whole.len() >= 4);
        let Some((body, crc)) = whole.and_then(|whole| whole.split_last_chunk::<4>()) else {
            return corrupt(NAME, "a component lies outside the file");
        };
        check("a component", body, u32::from_be_bytes(*crc))?;
        *part = body;
    }
    Ok(parts)
}

/// The largest number means none.
fn put_seconds(out: &mut Vec<u8>, version: Version, seconds: i64) {
    if version.has_uint_deletion_time() {
        let stored = match seconds {
            i64::MAX => u32::MAX,
            seconds => seconds.clamp(0, UNSIGNED_SECONDS_MAX) as u32,
        };
        return out.extend(stored.to_be_bytes());
    }
    let seconds = match seconds {
        i64::MAX => i32::MAX,
        seconds => seconds.clamp(i64::from(i32::MIN), i64::from(i32::MAX) - 1) as i32,
    };
    out.extend(seconds.to_be_bytes());
}

/// The latest deletion time of `oa`: one less means that it is invalid.
const UNSIGNED_SECONDS_MAX: i64 = u32::MAX as i64 - 2;

/// `nb` keeps seconds as a signed `int`; the largest means none.
fn seconds(stored: i32) -> i64 {
    if stored == i32::MAX { i64::MAX } else { i64::from(stored) }
}

/// `oa` keeps seconds unsigned; the largest means none.
fn unsigned_seconds(stored: u32) -> i64 {
    if stored == u32::MAX { i64::MAX } else { i64::from(stored) }
}

fn put_position(out: &mut Vec<u8>, position: LogPosition) {
    out.extend(position.segment.to_be_bytes());
    out.extend(position.offset.to_be_bytes());
}

fn position(reader: &mut Reader<'_>) -> Result<LogPosition> {
    Ok(LogPosition { segment: reader.i64()?, offset: reader.i32()? })
}

/// CQL refuses longer values, but a peer may send one. It ends what is covered, as a null does,
/// which makes that larger: cut off it would make it smaller, and a read would pass the SSTable by.
fn put_clustering(out: &mut Vec<u8>, bound: &Bound) {
    let fits = |value: &&[u8]| value.len() <= usize::from(u16::MAX);
    let values = bound.values.as_ref().iter().map_while(|value| value.filter(fits));
    let values: Vec<&[u8]> = values.collect();
    put_int(out, values.len());
    for value in values {
        let length = u16::try_from(value.len()).expect("values that do not fit were left out");
        out.extend(length.to_be_bytes());
        out.extend(value);
    }
}

fn clustering(kind: BoundKind, reader: &mut Reader<'_>) -> Result<Bound> {
    let mut values = ClusteringBuilder::default();
    for _ in 0..reader.count(2)? {
        let length = reader.u16()?;
        values.push(Some(reader.take(length.into())?));
    }
    Ok(BoundRef::new(kind, values.finish()).to_owned())
}

/// A slice behind the types of its values.
fn put_covered(out: &mut Vec<u8>, types: &[String], start: &Bound, end: &Bound) -> Result<()> {
    let layout = Layout::new(clustering_columns(types)?, Vec::new(), Vec::new(), false);
    out.put_uvint(types.len() as u64);
    types.iter().for_each(|class| out.put_vint_bytes(class.as_bytes()));
    for bound in [start, end] {
        let written = write_bound(&layout, bound.as_ref(), out);
        written.map_err(|e| Error::Corrupt { component: NAME, what: format!("covered: {e}") })?;
    }
    Ok(())
}

/// The bounds of a slice behind the types of their values.
fn covered(reader: &mut Reader<'_>) -> Result<(Bound, Bound)> {
    let mut bytes = VReader::new(reader.rest());
    let clustering = clustering_columns(&texts(&mut bytes)?)?;
    let layout = Layout::new(clustering, Vec::new(), Vec::new(), false);
    let mut bound = || -> Result<Bound> {
        let mut scratch = ClusteringBuilder::default();
        let bound = read_bound(&layout, &mut bytes, &mut scratch);
        let bound =
            bound.map_err(|e| Error::Corrupt { component: NAME, what: format!("covered: {e}") })?;
        Ok(bound.to_owned())
    };
    let both = (bound()?, bound()?);
    reader.take(bytes.position())?;
    Ok(both)
}

/// Bytes behind their length.
fn vint_bytes(reader: &mut Reader<'_>) -> Result<Vec<u8>> {
    let mut bytes = VReader::new(reader.rest());
    let value = bytes.vint_bytes();
    let value = value.map_err(|e| Error::Corrupt { component: NAME, what: e.to_string() })?;
    let value = value.to_vec();
    reader.take(bytes.position())?;
    Ok(value)
}

fn put_optional(out: &mut Vec<u8>, id: Option<[u8; 16]>) {
    out.push(u8::from(id.is_some()));
    out.extend(id.unwrap_or_default().iter().take(if id.is_some() { 16 } else { 0 }));
}

fn optional(reader: &mut Reader<'_>) -> Result<Option<[u8; 16]>> {
    if reader.u8()? == 0 { Ok(None) } else { reader.array().map(Some) }
}

impl Stats {
    fn encode(&self, version: Version, types: &[String], out: &mut Vec<u8>) -> Result<()> {
        let is_oa = version.has_uint_deletion_time();
        self.partition_sizes.encode(out);
        self.cell_counts.encode(out);
        let upper = self.log_intervals.iter().map(|(_, end)| *end).max();
        put_position(out, upper.unwrap_or(LogPosition::NONE));
        out.extend(self.min_timestamp.to_be_bytes());
        out.extend(self.max_timestamp.to_be_bytes());
        put_seconds(out, version, self.min_local_deletion_time);
        put_seconds(out, version, self.max_local_deletion_time);
        out.extend(self.min_ttl.to_be_bytes());
        out.extend(self.max_ttl.to_be_bytes());
        out.extend(self.compression_ratio.to_be_bytes());
        self.tombstone_drop_times.encode(out, version);
        out.extend(self.level.to_be_bytes());
        out.extend(self.repaired_at.to_be_bytes());
        if is_oa {
            put_covered(out, types, &self.start, &self.end)?;
        } else {
            put_clustering(out, &self.start);
            put_clustering(out, &self.end);
        }
        out.push(u8::from(self.has_legacy_counter_shards));
        out.extend(self.columns_set.to_be_bytes());
        out.extend(self.rows.to_be_bytes());
        let lower = self.log_intervals.iter().map(|(start, _)| *start).min();
        put_position(out, lower.unwrap_or(LogPosition::NONE));
        put_int(out, self.log_intervals.len());
        for (start, end) in &self.log_intervals {
            put_position(out, *start);
            put_position(out, *end);
        }
        put_optional(out, self.pending_repair);
        out.push(u8::from(self.is_transient));
        put_optional(out, self.host_id);
        if is_oa {
            out.push(u8::from(self.has_partition_deletions));
            let (first, last) = self.keys.as_ref().map_or((&[][..], &[][..]), |(a, b)| (a, b));
            out.put_vint_bytes(first);
            out.put_vint_bytes(last);
            out.extend(self.token_coverage.unwrap_or(f64::NAN).to_be_bytes());
        }
        Ok(())
    }

    fn decode(bytes: &[u8], version: Version) -> Result<Self> {
        let is_oa = version.has_uint_deletion_time();
        let mut reader = Reader::new(NAME, bytes);
        let r = &mut reader;
        let partition_sizes = EstimatedHistogram::parse(r)?;
        let cell_counts = EstimatedHistogram::parse(r)?;
        position(r)?;
        let (min_timestamp, max_timestamp) = (r.i64()?, r.i64()?);
        let time = |r: &mut Reader<'_>| match is_oa {
            true => r.u32().map(unsigned_seconds),
            false => r.i32().map(seconds),
        };
        let (min_local_deletion_time, max_local_deletion_time) = (time(r)?, time(r)?);
        let (min_ttl, max_ttl) = (r.i32()?, r.i32()?);
        let compression_ratio = r.f64()?;
        let tombstone_drop_times = TombstoneHistogram::parse(r, version)?;
        let (level, repaired_at) = (r.i32()?, r.i64()?);
        let (start, end) = match is_oa {
            true => covered(r)?,
            false => (clustering(BoundKind::InclStart, r)?, clustering(BoundKind::InclEnd, r)?),
        };
        let has_legacy_counter_shards = r.u8()? != 0;
        let (columns_set, rows) = (r.i64()?, r.i64()?);
        position(r)?;
        let n = r.count(24)?;
        let intervals: Result<Vec<_>> = (0..n).map(|_| Ok((position(r)?, position(r)?))).collect();
        let pending_repair = optional(r)?;
        let is_transient = r.u8()? != 0;
        // `na` ends here
        let host_id = if r.left() > 0 { optional(r)? } else { None };
        let (mut has_partition_deletions, mut keys, mut token_coverage) = (true, None, None);
        if is_oa {
            has_partition_deletions = r.u8()? != 0;
            keys = Some((vint_bytes(r)?, vint_bytes(r)?));
            token_coverage = Some(r.f64()?).filter(|share| !share.is_nan());
        }
        Ok(Self {
            partition_sizes,
            cell_counts,
            min_timestamp,
            max_timestamp,
            min_local_deletion_time,
            max_local_deletion_time,
            min_ttl,
            max_ttl,
            compression_ratio,
            tombstone_drop_times,
            level,
            repaired_at,
            start,
            end,
            has_legacy_counter_shards,
            columns_set,
            rows,
            log_intervals: intervals?,
            pending_repair,
            is_transient,
            host_id,
            has_partition_deletions,
            keys,
            token_coverage,
        })
    }
}
