//! Values of collections as Cassandra stores them: sets and maps in order and without duplicates, and the
//! scalars inside in their shortest form. What a client sends may be neither.

use std::borrow::Cow;

use num_bigint::BigInt;
use types::CqlType;
use types::value::{Elements, Entries, pack_list, pack_map};

/// Brings a valid value of a collection, or of an element of one, into the stored form.
pub fn stored_form<'a>(ty: &CqlType, value: &'a [u8]) -> Cow<'a, [u8]> {
    collection_at(ty, value, types::MAX_DEPTH)
}

fn collection_at<'a>(ty: &CqlType, value: &'a [u8], depth: usize) -> Cow<'a, [u8]> {
    let Some(depth) = depth.checked_sub(1) else { return Cow::Borrowed(value) };
    match ty {
        CqlType::List { element, .. } => list(element, value, depth),
        CqlType::Set { element, .. } => set(element, value, depth),
        CqlType::Map { key, value: mapped, .. } => map(key, mapped, value, depth),
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
    items.sort_by(|a, b| element.compare(a, b));
    items.dedup_by(|b, a| element.compare(a, b).is_eq());
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
    Cow::Owned(pack_map(sort_entries(key, entries)))
}

/// Sorts the entries of a map; of several of one key the last stays.
pub fn sort_entries<K: AsRef<[u8]>, V>(key: &CqlType, mut entries: Vec<(K, V)>) -> Vec<(K, V)> {
    entries.sort_by(|a, b| key.compare(a.0.as_ref(), b.0.as_ref()));
    entries.dedup_by(|b, a| {
        let same = key.compare(a.0.as_ref(), b.0.as_ref()).is_eq();
        if same {
            // `b` goes, and its value, being the later one, takes the place of the other's.
            std::mem::swap(a, b);
        }
        same
    });
    entries
}
