//! The text of a value as JSON (`AbstractType.toJSONString`): what `to_json` answers.

use crate::cql_type::ClassType;
use crate::cql_type::{CqlType, MAX_DEPTH};
use crate::float::{format_double, format_float};
use crate::hex::push_hex;
use crate::time::{TimestampStyle, format_timestamp};
use crate::value::{Components, Elements, Entries, VectorElements};

const HEX_DIGITS: [char; 16] =
    ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];

impl CqlType {
    /// The value as JSON; `None` for bytes that are no value of the type. The empty value of a type
    /// for which it means nothing is the empty string here, and only where it stands by itself
    /// `null`, which is the caller's.
    pub fn to_json(&self, value: &[u8]) -> Option<String> {
        let mut out = String::new();
        self.write_json(&mut out, value, MAX_DEPTH)?;
        Some(out)
    }

    fn write_json(&self, out: &mut String, value: &[u8], depth: usize) -> Option<()> {
        match self {
            Self::Text | Self::Ascii => push_string(out, std::str::from_utf8(value).ok()?),
            // the type of time-UUIDs that functions make
            Self::Custom(class) if class.ends_with(".LegacyTimeUUIDType") => {
                return Self::TimeUuid.write_json(out, value, depth);
            }
            Self::Blob | Self::Custom(_) => {
                out.push_str("\"0x");
                push_hex(out, value);
                out.push('"');
            }
            Self::List { .. }
            | Self::Set { .. }
            | Self::Map { .. }
            | Self::Tuple(_)
            | Self::Udt { .. }
            | Self::Vector { .. } => {
                return self.write_nested_json(out, value, depth.checked_sub(1)?);
            }
            Self::Class(class) if value.is_empty() && **class == ClassType::LexicalUuid => {
                out.push_str("\"\"");
            }
            Self::Class(class) => push_plain(out, &class.native_text(value)?),
            _ if value.is_empty() => out.push_str("\"\""),
            // JSON has no NaN and no infinities
            Self::Double => match f64::from_be_bytes(*value.as_array()?) {
                number if number.is_finite() => out.push_str(&format_double(number)),
                _ => out.push_str("null"),
            },
            Self::Float => match f32::from_be_bytes(*value.as_array()?) {
                number if number.is_finite() => out.push_str(&format_float(number)),
                _ => out.push_str("null"),
            },
            Self::Boolean
            | Self::TinyInt
            | Self::SmallInt
            | Self::Int
            | Self::BigInt
            | Self::Counter
            | Self::VarInt
            | Self::Decimal => out.push_str(&self.native_text(value)?),
            Self::Timestamp => {
                let millis = self.as_i64(value)?;
                push_plain(out, &format_timestamp(millis, TimestampStyle::Json));
            }
            Self::Date
            | Self::Time
            | Self::Inet
            | Self::Uuid
            | Self::TimeUuid
            | Self::Duration
            | Self::Empty => push_plain(out, &self.native_text(value)?),
        }
        Some(())
    }

    fn write_nested_json(&self, out: &mut String, value: &[u8], depth: usize) -> Option<()> {
        match self {
            Self::List { element, .. } | Self::Set { element, .. } => {
                out.push('[');
                for (index, item) in Elements::of_list(value).ok()?.enumerate() {
                    separate(out, index);
                    match item.ok()? {
                        None if **element == Self::Decimal => out.push_str("\"\""),
                        item => element.write_json_or_null(out, item, depth)?,
                    }
                }
                out.push(']');
            }
            Self::Vector { element, dimension } => {
                out.push('[');
                for (index, item) in VectorElements::of(value, element, *dimension).enumerate() {
                    separate(out, index);
                    element.write_json(out, item.ok()?, depth)?;
                }
                out.push(']');
            }
            Self::Map { key, value: mapped, .. } => {
                out.push('{');
                for (index, entry) in Entries::of(value).ok()?.enumerate() {
                    let (left, right) = entry.ok()?;
                    separate(out, index);
                    let mut text = String::new();
                    key.write_json(&mut text, left, depth)?;
                    // the name of a member is a string
                    if text.starts_with('"') {
                        out.push_str(&text);
                    } else {
                        push_string(out, &text);
                    }
                    out.push_str(": ");
                    mapped.write_json(out, right, depth)?;
                }
                out.push('}');
            }
            Self::Tuple(types) => {
                out.push('[');
                let mut items = Components::of(value);
                for (index, kind) in types.iter().enumerate() {
                    separate(out, index);
                    // what the value ends before is null
                    let item = items.next().transpose().ok()?.flatten();
                    kind.write_json_or_null(out, item, depth)?;
                }
                out.push(']');
            }
            Self::Udt { definition, .. } => {
                out.push('{');
                let mut items = Components::of(value);
                for (index, (name, kind)) in definition.fields.iter().enumerate() {
                    separate(out, index);
                    if name.chars().any(char::is_uppercase) {
                        push_string(out, &format!("\"{name}\""));
                    } else {
                        push_string(out, name);
                    }
                    out.push_str(": ");
                    let item = items.next().transpose().ok()?.flatten();
                    kind.write_json_or_null(out, item, depth)?;
                }
                out.push('}');
            }
            _ => return None,
        }
        Some(())
    }

    fn write_json_or_null(
        &self,
        out: &mut String,
        value: Option<&[u8]>,
        depth: usize,
    ) -> Option<()> {
        match value {
            Some(value) => self.write_json(out, value, depth),
            None => {
                out.push_str("null");
                Some(())
            }
        }
    }
}

fn separate(out: &mut String, index: usize) {
    if index > 0 {
        out.push_str(", ");
    }
}

/// Text that holds nothing to escape.
fn push_plain(out: &mut String, text: &str) {
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// A JSON string: only what must be escaped is.
fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => {
                let code = control as usize;
                out.push_str("\\u00");
                out.extend(HEX_DIGITS.get(code >> 4));
                out.extend(HEX_DIGITS.get(code & 0xf));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::value::{pack_components, pack_list, pack_map};
    use crate::{CqlType, UserType};

    fn json(ty: &CqlType, value: &[u8]) -> String {
        ty.to_json(value).unwrap()
    }

    #[test]
    fn strings_are_escaped_as_jackson_does() {
        let text = "a\"b\\c/d\u{8}\t\n\u{c}\r\u{1}\u{1f}\u{7f}\u{e9}\u{1f600}";
        let want = "\"a\\\"b\\\\c/d\\b\\t\\n\\f\\r\\u0001\\u001F\u{7f}\u{e9}\u{1f600}\"";
        assert_eq!(json(&CqlType::Text, text.as_bytes()), want);
        assert_eq!(CqlType::Text.to_json(&[0xff]), None);
        let made = CqlType::Custom("org.apache.cassandra.db.marshal.LegacyTimeUUIDType".into());
        assert_eq!(made.to_json(&[0x1f; 16]), CqlType::TimeUuid.to_json(&[0x1f; 16]));
    }

    #[test]
    fn numbers_without_a_json_form_are_null() {
        assert_eq!(json(&CqlType::Double, &f64::NAN.to_be_bytes()), "null");
        assert_eq!(json(&CqlType::Float, &f32::NEG_INFINITY.to_be_bytes()), "null");
        assert_eq!(json(&CqlType::Double, &1e21_f64.to_be_bytes()), "1.0E21");
        assert_eq!(json(&CqlType::Int, &[]), "\"\"");
    }

    #[test]
    fn keys_of_maps_are_strings_whatever_they_are() {
        let map =
            |key| CqlType::Map { key: Arc::new(key), value: CqlType::Int.into(), frozen: true };
        let one = 1_i32.to_be_bytes();
        let value = pack_map([(one.as_slice(), one.as_slice())]);
        assert_eq!(json(&map(CqlType::Int), &value), "{\"1\": 1}");
        let list = CqlType::List { element: CqlType::Text.into(), frozen: true };
        let key = pack_list([b"x".as_slice()]);
        let value = pack_map([(key.as_slice(), one.as_slice())]);
        assert_eq!(json(&map(list), &value), "{\"[\\\"x\\\"]\": 1}");
    }

    #[test]
    fn fields_that_are_missing_are_null_and_names_in_capitals_are_quoted_twice() {
        let definition = UserType {
            keyspace: "ks".to_owned(),
            name: "t".to_owned(),
            fields: vec![
                ("Street".to_owned(), CqlType::Text),
                ("zip".to_owned(), CqlType::Int),
                ("more".to_owned(), CqlType::Int),
            ],
        };
        let ty = CqlType::Udt { definition: Arc::new(definition), frozen: true };
        let value = pack_components([Some(b"s".as_slice()), None]);
        assert_eq!(json(&ty, &value), "{\"\\\"Street\\\"\": \"s\", \"zip\": null, \"more\": null}");
        let tuple = CqlType::Tuple(vec![CqlType::Int, CqlType::Boolean].into());
        assert_eq!(json(&tuple, &pack_components([None::<&[u8]>])), "[null, null]");
    }
}
