//! Terms: what stands where a value is wanted. A raw term meets its receiver and becomes a
//! [`Term`], which gives a serialized value once markers are bound.

pub mod assign;
pub mod assignment;
mod canonical;
pub mod function;
mod literal;
pub mod part;
mod prepare;
pub mod raw_type;
pub mod text;

use std::borrow::Cow;

use types::CqlType;
use types::value::{pack_components, pack_list, pack_map, pack_vector};

use crate::context::Bind;
use crate::error::CqlError;
use crate::scope::ColumnSpec;
use crate::value::{Bound, Value};
use function::Function;

pub use canonical::{elements, java_equal, sort_entries, stored_form};

/// A prepared term: it gives a value once bound. Values of collections come out as Cassandra stores
/// them, sets and maps sorted.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// `null`.
    Null,
    /// A constant, serialized.
    Constant(Vec<u8>),
    /// The timestamp `'now'`.
    Now,
    /// A bind marker.
    Marker(Marker),
    /// A list of terms that are not all constant.
    List(Vec<Term>),
    /// A set of elements of a type.
    Set(CqlType, Vec<Term>),
    /// A map with keys of a type.
    Map(CqlType, Vec<(Term, Term)>),
    /// A tuple.
    Tuple(Vec<Term>),
    /// A value of a user type, one term a field.
    Udt(Box<Udt>),
    /// A vector of elements of a type.
    Vector(CqlType, Vec<Term>),
    /// A call of a function.
    Call(Box<Call>),
}

/// A bind marker and what receives its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    /// Its number.
    pub index: usize,
    /// What receives it.
    pub receiver: ColumnSpec,
}

/// A literal of a user type.
#[derive(Clone, Debug, PartialEq)]
pub struct Udt {
    /// The type.
    ty: CqlType,
    /// One term a field.
    fields: Vec<Term>,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function.
    function: Function,
    /// Its arguments.
    arguments: Vec<Term>,
}

impl Term {
    /// Is its value known without binding?
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::Null | Self::Constant(_))
    }

    /// Has it a bind marker in it?
    pub fn has_marker(&self) -> bool {
        match self {
            Self::Marker(_) => true,
            Self::Null | Self::Constant(_) | Self::Now => false,
            // Markers are refused inside of these.
            Self::List(_) | Self::Set(..) | Self::Map(..) => false,
            Self::Tuple(terms) | Self::Vector(_, terms) => terms.iter().any(Self::has_marker),
            Self::Udt(udt) => udt.fields.iter().any(Self::has_marker),
            Self::Call(call) => call.arguments.iter().any(Self::has_marker),
        }
    }

    /// Is its value always the same: has it neither markers nor calls of functions that look at the
    /// clock?
    pub fn is_fixed(&self) -> bool {
        match self {
            Self::Marker(_) | Self::Now => false,
            Self::Null | Self::Constant(_) => true,
            Self::List(terms) | Self::Set(_, terms) => terms.iter().all(Self::is_fixed),
            Self::Map(_, entries) => entries.iter().all(|(k, v)| k.is_fixed() && v.is_fixed()),
            Self::Tuple(terms) | Self::Vector(_, terms) => terms.iter().all(Self::is_fixed),
            Self::Udt(udt) => udt.fields.iter().all(Self::is_fixed),
            Self::Call(call) => {
                call.function.is_pure() && call.arguments.iter().all(Self::is_fixed)
            }
        }
    }

    /// The value.
    pub fn bind<'a>(&'a self, bind: &Bind<'a>) -> Result<Bound<'a>, CqlError> {
        self.evaluate(Some(bind))
    }

    /// The value of a term whose parts are constant, as a constant.
    fn fold(self) -> Result<Self, CqlError> {
        Ok(match self.evaluate(None)? {
            Bound::Bytes(value) => Self::Constant(value.into_owned()),
            Bound::Null | Bound::Unset => Self::Null,
        })
    }

    fn evaluate<'a>(&'a self, bind: Option<&Bind<'a>>) -> Result<Bound<'a>, CqlError> {
        let missing = || CqlError::invalid("A constant is wanted");
        match self {
            Self::Null => Ok(Bound::Null),
            Self::Constant(value) => Ok(Bound::Bytes(Cow::Borrowed(value))),
            Self::Now => {
                let now = bind.ok_or_else(missing)?.now_millis;
                Ok(Bound::Bytes(Cow::Owned(now.to_be_bytes().to_vec())))
            }
            Self::Marker(marker) => marker.bind(bind.ok_or_else(missing)?),
            Self::List(terms) => pack_elements(terms, bind, pack_list),
            Self::Set(element, terms) => pack_elements(terms, bind, |mut items| {
                items.sort_by(|a, b| element.compare(a, b));
                items.dedup_by(|b, a| element.compare(a, b).is_eq());
                pack_list(items)
            }),
            Self::Map(key, entries) => pack_entries(key, entries, bind),
            Self::Tuple(terms) => pack_tuple(terms, bind, |index| {
                Some(format!("Invalid unset value for tuple field number {index}"))
            }),
            Self::Udt(udt) => udt.evaluate(bind),
            Self::Vector(element, terms) => {
                let items = evaluate_all(terms, bind, |_, bound| match bound {
                    Bound::Bytes(item) if !(item.is_empty() && element.is_empty_meaningless()) => {
                        Ok(item)
                    }
                    _ => Err(CqlError::invalid("null is not supported inside vectors")),
                })?;
                Ok(Bound::Bytes(Cow::Owned(pack_vector(element, items))))
            }
            Self::Call(call) => call.evaluate(bind.ok_or_else(missing)?),
        }
    }
}

impl Marker {
    /// The value of the marker, valid and in the stored form.
    pub fn bind<'a>(&self, bind: &Bind<'a>) -> Result<Bound<'a>, CqlError> {
        let value = match bind.values.get(self.index) {
            Value::Null => return Ok(Bound::Null),
            Value::Unset => return Ok(Bound::Unset),
            Value::Bytes(value) => value,
        };
        let ty = &self.receiver.ty;
        if ty.is_collection() || matches!(ty, CqlType::Udt { .. }) {
            return match bind.values.are_made() {
                true => Ok(Bound::Bytes(Cow::Borrowed(value))),
                false => stored_form(ty, value).map(Bound::Bytes),
            };
        }
        match ty.validate(value) {
            Err(error) if !bind.values.are_made() => Err(CqlError::invalid(error.to_string())),
            _ => Ok(Bound::Bytes(Cow::Borrowed(value))),
        }
    }
}

impl Udt {
    /// A field left unset is an error in a frozen value; in a value with a cell a field Cassandra
    /// writes the empty value for it.
    fn evaluate<'a>(&'a self, bind: Option<&Bind<'a>>) -> Result<Bound<'a>, CqlError> {
        let CqlType::Udt { definition, frozen } = &self.ty else {
            return Err(CqlError::invalid("A user type is wanted"));
        };
        pack_tuple(&self.fields, bind, |index| {
            let field = definition.fields.get(index).map_or("", |(name, _)| name.as_str());
            frozen.then(|| {
                format!(
                    "Invalid unset value for field '{field}' of user defined type {}",
                    definition.name
                )
            })
        })
    }
}

impl Call {
    fn evaluate<'a>(&'a self, bind: &Bind<'a>) -> Result<Bound<'a>, CqlError> {
        let mut arguments = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            arguments.push(match argument.evaluate(Some(bind))? {
                Bound::Bytes(value) => Some(value),
                Bound::Null => None,
                Bound::Unset => {
                    return Err(CqlError::invalid(format!(
                        "Invalid unset value for argument in call to function {}",
                        self.function.name()
                    )));
                }
            });
        }
        let arguments: Vec<_> = arguments.iter().map(Option::as_deref).collect();
        match self.function.execute(&arguments, bind)? {
            Some(value) => self.checked(value).map(|value| Bound::Bytes(Cow::Owned(value))),
            None => Ok(Bound::Null),
        }
    }

    /// What a function gave, as if it had been bound: functions of times at the ends of their range
    /// and of JSON give what is no value.
    fn checked(&self, value: Vec<u8>) -> Result<Vec<u8>, CqlError> {
        let ty = self.function.returns();
        if ty.is_collection() || matches!(ty, CqlType::Udt { .. }) {
            return stored_form(ty, &value).map(Cow::into_owned);
        }
        match ty.validate(&value) {
            Ok(()) => Ok(value),
            Err(error) => Err(CqlError::invalid(format!(
                "Return of function {} (0x{}) is not a valid value for its declared return type {ty}: {error}",
                self.function.name(),
                types::hex::to_hex(&value)
            ))),
        }
    }
}

fn evaluate_all<'a, T>(
    terms: &'a [Term],
    bind: Option<&Bind<'a>>,
    mut take: impl FnMut(usize, Bound<'a>) -> Result<T, CqlError>,
) -> Result<Vec<T>, CqlError> {
    let mut out = Vec::with_capacity(terms.len());
    for (index, term) in terms.iter().enumerate() {
        out.push(take(index, term.evaluate(bind)?)?);
    }
    Ok(out)
}

fn no_null() -> CqlError {
    CqlError::invalid("null is not supported inside collections")
}

/// The elements of a list or set; unset if one of them is.
fn pack_elements<'a>(
    terms: &'a [Term],
    bind: Option<&Bind<'a>>,
    pack: impl FnOnce(Vec<Cow<'a, [u8]>>) -> Vec<u8>,
) -> Result<Bound<'a>, CqlError> {
    let mut unset = false;
    let items = evaluate_all(terms, bind, |_, bound| match bound {
        Bound::Bytes(item) => Ok(item),
        Bound::Null => Err(no_null()),
        Bound::Unset => {
            unset = true;
            Ok(Cow::Borrowed(&[][..]))
        }
    })?;
    Ok(if unset { Bound::Unset } else { Bound::Bytes(Cow::Owned(pack(items))) })
}

fn pack_entries<'a>(
    key_type: &CqlType,
    entries: &'a [(Term, Term)],
    bind: Option<&Bind<'a>>,
) -> Result<Bound<'a>, CqlError> {
    let mut out = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let key = match key.evaluate(bind)? {
            Bound::Bytes(key) => key,
            Bound::Null => return Err(no_null()),
            Bound::Unset => {
                return Err(CqlError::invalid("unset value is not supported for map keys"));
            }
        };
        match value.evaluate(bind)? {
            Bound::Bytes(value) => out.push((key, value)),
            Bound::Null => return Err(no_null()),
            Bound::Unset => return Ok(Bound::Unset),
        }
    }
    Ok(Bound::Bytes(Cow::Owned(pack_map(canonical::sort_entries(key_type, out)))))
}

/// The components of a tuple. `refuse_unset` gives the message for one that is unset, if it is
/// refused.
fn pack_tuple<'a>(
    terms: &'a [Term],
    bind: Option<&Bind<'a>>,
    refuse_unset: impl Fn(usize) -> Option<String>,
) -> Result<Bound<'a>, CqlError> {
    let items = evaluate_all(terms, bind, |index, bound| match bound {
        Bound::Bytes(item) => Ok(Some(item)),
        Bound::Null => Ok(None),
        Bound::Unset => match refuse_unset(index) {
            Some(message) => Err(CqlError::invalid(message)),
            None => Ok(Some(Cow::Borrowed(&[][..]))),
        },
    })?;
    Ok(Bound::Bytes(Cow::Owned(pack_components(items))))
}
