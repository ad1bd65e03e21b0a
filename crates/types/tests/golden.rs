//! Tables captured from the classes of Cassandra 5.0.9 (testdata/README.md), against this crate.

use std::cmp::Ordering;
use types::{CqlType, Duration, Token, hash128, hex};

fn lines(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().map(|line| line.split('\t').collect())
}

fn kind(class: &str) -> CqlType {
    CqlType::parse_marshal(class).unwrap_or_else(|error| panic!("{class}: {error}")).0
}

fn bytes(text: &str) -> Vec<u8> {
    hex::from_hex(text).unwrap_or_else(|| panic!("{text}"))
}

/// Undoes the escapes of the tables: `\uXXXX` for a UTF-16 unit, `\\` for a backslash.
fn unescape(text: &str) -> String {
    let mut units = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('\\') {
        units.extend(rest[..start].encode_utf16());
        rest = match rest.as_bytes()[start + 1] {
            b'u' => {
                units.push(u16::from_str_radix(&rest[start + 2..start + 6], 16).unwrap());
                &rest[start + 6..]
            }
            _ => {
                units.push(u16::from(b'\\'));
                &rest[start + 2..]
            }
        };
    }
    units.extend(rest.encode_utf16());
    String::from_utf16(&units).unwrap()
}

/// Fails with every line that differs, not only the first.
fn none_differ(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{} lines differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn tokens() {
    let mut count = 0;
    for row in lines(include_str!("../testdata/tokens.txt")) {
        let key = bytes(row[0]);
        assert_eq!(Token::of(&key).to_string(), row[1], "{}", row[0]);
        let hash = hash128(&key).map(u64::cast_signed);
        assert_eq!([hash[0].to_string(), hash[1].to_string()], [row[2], row[3]]);
        count += 1;
    }
    assert!(count >= 200);
}

#[test]
fn comparisons() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in lines(include_str!("../testdata/compare.txt")) {
        let (kind, a, b) = (kind(row[0]), bytes(row[1]), bytes(row[2]));
        let order = kind.compare(&a, &b);
        if (order as i8).to_string() != row[3] {
            wrong.push(format!("{row:?}: {order:?}"));
        }
        assert_eq!(kind.compare(&b, &a), order.reverse(), "{row:?}");
        assert_eq!(kind.compare_clustering(true, &a, &b), order.reverse(), "{row:?}");
        assert_eq!(kind.compare(&a, &a), Ordering::Equal, "{row:?}");
        count += 1;
    }
    none_differ(wrong);
    assert!(count >= 2000);
}

#[test]
fn class_names() {
    for row in lines(include_str!("../testdata/marshal.txt")) {
        let parsed = CqlType::parse_marshal(row[0]);
        if let Some(error) = row[1].strip_prefix('!') {
            // A class that Cassandra does not have is kept under its name, like any that we do not.
            let known = !error.contains("Unable to find") && row[0] != "PartitionerDefinedOrder";
            assert_eq!(parsed.is_err(), known, "{row:?}");
            continue;
        }
        let (kind, reversed) = parsed.unwrap_or_else(|error| panic!("{row:?}: {error}"));
        assert_eq!(kind.cql_name(), unescape(row[2]), "{row:?}");
        // These two share their CQL names with other classes, and are those here.
        if ["DateType", "LegacyTimeUUIDType", "VectorType(DateType,2)"].contains(&row[0]) {
            continue;
        }
        assert_eq!(kind.to_marshal_string_clustering(reversed), row[1]);
        let fixed = kind.fixed_length().map_or("-1".to_owned(), |length| length.to_string());
        assert_eq!(fixed, row[3], "{row:?}");
        assert_eq!(kind.is_multicell().to_string(), row[4], "{row:?}");
        assert_eq!(reversed.to_string(), row[5], "{row:?}");
        assert_eq!(kind.allows_empty().to_string(), row[6], "{row:?}");
        assert_eq!(kind.is_empty_meaningless().to_string(), row[7], "{row:?}");
        let full = CqlType::parse_marshal(row[1]).unwrap();
        let again = full.0.to_marshal_string_clustering(full.1);
        assert_eq!(again, row[1]);
    }
}

#[test]
fn validation() {
    let mut wrong = Vec::new();
    for row in lines(include_str!("../testdata/validate.txt")) {
        let found = match kind(row[0]).validate(&bytes(row[1])) {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.to_string(),
        };
        // What is no MarshalException is a server error of Cassandra's, whose text is not worth
        // keeping.
        let agrees = match row[2] {
            "ok" => found == "ok",
            "MarshalException" => found == unescape(row[3]),
            _ => found != "ok",
        };
        if !agrees {
            wrong.push(format!("{row:?}: {found}"));
        }
    }
    none_differ(wrong);
}

#[test]
fn durations() {
    let mut wrong = Vec::new();
    for row in lines(include_str!("../testdata/durations.txt")) {
        let number = |column: usize| row[column].parse::<i64>().unwrap();
        let (millis, of_day) = (number(0), number(8));
        let parts = (number(1) as i32, number(2) as i32, number(3));
        let duration = Duration::new(parts.0, parts.1, parts.2).unwrap();
        let show = |floor: Result<i64, _>| match floor {
            Ok(floor) => floor.to_string(),
            Err(error) => format!("!{error}"),
        };
        let found = [
            duration.to_string(),
            duration.add_to(millis).to_string(),
            duration.subtract_from(millis).to_string(),
            show(duration.floor_timestamp(millis, 0)),
            show(duration.floor_time(of_day)),
        ];
        if found != [row[4], row[5], row[6], row[7], row[9]] {
            wrong.push(format!("{row:?}: {found:?}"));
        }
        assert_eq!(Duration::from_bytes(&duration.to_bytes()), Ok(duration));
        if !row[4].is_empty() {
            assert_eq!(Duration::parse(row[4]), Ok(duration));
        }
    }
    none_differ(wrong);
}

/// What the timestamp `now` stands for here.
const NOW: i64 = 1_700_000_000_000;

#[test]
fn literals() {
    let mut wrong = Vec::new();
    for row in lines(include_str!("../testdata/literals.txt")) {
        let text = unescape(row[1]);
        let found = match kind(row[0]).parse_text(&text, NOW) {
            Ok(value) if value.is_empty() => "-".to_owned(),
            Ok(value) => hex::to_hex(&value),
            Err(error) => format!("!{error}"),
        };
        if found != unescape(row[2]) {
            wrong.push(format!("{row:?}: {found}"));
        }
    }
    none_differ(wrong);
    assert_eq!(CqlType::Timestamp.parse_text("NOW", NOW), Ok(NOW.to_be_bytes().to_vec()));
    // Of names one is known without asking a resolver, which rows that are captured once cannot ask
    // for.
    for name in ["localhost", "LocalHost"] {
        assert_eq!(CqlType::Inet.parse_text(name, NOW), Ok(vec![127, 0, 0, 1]));
    }
    for name in ["localhost.", "a.localhost", "localhos", "cassandra.apache.org"] {
        let refused = CqlType::Inet.parse_text(name, NOW).unwrap_err().to_string();
        assert_eq!(refused, format!("Unable to make inet address from '{name}'"));
    }
}

#[test]
fn texts() {
    let mut wrong = Vec::new();
    for row in lines(include_str!("../testdata/texts.txt")) {
        let (kind, value) = (kind(row[0]), bytes(row[1]));
        let found = (kind.to_cql_literal(&value), kind.to_text(&value));
        if found != (unescape(row[2]), unescape(row[3])) {
            wrong.push(format!("{row:?}: {found:?}"));
        }
    }
    none_differ(wrong);
}

/// Rows of the table of floats that are known to print otherwise: see `types::float`.
const FLOATS_APART: [&str; 1] = ["00000007"];

#[test]
fn floats() {
    let mut wrong = Vec::new();
    for row in lines(include_str!("../testdata/floats.txt")) {
        let kind = if row[0] == "d" { CqlType::Double } else { CqlType::Float };
        let found = kind.to_text(&bytes(row[1]));
        // An exception that no longer differs is to be struck out.
        if (found != row[2]) != FLOATS_APART.contains(&row[1]) {
            wrong.push(format!("{row:?}: {found}"));
        }
    }
    none_differ(wrong);
}

#[test]
fn floors() {
    let mut wrong = Vec::new();
    for row in lines(include_str!("../testdata/floors.txt")) {
        let number = |column: usize| row[column].parse::<i64>().unwrap();
        let duration = Duration::new(number(1) as i32, number(2) as i32, number(3)).unwrap();
        let found = duration.floor_timestamp(number(0), number(4));
        if found != Ok(number(5)) {
            wrong.push(format!("{row:?}: {found:?}"));
        }
    }
    none_differ(wrong);
}

/// What interop.md prescribes by the letter (section 8, and the rows of section 4.9).
#[test]
fn strings_that_drivers_match() {
    let package = "org.apache.cassandra.db.marshal.";
    let vector = CqlType::parse_cql_name("vector<float, 3>", &mut |_, _| None).unwrap();
    let class = format!("{package}VectorType({package}FloatType , 3)");
    assert_eq!(vector.to_marshal_string(), class);
    assert_eq!(vector.fixed_length(), Some(12));
    assert_eq!(CqlType::SmallInt.fixed_length(), None);
    assert_eq!(CqlType::Date.parse_text("2020-01-01", NOW), Ok(vec![0x80, 0, 0x47, 0x56]));

    let key = [CqlType::Int, CqlType::Text];
    let class = format!("{package}CompositeType({package}Int32Type,{package}UTF8Type)");
    assert_eq!(types::key_to_marshal_string(&key), class);
    assert_eq!(types::parse_key_marshal(&class), Ok(key.to_vec()));
    assert_eq!(types::parse_key_marshal("UUIDType"), Ok(vec![CqlType::Uuid]));
}
