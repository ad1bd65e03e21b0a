//! Which bytes are a value of a type: `TypeSerializer.validate` and its messages.
//!
//! Empty bytes are a value of many fixed-length types, apart from null
//! (`AbstractType.allowsEmpty`).

use crate::cql_type::{CqlType, MAX_DEPTH};
use crate::hex::to_hex;
use crate::vint::Reader;
use thiserror::Error;

/// Why bytes are no value of a type. The text is Cassandra's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValueError {
    /// A fixed-length value of another length.
    #[error("{expected} ({length})")]
    Length {
        /// What was expected, in the words of the type's serializer.
        expected: &'static str,
        /// The length that was given, in bytes.
        length: usize,
    },
    /// `ascii` with the high bit set; the byte as Java prints it.
    #[error("Invalid byte for ascii: {0}")]
    Ascii(i8),
    /// `text` that is no UTF-8.
    #[error("String didn't validate.")]
    Text,
    /// `inet` of neither 4 nor 16 bytes; the bytes in hexadecimal.
    #[error("Expected 4 or 16 byte inetaddress; got {0}")]
    Inet(String),
    /// A UUID of another version; the number that Cassandra prints (the first four bits of all).
    #[error("Invalid version for TimeUUID type: 0x{0:x}")]
    TimeUuidVersion(u8),
    /// `empty` with bytes in it.
    #[error("EmptyType only accept empty values")]
    Empty,
    /// A part of a duration outside 32 bits.
    #[error("The duration {part} must be a 32 bits integer but was: {value}")]
    DurationRange {
        /// `months` or `days`.
        part: &'static str,
        /// What it was.
        value: i64,
    },
    /// A duration's parts of different signs.
    #[error(
        "The duration months, days and nanoseconds must be all of the same sign ({months}, {days}, {nanos})"
    )]
    DurationSigns {
        /// Months.
        months: i32,
        /// Days.
        days: i32,
        /// Nanoseconds.
        nanos: i64,
    },
    /// The value of a collection, vector or duration ends early; names the type.
    #[error("Not enough bytes to read a {0}")]
    Short(String),
    /// A null element where there must be none.
    #[error("Null value read when not allowed")]
    NullElement,
    /// Bytes after the last element; names the collection.
    #[error("Unexpected extraneous bytes after {0} value")]
    Extraneous(&'static str),
    /// Bytes after the last element of a vector.
    #[error("Unexpected {extra} extraneous bytes after {name} value")]
    VectorExtraneous {
        /// How many.
        extra: usize,
        /// CQL name of the type.
        name: String,
    },
    /// A vector without bytes.
    #[error("Invalid empty vector value")]
    EmptyVector,
    /// A tuple's or user type's value that ends inside a component; `what` says where.
    #[error("Not enough bytes to read {what}")]
    ShortComponent {
        /// Which component, in Cassandra's words.
        what: String,
    },
    /// A field of a user type that is no value of its type.
    #[error("Failure validating the {index}th field {name}; {error}")]
    Field {
        /// Place of the field, from 0.
        index: usize,
        /// Its name.
        name: String,
        /// What is wrong with it.
        error: Box<ValueError>,
    },
    /// Bytes after the last field; `tuple` or `UDT`.
    #[error("Invalid remaining data after end of {0} value")]
    Remaining(&'static str),
    /// No composite; the text says where.
    #[error("{0}")]
    Composite(String),
    /// A type whose values cannot be bound.
    #[error("You shouldn't be validating this.")]
    Unbindable,
    /// Types nested deeper than [`MAX_DEPTH`].
    #[error("Types are nested more than {MAX_DEPTH} deep")]
    Depth,
}

impl CqlType {
    /// Are these bytes a value of this type (`AbstractType.validate`)? A counter is checked as the
    /// `bigint` that clients see; a type of [`CqlType::Custom`] takes any bytes.
    pub fn validate(&self, value: &[u8]) -> Result<(), ValueError> {
        self.validate_at(value, MAX_DEPTH)
    }

    pub(crate) fn validate_at(&self, value: &[u8], depth: usize) -> Result<(), ValueError> {
        match self {
            Self::Blob | Self::VarInt | Self::Custom(_) => Ok(()),
            Self::Text => text(value),
            Self::Ascii => ascii(value),
            Self::Int => length(value, &[4, 0], "Expected 4 or 0 byte int"),
            Self::BigInt | Self::Counter => length(value, &[8, 0], "Expected 8 or 0 byte long"),
            Self::Timestamp => length(value, &[8, 0], "Expected 8 or 0 byte long for date"),
            Self::Uuid => length(value, &[16, 0], "UUID should be 16 or 0 bytes"),
            Self::TimeUuid => time_uuid(value),
            Self::Boolean => length(value, &[1, 0], "Expected 1 or 0 byte value"),
            Self::Float => length(value, &[4, 0], "Expected 4 or 0 byte value for a float"),
            Self::Double => length(value, &[8, 0], "Expected 8 or 0 byte value for a double"),
            Self::Date => length(value, &[4], "Expected 4 byte long for date"),
            Self::Time => length(value, &[8], "Expected 8 byte long for time"),
            Self::SmallInt => length(value, &[2], "Expected 2 bytes for a smallint"),
            Self::TinyInt => length(value, &[1], "Expected 1 byte for a tinyint"),
            Self::Decimal if (1..4).contains(&value.len()) => Err(ValueError::Length {
                expected: "Expected 0 or at least 4 bytes",
                length: value.len(),
            }),
            Self::Decimal => Ok(()),
            Self::Inet if !matches!(value.len(), 0 | 4 | 16) => {
                Err(ValueError::Inet(to_hex(value)))
            }
            Self::Inet => Ok(()),
            Self::Duration => duration(value),
            Self::Empty if !value.is_empty() => Err(ValueError::Empty),
            Self::Empty => Ok(()),
            Self::Class(class) => class.validate(value, depth),
            _ => self.validate_nested(value, depth.checked_sub(1).ok_or(ValueError::Depth)?),
        }
    }

    fn validate_nested(&self, value: &[u8], depth: usize) -> Result<(), ValueError> {
        match self {
            Self::List { element, .. } => elements(value, "list", &[element], depth),
            Self::Set { element, .. } => elements(value, "set", &[element], depth),
            Self::Map { key, value: mapped, .. } => elements(value, "map", &[key, mapped], depth),
            Self::Tuple(types) => tuple(value, types, depth),
            Self::Udt { definition, .. } => udt(value, &definition.fields, depth),
            Self::Vector { element, dimension } => {
                self.validate_vector(value, element, *dimension, depth)
            }
            _ => Ok(()),
        }
    }

    fn validate_vector(
        &self,
        value: &[u8],
        element: &Self,
        dimension: u32,
        depth: usize,
    ) -> Result<(), ValueError> {
        if value.is_empty() {
            return Err(ValueError::EmptyVector);
        }
        let short = || ValueError::Short(self.cql_name());
        let fixed = element.fixed_length();
        if fixed.is_some_and(|each| value.len() < each.saturating_mul(dimension as usize)) {
            return Err(short());
        }
        let mut reader = Reader::new(value);
        for _ in 0..dimension {
            let item = match fixed {
                Some(each) => reader.bytes(each),
                None => reader.vint_bytes(),
            };
            element.validate_at(item.map_err(|_| short())?, depth)?;
            if fixed == Some(0) {
                break;
            }
        }
        match reader.remaining() {
            0 => Ok(()),
            extra => Err(ValueError::VectorExtraneous { extra, name: self.cql_name() }),
        }
    }
}

#[inline]
fn length(value: &[u8], allowed: &[usize], expected: &'static str) -> Result<(), ValueError> {
    if allowed.contains(&value.len()) {
        Ok(())
    } else {
        Err(ValueError::Length { expected, length: value.len() })
    }
}

fn ascii(value: &[u8]) -> Result<(), ValueError> {
    match value.iter().find(|byte| !byte.is_ascii()) {
        Some(byte) => Err(ValueError::Ascii(byte.cast_signed())),
        None => Ok(()),
    }
}

fn text(value: &[u8]) -> Result<(), ValueError> {
    if std::str::from_utf8(value).is_ok() || accepted_as_utf8(value) {
        Ok(())
    } else {
        Err(ValueError::Text)
    }
}

/// What Cassandra takes for UTF-8 beyond UTF-8: Java's NUL (`C0 80`), surrogates, code points past
/// the last, and a few second bytes that no encoder writes (`UTF8Serializer`). Such values exist on
/// disk.
fn accepted_as_utf8(value: &[u8]) -> bool {
    let follows = |byte: &u8| byte & 0xc0 == 0x80;
    let mut rest = value;
    while let Some((&first, tail)) = rest.split_first() {
        let (good, length) = match (first, tail) {
            (0..0x80, _) => (true, 0),
            (0xc0, [second, ..]) => (*second == 0x80, 1),
            (0xc2..0xe0, [second, ..]) => (follows(second), 1),
            (0xe0, [second, third, ..]) => (second & 0xe0 != 0x80 && follows(third), 2),
            (0xe1..0xf0, [second, third, ..]) => (follows(second) && follows(third), 2),
            (0xf0, [second, third, fourth, ..]) => {
                (second & 0x30 != 0 && follows(third) && follows(fourth), 3)
            }
            (0xf1..0xf8, [second, third, fourth, ..]) => {
                (follows(second) && follows(third) && follows(fourth), 3)
            }
            _ => (false, 0),
        };
        if !good {
            return false;
        }
        rest = tail.get(length..).unwrap_or_default();
    }
    true
}

fn time_uuid(value: &[u8]) -> Result<(), ValueError> {
    match value {
        [] => Ok(()),
        &[first, _, _, _, _, _, version, _, _, _, _, _, _, _, _, _] => {
            if version & 0xf0 == 0x10 {
                Ok(())
            } else {
                Err(ValueError::TimeUuidVersion(first >> 4))
            }
        }
        _ => length(value, &[16, 0], "UUID should be 16 or 0 bytes"),
    }
}

fn duration(value: &[u8]) -> Result<(), ValueError> {
    if value.len() < 3 {
        return length(value, &[], "Expected at least 3 bytes for a duration");
    }
    let mut reader = Reader::new(value);
    let mut part = || reader.vint().map_err(|_| ValueError::Short("duration".to_owned()));
    let (months, days, nanos) = (part()?, part()?, part()?);
    let fit =
        |part, value| i32::try_from(value).map_err(|_| ValueError::DurationRange { part, value });
    let (months, days) = (fit("months", months)?, fit("days", days)?);
    if crate::duration::same_sign(months, days, nanos) {
        Ok(())
    } else {
        Err(ValueError::DurationSigns { months, days, nanos })
    }
}

/// A list, set or map: `kinds` are the types of one entry, in turn. A negative count is no entry.
fn elements(
    value: &[u8],
    name: &'static str,
    kinds: &[&CqlType],
    depth: usize,
) -> Result<(), ValueError> {
    let short = |_| ValueError::Short(name.to_owned());
    let mut reader = Reader::new(value);
    let count = reader.i32().map_err(short)?;
    for _ in 0..count {
        for kind in kinds {
            let item = reader.int_bytes_or_null().map_err(short)?;
            kind.validate_at(item.ok_or(ValueError::NullElement)?, depth)?;
        }
    }
    if reader.is_empty() { Ok(()) } else { Err(ValueError::Extraneous(name)) }
}

fn tuple(value: &[u8], types: &[CqlType], depth: usize) -> Result<(), ValueError> {
    let mut reader = Reader::new(value);
    for (index, kind) in types.iter().enumerate() {
        if reader.is_empty() {
            return Ok(());
        }
        if let Some(item) = component(&mut reader, || format!("{index}th component"))? {
            kind.validate_at(item, depth)?;
        }
    }
    if reader.is_empty() { Ok(()) } else { Err(ValueError::Remaining("tuple")) }
}

fn udt(value: &[u8], fields: &[(String, CqlType)], depth: usize) -> Result<(), ValueError> {
    let mut reader = Reader::new(value);
    for (index, (name, kind)) in fields.iter().enumerate() {
        if reader.is_empty() {
            return Ok(());
        }
        if let Some(item) = component(&mut reader, || format!("{index}th field {name}"))? {
            kind.validate_at(item, depth).map_err(|error| ValueError::Field {
                index,
                name: name.clone(),
                error: Box::new(error),
            })?;
        }
    }
    if reader.is_empty() { Ok(()) } else { Err(ValueError::Remaining("UDT")) }
}

fn component<'a>(
    reader: &mut Reader<'a>,
    name: impl Fn() -> String,
) -> Result<Option<&'a [u8]>, ValueError> {
    if reader.remaining() < 4 {
        return Err(ValueError::ShortComponent { what: format!("size of {}", name()) });
    }
    reader.int_bytes_or_null().map_err(|_| ValueError::ShortComponent { what: name() })
}
