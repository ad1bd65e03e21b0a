//! Values in rows of `system_schema`: frozen collections are a count and length-prefixed elements,
//! i32 each (native protocol spec v5, section 6).

use std::collections::BTreeMap;

/// The deepest count that a collection's bytes are asked to hold: an element takes four bytes at
/// least.
fn count(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_be_bytes(*head)).ok()?;
    (count <= rest.len() / 4).then_some((count, rest))
}

fn element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(i32::from_be_bytes(*head)).ok()?)
}

fn push(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(&(value.len() as i32).to_be_bytes());
    out.extend_from_slice(value);
}

/// `frozen<list<...>>` or `frozen<set<...>>`, the latter's elements in order.
pub(crate) fn list<V: AsRef<[u8]>>(items: impl ExactSizeIterator<Item = V>) -> Vec<u8> {
    let mut out = (items.len() as i32).to_be_bytes().to_vec();
    for item in items {
        push(&mut out, item.as_ref());
    }
    out
}

/// `frozen<map<text, ...>>`: entries in the order of the keys' bytes.
pub(crate) fn map<V: AsRef<[u8]>>(map: &BTreeMap<String, V>) -> Vec<u8> {
    let mut out = (map.len() as i32).to_be_bytes().to_vec();
    for (key, value) in map {
        push(&mut out, key.as_bytes());
        push(&mut out, value.as_ref());
    }
    out
}

/// Elements of a frozen list or set.
pub(crate) fn read_list(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let (count, mut rest) = count(bytes)?;
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        let (item, after) = element(rest)?;
        items.push(item);
        rest = after;
    }
    Some(items)
}

/// Elements of a frozen list or set of text.
pub(crate) fn read_texts(bytes: &[u8]) -> Option<Vec<String>> {
    let items = read_list(bytes)?.into_iter();
    items.map(|item| Some(std::str::from_utf8(item).ok()?.to_owned())).collect()
}

/// Entries of a frozen map from text to bytes.
pub(crate) fn read_map(bytes: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    let (count, mut rest) = count(bytes)?;
    let mut map = BTreeMap::new();
    for _ in 0..count {
        let (key, after) = element(rest)?;
        let (value, after) = element(after)?;
        map.insert(std::str::from_utf8(key).ok()?.to_owned(), value.to_vec());
        rest = after;
    }
    Some(map)
}

/// Entries of a frozen map from text to text.
pub(crate) fn read_text_map(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    let map = read_map(bytes)?.into_iter();
    map.map(|(key, value)| Some((key, String::from_utf8(value).ok()?))).collect()
}
