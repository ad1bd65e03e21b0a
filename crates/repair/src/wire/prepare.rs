//! How a repair begins and ends at a replica.

use schema::TableId;
use types::{Reader, TokenRange, Uuid, WriteBytes};

use super::error::PayloadError;
use super::job::JobDescription;
use super::kinds::PreviewKind;
use super::parts::{Unwritable, count, put_count, put_ranges, ranges, table_id, uuid};

/// A repair is about to begin (`PrepareMessage`).
///
/// ```text
/// count, tables, parent, count, ranges, bool incremental, i64 repaired at, bool global,
/// i32 preview
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare {
    /// The tables.
    pub tables: Vec<TableId>,
    /// The repair.
    pub parent: Uuid,
    /// The ranges that the replica has of it.
    pub ranges: Vec<TokenRange>,
    /// Does it repair only what is not repaired yet?
    pub is_incremental: bool,
    /// When its data counts as repaired, in milliseconds since 1970.
    pub repaired_at: i64,
    /// Do all replicas take part?
    pub is_global: bool,
    /// Does it repair?
    pub preview: PreviewKind,
}

impl Prepare {
    /// Reads it.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let tables = count(reader, size_of::<TableId>())?;
        Ok(Self {
            tables: (0..tables).map(|_| table_id(reader)).collect::<Result<_, _>>()?,
            parent: uuid(reader)?,
            ranges: ranges(reader)?,
            is_incremental: reader.bool()?,
            repaired_at: reader.i64()?,
            is_global: reader.bool()?,
            preview: PreviewKind::read(reader.i32()?)?,
        })
    }

    /// Appends it.
    ///
    /// # Errors
    /// If something in it does not fit into its format.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        put_count(out, self.tables.len())?;
        self.tables.iter().for_each(|table| out.put(&table.0));
        out.put(&self.parent.to_bytes());
        put_ranges(out, &self.ranges)?;
        out.put_bool(self.is_incremental);
        out.put_i64(self.repaired_at);
        out.put_bool(self.is_global);
        out.put_i32(self.preview.number());
        Ok(())
    }
}

/// A sequential repair has the data kept that it validates (`SnapshotMessage`): the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The job.
    pub desc: JobDescription,
}

impl Snapshot {
    /// Reads it.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        Ok(Self { desc: JobDescription::read(reader)? })
    }

    /// Appends it.
    ///
    /// # Errors
    /// If something in it does not fit into its format.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        self.desc.write(out)
    }
}

/// A repair is over (`CleanupMessage`): its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleanup {
    /// The repair.
    pub parent: Uuid,
}

impl Cleanup {
    /// Reads it.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        Ok(Self { parent: uuid(reader)? })
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put(&self.parent.to_bytes());
    }
}
