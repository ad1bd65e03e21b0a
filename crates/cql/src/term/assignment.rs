//! How well a value of one type fits a receiver of another, whatever the value is.

use types::CqlType;

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
