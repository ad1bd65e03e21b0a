//! May a term be assigned to a receiver? (`AssignmentTestable`)

use types::CqlType;

use crate::ast::{Literal, LiteralKind, Term as Raw};
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::term::{function, part, raw_type};

/// How well a value fits a receiver. The better, the smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assignment {
    /// It is of that very type.
    Exact,
    /// It can be taken for that type.
    Weak,
    /// It cannot.
    None,
}

impl Assignment {
    /// Does it fit?
    pub fn is_assignable(self) -> bool {
        self != Self::None
    }

    /// Exact if a value's type is the receiver's, weak if its bytes can be read as one.
    pub fn of_types(receiver: &CqlType, value: &CqlType) -> Self {
        if receiver == value {
            Self::Exact
        } else if is_value_compatible(receiver, value) {
            Self::Weak
        } else {
            Self::None
        }
    }
}

/// Can bytes of type `value` be read as a `receiver` (`AbstractType.isValueCompatibleWith`)?
pub fn is_value_compatible(receiver: &CqlType, value: &CqlType) -> bool {
    use CqlType as T;
    if receiver == value {
        return true;
    }
    match (receiver, value) {
        (T::Blob, _)
        | (T::Text, T::Ascii)
        | (T::Uuid, T::TimeUuid)
        | (T::VarInt, T::Int | T::BigInt | T::Timestamp)
        | (T::BigInt, T::Timestamp)
        | (T::Timestamp | T::Time, T::BigInt)
        | (T::Date, T::Int) => true,
        (T::List { element: a, frozen: true }, T::List { element: b, frozen: true }) => {
            is_value_compatible(a, b)
        }
        (T::Set { element: a, frozen: x }, T::Set { element: b, frozen: y }) if x == y => {
            keeps_order(a, b)
        }
        (T::Map { key: a, value: v, frozen: x }, T::Map { key: b, value: w, frozen: y })
            if x == y =>
        {
            keeps_order(a, b) && is_value_compatible(v, w)
        }
        (T::Tuple(new), T::Tuple(old)) => {
            new.len() >= old.len() && new.iter().zip(&**old).all(|(a, b)| is_value_compatible(a, b))
        }
        _ => false,
    }
}

/// Do values of one type sort as values of another (`AbstractType.isCompatibleWith`)?
fn keeps_order(new: &CqlType, old: &CqlType) -> bool {
    new == old
        || matches!(
            (new, old),
            (CqlType::Text, CqlType::Ascii) | (CqlType::Blob, CqlType::Ascii | CqlType::Text)
        )
}

/// Tests a term against a receiver. `keyspace` is that of the statement.
pub fn test(
    raw: &Raw,
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &Scope<'_>,
) -> Result<Assignment, CqlError> {
    let ty = &receiver.ty;
    let all = |spec: ColumnSpec, items: &[Raw]| test_all(items, keyspace, &spec, scope);
    match raw {
        Raw::Literal(literal) => Ok(test_literal(literal, ty)),
        Raw::Null if *ty == CqlType::Counter => Ok(Assignment::None),
        Raw::Null | Raw::Marker(_) => Ok(Assignment::Weak),
        Raw::List(items) => match ty {
            CqlType::Vector { dimension, .. } if usize::try_from(*dimension) != Ok(items.len()) => {
                Ok(Assignment::None)
            }
            CqlType::Vector { element, .. } => all(part::value(receiver, element), items),
            CqlType::List { .. } if items.is_empty() => Ok(Assignment::Weak),
            CqlType::List { element, .. } => all(part::value(receiver, element), items),
            other => Err(part::unexpected_array(other)),
        },
        Raw::Set(items) => match ty {
            CqlType::Set { .. } | CqlType::Map { .. } if items.is_empty() => Ok(Assignment::Weak),
            CqlType::Set { element, .. } => all(part::value(receiver, element), items),
            _ => Ok(Assignment::None),
        },
        Raw::Map(entries) => test_map(entries, keyspace, receiver, scope),
        Raw::Udt(fields) => Ok(match part::check_udt(fields, keyspace, receiver, scope) {
            Ok(()) => Assignment::Weak,
            Err(_) => Assignment::None,
        }),
        Raw::Tuple(items) => match items.as_slice() {
            [single] if part::tuple_types(ty).is_none() => test(single, keyspace, receiver, scope),
            _ => Ok(match part::check_tuple(items, keyspace, receiver, scope) {
                Ok(()) => Assignment::Weak,
                Err(_) => Assignment::None,
            }),
        },
        Raw::Function(..) | Raw::Cast(..) | Raw::Binary(..) | Raw::Negate(_) => {
            Ok(function::test_call(raw, keyspace, receiver, scope))
        }
        Raw::TypeHint(hint, _) => {
            Ok(Assignment::of_types(ty, &raw_type::resolve(hint, keyspace, scope)?))
        }
    }
}

/// The worst of all; exact for none at all.
fn test_all(
    items: &[Raw],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &Scope<'_>,
) -> Result<Assignment, CqlError> {
    let mut worst = Assignment::Exact;
    for item in items {
        worst = worst.max(test(item, keyspace, receiver, scope)?);
        if worst == Assignment::None {
            break;
        }
    }
    Ok(worst)
}

fn test_map(
    entries: &[(Raw, Raw)],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &Scope<'_>,
) -> Result<Assignment, CqlError> {
    let CqlType::Map { key, value, .. } = &receiver.ty else { return Ok(Assignment::None) };
    let (key_spec, value_spec) = (part::key(receiver, key), part::value(receiver, value));
    let mut worst = Assignment::Exact;
    for (key, value) in entries {
        worst = worst.max(test(key, keyspace, &key_spec, scope)?);
        worst = worst.max(test(value, keyspace, &value_spec, scope)?);
    }
    Ok(worst)
}

/// What a constant may be taken for (`Constants.Literal.testAssignment`).
pub fn test_literal(literal: &Literal, ty: &CqlType) -> Assignment {
    use CqlType as T;
    match ty {
        T::Class(_) | T::Custom(_) | T::Tuple(_) => return Assignment::Weak,
        T::List { .. } | T::Set { .. } | T::Map { .. } | T::Udt { .. } | T::Vector { .. } => {
            return Assignment::None;
        }
        _ => {}
    }
    if preferred_type(literal).as_ref() == Some(ty) {
        return Assignment::Exact;
    }
    let fits = match literal.kind {
        LiteralKind::String => {
            matches!(ty, T::Ascii | T::Text | T::Inet | T::Date | T::Time | T::Timestamp)
        }
        LiteralKind::Integer => matches!(
            ty,
            T::BigInt
                | T::Counter
                | T::Date
                | T::Decimal
                | T::Double
                | T::Duration
                | T::Float
                | T::Int
                | T::SmallInt
                | T::Time
                | T::Timestamp
                | T::TinyInt
                | T::VarInt
        ),
        LiteralKind::Uuid => matches!(ty, T::Uuid | T::TimeUuid),
        LiteralKind::Float => matches!(ty, T::Decimal | T::Double | T::Float),
        LiteralKind::Boolean => matches!(ty, T::Boolean),
        LiteralKind::Hex => matches!(ty, T::Blob),
        LiteralKind::Duration => matches!(ty, T::Duration),
    };
    if fits { Assignment::Weak } else { Assignment::None }
}

/// The type that a constant is of by itself (`Constants.Type.getPreferedTypeFor`), hexadecimal
/// being a `tinyint` there for whatever reason.
pub fn preferred_type(literal: &Literal) -> Option<CqlType> {
    let text = literal.text.as_str();
    Some(match literal.kind {
        LiteralKind::String if text.is_ascii() => CqlType::Ascii,
        LiteralKind::String => CqlType::Text,
        LiteralKind::Integer if text.parse::<i32>().is_ok() => CqlType::Int,
        LiteralKind::Integer if text.parse::<i64>().is_ok() => CqlType::BigInt,
        LiteralKind::Integer => CqlType::VarInt,
        LiteralKind::Uuid => match types::Uuid::parse(text)?.version() {
            1 => CqlType::TimeUuid,
            _ => CqlType::Uuid,
        },
        LiteralKind::Float => {
            let Some(number) = types::Decimal::parse(text) else { return Some(CqlType::Double) };
            let double = types::float::parse_double(text).unwrap_or(f64::NAN);
            let printed = types::Decimal::parse(&types::float::format_double(double));
            match printed {
                Some(printed) if printed.compare(&number).is_eq() => CqlType::Double,
                _ => CqlType::Decimal,
            }
        }
        LiteralKind::Boolean => CqlType::Boolean,
        LiteralKind::Hex => CqlType::TinyInt,
        LiteralKind::Duration => CqlType::Duration,
    })
}
