//! The text of a value: as a CQL literal (`AbstractType.toCQLString`, in error messages and
//! DESCRIBE), and plain (`AbstractType.getString`, what [`CqlType::parse_text`] reads).

use crate::cql_type::{CqlType, MAX_DEPTH};
use crate::decimal::Decimal;
use crate::duration::Duration;
use crate::float::{format_double, format_float};
use crate::hex::{push_hex, to_hex};
use crate::name::maybe_quote;
use crate::time::{TimestampStyle, format_date, format_time, format_timestamp};
use crate::uuid::Uuid;
use crate::value::{Components, Elements, Entries, VectorElements};
use crate::vint::ReadError;
use num_bigint::BigInt;
use std::net::{Ipv4Addr, Ipv6Addr};

impl CqlType {
    /// The value as a CQL literal. The empty value of a type for which it means nothing is `null`;
    /// bytes that are no value of the type, for which Cassandra throws, are printed as a blob.
    pub fn to_cql_literal(&self, value: &[u8]) -> String {
        let mut out = String::new();
        if self.write_literal(&mut out, value, MAX_DEPTH).is_none() {
            out.clear();
            push_blob(&mut out, value);
        }
        out
    }

    /// The value as plain text: nothing quoted, collections in hexadecimal, the components of a
    /// tuple between colons and `@` for null. Bytes that are no value of the type are printed in
    /// hexadecimal.
    pub fn to_text(&self, value: &[u8]) -> String {
        self.plain_at(value, MAX_DEPTH).unwrap_or_else(|| to_hex(value))
    }

    fn write_literal(&self, out: &mut String, value: &[u8], depth: usize) -> Option<()> {
        match self {
            Self::Text | Self::Ascii => {
                out.push('\'');
                out.push_str(&String::from_utf8_lossy(value).replace('\'', "''"));
                out.push('\'');
            }
            Self::Blob | Self::Class(_) | Self::Custom(_) => push_blob(out, value),
            Self::List { .. }
            | Self::Set { .. }
            | Self::Map { .. }
            | Self::Tuple(_)
            | Self::Udt { .. }
            | Self::Vector { .. } => {
                return self.write_nested(out, value, depth.checked_sub(1)?);
            }
            _ if value.is_empty() => out.push_str("null"),
            Self::Date | Self::Time | Self::Timestamp | Self::Inet => {
                out.push('\'');
                out.push_str(&self.native_text(value)?);
                out.push('\'');
            }
            _ => out.push_str(&self.native_text(value)?),
        }
        Some(())
    }

    fn write_nested(&self, out: &mut String, value: &[u8], depth: usize) -> Option<()> {
        match self {
            Self::List { element, .. } => {
                let items = Elements::of_list(value).ok()?;
                bracket(out, '[', ']', items, |out, item| element.write_or_null(out, item, depth))
            }
            Self::Set { element, .. } => {
                let items = Elements::of_list(value).ok()?;
                bracket(out, '{', '}', items, |out, item| element.write_or_null(out, item, depth))
            }
            Self::Map { key, value: mapped, .. } => {
                let entries = Entries::of(value).ok()?;
                bracket(out, '{', '}', entries, |out, (left, right)| {
                    key.write_literal(out, left, depth)?;
                    out.push_str(": ");
                    mapped.write_literal(out, right, depth)
                })
            }
            Self::Tuple(types) => {
                let items = Components::of(value).zip(types.iter()).map(with_second);
                bracket(out, '(', ')', items, |out, (item, kind)| {
                    kind.write_or_null(out, item, depth)
                })
            }
            Self::Udt { definition, .. } => {
                let items = Components::of(value).zip(&definition.fields).map(with_second);
                bracket(out, '{', '}', items, |out, (item, (name, kind))| {
                    out.push_str(&maybe_quote(name));
                    out.push_str(": ");
                    kind.write_or_null(out, item, depth)
                })
            }
            Self::Vector { element, dimension } => {
                let items = VectorElements::of(value, element, *dimension);
                bracket(out, '[', ']', items, |out, item| element.write_literal(out, item, depth))
            }
            _ => None,
        }
    }

    fn write_or_null(&self, out: &mut String, value: Option<&[u8]>, depth: usize) -> Option<()> {
        match value {
            Some(value) => self.write_literal(out, value, depth),
            None => {
                out.push_str("null");
                Some(())
            }
        }
    }

    fn plain_at(&self, value: &[u8], depth: usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        match self {
            Self::Text | Self::Ascii => std::str::from_utf8(value).ok().map(str::to_owned),
            Self::Tuple(types) => plain_components(&mut types.iter(), value, depth),
            Self::Udt { definition, .. } => {
                plain_components(&mut definition.fields.iter().map(|(_, kind)| kind), value, depth)
            }
            Self::Blob
            | Self::Counter
            | Self::Class(_)
            | Self::Custom(_)
            | Self::List { .. }
            | Self::Set { .. }
            | Self::Map { .. }
            | Self::Vector { .. } => Some(to_hex(value)),
            _ if value.is_empty() => Some(String::new()),
            _ => self.native_text(value),
        }
    }

    /// The text of a native type's value that is not empty; `None` when malformed.
    pub(crate) fn native_text(&self, value: &[u8]) -> Option<String> {
        self.validate(value).ok()?;
        match self {
            Self::Boolean => Some(value.iter().any(|byte| *byte != 0).to_string()),
            Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt | Self::Counter => {
                self.as_i64(value).map(|number| number.to_string())
            }
            Self::VarInt => Some(BigInt::from_signed_bytes_be(value).to_string()),
            Self::Decimal => Decimal::from_bytes(value).map(|number| number.to_string()),
            Self::Double => self.as_f64(value).map(format_double),
            Self::Float => value.as_array().map(|bytes| format_float(f32::from_be_bytes(*bytes))),
            Self::Uuid | Self::TimeUuid => Uuid::from_value(value).map(|uuid| uuid.to_string()),
            Self::Duration => Duration::from_bytes(value).ok().map(|duration| duration.to_string()),
            Self::Date => self.as_i64(value).map(format_date),
            Self::Time => self.as_i64(value).map(format_time),
            Self::Timestamp => {
                self.as_i64(value).map(|millis| format_timestamp(millis, TimestampStyle::Literal))
            }
            Self::Inet => format_inet(value),
            _ => Some(String::new()),
        }
    }
}

fn push_blob(out: &mut String, value: &[u8]) {
    out.push_str("0x");
    push_hex(out, value);
}

fn with_second<A, B>((item, second): (Result<A, ReadError>, B)) -> Result<(A, B), ReadError> {
    item.map(|item| (item, second))
}

/// Items between brackets; `None` as soon as one is malformed.
fn bracket<T>(
    out: &mut String,
    open: char,
    close: char,
    items: impl Iterator<Item = Result<T, ReadError>>,
    mut write: impl FnMut(&mut String, T) -> Option<()>,
) -> Option<()> {
    out.push(open);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write(out, item.ok()?)?;
    }
    out.push(close);
    Some(())
}

fn plain_components(
    types: &mut dyn Iterator<Item = &CqlType>,
    value: &[u8],
    depth: usize,
) -> Option<String> {
    let mut fields = Vec::new();
    for (item, kind) in Components::of(value).zip(types) {
        fields.push(match item.ok()? {
            Some(item) => kind.plain_at(item, depth)?.replace(':', "\\:").replace('@', "\\@"),
            None => "@".to_owned(),
        });
    }
    Some(fields.join(":"))
}

/// `InetAddress.getHostAddress`: eight groups without leading zeros, none left out.
fn format_inet(value: &[u8]) -> Option<String> {
    if let Some(bytes) = value.as_array::<4>() {
        return Some(Ipv4Addr::from(*bytes).to_string());
    }
    let address = Ipv6Addr::from(*value.as_array::<16>()?);
    if let Some(mapped) = address.to_ipv4_mapped() {
        return Some(mapped.to_string());
    }
    Some(address.segments().map(|group| format!("{group:x}")).join(":"))
}
