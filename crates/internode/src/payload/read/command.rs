//! The request.

use std::sync::Arc;

use rows::Clustering;
use rows::codec::write_clustering;
use schema::Table;
use types::{ReadError, Reader, Token, Uuid, WriteBytes};

use super::columns::ColumnFilter;
use super::filter::{self, Expression};
use super::limits::{Limits, read_whole_clustering};
use super::rows_of::RowsOf;
use crate::payload::{PayloadError, WriteError};

const PARTITION: u8 = 0;
const RANGE: u8 = 1;

const IS_DIGEST: u8 = 0x01;
const IS_FOR_THRIFT: u8 = 0x02;
const HAS_INDEX: u8 = 0x04;
const ACCEPTS_TRANSIENT: u8 = 0x08;
const NEEDS_RECONCILIATION: u8 = 0x10;

const IS_TOKEN: u8 = 0x01;
const START_INCLUSIVE: u8 = 0x02;
const END_INCLUSIVE: u8 = 0x04;

/// Bytes of a token.
const TOKEN: usize = 8;

/// The tables by id.
pub type TableOf<'t> = &'t dyn Fn(&[u8; 16]) -> Option<Arc<Table>>;

/// A place on the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// At a key.
    Key(Box<[u8]>),
    /// Before all keys of a token.
    Before(Token),
    /// After all keys of a token.
    After(Token),
}

impl Position {
    const KEY: u8 = 0;
    const BEFORE: u8 = 1;
    const AFTER: u8 = 2;

    fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let kind = reader.u8()?;
        let make = match kind {
            Self::KEY => return Ok(Self::Key(reader.short_bytes()?.into())),
            Self::BEFORE => Self::Before,
            Self::AFTER => Self::After,
            kind => return Err(PayloadError::kind("place on the ring", kind)),
        };
        let bytes = reader.int_bytes()?;
        let token = bytes.as_array::<TOKEN>().ok_or(ReadError::Length(bytes.len() as i64))?;
        Ok(make(Token(i64::from_be_bytes(*token))))
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let (kind, token) = match self {
            Self::Key(key) => {
                out.put_u8(Self::KEY);
                return Ok(out.put_short_bytes(key)?);
            }
            Self::Before(token) => (Self::BEFORE, token),
            Self::After(token) => (Self::AFTER, token),
        };
        out.put_u8(kind);
        out.put_int_bytes(&token.0.to_be_bytes());
        Ok(())
    }
}

/// A range of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// From here.
    pub from: Position,
    /// With what is just there?
    pub from_inclusive: bool,
    /// To here.
    pub to: Position,
    /// With what is just there?
    pub to_inclusive: bool,
}

impl KeyRange {
    fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let flags = reader.u8()?;
        if flags & IS_TOKEN != 0 {
            return Err(PayloadError::kind("range of keys", flags));
        }
        let (from, to) = (Position::read(reader)?, Position::read(reader)?);
        let (from_inclusive, to_inclusive) =
            (flags & START_INCLUSIVE != 0, flags & END_INCLUSIVE != 0);
        Ok(Self { from, from_inclusive, to, to_inclusive })
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let mut flags = 0;
        if self.from_inclusive {
            flags |= START_INCLUSIVE;
        }
        if self.to_inclusive {
            flags |= END_INCLUSIVE;
        }
        out.put_u8(flags);
        self.from.write(out)?;
        self.to.write(out)
    }
}

/// What is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A partition.
    Partition {
        /// Its key.
        key: Box<[u8]>,
        /// Which rows of it.
        rows: RowsOf,
    },
    /// The partitions in a range of the ring.
    Range {
        /// The range.
        keys: KeyRange,
        /// Which rows of each.
        rows: RowsOf,
        /// In the first partition, only what follows this row, or the row and what follows it.
        after: Option<(Clustering, bool)>,
    },
}

/// A read that a coordinator asks of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadCommand {
    /// Id of the table.
    pub table: [u8; 16],
    /// The version of the digest that is wanted in place of data.
    pub digest: Option<i32>,
    /// May the replica be a transient one?
    pub accepts_transient: bool,
    /// Must what the filter refuses be sent for the coordinator to see? From 5.0 on.
    pub needs_reconciliation: bool,
    /// What is "now" in this read: seconds since 1970.
    pub now: i32,
    /// Which columns.
    pub columns: ColumnFilter,
    /// Conditions.
    pub filter: Vec<Expression>,
    /// How much.
    pub limits: Limits,
    /// The index that the coordinator chose.
    pub index: Option<Uuid>,
    /// What is read.
    pub target: Target,
}

impl ReadCommand {
    /// Reads it; of a table that is not known nothing can be read.
    pub fn read(
        reader: &mut Reader<'_>,
        table_of: TableOf<'_>,
    ) -> Result<(Self, Arc<Table>), PayloadError> {
        let kind = reader.u8()?;
        let flags = reader.u8()?;
        if flags & IS_FOR_THRIFT != 0 {
            return Err(PayloadError::kind("flags of a read", flags));
        }
        let digest = match flags & IS_DIGEST {
            0 => None,
            _ => Some(reader.uvint32()?),
        };
        let id = reader.array::<16>()?;
        let table = table_of(&id).ok_or(PayloadError::UnknownTable(id))?;
        let layout = &*table.layout;
        let now = reader.i32()?;
        let columns = ColumnFilter::read(&table, reader)?;
        let filter = filter::read(&table, reader)?;
        let limits = Limits::read(layout, reader)?;
        let index = match flags & HAS_INDEX {
            0 => None,
            _ => Some(Uuid::from_bytes(reader.array()?)),
        };
        let target = match kind {
            PARTITION => {
                let key = match single_key_length(&table) {
                    Some(length) => reader.bytes(length)?,
                    None => reader.vint_bytes()?,
                };
                Target::Partition { key: key.into(), rows: RowsOf::read(layout, reader)? }
            }
            RANGE => {
                let keys = KeyRange::read(reader)?;
                let rows = RowsOf::read(layout, reader)?;
                let after = match reader.bool()? {
                    true => Some((read_whole_clustering(layout, reader)?, reader.bool()?)),
                    false => None,
                };
                Target::Range { keys, rows, after }
            }
            kind => return Err(PayloadError::kind("read", kind)),
        };
        let command = Self {
            table: id,
            digest,
            accepts_transient: flags & ACCEPTS_TRANSIENT != 0,
            needs_reconciliation: flags & NEEDS_RECONCILIATION != 0,
            now,
            columns,
            filter,
            limits,
            index,
            target,
        };
        Ok((command, table))
    }

    /// Appends it.
    pub fn write(&self, table: &Table, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let layout = &*table.layout;
        out.put_u8(match self.target {
            Target::Partition { .. } => PARTITION,
            Target::Range { .. } => RANGE,
        });
        let mut flags = 0;
        for (is_set, flag) in [
            (self.digest.is_some(), IS_DIGEST),
            (self.index.is_some(), HAS_INDEX),
            (self.accepts_transient, ACCEPTS_TRANSIENT),
            (self.needs_reconciliation, NEEDS_RECONCILIATION),
        ] {
            if is_set {
                flags |= flag;
            }
        }
        out.put_u8(flags);
        if let Some(version) = self.digest {
            out.put_uvint32(version);
        }
        out.put(&self.table);
        out.put_i32(self.now);
        self.columns.write(table, out)?;
        filter::write(&self.filter, out)?;
        self.limits.write(layout, out)?;
        if let Some(index) = self.index {
            out.put(&index.to_bytes());
        }
        match &self.target {
            Target::Partition { key, rows } => {
                match single_key_length(table) {
                    None => out.put_vint_bytes(key),
                    Some(length) if length == key.len() => out.put(key),
                    Some(_) => return Err(WriteError::Key(key.len())),
                }
                rows.write(layout, out)
            }
            Target::Range { keys, rows, after } => {
                keys.write(out)?;
                rows.write(layout, out)?;
                out.put_bool(after.is_some());
                if let Some((row, inclusive)) = after {
                    write_clustering(layout, row.as_ref(), out)?;
                    out.put_bool(*inclusive);
                }
                Ok(())
            }
        }
    }
}

/// The length of all keys of a table, if they are written bare: those of one column of a fixed
/// length.
fn single_key_length(table: &Table) -> Option<usize> {
    match &table.partition_key[..] {
        [column] => column.ty.fixed_length(),
        _ => None,
    }
}
