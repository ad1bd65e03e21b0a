//! Values of collections as Cassandra stores them: sets and maps in order and without duplicates, and the
//! scalars inside in their shortest form. What a client sends may be neither.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use num_bigint::BigInt;
use types::CqlType;
use types::value::{Elements, Entries, pack_list, pack_map};

/// Brings a valid value of a collection, or of an element of one, into the stored form.
pub fn stored_form<'a>(ty: &CqlType, value: &'a [u8]) -> Cow<'a, [u8]> {
    collection_at(ty, value, 0)
}

fn collection_at<'a>(ty: &CqlType, value: &'a [u8], depth: usize) -> Cow<'a, [u8]> {
    if depth >= types::MAX_DEPTH {
        return Cow::Borrowed(value);
    }
    match ty {
        CqlType::List { element, .. } => list(element, value, depth + 1),
        CqlType::Set { element, .. } => set(element, value, depth + 1),
        CqlType::Map { key, value: mapped, .. } => map(key, mapped, value, depth + 1),
        CqlType::Boolean => match value {
            [] | [0 | 1] => Cow::Borrowed(value),
            _ => Cow::Borrowed(&[1]),
        },
        CqlType::VarInt if value.len() > 1 => {
            let short = BigInt::from_signed_bytes_be(value).to_signed_bytes_be();
            if short == value { Cow::Borrowed(value) } else { Cow::Owned(short) }
        }
        _ => Cow::Borrowed(value),
    }
}

/// May values of this type change here?
fn changes(ty: &CqlType) -> bool {
    ty.is_collection() || matches!(ty, CqlType::Boolean | CqlType::VarInt)
}

fn list<'a>(element: &CqlType, value: &'a [u8], depth: usize) -> Cow<'a, [u8]> {
    let Ok(items) = Elements::of_list(value) else { return Cow::Borrowed(value) };
    if !changes(element) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(pack_list(items.flatten().flatten().map(|item| collection_at(element, item, depth))))
}

fn set<'a>(element: &CqlType, value: &'a [u8], depth: usize) -> Cow<'a, [u8]> {
    let Ok(items) = Elements::of_list(value) else { return Cow::Borrowed(value) };
    let items = items.flatten().flatten().map(|item| collection_at(element, item, depth));
    let mut items: Vec<Cow<'_, [u8]>> = items.collect();
    let sorted = items.is_sorted_by(|a, b| element.compare(a, b).is_lt());
    if sorted && !changes(element) {
        return Cow::Borrowed(value);
    }
    if is_within(depth) {
        let mut seen = BTreeSet::new();
        items.retain(|item| seen.insert(item.clone()));
    }
    items.sort_by(|a, b| element.compare(a, b));
    if !is_within(depth) {
        items.dedup_by(|b, a| element.compare(a, b).is_eq());
    }
    Cow::Owned(pack_list(items))
}

fn map<'a>(key: &CqlType, mapped: &CqlType, value: &'a [u8], depth: usize) -> Cow<'a, [u8]> {
    let Ok(entries) = Entries::of(value) else { return Cow::Borrowed(value) };
    let entries = entries.flatten();
    let entries =
        entries.map(|(k, v)| (collection_at(key, k, depth), collection_at(mapped, v, depth)));
    let entries: Vec<_> = entries.collect();
    let sorted = entries.is_sorted_by(|a, b| key.compare(&a.0, &b.0).is_lt());
    if sorted && !changes(key) && !changes(mapped) {
        return Cow::Borrowed(value);
    }
    if !is_within(depth) {
        return Cow::Owned(pack_map(sort_entries(key, entries)));
    }
    // of several of one key the last value stays, where the first was
    let mut places = BTreeMap::new();
    let mut kept: Vec<(Cow<'_, [u8]>, Cow<'_, [u8]>)> = Vec::new();
    for (key, value) in entries {
        let end = kept.len();
        match kept.get_mut(*places.entry(key.clone()).or_insert(end)) {
            Some(first) => first.1 = value,
            None => kept.push((key, value)),
        }
    }
    kept.sort_by(|a, b| key.compare(&a.0, &b.0));
    Cow::Owned(pack_map(kept))
}

/// Is a collection at this depth within another? There Cassandra keeps what its type's order calls equal and Java does not:
/// 1.5 and 1.50.
fn is_within(depth: usize) -> bool {
    depth > 1
}

/// Sorts the entries of a map; of several of one key the first key and the last value stay.
pub fn sort_entries<K: AsRef<[u8]>, V>(key: &CqlType, mut entries: Vec<(K, V)>) -> Vec<(K, V)> {
    entries.sort_by(|a, b| key.compare(a.0.as_ref(), b.0.as_ref()));
    entries.dedup_by(|b, a| {
        let same = key.compare(a.0.as_ref(), b.0.as_ref()).is_eq();
        if same {
            // `b` goes, and its value, being the later one, takes the place of the other's.
            std::mem::swap(&mut a.1, &mut b.1);
        }
        same
    });
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Decimals: 1.5, 1.50 and -7.
    const A: &[u8] = &[0, 0, 0, 1, 15];
    const B: &[u8] = &[0, 0, 0, 2, 0, 150];
    const C: &[u8] = &[0, 0, 0, 0, 0xF9];

    fn packed(items: &[&[u8]]) -> Vec<u8> {
        pack_list(items.iter())
    }

    #[test]
    fn what_is_equal_in_order_only_stays_within_another_collection() {
        let inner = CqlType::Set { element: Arc::new(CqlType::Decimal), frozen: true };
        let outer = CqlType::Set { element: Arc::new(inner.clone()), frozen: false };
        assert_eq!(*stored_form(&inner, &packed(&[A, B, C])), packed(&[C, A]));
        let both = packed(&[&packed(&[A, B, C, B])]);
        assert_eq!(*stored_form(&outer, &both), packed(&[&packed(&[C, A, B])]));
    }

    #[test]
    fn of_keys_that_are_equal_in_order_the_first_stays_with_the_last_value() {
        let entries = vec![(A, 1), (C, 2), (B, 3)];
        assert_eq!(sort_entries(&CqlType::Decimal, entries), [(C, 2), (A, 3)]);
    }
}
