//! Types of columns, fields and arguments as written, resolved against a keyspace (`CQL3Type.Raw`).
//!
//! What a message shows is the type as Cassandra prints it once its `frozen<>` have sunk in, which
//! is not what was written: `frozen<list<list<int>>>` shows as `frozen<list<frozen<list<int>>>>`.
//! So a type is brought into that shape first.

use std::fmt;
use std::sync::Arc;

use schema::Keyspace;
use types::CqlType;

use crate::ast::{NativeType, QualifiedName, RawType};
use crate::error::CqlError;

/// A type whose `frozen<>` have sunk in.
enum Shape<'a> {
    Native(NativeType),
    Custom(&'a str),
    List { element: Box<Shape<'a>>, frozen: bool },
    Set { element: Box<Shape<'a>>, frozen: bool },
    Map { key: Box<Shape<'a>>, value: Box<Shape<'a>>, frozen: bool },
    Tuple(Vec<Shape<'a>>),
    Vector(Box<Shape<'a>>, i32),
    User { shown: Option<&'a str>, name: &'a QualifiedName, frozen: bool },
}

impl<'a> Shape<'a> {
    /// `frozen<>` reaches into collections and stops at vectors; a tuple freezes what it holds by
    /// itself. The parser bounds the depth. `keyspace`: shown with names that have none.
    fn new(raw: &'a RawType, keyspace: Option<&'a str>, frozen: bool) -> Self {
        let part = |raw: &'a RawType| Box::new(Self::new(raw, keyspace, frozen));
        match raw {
            RawType::Native(native) => Self::Native(*native),
            RawType::Custom(class) => Self::Custom(class),
            RawType::List(element) => Self::List { element: part(element), frozen },
            RawType::Set(element) => Self::Set { element: part(element), frozen },
            RawType::Map(key, value) => Self::Map { key: part(key), value: part(value), frozen },
            RawType::Tuple(parts) => {
                Self::Tuple(parts.iter().map(|part| Self::new(part, keyspace, true)).collect())
            }
            RawType::Vector(element, dimension) => {
                Self::Vector(Box::new(Self::new(element, keyspace, false)), *dimension)
            }
            RawType::Frozen(inner) => Self::new(inner, keyspace, true),
            RawType::User(name) => {
                Self::User { shown: name.keyspace.as_deref().or(keyspace), name, frozen }
            }
        }
    }

    fn is(&self, native: NativeType) -> bool {
        matches!(self, Self::Native(own) if *own == native)
    }

    /// What it is that must not stand unfrozen inside an unfrozen collection.
    fn unfrozen(&self) -> Option<&'static str> {
        match self {
            Self::List { frozen: false, .. }
            | Self::Set { frozen: false, .. }
            | Self::Map { frozen: false, .. } => Some("collections"),
            Self::User { frozen: false, .. } => Some("UDTs"),
            _ => None,
        }
    }

    fn check_held(&self, held: &Self, frozen: bool) -> Result<(), CqlError> {
        match held.unfrozen().filter(|_| !frozen) {
            Some(what) => Err(CqlError::invalid(format!(
                "Non-frozen {what} are not allowed inside collections: {self}"
            ))),
            None => Ok(()),
        }
    }

    /// The checks of a collection in Cassandra's order: its values, then its keys.
    fn check_collection(
        &self,
        key: Option<&Self>,
        value: &Self,
        frozen: bool,
    ) -> Result<(), CqlError> {
        self.check_held(value, frozen)?;
        let counters =
            || CqlError::invalid(format!("Counters are not allowed inside collections: {self}"));
        if value.is(NativeType::Counter) {
            return Err(counters());
        }
        if value.is(NativeType::Duration) && matches!(self, Self::Set { .. }) {
            return Err(CqlError::invalid(format!(
                "Durations are not allowed inside sets: {self}"
            )));
        }
        let Some(key) = key else { return Ok(()) };
        if key.is(NativeType::Counter) {
            return Err(counters());
        }
        if key.is(NativeType::Duration) {
            let text = format!("Durations are not allowed as map keys: {self}");
            return Err(CqlError::invalid(text));
        }
        self.check_held(key, frozen)
    }

    fn resolve(&self, home: &str, keyspace: &Keyspace) -> Result<CqlType, CqlError> {
        let inner = |shape: &Self| shape.resolve(home, keyspace).map(Arc::new);
        Ok(match self {
            Self::Native(native) => native.cql_type(),
            Self::Custom(class) => custom_type(class)?,
            Self::List { element, frozen } => {
                self.check_collection(None, element, *frozen)?;
                CqlType::List { element: inner(element)?, frozen: *frozen }
            }
            Self::Set { element, frozen } => {
                self.check_collection(None, element, *frozen)?;
                CqlType::Set { element: inner(element)?, frozen: *frozen }
            }
            Self::Map { key, value, frozen } => {
                self.check_collection(Some(key), value, *frozen)?;
                let value = inner(value)?;
                CqlType::Map { key: inner(key)?, value, frozen: *frozen }
            }
            Self::Tuple(parts) => {
                let part = |part: &Self| {
                    if part.is(NativeType::Counter) {
                        return Err(CqlError::invalid("Counters are not allowed inside tuples"));
                    }
                    part.resolve(home, keyspace)
                };
                CqlType::Tuple(parts.iter().map(part).collect::<Result<Vec<_>, _>>()?.into())
            }
            Self::Vector(element, given) => {
                let element = inner(element)?;
                let dimension = u32::try_from(*given).ok().filter(|count| *count > 0);
                let dimension = dimension.ok_or_else(|| {
                    CqlError::invalid(format!(
                        "vectors may only have positive dimensions; given {given}"
                    ))
                })?;
                CqlType::Vector { element, dimension }
            }
            Self::User { name, frozen, .. } => {
                let own = name.keyspace.as_deref().unwrap_or(home);
                if own != home {
                    return Err(CqlError::invalid(format!(
                        "Statement on keyspace {home} cannot refer to a user type in keyspace {own}; \
                         user types can only be used in the keyspace they are defined in"
                    )));
                }
                let found = keyspace.types.get(&name.name).cloned();
                let definition = found.ok_or_else(|| {
                    CqlError::invalid(format!("Unknown type {home}.{}", name.name))
                })?;
                CqlType::Udt { definition, frozen: *frozen }
            }
        })
    }
}

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = match self {
            Self::List { frozen: true, .. }
            | Self::Set { frozen: true, .. }
            | Self::Map { frozen: true, .. }
            | Self::User { frozen: true, .. } => ("frozen<", ">"),
            _ => ("", ""),
        };
        f.write_str(open)?;
        match self {
            Self::Native(native) => f.write_str(native.cql_type().cql_name().as_str())?,
            Self::Custom(class) => write!(f, "'{class}'")?,
            Self::List { element, .. } => write!(f, "list<{element}>")?,
            Self::Set { element, .. } => write!(f, "set<{element}>")?,
            Self::Map { key, value, .. } => write!(f, "map<{key}, {value}>")?,
            Self::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(Self::to_string).collect();
                write!(f, "tuple<{}>", parts.join(", "))?;
            }
            Self::Vector(element, dimension) => write!(f, "vector<{element}, {dimension}>")?,
            Self::User { shown: Some(keyspace), name, .. } => {
                write!(f, "{keyspace}.{}", name.name)?;
            }
            Self::User { shown: None, name, .. } => f.write_str(&name.name)?,
        }
        f.write_str(close)
    }
}

/// A type by its Java class.
fn custom_type(class: &str) -> Result<CqlType, CqlError> {
    let syntax = |message| CqlError::Syntax(format!("Error setting type {class}: {message}"));
    let (ty, _) = CqlType::parse_marshal(class).map_err(|error| syntax(error.to_string()))?;
    let mut unknown = None;
    ty.any(&mut |ty| match ty {
        CqlType::Custom(class) => {
            unknown = Some(Arc::clone(class));
            true
        }
        _ => false,
    });
    let Some(unknown) = unknown else { return Ok(ty) };
    let own = unknown.split('(').next().unwrap_or(&unknown);
    Err(syntax(format!("Unable to find abstract-type class '{own}'")))
}

/// Is it by its class a type whose values are in descending order?
pub(super) fn is_reversed(raw: &RawType) -> bool {
    match raw {
        RawType::Custom(class) => CqlType::parse_marshal(class).is_ok_and(|(_, reversed)| reversed),
        _ => false,
    }
}

/// The type as Cassandra shows it before it looked for it, names of user types as written.
pub(super) fn shown(raw: &RawType) -> String {
    Shape::new(raw, None, false).to_string()
}

/// The type as Cassandra shows it once it was found, names of user types with their keyspace.
pub(super) fn shown_in(raw: &RawType, keyspace: &str) -> String {
    Shape::new(raw, Some(keyspace), false).to_string()
}

/// Is it `frozen<>` without need: neither tuple nor vector?
pub(super) fn is_explicitly_frozen(raw: &RawType) -> bool {
    match raw {
        RawType::Frozen(inner) => {
            !matches!(inner.as_ref(), RawType::Tuple(_) | RawType::Vector(..))
                && (!matches!(inner.as_ref(), RawType::Frozen(_)) || is_explicitly_frozen(inner))
        }
        _ => false,
    }
}

/// Resolves a type in a statement about `keyspace`.
pub(super) fn resolve(raw: &RawType, keyspace: &Keyspace) -> Result<CqlType, CqlError> {
    let shape = Shape::new(raw, None, false);
    let ty = shape.resolve(&keyspace.name, keyspace)?;
    if ty.depth() > types::MAX_DEPTH {
        let text = format!("Types cannot be nested more than {} deep", types::MAX_DEPTH);
        return Err(CqlError::invalid(text));
    }
    Ok(ty)
}
