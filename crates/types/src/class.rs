//! Cassandra's own types that CQL has no name for, and that tables have all the same: columns of
//! old schemas, and those that are created by the name of their class.

use crate::compare::malformed;
use crate::cql_type::{ClassType, Component, CqlType};
use crate::literal::LiteralError;
use crate::marshal::PACKAGE;
use crate::token::Token;
use crate::validate::ValueError;
use crate::vint::Reader;
use std::cmp::Ordering;
use std::fmt::Write as _;

/// The partitioner whose order is served.
const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
/// What a composite of static columns begins with.
const STATIC: &[u8] = &[0xff, 0xff];
/// The bit of a component's header that says that a letter names its type.
const IS_ALIAS: u16 = 0x8000;

/// A component of a value.
struct Part<'v> {
    /// Its own type, where the value says which.
    named: Option<Named<'v>>,
    value: &'v [u8],
    /// 0, or where a bound lies before (-1) or after (1) all that begins so.
    end: i8,
}

/// How a value of a dynamic composite says which type a component has.
enum Named<'v> {
    Alias(u8),
    Class(&'v [u8]),
}

/// A component or what is wrong with it.
enum PartError {
    Header,
    Name,
    Size,
    Value,
    End,
}

fn part<'v>(reader: &mut Reader<'v>, is_dynamic: bool) -> Result<Part<'v>, PartError> {
    let mut named = None;
    if is_dynamic {
        let header = reader.u16().map_err(|_| PartError::Header)?;
        named = Some(if header & IS_ALIAS == 0 {
            Named::Class(reader.bytes(header.into()).map_err(|_| PartError::Name)?)
        } else {
            Named::Alias(header as u8)
        });
    }
    let length = reader.u16().map_err(|_| PartError::Size)?;
    let value = reader.bytes(length.into()).map_err(|_| PartError::Value)?;
    let end = reader.bytes(1).map_err(|_| PartError::End)?;
    Ok(Part { named, value, end: end.first().map_or(0, |end| end.cast_signed()) })
}

impl Component {
    fn compare(&self, a: &[u8], b: &[u8], depth: usize) -> Ordering {
        if self.reversed {
            self.ty.compare_at(b, a, depth)
        } else {
            self.ty.compare_at(a, b, depth)
        }
    }

    fn name(&self) -> String {
        self.ty.to_marshal_string_clustering(self.reversed)
    }

    /// The name of the class, without package and parameters.
    fn short_name(&self) -> String {
        if self.reversed {
            return "ReversedType".to_owned();
        }
        let name = self.ty.to_marshal_string();
        let name = name.strip_prefix(PACKAGE).unwrap_or(&name);
        let name = name.strip_prefix("FrozenType(").unwrap_or(name);
        let name = name.strip_prefix(PACKAGE).unwrap_or(name);
        name.split('(').next().unwrap_or(name).to_owned()
    }

    fn parse(name: &str) -> Option<Self> {
        let (ty, reversed) = CqlType::parse_marshal(name).ok()?;
        let is_known = !ty.any(&mut |ty| matches!(ty, CqlType::Custom(_)));
        is_known.then_some(Self { ty, reversed })
    }
}

impl ClassType {
    /// Its class and parameters, as Cassandra writes them.
    pub fn marshal_string(&self) -> String {
        let mut out = PACKAGE.to_owned();
        match self {
            Self::LexicalUuid => out.push_str("LexicalUUIDType"),
            Self::Composite(parts) => {
                let parts: Vec<String> = parts.iter().map(Component::name).collect();
                let _ = write!(out, "CompositeType({})", parts.join(","));
            }
            Self::DynamicComposite(aliases) => {
                let alias = |(letter, part): &(u8, Component)| {
                    format!("{}=>{}", char::from(*letter), part.name())
                };
                let aliases: Vec<String> = aliases.iter().map(alias).collect();
                let _ = write!(out, "DynamicCompositeType({})", aliases.join(","));
            }
            Self::RingOrder => {
                let _ = write!(out, "PartitionerDefinedOrder({PARTITIONER})");
            }
        }
        out
    }

    /// The order of the ring, if the class that makes it is the one that is served.
    pub(crate) fn ring_order(partitioner: &str) -> Option<Self> {
        let short = PARTITIONER.rsplit('.').next();
        (partitioner == PARTITIONER || Some(partitioner) == short || partitioner.is_empty())
            .then_some(Self::RingOrder)
    }

    /// A dynamic composite of these letters, in the order in which Java's hash table has them.
    pub(crate) fn dynamic(mut aliases: Vec<(u8, Component)>) -> Self {
        let mut slots = 16_usize;
        while aliases.len() > slots / 4 * 3 {
            slots *= 2;
        }
        aliases.sort_by_key(|(letter, _)| usize::from(*letter) & (slots - 1));
        Self::DynamicComposite(aliases)
    }

    pub(crate) fn fixed_length(&self) -> Option<usize> {
        matches!(self, Self::LexicalUuid).then_some(16)
    }

    fn is_dynamic(&self) -> bool {
        matches!(self, Self::DynamicComposite(_))
    }

    /// The type of the component at a place.
    fn component(&self, index: usize, part: &Part<'_>) -> Option<std::borrow::Cow<'_, Component>> {
        use std::borrow::Cow;
        match (self, &part.named) {
            (Self::Composite(parts), _) => parts.get(index).map(Cow::Borrowed),
            (Self::DynamicComposite(aliases), Some(Named::Alias(letter))) => {
                let found = aliases.iter().find(|(alias, _)| alias == letter);
                found.map(|(_, part)| Cow::Borrowed(part))
            }
            (Self::DynamicComposite(_), Some(Named::Class(name))) => {
                Component::parse(std::str::from_utf8(name).ok()?).map(Cow::Owned)
            }
            _ => None,
        }
    }

    /// The order of two values; total on any bytes, as for all types.
    pub(crate) fn compare(&self, a: &[u8], b: &[u8], depth: usize) -> Ordering {
        let empties = b.is_empty().cmp(&a.is_empty());
        if empties.is_ne() {
            return empties;
        }
        match self {
            Self::LexicalUuid => match (a.as_array::<16>(), b.as_array::<16>()) {
                (Some(a), Some(b)) => signed_halves(a).cmp(&signed_halves(b)),
                (x, y) => malformed(x.map(|_| ()), y.map(|_| ()), a, b),
            },
            Self::RingOrder => Token::of(a).0.cmp(&Token::of(b).0).then_with(|| a.cmp(b)),
            Self::Composite(_) | Self::DynamicComposite(_) => match depth.checked_sub(1) {
                Some(depth) => self.compare_parts(a, b, depth),
                None => a.cmp(b),
            },
        }
    }

    fn compare_parts(&self, a: &[u8], b: &[u8], depth: usize) -> Ordering {
        let is_dynamic = self.is_dynamic();
        let statics = |value: &[u8]| !is_dynamic && value.starts_with(STATIC);
        let order = statics(b).cmp(&statics(a));
        if order.is_ne() {
            return order;
        }
        let begin = if statics(a) { 2 } else { 0 };
        let mut reader_a = Reader::new(a.get(begin..).unwrap_or_default());
        let mut reader_b = Reader::new(b.get(begin..).unwrap_or_default());
        let mut index = 0;
        while !reader_a.is_empty() && !reader_b.is_empty() {
            let (part_a, part_b) =
                (part(&mut reader_a, is_dynamic), part(&mut reader_b, is_dynamic));
            let (Ok(part_a), Ok(part_b)) = (part_a, part_b) else { return a.cmp(b) };
            let kinds = (self.component(index, &part_a), self.component(index, &part_b));
            let (Some(kind_a), Some(kind_b)) = kinds else { return a.cmp(b) };
            let order = classes(&kind_a, &kind_b)
                .then_with(|| kind_a.compare(part_a.value, part_b.value, depth))
                .then_with(|| part_a.end.cmp(&part_b.end));
            if order.is_ne() {
                return order;
            }
            index += 1;
        }
        reader_b.is_empty().cmp(&reader_a.is_empty())
    }

    /// Are these bytes a value?
    pub(crate) fn validate(&self, value: &[u8], depth: usize) -> Result<(), ValueError> {
        match self {
            Self::LexicalUuid if !matches!(value.len(), 0 | 16) => Err(ValueError::Length {
                expected: "UUID should be 16 or 0 bytes",
                length: value.len(),
            }),
            Self::LexicalUuid => Ok(()),
            Self::RingOrder => Err(ValueError::Unbindable),
            Self::Composite(_) | Self::DynamicComposite(_) => {
                let depth = depth.checked_sub(1).ok_or(ValueError::Depth)?;
                self.validate_parts(value, depth)
            }
        }
    }

    fn validate_parts(&self, value: &[u8], depth: usize) -> Result<(), ValueError> {
        let is_dynamic = self.is_dynamic();
        let begin = if !is_dynamic && value.starts_with(STATIC) { 2 } else { 0 };
        let mut reader = Reader::new(value.get(begin..).unwrap_or_default());
        let mut index = 0;
        while !reader.is_empty() {
            if let Self::Composite(parts) = self
                && index >= parts.len()
            {
                return Err(composite("Too many bytes for comparator".to_owned()));
            }
            let part = part(&mut reader, is_dynamic).map_err(|error| {
                let what = match error {
                    PartError::Header => "header of the comparator part of component ",
                    PartError::Name => "read comparator name of component ",
                    PartError::Size => "read value size of component ",
                    PartError::Value => "read value of component ",
                    PartError::End => "read the end-of-component byte of component",
                };
                composite(format!("Not enough bytes to {what}{index}"))
            })?;
            let kind = self.component(index, &part);
            let kind = kind.ok_or_else(|| {
                composite(format!("Cannot find comparator for component {index}"))
            })?;
            kind.ty.validate_at(part.value, depth)?;
            if part.end != 0 && !reader.is_empty() {
                return Err(composite(format!(
                    "Invalid bytes remaining after an end-of-component at component{index}"
                )));
            }
            index += 1;
        }
        Ok(())
    }

    /// The value that text stands for.
    pub(crate) fn parse_text(
        &self,
        text: &str,
        now: i64,
        depth: usize,
    ) -> Result<Vec<u8>, LiteralError> {
        match self {
            Self::LexicalUuid if text.is_empty() => Ok(Vec::new()),
            Self::LexicalUuid => match lenient_uuid(text) {
                Some(uuid) => Ok(uuid.to_be_bytes().to_vec()),
                None => Err(LiteralError::Unable {
                    action: "unable to make UUID",
                    text: text.to_owned(),
                }),
            },
            Self::RingOrder => Err(LiteralError::Component(
                "A key in the order of the ring has no text".to_owned(),
            )),
            Self::Composite(_) | Self::DynamicComposite(_) => {
                let depth = depth.checked_sub(1).ok_or(LiteralError::Depth)?;
                self.parse_parts(text, now, depth)
            }
        }
    }

    fn parse_parts(&self, text: &str, now: i64, depth: usize) -> Result<Vec<u8>, LiteralError> {
        let wrong = |why: &str| LiteralError::Component(format!("{why}: '{text}'"));
        let mut out = Vec::new();
        for (index, text) in split(text).into_iter().enumerate() {
            if matches!(text, "!" | "_") {
                let end = out.last_mut().ok_or_else(|| wrong("No component to end"))?;
                *end = if text == "!" { 1 } else { 0xff };
                break;
            }
            let (kind, text) = match self {
                Self::Composite(parts) => {
                    let kind = parts.get(index).ok_or_else(|| wrong("Too many components"))?;
                    (kind.clone(), text)
                }
                Self::DynamicComposite(aliases) => named_part(aliases, text, &mut out)?,
                Self::LexicalUuid | Self::RingOrder => return Err(wrong("No components")),
            };
            let value = kind.ty.parse_text_at(&unescape(text), now, depth)?;
            kind.ty.validate(&value).map_err(|error| LiteralError::Component(error.to_string()))?;
            let length =
                u16::try_from(value.len()).map_err(|_| wrong("A component is too long"))?;
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&value);
            out.push(0);
        }
        Ok(out)
    }

    /// A value as text, for JSON; of UUIDs only.
    pub(crate) fn native_text(&self, value: &[u8]) -> Option<String> {
        match self {
            Self::LexicalUuid => CqlType::Uuid.native_text(value),
            _ => None,
        }
    }
}

/// Types of one class are as equal as that; of others the one whose class comes first by its short
/// name is before.
fn classes(a: &Component, b: &Component) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    match (a.reversed, b.reversed) {
        (true, true) => {
            let base = |part: &Component| Component { ty: part.ty.clone(), reversed: false };
            classes(&base(a), &base(b))
        }
        _ => a.short_name().cmp(&b.short_name()),
    }
}

/// The type that the text of a component of a dynamic composite begins with; its header goes to
/// `out`.
fn named_part<'t>(
    aliases: &[(u8, Component)],
    text: &'t str,
    out: &mut Vec<u8>,
) -> Result<(Component, &'t str), LiteralError> {
    let wrong = || LiteralError::Component(format!("Invalid component representation: {text}"));
    // as Java splits: what is empty at the end is not there
    let (name, rest) = match text.trim_end_matches('@').split_once('@') {
        Some((_, rest)) if rest.contains('@') => return Err(wrong()),
        Some(both) => both,
        None if text.contains('@') && text.trim_end_matches('@').is_empty() => return Err(wrong()),
        None => (text.trim_end_matches('@'), ""),
    };
    if let [letter] = name.as_bytes()
        && let Some((letter, kind)) = aliases.iter().find(|(alias, _)| alias == letter)
    {
        out.extend_from_slice(&(IS_ALIAS | u16::from(*letter)).to_be_bytes());
        return Ok((kind.clone(), rest));
    }
    let kind = Component::parse(name).ok_or_else(wrong)?;
    let length = u16::try_from(name.len()).ok().filter(|length| length & IS_ALIAS == 0);
    out.extend_from_slice(&length.ok_or_else(wrong)?.to_be_bytes());
    out.extend_from_slice(name.as_bytes());
    Ok((kind, rest))
}

fn composite(what: String) -> ValueError {
    ValueError::Composite(what)
}

/// At colons that no backslash stands in front of.
fn split(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { crate::literal::split_fields(text) }
}

/// A component without backslashes in front of its colons, and without the mark behind a last
/// character that has a meaning.
fn unescape(text: &str) -> String {
    let text = text.replace("\\:", ":");
    text.strip_suffix('!').map_or_else(|| text.clone(), str::to_owned)
}

fn signed_halves(uuid: &[u8; 16]) -> (i64, i64) {
    let both = u128::from_be_bytes(*uuid);
    ((both >> 64) as i64, both as i64)
}

/// A UUID as Java reads it: five numbers in hexadecimal of any length, of which the low digits
/// count.
fn lenient_uuid(text: &str) -> Option<u128> {
    if text.len() > 36 {
        return None;
    }
    let groups: Vec<&str> = text.split('-').collect();
    let [time_low, time_mid, time_high, clock, node] = groups.as_slice() else { return None };
    let number = |group: &str, bits: u32| {
        let is_hex = group.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = i64::from_str_radix(group, 16).ok().filter(|_| is_hex)?;
        Some(u128::from(number.cast_unsigned()) & ((1 << bits) - 1))
    };
    let high = number(time_low, 32)? << 32 | number(time_mid, 16)? << 16 | number(time_high, 16)?;
    Some(high << 64 | number(clock, 16)? << 48 | number(node, 48)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(class: &str) -> CqlType {
        let ty = CqlType::parse_marshal(class).unwrap().0;
        assert!(matches!(ty, CqlType::Class(_)), "{class}: {ty:?}");
        ty
    }

    const CLASSES: [&str; 6] = [
        "LexicalUUIDType",
        "CompositeType(Int32Type, UTF8Type)",
        "CompositeType(ReversedType(Int32Type),CompositeType(UTF8Type))",
        "DynamicCompositeType(a=>Int32Type,b=>ReversedType(UTF8Type))",
        "DynamicCompositeType",
        "PartitionerDefinedOrder",
    ];

    #[test]
    fn names_are_read_as_they_are_written() {
        for class in CLASSES {
            let ty = named(class);
            let name = ty.to_marshal_string();
            assert_eq!(named(&name), ty, "{name}");
            assert_eq!(ty.cql_name(), format!("'{name}'"));
        }
        let all = "DynamicCompositeType(z=>Int32Type,p=>UTF8Type,a=>LongType,q=>AsciiType)";
        let letters = "(p=>org.apache.cassandra.db.marshal.UTF8Type,a=>org.apache.cassandra.db.marshal.LongType,q=>";
        assert!(named(all).to_marshal_string().contains(letters));
    }

    #[test]
    fn texts_of_composites() {
        let parse = |class: &str, text: &str| {
            let value = named(class).parse_text(text, 0).map_err(|error| error.to_string())?;
            Ok::<_, String>(crate::hex::to_hex(&value))
        };
        let pair = CLASSES[1];
        assert_eq!(parse(pair, "5:a").unwrap(), "0004000000050000016100");
        assert_eq!(parse(pair, "5:_").unwrap(), "000400000005ff");
        assert_eq!(parse(pair, "5:b\\:c").unwrap(), "000400000005000003623a6300");
        assert_eq!(parse(pair, "").unwrap(), "");
        assert_eq!(parse(pair, "x:a").unwrap_err(), "Unable to make int from 'x'");
        assert!(parse(pair, "5:a:b").is_err());
        assert!(parse(pair, "!").is_err());
        let dynamic = CLASSES[3];
        assert_eq!(parse(dynamic, "a@5:!").unwrap(), "806100040000000501");
        assert_eq!(parse(dynamic, "b@").unwrap(), "8062000000");
        assert_eq!(
            parse(dynamic, "LongType@6").unwrap(),
            "00084c6f6e67547970650008000000000000000600"
        );
        assert!(parse(dynamic, "z@5").is_err());
        assert!(parse(dynamic, "a@1@2").is_err());
        assert_eq!(
            parse("LexicalUUIDType", "1-2-3-4-5").unwrap(),
            "00000001000200030004000000000005"
        );
        assert!(parse("LexicalUUIDType", "1-2-3-4").is_err());
    }

    #[test]
    fn values_in_order() {
        let ordered = |class: &str, texts: &[&str]| {
            let ty = named(class);
            let values: Vec<_> = texts.iter().map(|text| ty.parse_text(text, 0).unwrap()).collect();
            assert!(values.is_sorted_by(|a, b| ty.compare(a, b).is_lt()), "{class} {texts:?}");
            values.iter().for_each(|value| ty.validate(value).unwrap());
        };
        ordered(CLASSES[1], &["", "-1:a", "1:_", "1", "1:a:_", "1:a", "1:a:!", "1:b", "1:!", "2"]);
        ordered(CLASSES[2], &["2:b", "1:a", "1:b", "-1:a"]);
        ordered(
            CLASSES[3],
            &["AsciiType@z", "a@-5", "a@5", "a@5:b@x", "a@5:!", "LongType@1", "b@x", "b@a"],
        );
        ordered(
            "LexicalUUIDType",
            &["", "ffffffff-ffff-ffff-ffff-ffffffffffff", "0-0-0-8000-0", "0-0-0-0-0", "0-0-0-0-1"],
        );
    }

    proptest! {
        #[test]
        fn any_bytes_compare_and_validate(class in 0..CLASSES.len(), a: Vec<u8>, b: Vec<u8>, c: Vec<u8>) {
            let ty = named(CLASSES[class]);
            let _ = ty.validate(&a);
            prop_assert_eq!(ty.compare(&a, &b), ty.compare(&b, &a).reverse());
            prop_assert_eq!(ty.compare(&c, &c), Ordering::Equal);
        }

        #[test]
        fn any_text_is_a_value_or_none(class in 0..CLASSES.len(), text in "[-a-f0-9:@!_\\\\IntType32()]{0,20}") {
            let ty = named(CLASSES[class]);
            if let Ok(value) = ty.parse_text(&text, 0) {
                prop_assert!(ty.validate(&value).is_ok());
            }
        }

        #[test]
        fn what_is_nested_deep_ends(levels in 0..12_000_usize) {
            let ty = named("DynamicCompositeType");
            let mut value = Vec::new();
            for _ in 0..levels.min(1800) {
                let name = b"DynamicCompositeType";
                let mut outer = (name.len() as u16).to_be_bytes().to_vec();
                outer.extend_from_slice(name);
                outer.extend_from_slice(&(value.len() as u16).to_be_bytes());
                outer.append(&mut value);
                outer.push(0);
                value = outer;
            }
            let _ = ty.validate(&value);
            prop_assert_eq!(ty.compare(&value, &value), Ordering::Equal);
        }
    }
}
