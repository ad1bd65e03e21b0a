//! May a term be assigned to a receiver? (`AssignmentTestable`)
//!
//! A call may if the function that it means gives what fits, and which one it means depends on
//! whether its arguments may be assigned to the function's parameters: see [`call`].

pub mod call;

use types::CqlType;

use crate::ast::Term as Raw;
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::term::assignment::Assignment;
use crate::term::{literal, part, raw_type};

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
        Raw::Literal(constant) => Ok(literal::test(constant, ty)),
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
        Raw::Udt(fields) => Ok(match check_udt(fields, keyspace, receiver, scope) {
            Ok(()) => Assignment::Weak,
            Err(_) => Assignment::None,
        }),
        Raw::Tuple(items) => match items.as_slice() {
            [single] if part::tuple_types(ty).is_none() => test(single, keyspace, receiver, scope),
            _ => Ok(match check_tuple(items, keyspace, receiver, scope) {
                Ok(()) => Assignment::Weak,
                Err(_) => Assignment::None,
            }),
        },
        Raw::Function(..) | Raw::Cast(..) | Raw::Binary(..) | Raw::Negate(_) => {
            Ok(call::test(raw, keyspace, receiver, scope))
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

/// Checks the components of a tuple literal (`Tuples.validateTupleAssignableTo`).
pub fn check_tuple(
    items: &[Raw],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &Scope<'_>,
) -> Result<(), CqlError> {
    let (name, ty) = (&receiver.name, &receiver.ty);
    let Some(types) = part::tuple_types(ty) else {
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
        let spec = part::component(receiver, index, component_type);
        if !test(item, keyspace, &spec, scope)?.is_assignable() {
            return Err(CqlError::invalid(format!(
                "Invalid tuple literal for {name}: component {index} is not of type {component_type}"
            )));
        }
    }
    Ok(())
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
        let Some(raw) = part::field_of(fields, field_name) else { continue };
        let spec = part::field(receiver, field_name, ty);
        if !test(raw, keyspace, &spec, scope)?.is_assignable() {
            return Err(CqlError::invalid(format!(
                "Invalid user type literal for {name}: field {field_name} is not of type {ty}"
            )));
        }
    }
    Ok(())
}
