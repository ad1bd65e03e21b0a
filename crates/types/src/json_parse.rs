//! JSON as clients write it, and values from it (`AbstractType.fromJSONObject`): what `from_json`
//! and INSERT JSON take. The reader is as strict as Jackson's, and as that one stops after the
//! first value.

use std::collections::BTreeMap;
use std::fmt;

use num_bigint::BigInt;
use thiserror::Error;

use crate::cql_type::{ClassType, CqlType, MAX_DEPTH};
use crate::float::format_double;
use crate::hex::from_hex;
use crate::value::{pack_components, pack_list, pack_map, pack_vector};

/// How deep lists and objects may stand in each other.
const MAX_NESTING: usize = 500;

/// A JSON value, numbers by the Java class that they would be of.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number of 32 bits.
    Integer(i32),
    /// A whole number of 64 bits.
    Long(i64),
    /// A whole number beyond that.
    Big(BigInt),
    /// A number with a point or an exponent.
    Double(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object: each name once, with the last value given for it.
    Object(Vec<(String, Json)>),
}

/// Text that is no JSON.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum JsonError {
    /// Something else was expected at a byte of the text.
    #[error("Unexpected input at {0}")]
    Unexpected(usize),
    /// The text ended too early.
    #[error("Unexpected end-of-input")]
    End,
    /// Lists and objects nested too deep.
    #[error("Nested too deep")]
    Depth,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn refuse<T>(&self) -> Result<T, JsonError> {
        Err(if self.at < self.text.len() { JsonError::Unexpected(self.at) } else { JsonError::End })
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonError> {
        if self.byte() != Some(byte) {
            return self.refuse();
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Json, JsonError> {
        let depth = depth.checked_sub(1).ok_or(JsonError::Depth)?;
        self.blanks();
        match self.byte() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Boolean(true)),
            Some(b'f') => self.word("false", Json::Boolean(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => self.refuse(),
        }
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, JsonError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let after = rest.strip_prefix(word);
        let ends = |after: &str| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if !after.is_some_and(ends) {
            return self.refuse();
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.at += 1;
        let mut members: Vec<(String, Json)> = Vec::new();
        let mut places = BTreeMap::new();
        self.blanks();
        if self.byte() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            self.blanks();
            if self.byte() != Some(b'"') {
                return self.refuse();
            }
            let name = self.string()?;
            self.blanks();
            self.expect(b':')?;
            let value = self.value(depth)?;
            let known = places.get(&name).and_then(|at: &usize| members.get_mut(*at));
            match known {
                Some(member) => member.1 = value,
                None => {
                    places.insert(name.clone(), members.len());
                    members.push((name, value));
                }
            }
            self.blanks();
            match self.byte() {
                Some(b',') => self.at += 1,
                _ => {
                    self.expect(b'}')?;
                    return Ok(Json::Object(members));
                }
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.byte() == Some(b']') {
            self.at += 1;
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth)?);
            self.blanks();
            match self.byte() {
                Some(b',') => self.at += 1,
                _ => {
                    self.expect(b']')?;
                    return Ok(Json::List(items));
                }
            }
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let stop = rest.find(|c: char| c == '"' || c == '\\' || c < ' ');
            let Some(stop) = stop else { return Err(JsonError::End) };
            out.push_str(rest.get(..stop).unwrap_or_default());
            self.at += stop;
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.at += 1;
                    out.push(self.escaped()?);
                }
                _ => return self.refuse(),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, JsonError> {
        let Some(byte) = self.byte() else { return Err(JsonError::End) };
        let character = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                let unit = self.unit()?;
                if !(0xd800..0xe000).contains(&unit) {
                    return Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                // the second half of a pair; halves by themselves become what Java encodes them as
                let rest = self.text.get(self.at..).unwrap_or_default();
                if unit < 0xdc00 && rest.starts_with("\\u") {
                    let before = self.at;
                    self.at += 2;
                    let low = self.unit()?;
                    if (0xdc00..0xe000).contains(&low) {
                        let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                        return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    self.at = before;
                }
                return Ok('?');
            }
            _ => return self.refuse(),
        };
        self.at += 1;
        Ok(character)
    }

    fn unit(&mut self) -> Result<u32, JsonError> {
        let Some(digits) = self.text.get(self.at..self.at + 4) else { return self.refuse() };
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return self.refuse();
        }
        self.at += 4;
        Ok(u32::from_str_radix(digits, 16).unwrap_or_default())
    }

    fn digits(&mut self) -> Result<usize, JsonError> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { self.refuse() } else { Ok(self.at - start) }
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        let first = self.byte();
        if self.digits()? > 1 && first == Some(b'0') {
            return Err(JsonError::Unexpected(start));
        }
        let mut is_whole = true;
        if self.byte() == Some(b'.') {
            is_whole = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            is_whole = false;
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        if !matches!(self.byte(), None | Some(b' ' | b'\t' | b'\r' | b'\n' | b',' | b']' | b'}')) {
            return self.refuse();
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        let refused = || JsonError::Unexpected(start);
        if !is_whole {
            return text.parse().map(Json::Double).map_err(|_| refused());
        }
        if let Ok(number) = text.parse::<i32>() {
            return Ok(Json::Integer(number));
        }
        if let Ok(number) = text.parse::<i64>() {
            return Ok(Json::Long(number));
        }
        crate::decimal::parse_varint(text).map(Json::Big).ok_or_else(refused)
    }
}

impl Json {
    /// Reads the first value of a text; what follows it is not looked at.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        Reader { text, at: 0 }.value(MAX_NESTING)
    }

    /// The name of the Java class.
    fn class(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "Boolean",
            Self::Integer(_) => "Integer",
            Self::Long(_) => "Long",
            Self::Big(_) => "BigInteger",
            Self::Double(_) => "Double",
            Self::Text(_) => "String",
            Self::List(_) => "ArrayList",
            Self::Object(_) => "LinkedHashMap",
        }
    }

    fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some((*number).into()),
            Self::Long(number) => Some(*number as f64),
            Self::Big(number) => number.to_string().parse().ok(),
            Self::Double(number) => Some(*number),
            _ => None,
        }
    }

    fn as_f32(&self) -> Option<f32> {
        match self {
            Self::Integer(number) => Some(*number as f32),
            Self::Long(number) => Some(*number as f32),
            Self::Big(number) => number.to_string().parse().ok(),
            Self::Double(number) => Some(*number as f32),
            _ => None,
        }
    }

    /// Names of members without quotes, which keep their case, and else in lower case. One that is
    /// changed so takes the place of the one that has that name already.
    pub fn fold_names(members: &[(String, Json)]) -> Vec<(String, &Json)> {
        let places = (0_usize..).zip(members);
        let mut known: BTreeMap<String, (usize, &Json)> =
            places.map(|(at, (name, value))| (name.clone(), (at, value))).collect();
        for (at, (name, _)) in (members.len()..).zip(members) {
            let inner = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
            let folded = inner.map_or_else(|| name.to_lowercase(), str::to_owned);
            if folded != *name
                && let Some((_, value)) = known.remove(name)
            {
                let place = known.entry(folded).or_insert((at, value));
                place.1 = value;
            }
        }
        let mut out: Vec<_> = known.into_iter().collect();
        out.sort_by_key(|(_, (at, _))| *at);
        out.into_iter().map(|(name, (_, value))| (name, value)).collect()
    }
}

/// As Java prints the object.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Long(number) => write!(f, "{number}"),
            Self::Big(number) => write!(f, "{number}"),
            Self::Double(number) => f.write_str(&format_double(*number)),
            Self::Text(text) => f.write_str(text),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    write!(f, "{}{name}={value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
        }
    }
}

type Made = Result<Vec<u8>, String>;

/// The bytes that a JSON value stands for where a blob is wanted.
fn blob(json: &Json) -> Made {
    let Json::Text(hex) = json else {
        return Err(format!(
            "Value '{json}' is not a valid blob representation: class java.lang.{} cannot be cast to class java.lang.String",
            json.class()
        ));
    };
    let wrong = |why: String| format!("Value '{hex}' is not a valid blob representation: {why}");
    let Some(digits) = hex.strip_prefix("0x") else {
        let why = "String representation of blob is missing 0x prefix";
        return Err(wrong(format!("{why}: {hex}")));
    };
    from_hex(digits).ok_or_else(|| wrong(format!("cannot parse '{digits}' as hex bytes")))
}

impl CqlType {
    /// The value that a JSON value other than `null` stands for, in the stored form. `now_millis`
    /// is what the timestamp `now` means. The error is Cassandra's text.
    pub fn parse_json(&self, json: &Json, now_millis: i64) -> Made {
        self.parse_json_at(json, now_millis, MAX_DEPTH)
    }

    fn parse_json_at(&self, json: &Json, now: i64, depth: usize) -> Made {
        let expected =
            |what: &str| Err(format!("Expected {what}, but got a {}: {json}", json.class()));
        let text = |text: &str| self.parse_text(text, now).map_err(|error| error.to_string());
        match (self, json) {
            (
                Self::List { .. }
                | Self::Set { .. }
                | Self::Map { .. }
                | Self::Tuple(_)
                | Self::Udt { .. }
                | Self::Vector { .. },
                _,
            ) => {
                let depth = depth.checked_sub(1).ok_or("Types are nested too deep")?;
                match json {
                    // a string is JSON once more
                    Json::Text(inner) => {
                        let json = Json::parse(inner)
                            .map_err(|error| format!("Error decoding JSON string: {error}"))?;
                        self.parse_nested_json(&json, now, depth)
                    }
                    json => self.parse_nested_json(json, now, depth),
                }
            }
            (Self::Blob, json) => blob(json),
            (Self::VarInt, _) => match crate::decimal::parse_varint(&json.to_string()) {
                Some(number) => Ok(number.to_signed_bytes_be()),
                None => {
                    Err(format!("Value '{json}' is not a valid representation of a varint value"))
                }
            },
            (Self::Decimal, _) => text(&json.to_string()).map_err(|_| {
                format!("Value '{json}' is not a valid representation of a decimal value")
            }),
            (Self::Counter, _) => Err("A counter has no JSON".to_owned()),
            (Self::Class(class), _) if **class != ClassType::LexicalUuid => {
                Err("A composite has no JSON".to_owned())
            }
            (_, Json::Text(given)) => text(given),
            (Self::Boolean, Json::Boolean(value)) => Ok(vec![u8::from(*value)]),
            (Self::Boolean, _) => expected("a boolean value"),
            (
                Self::TinyInt | Self::SmallInt,
                Json::Integer(_) | Json::Long(_) | Json::Big(_) | Json::Double(_),
            ) => text(&json.to_string()),
            (Self::TinyInt, _) => expected("a byte value"),
            (Self::SmallInt, _) => expected("a short value"),
            (Self::Int, Json::Integer(number)) => Ok(number.to_be_bytes().to_vec()),
            (Self::Int, _) => expected("an int value"),
            (Self::BigInt, Json::Integer(number)) => Ok(i64::from(*number).to_be_bytes().to_vec()),
            (Self::BigInt | Self::Timestamp, Json::Long(number)) => {
                Ok(number.to_be_bytes().to_vec())
            }
            (Self::BigInt, _) => expected("a bigint value"),
            (Self::Timestamp, _) => {
                expected("a long or a datestring representation of a timestamp value")
            }
            (Self::Double, _) => match json.as_f64() {
                Some(number) => Ok(number.to_be_bytes().to_vec()),
                None => expected("a double value"),
            },
            (Self::Float, _) => match json.as_f32() {
                Some(number) => Ok(number.to_be_bytes().to_vec()),
                None => expected("a float value"),
            },
            (Self::Ascii, _) => expected("an ascii string"),
            (Self::Text, _) => expected("a UTF-8 string"),
            (Self::Date, _) => expected("a string representation of a date value"),
            (Self::Time, _) => expected("a string representation of a time value"),
            (Self::Inet, _) => expected("a string representation of an inet value"),
            (Self::Uuid | Self::Class(_), _) => expected("a string representation of a uuid"),
            (Self::TimeUuid, _) => expected("a string representation of a timeuuid"),
            (Self::Duration, _) => expected("a string representation of a duration"),
            (Self::Empty | Self::Custom(_), _) => expected("a string"),
        }
    }

    fn parse_nested_json(&self, json: &Json, now: i64, depth: usize) -> Made {
        let expected =
            |what: &str| Err(format!("Expected {what}, but got a {}: {json}", json.class()));
        let items = |items: &[Json], element: &Self, kind: &str| {
            let one = |item: &Json| match item {
                Json::Null => Err(format!("Invalid null element in {kind}")),
                item => element.parse_json_at(item, now, depth),
            };
            items.iter().map(one).collect::<Result<Vec<_>, _>>()
        };
        match (self, json) {
            (Self::List { element, .. }, Json::List(list)) => {
                Ok(pack_list(items(list, element, "list")?))
            }
            (Self::List { .. }, _) => expected("a list"),
            (Self::Set { element, .. }, Json::List(list)) => {
                let mut items = items(list, element, "set")?;
                items.sort_by(|a, b| element.compare(a, b));
                items.dedup_by(|b, a| element.compare(a, b).is_eq());
                Ok(pack_list(items))
            }
            (Self::Set { .. }, _) => expected("a list (representing a set)"),
            (Self::Vector { element, dimension }, Json::List(list)) => {
                if usize::try_from(*dimension) != Ok(list.len()) {
                    return Err(format!(
                        "List had incorrect size: expected {dimension} but given {}; {json}",
                        list.len()
                    ));
                }
                Ok(pack_vector(element, items(list, element, "list")?))
            }
            (Self::Vector { .. }, _) => expected("a list"),
            (Self::Map { key, value, .. }, Json::Object(members)) => {
                let mut entries = Vec::with_capacity(members.len());
                for (name, member) in members {
                    if *member == Json::Null {
                        return Err("Invalid null value in map".to_owned());
                    }
                    let name = key.parse_json_at(&Json::Text(name.clone()), now, depth)?;
                    entries.push((name, value.parse_json_at(member, now, depth)?));
                }
                entries.sort_by(|a, b| key.compare(&a.0, &b.0));
                entries.dedup_by(|b, a| {
                    let is_same = key.compare(&a.0, &b.0).is_eq();
                    if is_same {
                        std::mem::swap(a, b);
                    }
                    is_same
                });
                Ok(pack_map(entries))
            }
            (Self::Map { .. }, _) => expected("a map"),
            (Self::Tuple(types), Json::List(list)) => {
                let count = types.len();
                if list.len() > count {
                    return Err(format!("Tuple contains extra items (expected {count}): {json}"));
                }
                if list.len() < count {
                    return Err(format!("Tuple is missing items (expected {count}): {json}"));
                }
                let components = list.iter().zip(types.iter()).map(|(item, ty)| match item {
                    Json::Null => Ok(None),
                    item => ty.parse_json_at(item, now, depth).map(Some),
                });
                Ok(pack_components(components.collect::<Result<Vec<_>, _>>()?))
            }
            (Self::Tuple(_), _) => expected("a list representation of a tuple"),
            (Self::Udt { definition, .. }, Json::Object(members)) => {
                let members = Json::fold_names(members);
                let field = |(name, ty): &(String, Self)| match members
                    .iter()
                    .find(|(member, _)| member == name)
                {
                    None | Some((_, Json::Null)) => Ok(None),
                    Some((_, value)) => ty.parse_json_at(value, now, depth).map(Some),
                };
                let fields =
                    definition.fields.iter().map(field).collect::<Result<Vec<_>, String>>()?;
                let known = |name: &str| definition.fields.iter().any(|(field, _)| field == name);
                match members.iter().find(|(name, _)| !known(name)) {
                    Some((name, _)) => Err(format!(
                        "Unknown field '{name}' in value of user defined type {}",
                        definition.name
                    )),
                    None => Ok(pack_components(fields)),
                }
            }
            _ => expected("a map"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_reader_is_strict() {
        let parsed = |text: &str| Json::parse(text).unwrap();
        assert_eq!(parsed(" 1 rest"), Json::Integer(1));
        assert_eq!(parsed("2147483648"), Json::Long(2_147_483_648));
        assert_eq!(parsed("9223372036854775808").class(), "BigInteger");
        assert_eq!(parsed("1e2"), Json::Double(100.0));
        assert_eq!(parsed(r#""a\u00e9\ud83d\ude00\n""#), Json::Text("a\u{e9}\u{1f600}\n".into()));
        assert_eq!(parsed(r#"{"a": 1, "b": [], "a": 2}"#).to_string(), "{a=2, b=[]}");
        for refused in [
            "",
            "01",
            "+1",
            "1.",
            ".5",
            "1e",
            "nul",
            "nullx",
            "'a'",
            "[1,]",
            "{\"a\":1,}",
            "{a: 1}",
            "\"a",
            "\"\n\"",
            "\"\\x\"",
            "1x",
            "NaN",
            "[1",
            "{\"a\"",
            "\"\\u12\"",
            "-",
        ] {
            assert!(Json::parse(refused).is_err(), "{refused}");
        }
        assert_eq!(Json::parse(&"[".repeat(100_000)), Err(JsonError::Depth));
    }

    #[test]
    fn values_are_of_the_classes_that_java_asks_for() {
        let made = |ty: &CqlType, text: &str| ty.parse_json(&Json::parse(text).unwrap(), 0);
        assert_eq!(made(&CqlType::Int, "5").unwrap(), [0, 0, 0, 5]);
        assert_eq!(made(&CqlType::Int, "\"5\"").unwrap(), [0, 0, 0, 5]);
        assert_eq!(
            made(&CqlType::Int, "5000000000").unwrap_err(),
            "Expected an int value, but got a Long: 5000000000"
        );
        assert!(made(&CqlType::Timestamp, "5").is_err());
        assert_eq!(made(&CqlType::Timestamp, "5000000000").unwrap().len(), 8);
        assert_eq!(made(&CqlType::Blob, "\"0xcafe\"").unwrap(), [0xca, 0xfe]);
        assert_eq!(
            made(&CqlType::Text, "[1, {\"a\": true}]").unwrap_err(),
            "Expected a UTF-8 string, but got a ArrayList: [1, {a=true}]"
        );
        let set = CqlType::Set { element: CqlType::Int.into(), frozen: true };
        assert_eq!(made(&set, "[3, 1, 3]").unwrap(), pack_list([[0, 0, 0, 1], [0, 0, 0, 3]]));
        assert_eq!(made(&set, "\"[1]\"").unwrap(), pack_list([[0, 0, 0, 1]]));
        assert_eq!(made(&set, "[null]").unwrap_err(), "Invalid null element in set");
    }

    proptest! {
        #[test]
        fn any_text_parses_or_fails(text: String, shape in "[\\[\\]{}\",:0-9eE.+\\\\u nulltrue-]{0,40}") {
            let _ = Json::parse(&text);
            let _ = Json::parse(&shape);
        }

        #[test]
        fn what_is_written_reads_back(number: i32, text: String) {
            for (ty, value) in [
                (CqlType::Int, number.to_be_bytes().to_vec()),
                (CqlType::Text, text.into_bytes()),
            ] {
                let list = CqlType::List { element: ty.into(), frozen: true };
                let value = pack_list([value.clone(), value]);
                let json = list.to_json(&value).unwrap();
                prop_assert_eq!(list.parse_json(&Json::parse(&json).unwrap(), 0).unwrap(), value);
            }
        }
    }
}
