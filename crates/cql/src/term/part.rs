//! What receives the parts of a value: elements, keys, components, fields.

use types::{CqlType, UserType};

use crate::ast::Term as Raw;
use crate::error::CqlError;
use crate::scope::ColumnSpec;

/// An element of a list, set or vector, or a value of a map.
pub fn value(receiver: &ColumnSpec, ty: &CqlType) -> ColumnSpec {
    receiver.derive(format!("value({})", receiver.name), ty.clone())
}

/// A key of a map.
pub fn key(receiver: &ColumnSpec, ty: &CqlType) -> ColumnSpec {
    receiver.derive(format!("key({})", receiver.name), ty.clone())
}

/// An index of a list.
pub fn index(receiver: &ColumnSpec) -> ColumnSpec {
    receiver.derive(format!("idx({})", receiver.name), CqlType::Int)
}

/// A field of a user type.
pub fn field(receiver: &ColumnSpec, name: &str, ty: &CqlType) -> ColumnSpec {
    receiver.derive(format!("{}.{name}", receiver.name), ty.clone())
}

/// A component of a tuple.
pub fn component(receiver: &ColumnSpec, index: usize, ty: &CqlType) -> ColumnSpec {
    receiver.derive(format!("{}[{index}]", receiver.name), ty.clone())
}

/// The types of the components of a tuple, or of the fields of a user type, which Cassandra takes
/// for one.
pub fn tuple_types(ty: &CqlType) -> Option<Vec<&CqlType>> {
    match ty {
        CqlType::Tuple(types) => Some(types.iter().collect()),
        CqlType::Udt { definition, .. } => {
            Some(definition.fields.iter().map(|(_, ty)| ty).collect())
        }
        _ => None,
    }
}

/// A list or vector literal where neither is wanted.
pub fn unexpected_array(ty: &CqlType) -> CqlError {
    CqlError::invalid(format!("Unexpected receiver type '{ty}'; only list and vector are expected"))
}

/// The receivers of a tuple's components.
pub fn components(receiver: &ColumnSpec) -> Vec<ColumnSpec> {
    let types = tuple_types(&receiver.ty).unwrap_or_default();
    types.into_iter().enumerate().map(|(index, ty)| component(receiver, index, ty)).collect()
}

/// The value given for a field; the last one counts.
pub fn field_of<'a>(fields: &'a [(String, Raw)], name: &str) -> Option<&'a Raw> {
    fields.iter().rev().find(|(field, _)| field == name).map(|(_, raw)| raw)
}

/// Refuses fields that the type has not.
pub fn check_known_fields(fields: &[(String, Raw)], definition: &UserType) -> Result<(), CqlError> {
    let known = |name: &str| definition.fields.iter().any(|(field, _)| field == name);
    match fields.iter().find(|(name, _)| !known(name)) {
        Some((name, _)) => Err(CqlError::invalid(format!(
            "Unknown field '{name}' in value of user defined type {}",
            definition.name
        ))),
        None => Ok(()),
    }
}
