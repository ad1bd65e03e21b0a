//! The value that a text stands for: `AbstractType.fromString`, and its messages.

use crate::cql_type::CqlType;
use crate::decimal::{Decimal, parse_varint};
use crate::duration::{Duration, DurationError};
use crate::float::{parse_double, parse_float};
use crate::hex::from_hex;
use crate::time::{Civil, MILLIS_PER_DAY, NANOS_PER_DAY};
use crate::timestamp::{self, Parsed};
use crate::uuid::Uuid;
use std::net::{Ipv4Addr, Ipv6Addr};
use thiserror::Error;

/// Why a text is no value of a type. The text is Cassandra's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LiteralError {
    /// A character beyond ASCII.
    #[error(
        "Invalid ASCII character in string literal: java.nio.charset.UnmappableCharacterException: Input length = {0}"
    )]
    Ascii(usize),
    /// No number, address or the like.
    #[error("{action} from '{text}'")]
    Unable {
        /// What was tried, in the words of the type.
        action: &'static str,
        /// The text.
        text: String,
    },
    /// No day.
    #[error("Unable to coerce '{0}' to a formatted date (long)")]
    Date(String),
    /// No day since 1970 that fits in 32 bits; the number as text.
    #[error("Unable to make unsigned int (for date) from: '{0}'")]
    Days(String),
    /// A day before the first.
    #[error("Input date {0} is less than min supported date -5877641-06-23T00:00Z")]
    DateTooEarly(String),
    /// A day after the last.
    #[error("Input date {0} is greater than max supported date +5881580-07-11T00:00Z")]
    DateTooLate(String),
    /// No time of day.
    #[error("(TimeType) Unable to coerce '{0}' to a formatted time (long)")]
    Time(String),
    /// No nanosecond of a day.
    #[error("Unable to make long (for time) from: '{0}'")]
    Nanos(String),
    /// No timestamp.
    #[error("Unable to parse a date/time from '{0}'")]
    Timestamp(String),
    /// No number of milliseconds.
    #[error("Unable to make long (for date) from: '{0}'")]
    Millis(String),
    /// A timestamp beyond 64 bits.
    #[error("long overflow")]
    Overflow,
    /// No UUID where one of version 1 is wanted.
    #[error("Unknown timeuuid representation: {0}")]
    TimeUuid(String),
    /// A UUID of another version than 1.
    #[error("TimeUUID supports only version 1 UUIDs")]
    TimeUuidVersion,
    /// No hexadecimal digits, or an odd number of them.
    #[error("cannot parse '{0}' as hex bytes")]
    Hex(String),
    /// The same for a counter, whose values are not read from text but in hexadecimal.
    #[error("An hex string representing bytes must have an even length")]
    CounterLength,
    /// A counter with characters that are no digits.
    #[error("Non-hex characters in {0}")]
    CounterDigits(String),
    /// Text for the type that has no values.
    #[error("'{0}' is not empty")]
    NotEmpty(String),
    /// No duration.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// More elements than the tuple has types.
    #[error(
        "Invalid tuple literal: too many elements. Type {kind} expects {expected} but got {given}"
    )]
    TupleElements {
        /// CQL name of the type.
        kind: String,
        /// How many it has.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// No component of a composite; the text says why.
    #[error("{0}")]
    Component(String),
    /// Types nested too deep.
    #[error("Types are nested too deep")]
    Depth,
}

/// Shorthand: this text is none of that.
fn unable<T>(action: &'static str, text: &str) -> Result<T, LiteralError> {
    Err(LiteralError::Unable { action, text: text.to_owned() })
}

impl CqlType {
    /// The value that `text` (of a quoted literal, say) stands for. The empty text is the empty
    /// value of most types. `now_millis` is what the timestamp `now` means, in milliseconds
    /// since 1970. A blob is plain hexadecimal without `0x`; collections, vectors and custom types
    /// too. Of names only `localhost` is an `inet`, for nothing is ever looked up.
    pub fn parse_text(&self, text: &str, now_millis: i64) -> Result<Vec<u8>, LiteralError> {
        self.parse_text_at(text, now_millis, crate::MAX_DEPTH)
    }

    pub(crate) fn parse_text_at(
        &self,
        text: &str,
        now: i64,
        depth: usize,
    ) -> Result<Vec<u8>, LiteralError> {
        match self {
            Self::Text => return Ok(text.as_bytes().to_vec()),
            Self::Boolean => return boolean(text),
            Self::Date => return date(text),
            Self::Time => return time(text),
            Self::Class(class) => return class.parse_text(text, now, depth),
            _ if text.is_empty() => return Ok(Vec::new()),
            _ => {}
        }
        match self {
            Self::Ascii => ascii(text),
            Self::BigInt => {
                integer::<i64>("Unable to make long", text).map(|n| n.to_be_bytes().into())
            }
            Self::Int => integer::<i32>("Unable to make int", text).map(|n| n.to_be_bytes().into()),
            Self::SmallInt => {
                integer::<i16>("Unable to make short", text).map(|n| n.to_be_bytes().into())
            }
            Self::TinyInt => {
                integer::<i8>("Unable to make byte", text).map(|n| n.to_be_bytes().into())
            }
            Self::VarInt => match parse_varint(text) {
                Some(number) => Ok(number.to_signed_bytes_be()),
                None => unable("unable to make int", text),
            },
            Self::Decimal => match Decimal::parse(text) {
                Some(number) => Ok(number.to_bytes()),
                None => unable("unable to make BigDecimal", text),
            },
            Self::Double => match parse_double(text) {
                Some(number) => Ok(number.to_be_bytes().into()),
                None => unable("Unable to make double", text),
            },
            Self::Float => match parse_float(text) {
                Some(number) => Ok(number.to_be_bytes().into()),
                None => unable("Unable to make float", text),
            },
            Self::Inet => match inet(text) {
                Some(address) => Ok(address),
                None => unable("Unable to make inet address", text),
            },
            Self::Uuid => match Uuid::parse(text) {
                Some(uuid) => Ok(uuid.to_bytes().into()),
                None => unable("Unable to make UUID", text),
            },
            Self::TimeUuid => time_uuid(text),
            Self::Timestamp => timestamp(text, now).map(|millis| millis.to_be_bytes().into()),
            Self::Duration => Ok(Duration::parse(text)?.to_bytes()),
            Self::Empty => Err(LiteralError::NotEmpty(text.to_owned())),
            Self::Tuple(types) => self.tuple(&types.iter().collect::<Vec<_>>(), text, now, depth),
            Self::Udt { definition, .. } => {
                let types: Vec<_> = definition.fields.iter().map(|(_, kind)| kind).collect();
                self.tuple(&types, text, now, depth)
            }
            Self::Counter if text.len() % 2 == 1 => Err(LiteralError::CounterLength),
            Self::Counter => {
                from_hex(text).ok_or_else(|| LiteralError::CounterDigits(text.to_owned()))
            }
            _ => from_hex(text).ok_or_else(|| LiteralError::Hex(text.to_owned())),
        }
    }

    /// Fields with colons between them, `@` for null; both escaped by a backslash inside a field.
    fn tuple(
        &self,
        types: &[&Self],
        text: &str,
        now: i64,
        depth: usize,
    ) -> Result<Vec<u8>, LiteralError> {
        let depth = depth.checked_sub(1).ok_or(LiteralError::Depth)?;
        let fields = split_fields(text);
        if fields.len() > types.len() {
            return Err(LiteralError::TupleElements {
                kind: self.cql_name(),
                expected: types.len(),
                given: fields.len(),
            });
        }
        let mut values = Vec::with_capacity(fields.len());
        for (field, kind) in fields.into_iter().zip(types) {
            values.push(match field {
                "@" => None,
                field => {
                    let field = field.replace("\\:", ":").replace("\\@", "@");
                    Some(kind.parse_text_at(&field, now, depth)?)
                }
            });
        }
        Ok(crate::value::pack_components(values))
    }
}

/// Splits at colons that no backslash stands in front of; empty text at the end is no field.
pub(crate) fn split_fields(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut fields, mut start) = (Vec::new(), 0);
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b':' && at.checked_sub(1).and_then(|before| bytes.get(before)) != Some(&b'\\') {
            fields.extend(text.get(start..at));
            start = at + 1;
        }
    }
    fields.extend(text.get(start..));
    fields
}

fn integer<T: std::str::FromStr>(action: &'static str, text: &str) -> Result<T, LiteralError> {
    text.parse().or_else(|_| unable(action, text))
}

fn ascii(text: &str) -> Result<Vec<u8>, LiteralError> {
    // Java counts the UTF-16 units of the first character that does not map.
    match text.chars().find(|character| !character.is_ascii()) {
        Some(character) => Err(LiteralError::Ascii(character.len_utf16())),
        None => Ok(text.as_bytes().to_vec()),
    }
}

fn boolean(text: &str) -> Result<Vec<u8>, LiteralError> {
    if text.is_empty() || text.eq_ignore_ascii_case("false") {
        Ok(vec![0])
    } else if text.eq_ignore_ascii_case("true") {
        Ok(vec![1])
    } else {
        unable("Unable to make boolean", text)
    }
}

fn time_uuid(text: &str) -> Result<Vec<u8>, LiteralError> {
    match Uuid::parse(text) {
        Some(uuid) if uuid.version() == 1 => Ok(uuid.to_bytes().into()),
        Some(_) => Err(LiteralError::TimeUuidVersion),
        None => Err(LiteralError::TimeUuid(text.to_owned())),
    }
}

/// Digits, maybe with a minus in front?
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn date(text: &str) -> Result<Vec<u8>, LiteralError> {
    if is_number(text) {
        // Days as they are stored: 1970-01-01 is 2^31.
        return match text.parse::<u32>() {
            Ok(days) => Ok(days.to_be_bytes().into()),
            Err(_) if text.trim_start_matches(['-', '0']).is_empty() => Ok(vec![0; 4]),
            Err(_) => Err(LiteralError::Days(text.to_owned())),
        };
    }
    let days = timestamp::strict_date(text).map(Civil::to_days);
    // Cassandra goes by milliseconds, which end first.
    let days = days.filter(|days| days.checked_mul(MILLIS_PER_DAY).is_some());
    let Some(days) = days else {
        return Err(LiteralError::Date(text.to_owned()));
    };
    match u32::try_from(days + (1 << 31)) {
        Ok(days) => Ok(days.to_be_bytes().into()),
        Err(_) if days < 0 => Err(LiteralError::DateTooEarly(text.to_owned())),
        Err(_) => Err(LiteralError::DateTooLate(text.to_owned())),
    }
}

fn time(text: &str) -> Result<Vec<u8>, LiteralError> {
    let nanos = if is_number(text) {
        let nanos = text.parse::<i64>().ok().filter(|nanos| (0..NANOS_PER_DAY).contains(nanos));
        nanos.ok_or_else(|| LiteralError::Nanos(text.to_owned()))?
    } else {
        clock_time(text).ok_or_else(|| LiteralError::Time(text.to_owned()))?
    };
    Ok(nanos.to_be_bytes().into())
}

/// `hh:mm:ss[.fffffffff]` in nanoseconds; blanks around are fine, and signs that change nothing.
fn clock_time(text: &str) -> Option<i64> {
    let text = text.trim_matches(|character| character <= ' ');
    let (hour, rest) = text.split_once(':')?;
    let (minute, rest) = rest.split_once(':')?;
    let part = |text: &str, limit: i32| {
        text.parse::<i32>().ok().filter(|part| (0..limit).contains(part)).map(i64::from)
    };
    let (second, nanos) = match rest.split_once('.') {
        // A point in front of all digits is a part of the second, and no number.
        Some((second, fraction)) => {
            if fraction.len() > 9 || !fraction.starts_with(|first: char| first.is_ascii_digit()) {
                return None;
            }
            (second, format!("{fraction:0<9}").parse::<u32>().ok()?)
        }
        None => (rest, 0),
    };
    let seconds = part(hour, 24)? * 3600 + part(minute, 60)? * 60 + part(second, 60)?;
    Some(seconds * 1_000_000_000 + i64::from(nanos))
}

/// Milliseconds since 1970.
fn timestamp(text: &str, now: i64) -> Result<i64, LiteralError> {
    if text.eq_ignore_ascii_case("now") {
        return Ok(now);
    }
    if is_number(text) {
        return text.parse().map_err(|_| LiteralError::Millis(text.to_owned()));
    }
    match timestamp::parse(text) {
        Some(Parsed::Millis(millis)) => Ok(millis),
        Some(Parsed::Overflow) => Err(LiteralError::Overflow),
        None => Err(LiteralError::Timestamp(text.to_owned())),
    }
}

/// The name that is always loopback, whoever is asked (RFC 6761).
const LOCALHOST: &str = "localhost";

/// The bytes of an address. IPv4 in one to four parts, the last of which fills the rest; IPv6 maybe
/// in brackets or with a numeric scope, which is dropped; IPv4 mapped into IPv6 becomes IPv4.
/// Cassandra asks the resolver of its machine for anything else, in the middle of a parse; the one
/// name known here needs nobody to be asked.
fn inet(text: &str) -> Option<Vec<u8>> {
    if text.eq_ignore_ascii_case(LOCALHOST) {
        return Some(Ipv4Addr::LOCALHOST.octets().into());
    }
    if let Some(address) = inet4(text) {
        return Some(address.octets().into());
    }
    let text = match text.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None => text,
    };
    let address = match text.split_once('%') {
        Some((address, scope)) if scope.parse::<u32>().is_ok() => address,
        Some(_) => return None,
        None => text,
    };
    // Zeros in front, however many, which Rust does not take beyond four digits or in front of
    // decimals.
    let groups = address.split(':').map(|group| match group.trim_start_matches('0') {
        "" if !group.is_empty() => "0".to_owned(),
        _ if group.contains('.') => {
            let octets = group.split('.').map(|octet| match octet.trim_start_matches('0') {
                "" if !octet.is_empty() => "0",
                octet => octet,
            });
            octets.collect::<Vec<_>>().join(".")
        }
        group => group.to_owned(),
    });
    let address: Ipv6Addr = groups.collect::<Vec<_>>().join(":").parse().ok()?;
    Some(match address.to_ipv4_mapped() {
        Some(mapped) => mapped.octets().into(),
        None => address.octets().into(),
    })
}

fn inet4(text: &str) -> Option<Ipv4Addr> {
    if text.len() > 15 || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let parts: Vec<u64> =
        text.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<_>>>()?;
    let (last, firsts) = parts.split_last()?;
    let mut address = 0_u64;
    for part in firsts.iter().take(4) {
        if *part > 255 {
            return None;
        }
        address = address << 8 | part;
    }
    let rest = 4_usize.checked_sub(firsts.len()).filter(|rest| *rest > 0)? * 8;
    if *last >> rest != 0 {
        return None;
    }
    u32::try_from(address << rest | last).ok().map(Ipv4Addr::from)
}
