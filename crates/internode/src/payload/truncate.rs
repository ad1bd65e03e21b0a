//! TRUNCATE and its answer, and SNAPSHOT (`db.TruncateRequest`, `TruncateResponse`,
//! `SnapshotCommand`): names.

use types::vint::TooLong;
use types::{ReadError, Reader, WriteBytes};

/// A table to be emptied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncate {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
}

impl Truncate {
    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        Ok(Self { keyspace: reader.utf()?, table: reader.utf()? })
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        out.put_utf(&self.keyspace)?;
        out.put_utf(&self.table)
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// The table.
    pub of: Truncate,
    /// Is it empty?
    pub done: bool,
}

impl Truncated {
    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        Ok(Self { of: Truncate::read(reader)?, done: reader.bool()? })
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        self.of.write(out)?;
        out.put_bool(self.done);
        Ok(())
    }
}

/// A snapshot to be taken or removed. Repaired data's digests make Cassandra ask for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The table.
    pub of: Truncate,
    /// The snapshot's name.
    pub name: String,
    /// Removed rather than taken?
    pub clear: bool,
}

impl Snapshot {
    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        Ok(Self { of: Truncate::read(reader)?, name: reader.utf()?, clear: reader.bool()? })
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        self.of.write(out)?;
        out.put_utf(&self.name)?;
        out.put_bool(self.clear);
        Ok(())
    }
}
