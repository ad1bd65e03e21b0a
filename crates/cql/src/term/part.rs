//! What receives the parts of a value: elements, keys, fields; and the checks of literals against
//! them.

use types::{CqlType, UserType};

use crate::ast::Term as Raw;
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::term::assign;

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
fn component(receiver: &ColumnSpec, index: usize, ty: &CqlType) -> ColumnSpec {
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

/// Checks the components of a tuple literal (`Tuples.validateTupleAssignableTo`).
pub fn check_tuple(
    items: &[Raw],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &Scope<'_>,
) -> Result<(), CqlError> {
    let (name, ty) = (&receiver.name, &receiver.ty);
    let Some(types) = tuple_types(ty) else {
        return Err(CqlError::invalid(format!(
            "Invalid tuple type literal for {name} of type {ty}"
        )));
    };
    for (index, item) in items.iter().enumerate() {
        let Some(component_type) = types.get(index) else {
            return Err(CqlError::invalid(format!(
                "Invalid tuple literal for {name}: too many elements. Type {ty} expects {} but got {}",
                types.len(),
                items.len()
            )));
        };
        let spec = component(receiver, index, component_type);
        if !assign::test(item, keyspace, &spec, scope)?.is_assignable() {
            return Err(CqlError::invalid(format!(
                "Invalid tuple literal for {name}: component {index} is not of type {component_type}"
            )));
        }
    }
    Ok(())
}

/// The receivers of a tuple's components.
pub fn components(receiver: &ColumnSpec) -> Vec<ColumnSpec> {
    let types = tuple_types(&receiver.ty).unwrap_or_default();
    types.into_iter().enumerate().map(|(index, ty)| component(receiver, index, ty)).collect()
}

/// Checks the fields of a literal of a user type (`UserTypes.Literal.validateAssignableTo`).
pub fn check_udt(
    fields: &[(String, Raw)],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &Scope<'_>,
) -> Result<(), CqlError> {
    let name = &receiver.name;
    let CqlType::Udt { definition, .. } = &receiver.ty else {
        return Err(CqlError::invalid(format!(
            "Invalid user type literal for {name} of type {}",
            receiver.ty
        )));
    };
    for (field_name, ty) in &definition.fields {
        let Some(raw) = field_of(fields, field_name) else { continue };
        let spec = field(receiver, field_name, ty);
        if !assign::test(raw, keyspace, &spec, scope)?.is_assignable() {
            return Err(CqlError::invalid(format!(
                "Invalid user type literal for {name}: field {field_name} is not of type {ty}"
            )));
        }
    }
    Ok(())
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
