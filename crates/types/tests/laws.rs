//! Laws that hold of every type and any bytes.

use proptest::prelude::*;
use std::cmp::Ordering;
use std::sync::Arc;
use types::value::{
    Components, Elements, Entries, VectorElements, pack_components, pack_list, pack_map,
    pack_vector,
};
use types::{CqlType, Duration, MAX_DEPTH, UserType, parse_key_marshal};

const NATIVE: [CqlType; 20] = [
    CqlType::Ascii,
    CqlType::BigInt,
    CqlType::Blob,
    CqlType::Boolean,
    CqlType::Date,
    CqlType::Decimal,
    CqlType::Double,
    CqlType::Duration,
    CqlType::Empty,
    CqlType::Float,
    CqlType::Inet,
    CqlType::Int,
    CqlType::SmallInt,
    CqlType::Text,
    CqlType::Time,
    CqlType::Timestamp,
    CqlType::TimeUuid,
    CqlType::TinyInt,
    CqlType::Uuid,
    CqlType::VarInt,
];

fn any_type() -> impl Strategy<Value = CqlType> {
    proptest::sample::select(NATIVE.to_vec()).prop_recursive(3, 12, 3, |inner| {
        let shared = inner.clone().prop_map(Arc::new);
        prop_oneof![
            shared.clone().prop_map(|element| CqlType::List { element, frozen: true }),
            shared.clone().prop_map(|element| CqlType::Set { element, frozen: true }),
            (shared.clone(), shared.clone()).prop_map(|(key, value)| CqlType::Map {
                key,
                value,
                frozen: true
            }),
            proptest::collection::vec(inner.clone(), 1..4)
                .prop_map(|types| CqlType::Tuple(types.into())),
            (shared, 1u32..4)
                .prop_map(|(element, dimension)| CqlType::Vector { element, dimension }),
            proptest::collection::vec(("[a-zA-Z\"_]{1,4}", inner), 1..4).prop_map(|fields| {
                let (keyspace, name) = ("ks".to_owned(), "My Type".to_owned());
                let definition = Arc::new(UserType { keyspace, name, fields });
                CqlType::Udt { definition, frozen: true }
            }),
        ]
    })
}

/// Bytes that are a value of the type more often than not.
fn bytes_of(kind: &CqlType) -> BoxedStrategy<Vec<u8>> {
    let wild = proptest::collection::vec(any::<u8>(), 0..20).boxed();
    let many = |kind: &CqlType| proptest::collection::vec(bytes_of(kind), 0..3);
    let tame = match kind {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            many(element).prop_map(pack_list).boxed()
        }
        CqlType::Map { key, value, .. } => {
            proptest::collection::vec((bytes_of(key), bytes_of(value)), 0..3)
                .prop_map(pack_map)
                .boxed()
        }
        CqlType::Tuple(types) => components(types.iter()),
        CqlType::Udt { definition, .. } => {
            components(definition.fields.iter().map(|field| &field.1))
        }
        CqlType::Vector { element, dimension } => {
            let element = element.clone();
            proptest::collection::vec(bytes_of(&element), *dimension as usize)
                .prop_map(move |items| pack_vector(&element, items))
                .boxed()
        }
        CqlType::Text | CqlType::Ascii => "[a-c]{0,3}".prop_map(String::into_bytes).boxed(),
        // Few different bytes, so that values often have much in common.
        other => {
            let length = other.fixed_length().unwrap_or(match other {
                CqlType::Date => 4,
                CqlType::Time => 8,
                CqlType::SmallInt => 2,
                CqlType::TinyInt => 1,
                CqlType::Inet => 16,
                _ => 6,
            });
            let byte = proptest::sample::select(vec![0u8, 0, 0, 1, 0x10, 0x7f, 0x80, 0xff]);
            proptest::collection::vec(byte, length).boxed()
        }
    };
    prop_oneof![8 => tame, 1 => wild, 1 => Just(Vec::new())].boxed()
}

fn components<'t>(types: impl Iterator<Item = &'t CqlType>) -> BoxedStrategy<Vec<u8>> {
    let each: Vec<_> = types.map(|kind| proptest::option::weighted(0.8, bytes_of(kind))).collect();
    let count = each.len();
    (each, 0..=count)
        .prop_map(|(mut values, kept)| {
            values.truncate(kept);
            pack_components(values)
        })
        .boxed()
}

fn type_and_values() -> impl Strategy<Value = (CqlType, Vec<u8>, Vec<u8>, Vec<u8>)> {
    any_type().prop_flat_map(|kind| {
        let value = bytes_of(&kind);
        (Just(kind), value.clone(), value.clone(), value)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_is_total((kind, a, b, c) in type_and_values()) {
        let order = |x: &Vec<u8>, y: &Vec<u8>| kind.compare(x, y);
        prop_assert_eq!(order(&a, &a), Ordering::Equal);
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        let mut sorted = [&a, &b, &c];
        sorted.sort_by(|x, y| kind.compare(x, y));
        let [x, y, z] = sorted;
        prop_assert!(order(x, y).is_le() && order(y, z).is_le() && order(x, z).is_le());
        if order(x, z).is_eq() {
            prop_assert!(order(x, y).is_eq() && order(y, z).is_eq());
        }
    }

    #[test]
    fn any_bytes_are_checked_printed_and_walked((kind, a, wild, _) in type_and_values()) {
        for value in [&a, &wild] {
            let _ = kind.validate(value);
            kind.to_cql_literal(value);
            kind.to_text(value);
            let _ = (kind.as_i64(value), kind.as_bigint(value));
            if let Ok(elements) = Elements::of_list(value) {
                prop_assert!(elements.left() * 4 <= value.len());
                elements.for_each(drop);
            }
            if let Ok(entries) = Entries::of(value) {
                entries.for_each(drop);
            }
            Components::of(value).for_each(drop);
            if let CqlType::Vector { element, dimension } = &kind {
                VectorElements::of(value, element, *dimension).for_each(drop);
            }
        }
    }

    #[test]
    fn text_round_trip(
        native in proptest::sample::select(NATIVE.to_vec()),
        (seed, now) in (proptest::collection::vec(any::<u8>(), 0..17), any::<i64>()),
    ) {
        // Cassandra does not read back what it prints for years before 1 and past 9999
        // (literals.txt: `+12011-02-03 04:05`), and checks no `time` against the day.
        let years = -62_135_596_800_000..253_402_300_800_000;
        let foreign = native == CqlType::Timestamp
            && native.as_i64(&seed).is_some_and(|at| !years.contains(&at));
        let in_range = native != CqlType::Time
            || native.as_i64(&seed).is_some_and(|nanos| (0..86_400_000_000_000).contains(&nanos));
        if native.validate(&seed).is_ok() && !foreign && in_range && !seed.is_empty() {
            let text = native.to_text(&seed);
            if std::str::from_utf8(&seed).is_ok() || native != CqlType::Text {
                let again = native.parse_text(&text, now);
                let again = match again {
                    Ok(again) => again,
                    Err(error) => return Err(TestCaseError::fail(format!("{native} {text}: {error}"))),
                };
                prop_assert!(native.validate(&again).is_ok());
                if native == CqlType::Duration {
                    // Valid even with longer vints than needed, or bytes behind them, and ordered
                    // by bytes.
                    prop_assert_eq!(Duration::from_bytes(&again), Duration::from_bytes(&seed));
                } else {
                    let order = native.compare(&again, &seed);
                    prop_assert_eq!(order, Ordering::Equal, "{} {}", native, text);
                }
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(kind in any_type(), text in "[-+0-9a-fTZPYMDHS:. @e/']{0,24}", now: i64) {
        if let Ok(value) = kind.parse_text(&text, now) {
            // Collections and vectors are read as bytes, whatever these mean.
            // No text is no bytes even in types that have no such value (literals.txt: ShortType).
            let relic = text.is_empty() && !kind.allows_empty();
            if NATIVE.contains(&kind) && !relic {
                prop_assert!(kind.validate(&value).is_ok(), "{} '{}'", kind, text);
            }
        }
        let _ = CqlType::parse_marshal(&text);
    }

    #[test]
    fn names_round_trip(kind in any_type(), reversed: bool) {
        let class = kind.to_marshal_string_clustering(reversed);
        let (again, flag) = CqlType::parse_marshal(&class).unwrap();
        prop_assert_eq!(again.to_marshal_string_clustering(flag), class);
        prop_assert_eq!(flag, reversed);
        prop_assert_eq!(again.cql_name(), kind.cql_name());

        let mut definitions = Vec::new();
        kind.any(&mut |inner| {
            if let CqlType::Udt { definition, .. } = inner {
                definitions.push(definition.clone());
            }
            false
        });
        let mut resolve = |_: Option<&str>, name: &str| {
            definitions.iter().find(|definition| definition.name == name).cloned()
        };
        let parsed = CqlType::parse_cql_name(&kind.cql_name(), &mut resolve).unwrap();
        prop_assert_eq!(parsed.cql_name(), kind.cql_name());
    }

    #[test]
    fn any_name_parses_or_fails(
        name in "[a-z<>,.'\" 0-9]{0,24}|(frozen<|list<|map<|vector<|tuple<|int|a|, |>|3|\"){0,12}",
        class in "(org\\.apache\\.cassandra\\.db\\.marshal\\.|FrozenType|ListType|UserType|VectorType|Int32Type|Foo|[(),:= ]|6162|ks){0,14}",
    ) {
        let _ = CqlType::parse_cql_name(&name, &mut |_, _| None);
        let _ = CqlType::parse_marshal(&class);
        let _ = parse_key_marshal(&class);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_time_is_floored_soon(millis: i64, start: i64, months: i32, days: i32, nanos: i64) {
        let positive = |number: i64| number.checked_abs().unwrap_or(0);
        let months = positive(i64::from(months) >> (millis & 31)) as i32;
        let days = positive(i64::from(days) >> (start & 31)) as i32;
        if let Some(duration) = Duration::new(months, days, positive(nanos)) {
            let _ = duration.floor_timestamp(millis, start);
            duration.add_to(millis);
            duration.subtract_from(millis);
        }
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = 10 * MAX_DEPTH;
    let class = format!("{}Int32Type{}", "ListType(".repeat(deep), ")".repeat(deep));
    assert!(CqlType::parse_marshal(&class).is_err());
    let custom = format!("Foo{}{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(CqlType::parse_marshal(&custom).is_ok());
    let name = format!("{}int{}", "list<".repeat(deep), ">".repeat(deep));
    assert!(CqlType::parse_cql_name(&name, &mut |_, _| None).is_err());

    let mut kind = CqlType::Int;
    let mut value = vec![0, 0, 0, 1];
    for _ in 0..deep {
        kind = CqlType::Tuple(vec![kind].into());
        value = pack_components([Some(value)]);
    }
    assert!(kind.validate(&value).is_err());
    assert_eq!(kind.compare(&value, &value), Ordering::Equal);
    assert!(kind.to_cql_literal(&value).starts_with("0x"));
    assert!(kind.depth() > MAX_DEPTH);
    kind.to_marshal_string();
    kind.cql_name();
}

#[test]
fn huge_numbers_cost_their_length_at_most() {
    // Scales four billion apart, and a dimension that no value has.
    let far = |scale: i32| [&scale.to_be_bytes()[..], &[1]].concat();
    assert_eq!(CqlType::Decimal.compare(&far(i32::MAX), &far(i32::MIN)), Ordering::Less);
    assert_eq!(CqlType::Decimal.compare(&far(i32::MIN), &far(i32::MAX)), Ordering::Greater);
    let element = Arc::new(CqlType::Empty);
    let vector = CqlType::Vector { element, dimension: i32::MAX as u32 };
    assert_eq!(vector.compare(&[1], &[2]), Ordering::Equal);
    assert!(vector.validate(&[1]).is_err());
    assert!(Elements::of_list(&[0x7f, 0xff, 0xff, 0xff]).is_err());
    let digits = "9".repeat(100_000);
    let value = CqlType::VarInt.parse_text(&digits, 0).unwrap();
    assert_eq!(CqlType::VarInt.to_text(&value), digits);
}

/// A value of a type that Cassandra would take, made from bytes that are nearly one.
fn accepted(kind: &CqlType) -> BoxedStrategy<Vec<u8>> {
    let kind = kind.clone();
    let check = kind.clone();
    bytes_of(&kind).prop_filter("a value", move |value| check.validate(value).is_ok()).boxed()
}

fn is_nan(kind: &CqlType, value: &[u8]) -> bool {
    match (kind, value.first_chunk::<4>(), value.first_chunk::<8>()) {
        (CqlType::Float, Some(bits), _) => f32::from_be_bytes(*bits).is_nan(),
        (CqlType::Double, _, Some(bits)) => f64::from_be_bytes(*bits).is_nan(),
        _ => false,
    }
}

fn comparable_values() -> impl Strategy<Value = (CqlType, Vec<u8>, Vec<u8>)> {
    let native: Vec<_> =
        NATIVE.into_iter().filter(|kind| !matches!(kind, CqlType::Duration)).collect();
    // of types whose empty value is one like others: of any other it has null's place within a
    // sequence, in Cassandra too
    let full = proptest::sample::select(vec![CqlType::Text, CqlType::Blob, CqlType::Ascii]);
    let shared = full.clone().prop_map(Arc::new);
    let nested = prop_oneof![
        shared.clone().prop_map(|element| CqlType::List { element, frozen: true }),
        (shared.clone(), shared).prop_map(|(key, value)| CqlType::Map { key, value, frozen: true }),
        proptest::collection::vec(full, 1..4).prop_map(|types| CqlType::Tuple(types.into())),
    ];
    prop_oneof![proptest::sample::select(native), nested].prop_flat_map(|kind| {
        let value = accepted(&kind);
        (Just(kind), value.clone(), value)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000, failure_persistence: None, max_local_rejects: 200_000,
        ..ProptestConfig::default()
    })]

    /// As parts of a sequence the encodings are in the order of the values, and no one is the start
    /// of another one.
    #[test]
    fn byte_comparables_compare_as_values((kind, a, b) in comparable_values()) {
        let part = |value: &[u8]| {
            let mut out = vec![types::byte_comparable::NEXT_COMPONENT];
            if kind.byte_comparable(value, &mut out)? == types::byte_comparable::Encoded::Empty {
                out = vec![types::byte_comparable::NEXT_COMPONENT_EMPTY];
            }
            out.push(types::byte_comparable::TERMINATOR);
            Some(out)
        };
        // NaN has many forms and one place
        prop_assume!(!is_nan(&kind, &a) && !is_nan(&kind, &b));
        let (x, y) = (part(&a), part(&b));
        let is_nested = kind.is_collection() || matches!(kind, CqlType::Tuple(_));
        prop_assert!(is_nested || (x.is_some() && y.is_some()));
        // what says of itself that it has fewer elements than none is taken for a collection
        prop_assume!(x.is_some() && y.is_some());
        let (x, y) = (x.unwrap_or_default(), y.unwrap_or_default());
        prop_assert_eq!(x.cmp(&y), kind.compare(&a, &b), "{:?} {:?}", x, y);
        prop_assert!(x == y || !y.starts_with(&x));
    }
}
