//! Which types a constant may be taken for.

use types::CqlType;

use crate::ast::{Literal, LiteralKind};
use crate::term::assignment::Assignment;

/// What a constant may be taken for (`Constants.Literal.testAssignment`).
pub fn test(literal: &Literal, ty: &CqlType) -> Assignment {
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
