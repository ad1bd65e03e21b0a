//! Which table's ranges a message is about.

use types::{Reader, TokenRange, Uuid, WriteBytes};

use super::error::PayloadError;
use super::parts::{Unwritable, put_ranges, ranges, uuid};

/// One table's part of a session (`repair.RepairJobDesc`).
///
/// ```text
/// bool, [parent], session, keyspace, table, count, ranges
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobDescription {
    /// The repair that an operator started.
    pub parent: Option<Uuid>,
    /// Its part over ranges that have the same replicas.
    pub session: Uuid,
    /// The keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// The ranges.
    pub ranges: Vec<TokenRange>,
}

impl JobDescription {
    /// Reads it.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let parent = if reader.bool()? { Some(uuid(reader)?) } else { None };
        Ok(Self {
            parent,
            session: uuid(reader)?,
            keyspace: reader.utf()?,
            table: reader.utf()?,
            ranges: ranges(reader)?,
        })
    }

    /// Appends it.
    ///
    /// # Errors
    /// If something in it does not fit into its format.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        out.put_bool(self.parent.is_some());
        if let Some(parent) = self.parent {
            out.put(&parent.to_bytes());
        }
        out.put(&self.session.to_bytes());
        out.put_utf(&self.keyspace)?;
        out.put_utf(&self.table)?;
        put_ranges(out, &self.ranges)
    }
}
