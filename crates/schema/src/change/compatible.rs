//! Types as those of cells that were written before.

use std::sync::Arc;

use types::CqlType;

/// Can cells written as `old` be read as `new` (`AbstractType.isSerializationCompatibleWith`)?
pub(super) fn reads_as(new: &CqlType, old: &CqlType) -> bool {
    use CqlType as T;
    if new == old {
        return true;
    }
    if new.is_multicell() != old.is_multicell() || new.fixed_length() != old.fixed_length() {
        return false;
    }
    match (new, old) {
        (T::Blob, _) => true,
        (T::Text, T::Ascii) | (T::BigInt, T::Timestamp) | (T::Timestamp, T::BigInt) => true,
        (T::Uuid, T::TimeUuid) => true,
        (T::List { element: a, .. }, T::List { element: b, .. })
        | (T::Set { element: a, .. }, T::Set { element: b, .. }) => reads_as(a, b),
        (T::Map { key: a, value: x, .. }, T::Map { key: b, value: y, .. }) => {
            reads_as(a, b) && reads_as(x, y)
        }
        (T::Tuple(a), T::Tuple(b)) => {
            a.len() >= b.len() && a.iter().zip(b.iter()).all(|(a, b)| reads_as(a, b))
        }
        _ => false,
    }
}

/// The type without user types: tuples instead, which name nothing
/// (`AbstractType.expandUserTypes`).
pub(super) fn expanded(ty: &CqlType) -> CqlType {
    let inner = |ty: &Arc<CqlType>| Arc::new(expanded(ty));
    match ty {
        CqlType::List { element, frozen } => {
            CqlType::List { element: inner(element), frozen: *frozen }
        }
        CqlType::Set { element, frozen } => {
            CqlType::Set { element: inner(element), frozen: *frozen }
        }
        CqlType::Map { key, value, frozen } => {
            CqlType::Map { key: inner(key), value: inner(value), frozen: *frozen }
        }
        CqlType::Vector { element, dimension } => {
            CqlType::Vector { element: inner(element), dimension: *dimension }
        }
        CqlType::Tuple(types) => CqlType::Tuple(types.iter().map(expanded).collect()),
        CqlType::Udt { definition, .. } => {
            CqlType::Tuple(definition.fields.iter().map(|(_, ty)| expanded(ty).freeze()).collect())
        }
        other => other.clone(),
    }
}
