//! Values of collections as Cassandra stores them: sets and maps in order and without duplicates,
//! and the scalars inside in their shortest form. What a client sends may be neither.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use num_bigint::BigInt;
use types::hex::to_hex;
use types::value::{
    Components, Elements, Entries, pack_components, pack_list, pack_map, pack_nullable_list,
};
use types::{CqlType, Decimal, Duration};

use crate::error::CqlError;

/// A bound value of a collection or user type in the stored form, once it is found to be one.
/// Cassandra reads such a value into objects and writes these.
pub fn stored_form<'a>(ty: &CqlType, value: &'a [u8]) -> Result<Cow<'a, [u8]>, CqlError> {
    if ty.is_collection() && value.first_chunk().is_some_and(|n| i32::from_be_bytes(*n) < 0) {
        let kind = match ty {
            CqlType::List { .. } => "list",
            CqlType::Set { .. } => "set",
            _ => "map",
        };
        return Err(CqlError::invalid(format!("The data cannot be deserialized as a {kind}")));
    }
    if let CqlType::List { element, .. } = ty {
        let mut items = checked(element, value)?;
        let same =
            |item: Option<&[u8]>| item.is_some() && element_form(element, item).as_deref() == item;
        if items.clone().all(same) {
            return Ok(Cow::Borrowed(value));
        }
        return Ok(Cow::Owned(pack_nullable_list(
            items.by_ref().map(|i| element_form(element, i)),
        )));
    }
    ty.validate(value).map_err(|error| CqlError::invalid(error.to_string()))?;
    match ty {
        CqlType::Set { .. } | CqlType::Map { .. } => {
            check_readable(ty, value, 0)?;
            Ok(collection_at(ty, value, 0))
        }
        CqlType::Udt { .. } => Ok(user_type(value)),
        _ => Ok(Cow::Borrowed(value)),
    }
}

/// The elements of a bound list, valid and in the stored form; `None` for null.
pub fn elements<'a>(
    element: &CqlType,
    value: &'a [u8],
) -> Result<Vec<Option<Cow<'a, [u8]>>>, CqlError> {
    Ok(checked(element, value)?.map(|item| element_form(element, item)).collect())
}

/// The elements of a list whose elements are valid. They may be null in a bound list, and nowhere
/// else.
fn checked<'a>(
    element: &CqlType,
    value: &'a [u8],
) -> Result<impl Iterator<Item = Option<&'a [u8]>> + Clone, CqlError> {
    let short = |_| CqlError::invalid("Not enough bytes to read a list");
    let items = Elements::of_list(value).map_err(short)?;
    let mut length = 4;
    for item in items.clone() {
        let item = item.map_err(short)?;
        length += 4 + item.map_or(0, <[u8]>::len);
        if let Some(item) = item {
            element.validate(item).map_err(|error| CqlError::invalid(error.to_string()))?;
            check_readable(element, item, 1)?;
        }
    }
    if length != value.len() {
        return Err(CqlError::invalid("Unexpected extraneous bytes after list value"));
    }
    Ok(items.flatten())
}

/// An element of a bound list. What is empty and has no meaning becomes null, which it does not in
/// a set or a map.
fn element_form<'a>(element: &CqlType, item: Option<&'a [u8]>) -> Option<Cow<'a, [u8]>> {
    let item = item.filter(|item| !item.is_empty() || !element.is_empty_meaningless())?;
    Some(collection_at(element, item, 1))
}

/// A user type's value; any negative length says that a field is null, and -1 is the one that is
/// kept.
fn user_type(value: &[u8]) -> Cow<'_, [u8]> {
    let form = pack_components(Components::of(value).map_while(Result::ok));
    if form == value { Cow::Borrowed(value) } else { Cow::Owned(form) }
}

/// What is valid by its bytes, and yet cannot be read: Cassandra reads what is in a collection
/// where that is bound.
fn check_readable(ty: &CqlType, value: &[u8], depth: usize) -> Result<(), CqlError> {
    if depth >= types::MAX_DEPTH {
        return Ok(());
    }
    match ty {
        CqlType::Text if std::str::from_utf8(value).is_err() => {
            Err(CqlError::invalid(format!("Invalid UTF-8 bytes {}", to_hex(value))))
        }
        CqlType::Decimal if value.len() == 4 => {
            Err(CqlError::invalid("A decimal has a number behind its scale"))
        }
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            for item in Elements::of_list(value).into_iter().flatten().flatten().flatten() {
                check_readable(element, item, depth + 1)?;
            }
            Ok(())
        }
        CqlType::Map { key, value: mapped, .. } => {
            for (key_item, item) in Entries::of(value).into_iter().flatten().flatten() {
                check_readable(key, key_item, depth + 1)?;
                check_readable(mapped, item, depth + 1)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
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
        CqlType::Decimal => match Decimal::from_bytes(value).map(|number| number.to_bytes()) {
            Some(short) if short != value => Cow::Owned(short),
            _ => Cow::Borrowed(value),
        },
        CqlType::Duration => {
            match Duration::from_bytes(value).map(|duration| duration.to_bytes()) {
                Ok(short) if short != value => Cow::Owned(short),
                _ => Cow::Borrowed(value),
            }
        }
        CqlType::Inet => match value {
            // Java has no IPv6 address that is an IPv4 one
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, address @ ..] if value.len() == 16 => {
                Cow::Borrowed(address)
            }
            _ => Cow::Borrowed(value),
        },
        _ => Cow::Borrowed(value),
    }
}

/// May values of this type change here?
fn changes(ty: &CqlType) -> bool {
    ty.is_collection()
        || matches!(
            ty,
            CqlType::Boolean
                | CqlType::VarInt
                | CqlType::Decimal
                | CqlType::Duration
                | CqlType::Inet
        )
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

/// Is a collection at this depth within another? There Cassandra keeps what its type's order calls
/// equal and Java does not: 1.5 and 1.50.
fn is_within(depth: usize) -> bool {
    depth > 1
}

/// Are two elements of a frozen collection equal to Java? Not so 1.5 and 1.50.
pub fn java_equal(element: &CqlType, a: &[u8], b: &[u8]) -> bool {
    match !element.is_collection() && changes(element) {
        true => collection_at(element, a, 1) == collection_at(element, b, 1),
        false => element.compare(a, b).is_eq(),
    }
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
        let form = |ty: &CqlType, value: &[u8]| stored_form(ty, value).unwrap().into_owned();
        assert_eq!(form(&inner, &packed(&[A, B, C])), packed(&[C, A]));
        let both = packed(&[&packed(&[A, B, C, B])]);
        assert_eq!(form(&outer, &both), packed(&[&packed(&[C, A, B])]));
    }

    #[test]
    fn what_means_nothing_is_null_in_a_list_that_is_bound_and_nowhere_else() {
        let list = |element: CqlType| CqlType::List { element: Arc::new(element), frozen: true };
        let set = CqlType::Set { element: Arc::new(CqlType::Int), frozen: true };
        let form = |ty: &CqlType, value: &[u8]| stored_form(ty, value).map(Cow::into_owned);
        let (empty, null) = ([0, 0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(form(&list(CqlType::Int), &empty).unwrap(), null);
        assert_eq!(form(&list(CqlType::Text), &empty).unwrap(), empty);
        assert_eq!(form(&set, &empty).unwrap(), empty);
        assert_eq!(form(&list(CqlType::Int), &null).unwrap(), null);
        assert!(form(&set, &null).is_err());
        assert!(form(&list(list(CqlType::Int)), &packed(&[&null])).is_err());
        let nested = packed(&[&empty]);
        assert_eq!(form(&list(list(CqlType::Int)), &nested).unwrap(), nested);
    }

    #[test]
    fn within_a_collection_values_are_as_java_writes_them() {
        let list = |element: CqlType| CqlType::List { element: Arc::new(element), frozen: true };
        let form = |element: CqlType, item: &[u8]| {
            stored_form(&list(element), &packed(&[item])).map(Cow::into_owned)
        };
        let mapped = [&[0; 10][..], &[0xff, 0xff, 1, 2, 3, 4]].concat();
        assert_eq!(form(CqlType::Inet, &mapped).unwrap(), packed(&[&[1, 2, 3, 4]]));
        assert_eq!(form(CqlType::Boolean, &[7]).unwrap(), packed(&[&[1]]));
        assert_eq!(form(CqlType::VarInt, &[0, 0, 5]).unwrap(), packed(&[&[5]]));
        assert_eq!(form(CqlType::Decimal, &[0, 0, 0, 1, 0, 15]).unwrap(), packed(&[A]));
        assert!(form(CqlType::Decimal, &[0; 4]).is_err());
        assert!(form(CqlType::Text, &[0xc0, 0x80]).is_err());
    }

    #[test]
    fn of_keys_that_are_equal_in_order_the_first_stays_with_the_last_value() {
        let entries = vec![(A, 1), (C, 2), (B, 3)];
        assert_eq!(sort_entries(&CqlType::Decimal, entries), [(C, 2), (A, 3)]);
    }
}
