//! What rows must hold besides being there (`db.filter.RowFilter`).

use schema::Table;
use types::{Reader, Uuid, WriteBytes};

use crate::payload::{PayloadError, WriteError};

/// Bytes of an expression at least: kind, an index's id, length of a value; or kind, length of a
/// name, operator, length of a value.
const LEAST_EXPRESSION: usize = 9;

/// How a column's value relates to another (`cql3.Operator`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "CQL's")]
pub enum Operator {
    Eq,
    GreaterOrEqual,
    Greater,
    LessOrEqual,
    Less,
    Contains,
    ContainsKey,
    In,
    NotEq,
    IsNot,
    LikePrefix,
    LikeSuffix,
    LikeContains,
    LikeMatches,
    Like,
    Ann,
}

impl Operator {
    const ALL: [Self; 16] = [
        Self::Eq,
        Self::GreaterOrEqual,
        Self::Greater,
        Self::LessOrEqual,
        Self::Less,
        Self::Contains,
        Self::ContainsKey,
        Self::In,
        Self::NotEq,
        Self::IsNot,
        Self::LikePrefix,
        Self::LikeSuffix,
        Self::LikeContains,
        Self::LikeMatches,
        Self::Like,
        Self::Ann,
    ];

    fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let number = reader.i32()?;
        let known = usize::try_from(number).ok().and_then(|at| Self::ALL.get(at).copied());
        known.ok_or(PayloadError::kind("operator", number))
    }
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// Of a column.
    Simple {
        /// Its name.
        column: Box<str>,
        /// The relation.
        operator: Operator,
        /// What it relates to.
        value: Box<[u8]>,
    },
    /// Of an entry of a map.
    MapEntry {
        /// The map's name.
        column: Box<str>,
        /// The relation, which is equality.
        operator: Operator,
        /// The entry's key.
        key: Box<[u8]>,
        /// What its value relates to.
        value: Box<[u8]>,
    },
    /// Of a custom index, which alone knows what it means.
    Custom {
        /// The index's id.
        index: Uuid,
        /// What it is asked for.
        value: Box<[u8]>,
    },
}

impl Expression {
    const SIMPLE: u8 = 0;
    const MAP_ENTRY: u8 = 1;
    const CUSTOM: u8 = 3;
    const USER: u8 = 4;

    fn read(table: &Table, reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        let kind = reader.u8()?;
        match kind {
            Self::SIMPLE | Self::MAP_ENTRY => {}
            Self::CUSTOM => {
                let index = Uuid::from_bytes(reader.array()?);
                return Ok(Self::Custom { index, value: reader.short_bytes()?.into() });
            }
            Self::USER => return Err(PayloadError::NotServed("expressions of a custom class")),
            kind => return Err(PayloadError::kind("expression", kind)),
        }
        let bytes = reader.short_bytes()?;
        let name = std::str::from_utf8(bytes).ok().filter(|name| table.column(name).is_some());
        let unknown = || PayloadError::UnknownColumn(String::from_utf8_lossy(bytes).into_owned());
        let column = name.ok_or_else(unknown)?.into();
        let operator = Operator::read(reader)?;
        let mut value = || reader.short_bytes().map(Box::from);
        Ok(match kind {
            Self::SIMPLE => Self::Simple { column, operator, value: value()? },
            _ => Self::MapEntry { column, operator, key: value()?, value: value()? },
        })
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match self {
            Self::Simple { column, operator, value } => {
                out.put_u8(Self::SIMPLE);
                out.put_short_bytes(column.as_bytes())?;
                out.put_i32(*operator as i32);
                out.put_short_bytes(value)?;
            }
            Self::MapEntry { column, operator, key, value } => {
                out.put_u8(Self::MAP_ENTRY);
                out.put_short_bytes(column.as_bytes())?;
                out.put_i32(*operator as i32);
                out.put_short_bytes(key)?;
                out.put_short_bytes(value)?;
            }
            Self::Custom { index, value } => {
                out.put_u8(Self::CUSTOM);
                out.put(&index.to_bytes());
                out.put_short_bytes(value)?;
            }
        }
        Ok(())
    }
}

/// Reads all conditions of a read.
pub(super) fn read(
    table: &Table,
    reader: &mut Reader<'_>,
) -> Result<Vec<Expression>, PayloadError> {
    reader.bool()?; // of Thrift's, once
    let count = reader.count(LEAST_EXPRESSION)?;
    (0..count).map(|_| Expression::read(table, reader)).collect()
}

/// Appends all conditions of a read.
pub(super) fn write(filter: &[Expression], out: &mut Vec<u8>) -> Result<(), WriteError> {
    out.put_bool(false);
    out.put_uvint(filter.len() as u64);
    filter.iter().try_for_each(|expression| expression.write(out))
}
