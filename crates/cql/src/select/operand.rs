//! The right sides of relations: one value or several, given by terms or by markers.

use std::borrow::Cow;

use types::value::{Components, Elements};
use types::{CqlType, Few};

use crate::ast::{InTuples, InValues, Term as Raw, TupleValue};
use crate::context::Bind;
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::term::{Marker, Term};
use crate::value::{Bound, Value};

/// Gives one value for each of the first few columns of a restriction.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    /// One term, for one column.
    One(Term),
    /// A tuple of terms.
    Row(Vec<Term>),
    /// A marker for a tuple.
    Marker(Marker),
}

/// Gives the alternatives of IN.
#[derive(Clone, Debug)]
pub(super) enum Choices {
    /// Written out.
    List(Vec<Operand>),
    /// A marker for a list of values of one column.
    Values(Marker),
    /// A marker for a list of tuples.
    Rows(Marker),
}

/// The values of an operand, null and unset ones included.
pub(super) type Values<'a> = Few<Bound<'a>>;

impl Operand {
    /// A tuple on the right side of a relation of several columns.
    pub(super) fn of_tuple(
        raw: &TupleValue,
        keyspace: &str,
        receivers: &[ColumnSpec],
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        match raw {
            TupleValue::Marker(marker) => Ok(Self::of_marker(*marker, receivers, scope)),
            TupleValue::Literal(items) => {
                Term::prepare_row(items, keyspace, receivers, scope).map(Self::Row)
            }
        }
    }

    fn of_marker(marker: u32, receivers: &[ColumnSpec], scope: &mut Scope<'_>) -> Self {
        let spec = spec_of_row("(", receivers);
        Self::Marker(Marker::prepare(marker, &spec, scope))
    }

    /// The single value of an operand of one column.
    pub(super) fn bind_one<'a>(&'a self, bind: &Bind<'a>) -> Result<Bound<'a>, CqlError> {
        match self {
            Self::One(term) => term.bind(bind),
            _ => Ok(self.bind(bind)?.into_iter().next().unwrap_or(Bound::Null)),
        }
    }

    /// Is it a marker for a tuple that is null?
    pub(super) fn is_null(&self, bind: &Bind<'_>) -> bool {
        match self {
            Self::Marker(marker) => matches!(bind.values.get(marker.index), Value::Null),
            Self::One(_) | Self::Row(_) => false,
        }
    }

    /// The values. A null tuple has none.
    pub(super) fn bind<'a>(&'a self, bind: &Bind<'a>) -> Result<Values<'a>, CqlError> {
        match self {
            Self::One(term) => Ok(Few::one(term.bind(bind)?)),
            Self::Row(terms) => {
                let mut values = Few::with_capacity(terms.len());
                for (index, term) in terms.iter().enumerate() {
                    match term.bind(bind)? {
                        Bound::Unset => {
                            return Err(CqlError::invalid(format!(
                                "Invalid unset value for tuple field number {index}"
                            )));
                        }
                        value => values.push(value),
                    }
                }
                Ok(values)
            }
            Self::Marker(marker) => match bind.values.get(marker.index) {
                Value::Unset => Err(CqlError::invalid(format!(
                    "Invalid unset value for tuple {}",
                    marker.receiver.name
                ))),
                Value::Null => Ok(Few::new()),
                Value::Bytes(value) => split_row(value, &marker.receiver.ty),
            },
        }
    }
}

impl Choices {
    /// What follows IN for one column.
    pub(super) fn of_values(
        raw: &InValues,
        keyspace: &str,
        receiver: &ColumnSpec,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        match raw {
            InValues::Marker(marker) => {
                let ty = CqlType::List { element: receiver.ty.clone().into(), frozen: true };
                let spec = receiver.derive(format!("in({})", receiver.name), ty);
                Ok(Self::Values(Marker::prepare(*marker, &spec, scope)))
            }
            InValues::List(items) => {
                let one = |item: &Raw| Term::prepare(item, keyspace, receiver, scope);
                let terms = items.iter().map(one).collect::<Result<Vec<_>, _>>()?;
                Ok(Self::List(terms.into_iter().map(Operand::One).collect()))
            }
        }
    }

    /// What follows IN for several columns.
    pub(super) fn of_rows(
        raw: &InTuples,
        keyspace: &str,
        receivers: &[ColumnSpec],
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        match raw {
            InTuples::Marker(marker) => {
                let mut spec = spec_of_row("in(", receivers);
                spec.ty = CqlType::List { element: spec.ty.into(), frozen: true };
                Ok(Self::Rows(Marker::prepare(*marker, &spec, scope)))
            }
            InTuples::Markers(markers) => Ok(Self::List(
                markers
                    .iter()
                    .map(|marker| Operand::of_marker(*marker, receivers, scope))
                    .collect(),
            )),
            InTuples::List(rows) => {
                let mut operands = Vec::with_capacity(rows.len());
                for row in rows {
                    operands
                        .push(Operand::Row(Term::prepare_row(row, keyspace, receivers, scope)?));
                }
                Ok(Self::List(operands))
            }
        }
    }

    /// The alternatives, each with its values. `column` is named in messages.
    pub(super) fn bind<'a>(
        &'a self,
        column: &str,
        bind: &Bind<'a>,
    ) -> Result<Vec<Values<'a>>, CqlError> {
        let one = |operand: &'a Operand| match operand.is_null(bind) {
            true => Err(CqlError::invalid("Invalid null value for IN restriction")),
            false => operand.bind(bind),
        };
        let marker = match self {
            Self::List(operands) => return operands.iter().map(one).collect(),
            Self::Values(marker) | Self::Rows(marker) => marker,
        };
        let rows = matches!(self, Self::Rows(_));
        let value = match bind.values.get(marker.index) {
            Value::Bytes(value) => value,
            Value::Null if rows => {
                return Err(CqlError::invalid("Invalid null value for IN restriction"));
            }
            Value::Unset if rows => {
                let name = &marker.receiver.name;
                return Err(CqlError::invalid(format!("Invalid unset value for {name}")));
            }
            Value::Null => {
                return Err(CqlError::invalid(format!("Invalid null value for column {column}")));
            }
            Value::Unset => {
                return Err(CqlError::invalid(format!("Invalid unset value for column {column}")));
            }
        };
        let CqlType::List { element, .. } = &marker.receiver.ty else {
            return Err(CqlError::invalid("A list is wanted"));
        };
        split_list(value, element, rows)
    }
}

/// The receiver of a marker that stands for a tuple: named after its columns.
fn spec_of_row(open: &str, receivers: &[ColumnSpec]) -> ColumnSpec {
    let names: Vec<&str> = receivers.iter().map(|spec| &*spec.name).collect();
    let ty = CqlType::Tuple(receivers.iter().map(|spec| spec.ty.clone()).collect());
    let name = format!("{open}{})", names.join(","));
    match receivers.first() {
        Some(first) => first.derive(name, ty),
        None => ColumnSpec::new("", "", name, ty),
    }
}

fn bad_list() -> CqlError {
    CqlError::invalid("Not enough bytes to read a list")
}

fn split_list<'a>(
    value: &'a [u8],
    element: &CqlType,
    rows: bool,
) -> Result<Vec<Values<'a>>, CqlError> {
    if !rows {
        let items = crate::term::elements(element, value)?.into_iter();
        return Ok(items.map(|item| Few::one(item.map_or(Bound::Null, Bound::Bytes))).collect());
    }
    let elements = Elements::of_list(value).map_err(|_| bad_list())?;
    let mut out = Vec::with_capacity(elements.left());
    for item in elements {
        out.push(match item.map_err(|_| bad_list())? {
            Some(item) => split_row(item, element)?,
            None => return Err(CqlError::invalid("Invalid null value for IN restriction")),
        });
    }
    Ok(out)
}

/// The components of a serialized tuple; there may be fewer than the type has.
fn split_row<'a>(value: &'a [u8], ty: &CqlType) -> Result<Values<'a>, CqlError> {
    let CqlType::Tuple(types) = ty else { return Err(CqlError::invalid("A tuple is wanted")) };
    let mut out = Few::with_capacity(types.len());
    let mut components = Components::of(value);
    for ty in types.iter() {
        let Some(component) = components.next() else { break };
        let component =
            component.map_err(|_| CqlError::invalid("Not enough bytes to read a tuple"))?;
        out.push(match component {
            Some(value) => {
                check(ty, value)?;
                Bound::Bytes(Cow::Borrowed(value))
            }
            None => Bound::Null,
        });
    }
    let extra = components.count();
    if extra > 0 {
        return Err(CqlError::invalid(format!(
            "Tuple value contained too many fields (expected {}, got {})",
            types.len(),
            types.len() + extra
        )));
    }
    Ok(out)
}

fn check(ty: &CqlType, value: &[u8]) -> Result<(), CqlError> {
    ty.validate(value).map_err(|error| CqlError::invalid(error.to_string()))
}
