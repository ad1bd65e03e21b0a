//! The header of a file (`StreamMessageHeader`, `CassandraStreamHeader`).
//!
//! ```text
//! table, sender, plan, is the sender the follower (1 byte)
//! session, sequence number (4 bytes each)
//! repaired at (8 bytes), repair it is pending for (1 byte, then 16 if that is 1)
//! version, format (texts), keys (8 bytes)
//! count of sections, each two positions in the uncompressed data (8 bytes each)
//! count of chunks, or -1 where nothing is compressed; each position and length (8 and 4 bytes)
//!   then the compressor (text), count of options, each two texts, length of a chunk,
//!   longest compressed chunk (4 bytes each)
//! level (4 bytes), types and bases as in Statistics.db, table
//! is it the whole SSTable (1 byte); then count of components (vint), each name (text) and bytes
//!   (vint), and the first key behind its length (vint)
//! ```

use schema::TableId;
use sstable::descriptor::{Format, Version};
use sstable::statistics::HeaderComponent;
use types::{Address, Uuid, WriteBytes};

use super::input::{Input, InputError, count, part};
use super::parts::{Unwritable, optional_uuid, put_count, put_uuid, table, uuid};

/// Sections of a file: each has a partition at least.
const SECTIONS_MAX: u32 = 1 << 24;
/// Chunks of a file. With those of 16 KiB it has a terabyte before compression.
const CHUNKS_MAX: u32 = 1 << 26;
/// Bytes of a chunk before compression: so many are held of one at a time. The default of a table
/// is 16 KiB.
const CHUNK_BYTES_MAX: u32 = 16 << 20;
/// Options of a compressor.
const OPTIONS_MAX: u32 = 64;
/// Components of an SSTable, those of indexes included.
const COMPONENTS_MAX: u64 = 1 << 12;

/// Whole partitions that lie behind each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Where the first one starts, in uncompressed bytes.
    pub from: u64,
    /// Where the last one ends.
    pub to: u64,
}

impl Section {
    /// Bytes before compression.
    pub fn bytes(self) -> u64 {
        self.to - self.from
    }
}

/// How the data is compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Of each chunk that sections touch its place in the sender's file and its bytes, without the
    /// checksum behind them.
    pub chunks: Vec<(u64, u32)>,
    /// The compressor's class, as `LZ4Compressor`.
    pub class: String,
    /// Its options.
    pub options: Vec<(String, String)>,
    /// Bytes of a chunk before compression.
    pub chunk_length: u32,
    /// A chunk of so many bytes or more is stored as it is.
    pub max_compressed_length: u32,
}

/// The components of an SSTable that is sent whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Their names and bytes, in the order in which they come.
    pub components: Vec<(String, u64)>,
    /// The SSTable's first partition key.
    pub first_key: Vec<u8>,
}

/// What comes before the bytes of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileHeader {
    /// The table.
    pub table: TableId,
    /// Who sends it.
    pub sender: Address,
    /// The plan.
    pub plan: Uuid,
    /// Does the session's follower send it?
    pub is_of_follower: bool,
    /// The session.
    pub session: i32,
    /// Which of the session's files of the table.
    pub sequence: i32,
    /// When it was repaired, in milliseconds since 1970; 0 for never.
    pub repaired_at: i64,
    /// The incremental repair that it is of.
    pub pending_repair: Option<Uuid>,
    /// The version of the SSTable.
    pub version: Version,
    /// The kind of its index.
    pub format: Format,
    /// How many partitions there may be.
    pub estimated_keys: u64,
    /// What is sent of it.
    pub sections: Vec<Section>,
    /// How it is compressed, if it is.
    pub compression: Option<Compression>,
    /// Its level.
    pub level: i32,
    /// What its rows are written with.
    pub rows: HeaderComponent,
    /// Its components, if it is sent whole.
    pub whole: Option<Manifest>,
}

impl FileHeader {
    /// Files that it counts for.
    pub fn files(&self) -> u32 {
        self.whole.as_ref().map_or(1, |whole| whole.components.len() as u32)
    }

    /// Bytes that follow, as both sides count them: of data that is not compressed those before it
    /// is for the journey.
    pub fn bytes(&self) -> u64 {
        let sum = |bytes: &mut dyn Iterator<Item = u64>| bytes.fold(0, u64::saturating_add);
        match (&self.whole, &self.compression) {
            (Some(whole), _) => sum(&mut whole.components.iter().map(|(_, bytes)| *bytes)),
            (None, Some(compression)) => {
                sum(&mut compression.chunks.iter().map(|(_, bytes)| u64::from(*bytes) + 4))
            }
            (None, None) => sum(&mut self.sections.iter().map(|section| section.bytes())),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        out.put(&self.table.0);
        self.sender.write(out);
        out.put(&self.plan.to_bytes());
        out.put_bool(self.is_of_follower);
        out.put_i32(self.session);
        out.put_i32(self.sequence);
        out.put_i64(self.repaired_at);
        put_uuid(out, self.pending_repair);
        out.put_utf(&self.version.to_string())?;
        out.put_utf(&self.format.to_string())?;
        out.put_u64(self.estimated_keys);
        put_count(out, self.sections.len())?;
        for Section { from, to } in &self.sections {
            out.put_u64(*from);
            out.put_u64(*to);
        }
        match &self.compression {
            None => out.put_i32(-1),
            Some(compression) => compression.write(out)?,
        }
        out.put_i32(self.level);
        self.rows.write(out);
        out.put(&self.table.0);
        out.put_bool(self.whole.is_some());
        if let Some(Manifest { components, first_key }) = &self.whole {
            out.put_uvint(components.len() as u64);
            for (name, bytes) in components {
                out.put_utf(name)?;
                out.put_uvint(*bytes);
            }
            out.put_vint_bytes(first_key);
        }
        Ok(())
    }

    pub(super) async fn read<I: Input>(input: &mut I) -> Result<Self, InputError> {
        let what = "the header of a file";
        let (table, sender, plan, is_of_follower, session, sequence, repaired_at, pending_repair) =
            part(input, what, |reader| {
                Ok((
                    table(reader)?,
                    Address::read(reader)?,
                    uuid(reader)?,
                    reader.bool()?,
                    reader.i32()?,
                    reader.i32()?,
                    reader.i64()?,
                    optional_uuid(reader)?,
                ))
            })
            .await?;
        let (version, format) =
            part(input, what, |reader| Ok((reader.utf()?, reader.utf()?))).await?;
        let (version, format) = parse_version(version, format)?;
        let keys = part(input, what, |reader| reader.i64()).await?;
        let estimated_keys = u64::try_from(keys);
        let impossible = InputError::Impossible { what: "a count of keys", number: keys };
        let estimated_keys = estimated_keys.map_err(|_| impossible)?;
        let sections = sections(input).await?;
        let compression = Compression::read(input).await?;
        let level = part(input, what, |reader| reader.i32()).await?;
        let rows = rows(input).await?;
        let again = part(input, what, self::table).await?;
        if again != table {
            let name = again.to_hex();
            return Err(InputError::Unknown { what: "table in the header of a file", name });
        }
        let whole = match part(input, what, |reader| reader.bool()).await? {
            true => Some(Manifest::read(input).await?),
            false => None,
        };
        Ok(Self {
            table,
            sender,
            plan,
            is_of_follower,
            session,
            sequence,
            repaired_at,
            pending_repair,
            version,
            format,
            estimated_keys,
            sections,
            compression,
            level,
            rows,
            whole,
        })
    }
}

fn parse_version(version: String, format: String) -> Result<(Version, Format), InputError> {
    let known = [Format::Big, Format::Bti].into_iter().find(|known| known.to_string() == format);
    let format = known.ok_or(InputError::Unknown { what: "format of SSTables", name: format })?;
    let parsed = Version::parse(&version).filter(|parsed| parsed.is_readable(format));
    let unknown = InputError::Unknown { what: "version of SSTables", name: version };
    Ok((parsed.ok_or(unknown)?, format))
}

async fn sections<I: Input>(input: &mut I) -> Result<Vec<Section>, InputError> {
    let mut sections: Vec<Section> = Vec::new();
    for _ in 0..count(input, "a count of sections", SECTIONS_MAX).await? {
        let (from, to) =
            part(input, "a section", |reader| Ok((reader.i64()?, reader.i64()?))).await?;
        let before = sections.last().map_or(0, |last| last.to as i64);
        if from < before || to < from {
            let what = "a section that is not behind the one before it, at a position";
            return Err(InputError::Impossible { what, number: from });
        }
        sections.push(Section { from: from as u64, to: to as u64 });
    }
    Ok(sections)
}

/// Types and bases. They say how long they are only by what they are.
async fn rows<I: Input>(input: &mut I) -> Result<HeaderComponent, InputError> {
    let what = "the columns of a file";
    let bytes = part(input, what, |reader| {
        let before = reader.rest();
        HeaderComponent::pass_over(reader)?;
        let length = before.len() - reader.remaining();
        Ok(before.get(..length).unwrap_or_default().to_vec())
    })
    .await?;
    Ok(HeaderComponent::parse(&bytes)?)
}

impl Compression {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        put_count(out, self.chunks.len())?;
        for (offset, bytes) in &self.chunks {
            out.put_u64(*offset);
            out.put_u32(*bytes);
        }
        out.put_utf(&self.class)?;
        put_count(out, self.options.len())?;
        for (key, value) in &self.options {
            out.put_utf(key)?;
            out.put_utf(value)?;
        }
        out.put_u32(self.chunk_length);
        out.put_u32(self.max_compressed_length);
        Ok(())
    }

    async fn read<I: Input>(input: &mut I) -> Result<Option<Self>, InputError> {
        let what = "a count of chunks";
        let number = part(input, what, |reader| reader.i32()).await?;
        if number < 0 {
            return Ok(None);
        }
        if number.unsigned_abs() > CHUNKS_MAX {
            return Err(InputError::Impossible { what, number: number.into() });
        }
        let mut chunks = Vec::new();
        for _ in 0..number {
            let (offset, bytes) =
                part(input, "a chunk", |reader| Ok((reader.u64()?, reader.i32()?))).await?;
            let impossible = InputError::Impossible { what: "a chunk", number: bytes.into() };
            chunks.push((offset, u32::try_from(bytes).map_err(|_| impossible)?));
        }
        let what = "the compression of a file";
        let class = part(input, what, |reader| reader.utf()).await?;
        let mut options = Vec::new();
        for _ in 0..count(input, "a count of options", OPTIONS_MAX).await? {
            options.push(part(input, what, |reader| Ok((reader.utf()?, reader.utf()?))).await?);
        }
        let (chunk_length, max_compressed_length) =
            part(input, what, |reader| Ok((reader.i32()?, reader.i32()?))).await?;
        let length = u32::try_from(chunk_length).ok();
        let length = length.filter(|length| length.is_power_of_two() && *length <= CHUNK_BYTES_MAX);
        let what = "a length of chunks";
        let number = chunk_length.into();
        let chunk_length = length.ok_or(InputError::Impossible { what, number })?;
        let what = "a longest compressed chunk";
        let number = max_compressed_length.into();
        let max_compressed_length = u32::try_from(max_compressed_length);
        let max_compressed_length =
            max_compressed_length.map_err(|_| InputError::Impossible { what, number })?;
        Ok(Some(Self { chunks, class, options, chunk_length, max_compressed_length }))
    }
}

impl Manifest {
    async fn read<I: Input>(input: &mut I) -> Result<Self, InputError> {
        let what = "the components of an SSTable";
        let number = part(input, what, |reader| reader.uvint()).await?;
        if number > COMPONENTS_MAX {
            return Err(InputError::Impossible { what, number: number as i64 });
        }
        let mut components = Vec::new();
        for _ in 0..number {
            let (name, bytes) =
                part(input, what, |reader| Ok((reader.utf()?, reader.uvint()?))).await?;
            if i64::try_from(bytes).is_err() {
                return Err(InputError::Impossible { what, number: bytes as i64 });
            }
            components.push((name, bytes));
        }
        let first_key = part(input, what, |reader| Ok(reader.vint_bytes()?.to_vec())).await?;
        Ok(Self { components, first_key })
    }
}
