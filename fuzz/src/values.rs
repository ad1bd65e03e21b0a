//! Values of every type, the names of types, JSON.

use std::cmp::Ordering;

use types::{CqlType, Json};

/// Between the parts of an input.
const SEPARATOR: u8 = 0;
const NOW_MILLIS: i64 = 1_700_000_000_000;

/// The class name of a type, and two values of it.
pub fn values(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == SEPARATOR) else { return };
    let (name, rest) = (&data[..end], &data[end + 1..]);
    let Ok(name) = str::from_utf8(name) else { return };
    let Ok((ty, _)) = CqlType::parse_marshal(name) else { return };
    let again = CqlType::parse_marshal(&ty.to_marshal_string()).expect("a name that was written");
    assert_eq!(again.0, ty, "a type by its own name");
    let (a, b) = rest.split_at(rest.len() / 2);
    if ty.validate(rest).is_ok() {
        let text = ty.to_text(rest);
        let _ = ty.parse_text(&text, NOW_MILLIS);
        let _ = ty.to_cql_literal(rest);
        if let Some(text) = ty.to_json(rest) {
            let json = Json::parse(&text).expect("JSON that was written");
            let _ = ty.parse_json(&json, NOW_MILLIS);
        }
        assert_eq!(ty.compare(rest, rest), Ordering::Equal, "a value with itself");
    }
    if ty.validate(a).is_ok() && ty.validate(b).is_ok() {
        assert_eq!(ty.compare(a, b), ty.compare(b, a).reverse(), "an order both ways");
    }
    if let Ok(text) = str::from_utf8(rest)
        && let Ok(value) = ty.parse_text(text, NOW_MILLIS)
    {
        // the empty text is the empty value, even of types that have none; of what has parts the
        // text is its bytes
        let is_whole = value.is_empty() || has_parts(&ty) || ty.validate(&value).is_ok();
        assert!(is_whole, "a value that was parsed");
    }
}

fn has_parts(ty: &CqlType) -> bool {
    use CqlType as T;
    matches!(
        ty,
        T::List { .. }
            | T::Set { .. }
            | T::Map { .. }
            | T::Tuple(_)
            | T::Udt { .. }
            | T::Vector { .. }
            | T::Class(_)
            | T::Custom(_)
            | T::Counter
    )
}

/// A type, and a text that may be JSON.
pub fn json(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == SEPARATOR) else { return };
    let (Ok(name), Ok(text)) = (str::from_utf8(&data[..end]), str::from_utf8(&data[end + 1..]))
    else {
        return;
    };
    let Ok(json) = Json::parse(text) else { return };
    let Ok((ty, _)) = CqlType::parse_marshal(name) else { return };
    if let Ok(value) = ty.parse_json(&json, NOW_MILLIS) {
        let is_whole = has_parts(&ty) || value.is_empty() || ty.validate(&value).is_ok();
        assert!(is_whole, "a value of JSON");
    }
}
