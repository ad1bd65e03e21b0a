//! Types as written in type hints, resolved against the schema.

use std::sync::Arc;

use types::CqlType;

use crate::ast::RawType;
use crate::error::CqlError;
use crate::scope::Scope;
use crate::term::text::type_text;

/// The type that a hint names. `keyspace` is that of the statement; user types are looked up there
/// unless they name it.
pub fn resolve(ty: &RawType, keyspace: &str, scope: &Scope<'_>) -> Result<CqlType, CqlError> {
    resolve_at(ty, keyspace, scope, types::MAX_DEPTH)
}

fn resolve_at(
    ty: &RawType,
    keyspace: &str,
    scope: &Scope<'_>,
    depth: usize,
) -> Result<CqlType, CqlError> {
    let depth =
        depth.checked_sub(1).ok_or_else(|| CqlError::invalid("Types are nested too deep"))?;
    let inner = |ty: &RawType| resolve_at(ty, keyspace, scope, depth).map(Arc::new);
    // What a collection holds is frozen when it is, and must be frozen by itself when it is not.
    let held = |ty: &RawType| -> Result<Arc<CqlType>, CqlError> {
        let resolved = inner(ty)?;
        if resolved.is_multicell() {
            let what = if resolved.is_collection() { "collections" } else { "UDTs" };
            return Err(CqlError::invalid(format!(
                "Non-frozen {what} are not allowed inside collections: {}",
                type_text(ty)
            )));
        }
        Ok(resolved)
    };
    Ok(match ty {
        RawType::Native(native) => native.cql_type(),
        RawType::List(element) => CqlType::List { element: held(element)?, frozen: false },
        RawType::Set(element) => CqlType::Set { element: held(element)?, frozen: false },
        RawType::Map(key, value) => {
            CqlType::Map { key: held(key)?, value: held(value)?, frozen: false }
        }
        RawType::Tuple(types) => {
            let types = types.iter().map(|ty| Ok(inner(ty)?.as_ref().clone().freeze()));
            CqlType::Tuple(types.collect::<Result<Vec<_>, CqlError>>()?.into())
        }
        RawType::Vector(element, dimension) => {
            let element = Arc::new(inner(element)?.as_ref().clone().freeze());
            let dimension = u32::try_from(*dimension).ok().filter(|count| *count > 0);
            let dimension = dimension.ok_or_else(|| {
                CqlError::invalid(format!(
                    "vectors may only have positive dimensions; given {}",
                    vector_dimension(ty)
                ))
            })?;
            CqlType::Vector { element, dimension }
        }
        RawType::Frozen(frozen) => resolve_frozen(frozen, keyspace, scope, depth)?,
        RawType::User(name) => {
            let home = name.keyspace.as_deref().unwrap_or(keyspace);
            if home != keyspace {
                return Err(CqlError::invalid(format!(
                    "Statement on keyspace {keyspace} cannot refer to a user type in keyspace {home}; user types can only be used in the keyspace they are defined in"
                )));
            }
            let found = scope.schema.user_type(keyspace, &name.name);
            let definition = found.cloned().ok_or_else(|| {
                CqlError::invalid(format!("Unknown type {keyspace}.{}", name.name))
            })?;
            CqlType::Udt { definition, frozen: false }
        }
        RawType::Custom(class) => {
            let parsed =
                CqlType::parse_marshal(class).map_err(|e| CqlError::invalid(e.to_string()))?;
            parsed.0
        }
    })
}

/// A frozen type freezes all that is inside it.
fn resolve_frozen(
    ty: &RawType,
    keyspace: &str,
    scope: &Scope<'_>,
    depth: usize,
) -> Result<CqlType, CqlError> {
    let depth =
        depth.checked_sub(1).ok_or_else(|| CqlError::invalid("Types are nested too deep"))?;
    let part = |ty: &RawType| resolve_frozen(ty, keyspace, scope, depth).map(Arc::new);
    Ok(match ty {
        RawType::List(element) => CqlType::List { element: part(element)?, frozen: true },
        RawType::Set(element) => CqlType::Set { element: part(element)?, frozen: true },
        RawType::Map(key, value) => {
            CqlType::Map { key: part(key)?, value: part(value)?, frozen: true }
        }
        other => resolve_at(other, keyspace, scope, depth)?.freeze(),
    })
}

fn vector_dimension(ty: &RawType) -> i32 {
    match ty {
        RawType::Vector(_, dimension) => *dimension,
        _ => 0,
    }
}
