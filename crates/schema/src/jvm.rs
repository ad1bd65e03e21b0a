//! What of the JVM shows in Cassandra's texts: how it prints and reads numbers, and the order in
//! which its hash maps iterate.

use std::fmt::Write;

/// Capacity of a `java.util.HashMap` that was not told one.
pub(crate) const DEFAULT_CAPACITY: usize = 16;

/// `Double.toString`.
pub(crate) fn double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if mantissa.contains('.') { "" } else { ".0" };
    format!("{mantissa}{point}E{exponent}")
}

/// `Double.parseDouble`: blanks around, a type suffix and hexadecimal digits aside.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let text = text.trim();
    let body = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    match body.strip_prefix(['+', '-']).unwrap_or(body) {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(if body.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }),
        digits if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') => body.parse().ok(),
        _ => None,
    }
}

/// `StringUtils.isNumeric`: digits only, at least one.
pub(crate) fn is_numeric(text: &str) -> bool {
    !text.is_empty() && text.chars().all(char::is_numeric)
}

/// `String.hashCode`.
fn string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0, |hash: i32, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
}

/// `ByteBuffer.hashCode`: the bytes from last to first.
fn bytes_hash(bytes: &[u8]) -> i32 {
    bytes
        .iter()
        .rev()
        .fold(1, |hash: i32, &b| hash.wrapping_mul(31).wrapping_add(b.cast_signed().into()))
}

fn bucket_order<T>(items: Vec<T>, capacity: usize, hash: impl Fn(&T) -> i32) -> Vec<T> {
    let mut capacity = capacity.max(1).next_power_of_two();
    while items.len() * 4 > capacity * 3 {
        capacity *= 2;
    }
    let mut items = items;
    items.sort_by_key(|item| {
        let hash = hash(item).cast_unsigned();
        (hash ^ hash >> 16) as usize & (capacity - 1)
    });
    items
}

/// The order in which a `HashMap<String, _>` of at least this capacity iterates; within a bucket,
/// the order given.
pub(crate) fn string_order<T: AsRef<str>>(items: Vec<T>, capacity: usize) -> Vec<T> {
    bucket_order(items, capacity, |item| string_hash(item.as_ref()))
}

/// The order in which a `HashMap<ByteBuffer, _>` iterates, keys being the bytes of names.
pub(crate) fn bytes_order<T: AsRef<str>>(items: Vec<T>) -> Vec<T> {
    bucket_order(items, DEFAULT_CAPACITY, |item| bytes_hash(item.as_ref().as_bytes()))
}

/// Capacity of a `HashMap` copied from one of so many entries.
pub(crate) fn copy_capacity(entries: usize) -> usize {
    (entries * 4 / 3 + 1).next_power_of_two()
}

/// A collection's `toString`: `[a, b]`.
pub(crate) fn list<T: AsRef<str>>(items: &[T]) -> String {
    let mut out = "[".to_owned();
    for (i, item) in items.iter().enumerate() {
        let comma = if i > 0 { ", " } else { "" };
        let _ = write!(out, "{comma}{}", item.as_ref());
    }
    out + "]"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_on_the_jvm() {
        for (value, text) in [
            (1.0, "1.0"),
            (0.01, "0.01"),
            (6.71e-5, "6.71E-5"),
            (1e-5, "1.0E-5"),
            (1e7, "1.0E7"),
            (9.9e-4, "9.9E-4"),
        ] {
            assert_eq!(double(value), text);
        }
        assert_eq!(parse_double("1e-3"), Some(0.001));
        assert_eq!(parse_double("1.2.3"), None);
        assert_eq!(parse_double("inf"), None);
    }

    #[test]
    fn hash_maps_iterate_as_on_the_jvm() {
        assert_eq!(string_hash("class"), 94742904);
        assert_eq!(
            string_order(vec!["dc1", "dc2", "dc10"], copy_capacity(4)),
            ["dc10", "dc2", "dc1"]
        );
        let names = vec!["gc_grace_seconds", "comment", "foo", "bar", "bogus", "compaction"];
        let order = ["bogus", "bar", "gc_grace_seconds", "foo", "compaction", "comment"];
        assert_eq!(string_order(names, DEFAULT_CAPACITY), order);
    }
}
