//! BATCH requests.

use crate::{
    error::ProtocolError, query_options::QueryOptions, reader::Reader, values::Values,
    version::Version,
};

/// Kind of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BatchKind {
    /// Through the batch log: all or nothing, eventually.
    Logged = 0,
    /// Without it.
    Unlogged = 1,
    /// Of counter updates.
    Counter = 2,
}

impl BatchKind {
    fn from_code(code: i8) -> Result<Self, ProtocolError> {
        match code {
            0 => Ok(Self::Logged),
            1 => Ok(Self::Unlogged),
            2 => Ok(Self::Counter),
            _ => Err(ProtocolError::BatchKind(code)),
        }
    }
}

/// A statement of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchStatement<'a> {
    /// Its text.
    Text(&'a str),
    /// Id of a prepared statement.
    Prepared(&'a [u8]),
}

/// A statement of a batch and its values.
#[derive(Clone, Copy, Debug)]
pub struct BatchEntry<'a> {
    /// The statement.
    pub statement: BatchStatement<'a>,
    /// Its values, by position.
    pub values: Values<'a>,
}

/// A BATCH request.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Kind of the batch.
    pub kind: BatchKind,
    /// Options for all of it.
    pub options: QueryOptions<'a>,
    /// The entries as they came, checked.
    bytes: &'a [u8],
    count: u16,
    version: Version,
}

impl<'a> Batch<'a> {
    pub(crate) fn parse(reader: &mut Reader<'a>, version: Version) -> Result<Self, ProtocolError> {
        let kind = reader.i8()?;
        let count = reader.u16()?;
        let bytes = reader.rest();
        for _ in 0..count {
            entry(reader, version)?;
        }
        let bytes = bytes.get(..bytes.len() - reader.remaining()).unwrap_or_default();
        let options = QueryOptions::parse(reader, version)?;
        Ok(Self { kind: BatchKind::from_code(kind)?, options, bytes, count, version })
    }

    /// Number of statements.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Is it a batch of nothing?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The statements in order.
    pub fn entries(&self) -> impl Iterator<Item = BatchEntry<'a>> + use<'a> {
        let (mut reader, version) = (Reader::new(self.bytes), self.version);
        (0..self.count).map_while(move |_| entry(&mut reader, version).ok())
    }
}

fn entry<'a>(reader: &mut Reader<'a>, version: Version) -> Result<BatchEntry<'a>, ProtocolError> {
    let statement = match reader.i8()? {
        0 => BatchStatement::Text(reader.long_string()?),
        1 => BatchStatement::Prepared(reader.short_bytes()?),
        kind => return Err(ProtocolError::BatchEntryKind(kind)),
    };
    Ok(BatchEntry { statement, values: Values::parse(reader, version, false)? })
}
