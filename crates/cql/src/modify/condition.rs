//! The IF clause: conditions prepared against the schema, bound, and held against rows as they are
//! stored (`cql3.conditions`).

use std::cmp::Ordering;

use rows::{CellRef, RowRef};
use schema::{Column, Table};
use types::CqlType;
use types::value::{Components, Elements, Entries, pack_components};

use crate::ast::{self, ColumnPart, ConditionTest, InValues, Operator};
use crate::context::Bind;
use crate::error::CqlError;
use crate::modify::attributes::Attributes;
use crate::modify::operation::find_field;
use crate::relation_text::operator_text;
use crate::scope::{ColumnSpec, Scope};
use crate::term::{Marker, Term, part};
use crate::value::{OwnedValue, Value};

/// What must hold for a modification to be done.
#[derive(Clone, Debug, Default)]
pub enum Conditions {
    /// Nothing.
    #[default]
    None,
    /// `IF EXISTS`.
    Exists,
    /// `IF NOT EXISTS`.
    NotExists,
    /// `IF a AND b`, in textual order.
    Columns(Vec<ColumnCondition>),
}

impl Conditions {
    /// Checks an IF clause against the schema.
    pub fn prepare(
        condition: Option<&ast::Condition>,
        attributes: &Attributes,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        match condition {
            None => Ok(Self::None),
            Some(ast::Condition::Exists) => Ok(Self::Exists),
            Some(ast::Condition::All(conditions)) => {
                refuse_timestamp(attributes)?;
                let prepare = |raw| ColumnCondition::prepare(raw, table, scope);
                conditions.iter().map(prepare).collect::<Result<_, _>>().map(Self::Columns)
            }
        }
    }

    /// What every conditional statement must be (the constructor of `ModificationStatement`).
    pub fn check(&self, attributes: &Attributes, table: &Table) -> Result<(), CqlError> {
        if !self.are_any() {
            return Ok(());
        }
        if table.is_counter() {
            return Err(CqlError::invalid(
                "Conditional updates are not supported on counter tables",
            ));
        }
        refuse_timestamp(attributes)
    }

    /// Is there a condition?
    pub fn are_any(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Those of columns: of static ones or of regular ones.
    pub fn of_columns(&self, statics: bool) -> impl Iterator<Item = &ColumnCondition> {
        let all = match self {
            Self::Columns(conditions) => conditions.as_slice(),
            _ => &[],
        };
        all.iter().filter(move |condition| condition.column.is_static() == statics)
    }
}

fn refuse_timestamp(attributes: &Attributes) -> Result<(), CqlError> {
    match attributes.timestamp {
        Some(_) => {
            Err(CqlError::invalid("Cannot provide custom timestamp for conditional updates"))
        }
        None => Ok(()),
    }
}

/// A condition on a column.
#[derive(Clone, Debug)]
pub struct ColumnCondition {
    /// The column.
    pub column: Column,
    part: Part,
    test: Test,
}

#[derive(Clone, Debug)]
enum Part {
    Whole,
    /// Of a list by index, of a map by key.
    Element(Term),
    /// Of a user type, by position.
    Field(u16, CqlType),
}

#[derive(Clone, Debug)]
enum Test {
    Compare(Operator, Term),
    In(Vec<Term>),
    InMarker(Marker),
}

fn refuse<T>(message: String) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

impl ColumnCondition {
    fn prepare(
        raw: &ast::ColumnCondition,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        let column = Scope::column(table, &raw.column)?;
        let name = &column.name;
        if column.ty == CqlType::Counter {
            return refuse("Conditions on counters are not supported".to_owned());
        }
        let spec = ColumnSpec::of_column(table, column);
        let (part, receiver) = match &raw.part {
            ColumnPart::Whole => (Part::Whole, spec),
            ColumnPart::Element(key) => {
                let (key_spec, value_spec) = match &column.ty {
                    CqlType::List { element, .. } => {
                        (part::index(&spec), part::value(&spec, element))
                    }
                    CqlType::Map { key, value, .. } => {
                        (part::key(&spec, key), part::value(&spec, value))
                    }
                    CqlType::Set { .. } => {
                        return refuse(format!(
                            "Invalid element access syntax for set column {name}"
                        ));
                    }
                    _ => {
                        return refuse(format!(
                            "Invalid element access syntax for non-collection column {name}"
                        ));
                    }
                };
                refuse_slices_of_durations(&value_spec.ty, &raw.test)?;
                let key = Term::prepare(key, &table.keyspace, &key_spec, scope)?;
                (Part::Element(key), value_spec)
            }
            ColumnPart::Field(field) => {
                let Some((at, ty)) = find_field(&column.ty, field) else {
                    return refuse(format!("Unknown field {field} for column {name}"));
                };
                (Part::Field(at, ty.clone()), part::field(&spec, field, ty))
            }
        };
        refuse_slices_of_durations(&receiver.ty, &raw.test)?;
        let test = Test::prepare(&raw.test, &receiver, &table.keyspace, scope)?;
        if column.kind.is_primary_key() {
            return refuse(format!("PRIMARY KEY column '{name}' cannot have IF conditions"));
        }
        Ok(Self { column: column.clone(), part, test })
    }

    /// The condition with its values.
    pub fn bind(&self, bind: &Bind<'_>) -> Result<BoundCondition, CqlError> {
        let part = match &self.part {
            Part::Whole => BoundPart::Whole,
            Part::Element(term) => BoundPart::Element(term.bind(bind)?.into()),
            Part::Field(at, ty) => BoundPart::Field(*at, ty.clone()),
        };
        let (operator, values) = self.test.bind(bind)?;
        Ok(BoundCondition {
            column: self.column.index,
            ty: self.column.ty.clone(),
            part,
            operator,
            values,
        })
    }
}

impl Test {
    fn prepare(
        raw: &ConditionTest,
        receiver: &ColumnSpec,
        keyspace: &str,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        let (operator, raw) = match raw {
            ConditionTest::In(InValues::Marker(marker)) => {
                let ty = CqlType::List { element: receiver.ty.clone().into(), frozen: false };
                let spec = receiver.derive(format!("in({})", receiver.name), ty);
                return Ok(Self::InMarker(Marker::prepare(*marker, &spec, scope)));
            }
            ConditionTest::In(InValues::List(raws)) => {
                let mut terms = Vec::with_capacity(raws.len());
                for raw in raws {
                    terms.push(Term::prepare(raw, keyspace, receiver, scope)?);
                }
                return Ok(Self::In(terms));
            }
            ConditionTest::Compare(operator, raw) => (*operator, raw),
        };
        let receiver = match (operator, &receiver.ty) {
            (Operator::ContainsKey, CqlType::Map { key, .. }) => &part::key(receiver, key),
            (Operator::ContainsKey, _) => {
                return refuse(format!(
                    "Cannot use CONTAINS KEY on non-map column {}",
                    receiver.name
                ));
            }
            (
                Operator::Contains,
                CqlType::List { element, .. }
                | CqlType::Set { element, .. }
                | CqlType::Map { value: element, .. },
            ) => &part::value(receiver, element),
            (Operator::Contains, _) => {
                return refuse(format!(
                    "Cannot use CONTAINS on non-collection column {}",
                    receiver.name
                ));
            }
            _ => receiver,
        };
        Ok(Self::Compare(operator, Term::prepare(raw, keyspace, receiver, scope)?))
    }

    /// The operator and its values, of which one must do. `IN` is `=` with several; what is unset
    /// among its values is left out.
    fn bind(&self, bind: &Bind<'_>) -> Result<(Operator, Vec<OwnedValue>), CqlError> {
        let mut values: Vec<OwnedValue> = match self {
            Self::Compare(operator, term) => {
                return Ok((*operator, vec![term.bind(bind)?.into()]));
            }
            Self::In(terms) => terms
                .iter()
                .map(|term| Ok(term.bind(bind)?.into()))
                .collect::<Result<_, CqlError>>()?,
            Self::InMarker(marker) => match bind.values.get(marker.index) {
                Value::Null => return refuse("Invalid null list in IN condition".to_owned()),
                Value::Unset => return Err(unset()),
                Value::Bytes(list) => marker
                    .elements(list)?
                    .into_iter()
                    .map(|item| match item {
                        Some(item) => OwnedValue::Bytes(item.into_owned()),
                        None => OwnedValue::Null,
                    })
                    .collect(),
            },
        };
        values.retain(|value| *value != OwnedValue::Unset);
        Ok((Operator::Eq, values))
    }
}

fn unset() -> CqlError {
    CqlError::invalid("Invalid 'unset' value in condition")
}

/// Durations have no order (`ColumnCondition.Raw.validateOperationOnDurations`).
fn refuse_slices_of_durations(ty: &CqlType, test: &ConditionTest) -> Result<(), CqlError> {
    let ConditionTest::Compare(operator, _) = test else { return Ok(()) };
    let is_slice = matches!(operator, Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte);
    if !is_slice || !ty.any(&mut |ty| *ty == CqlType::Duration) {
        return Ok(());
    }
    let what = match ty {
        CqlType::Duration => {
            let sign = operator_text(*operator);
            return refuse(format!("Slice conditions ( {sign} ) are not supported on durations"));
        }
        CqlType::Tuple(_) => "tuples",
        CqlType::Udt { .. } => "UDTs",
        _ => "collections",
    };
    refuse(format!("Slice conditions are not supported on {what} containing durations"))
}

/// A condition with its values.
#[derive(Clone, Debug)]
pub struct BoundCondition {
    column: u16,
    ty: CqlType,
    part: BoundPart,
    operator: Operator,
    values: Vec<OwnedValue>,
}

#[derive(Clone, Debug)]
enum BoundPart {
    Whole,
    Element(OwnedValue),
    Field(u16, CqlType),
}

impl BoundCondition {
    /// Does a row satisfy it? A row that is not there has no cells.
    pub fn holds(&self, row: Option<RowRef<'_>>, now: i64) -> Result<bool, CqlError> {
        let cells = row.into_iter().flat_map(|row| row.cells());
        let mut cells = cells.filter(|cell| cell.column == self.column && cell.is_live(now));
        match &self.part {
            BoundPart::Whole if self.ty.is_collection() && self.ty.is_multicell() => {
                self.holds_of_collection(&cells.collect::<Vec<_>>())
            }
            BoundPart::Whole if self.ty.is_multicell() => {
                let value = fields(&self.ty, &cells.collect::<Vec<_>>());
                self.any(&self.ty, value.as_deref())
            }
            BoundPart::Whole => self.any(&self.ty, cells.next().map(|cell| cell.value)),
            BoundPart::Element(key) => self.holds_of_element(key, &cells.collect::<Vec<_>>()),
            BoundPart::Field(at, ty) if self.ty.is_multicell() => {
                let path = at.to_be_bytes();
                let cell = cells.find(|cell| cell.path == Some(&path[..]));
                self.any(ty, cell.map(|cell| cell.value))
            }
            BoundPart::Field(at, ty) => {
                let value = cells.next().map(|cell| cell.value);
                let mut fields = value.into_iter().flat_map(Components::of);
                let field = fields.nth(usize::from(*at));
                self.any(ty, field.transpose().map_err(malformed)?.flatten())
            }
        }
    }

    /// Does one of the values do?
    fn any(&self, ty: &CqlType, stored: Option<&[u8]>) -> Result<bool, CqlError> {
        for value in &self.values {
            if compare(self.operator, ty, value, stored)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn holds_of_element(&self, key: &OwnedValue, cells: &[CellRef<'_>]) -> Result<bool, CqlError> {
        let is_map = matches!(self.ty, CqlType::Map { .. });
        let key = match key {
            OwnedValue::Bytes(key) => key,
            OwnedValue::Null => {
                let what = if is_map { "map" } else { "list" };
                return refuse(format!("Invalid null value for {what} element access"));
            }
            OwnedValue::Unset => return Err(unset()),
        };
        let whole = cells.first().filter(|_| !self.ty.is_multicell()).map(|cell| cell.value);
        match &self.ty {
            CqlType::Map { key: key_type, .. } => {
                let is_it = |other: &[u8]| key_type.compare(other, key).is_eq();
                let stored = match whole {
                    None => cells
                        .iter()
                        .find(|cell| cell.path.is_some_and(is_it))
                        .map(|cell| cell.value),
                    Some(map) => {
                        let mut found = None;
                        for entry in Entries::of(map).map_err(malformed)? {
                            let (key, value) = entry.map_err(malformed)?;
                            found = found.or(is_it(key).then_some(value));
                        }
                        found
                    }
                };
                // The values of a map are compared as its keys would be: so does Cassandra.
                self.any(key_type, stored)
            }
            CqlType::List { element, .. } => {
                let index = CqlType::Int.as_i64(key).unwrap_or(0);
                let Ok(index) = usize::try_from(index) else {
                    return refuse(format!("Invalid negative list index {index}"));
                };
                let stored = match whole {
                    None => cells.get(index).map(|cell| cell.value),
                    Some(list) => {
                        let mut elements = Elements::of_list(list).map_err(malformed)?;
                        elements.nth(index).transpose().map_err(malformed)?.flatten()
                    }
                };
                self.any(element, stored)
            }
            _ => Ok(false),
        }
    }

    /// A collection with a cell an element (`MultiCellCollectionBound`).
    fn holds_of_collection(&self, cells: &[CellRef<'_>]) -> Result<bool, CqlError> {
        let operator = self.operator;
        let contains = matches!(operator, Operator::Contains | Operator::ContainsKey);
        for value in &self.values {
            let value = match value {
                OwnedValue::Unset => return Err(unset()),
                OwnedValue::Null => None,
                OwnedValue::Bytes(value) => Some(value),
            };
            let Some(value) = value.filter(|value| contains || !is_empty_collection(value)) else {
                match operator {
                    Operator::Eq if cells.is_empty() => return Ok(true),
                    Operator::Eq => continue,
                    Operator::Neq => return Ok(!cells.is_empty()),
                    _ => {}
                }
                let sign = operator_text(operator);
                return match value {
                    None => refuse(format!("Invalid comparison with null for operator \"{sign}\"")),
                    Some(_) => refuse(format!(
                        "Invalid comparison with an empty {} for operator \"{sign}\"",
                        kind_name(&self.ty)
                    )),
                };
            };
            if cells.is_empty() && operator != Operator::Neq {
                continue;
            }
            let does = match contains {
                true => self.contains(cells, value),
                false => satisfies(operator, self.order(cells, value)?),
            };
            if does {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn contains(&self, cells: &[CellRef<'_>], value: &[u8]) -> bool {
        let (ty, of_path) = match &self.ty {
            CqlType::Map { key, .. } if self.operator == Operator::ContainsKey => (key, true),
            CqlType::Map { value, .. } => (value, false),
            CqlType::Set { element, .. } => (element, true),
            CqlType::List { element, .. } => (element, false),
            _ => return false,
        };
        cells.iter().any(|cell| {
            let stored = if of_path { cell.path.unwrap_or_default() } else { cell.value };
            ty.compare(stored, value).is_eq()
        })
    }

    /// The order of what is stored and a value, element by element.
    fn order(&self, cells: &[CellRef<'_>], value: &[u8]) -> Result<Ordering, CqlError> {
        let mut cells = cells.iter();
        if let CqlType::Map { key: key_type, value: value_type, .. } = &self.ty {
            for entry in Entries::of(value).map_err(malformed)? {
                let (key, value) = entry.map_err(malformed)?;
                let Some(cell) = cells.next() else { return Ok(Ordering::Less) };
                let order = key_type
                    .compare(cell.path.unwrap_or_default(), key)
                    .then_with(|| value_type.compare(cell.value, value));
                if order.is_ne() {
                    return Ok(order);
                }
            }
        } else {
            let (element_type, of_path) = match &self.ty {
                CqlType::Set { element, .. } => (element, true),
                CqlType::List { element, .. } => (element, false),
                _ => return Ok(Ordering::Equal),
            };
            for element in Elements::of_list(value).map_err(malformed)? {
                let element = element.map_err(malformed)?.unwrap_or_default();
                let Some(cell) = cells.next() else { return Ok(Ordering::Less) };
                let stored = if of_path { cell.path.unwrap_or_default() } else { cell.value };
                let order = element_type.compare(stored, element);
                if order.is_ne() {
                    return Ok(order);
                }
            }
        }
        Ok(if cells.next().is_some() { Ordering::Greater } else { Ordering::Equal })
    }
}

fn malformed(error: types::ReadError) -> CqlError {
    CqlError::invalid(error.to_string())
}

fn is_empty_collection(value: &[u8]) -> bool {
    value.first_chunk().is_none_or(|count| *count == [0; 4])
}

fn kind_name(ty: &CqlType) -> &'static str {
    match ty {
        CqlType::List { .. } => "LIST",
        CqlType::Set { .. } => "SET",
        _ => "MAP",
    }
}

/// The value of a user type with a cell a field; none without any.
fn fields(ty: &CqlType, cells: &[CellRef<'_>]) -> Option<Vec<u8>> {
    let CqlType::Udt { definition, .. } = ty else { return None };
    if cells.is_empty() {
        return None;
    }
    let field = |at: usize| {
        let path = u16::try_from(at).ok()?.to_be_bytes();
        cells.iter().find(|cell| cell.path == Some(&path[..])).map(|cell| cell.value)
    };
    Some(pack_components((0..definition.fields.len()).map(field)))
}

/// What an operator makes of the order of what is stored and a value.
fn satisfies(operator: Operator, order: Ordering) -> bool {
    match operator {
        Operator::Eq => order.is_eq(),
        Operator::Neq => order.is_ne(),
        Operator::Lt => order.is_lt(),
        Operator::Lte => order.is_le(),
        Operator::Gt => order.is_gt(),
        Operator::Gte => order.is_ge(),
        Operator::Like | Operator::Contains | Operator::ContainsKey => false,
    }
}

/// Holds `stored operator value` (`ColumnCondition.Bound.compareWithOperator`)?
fn compare(
    operator: Operator,
    ty: &CqlType,
    value: &OwnedValue,
    stored: Option<&[u8]>,
) -> Result<bool, CqlError> {
    let value = match (value, operator) {
        (OwnedValue::Bytes(value), _) => value,
        (OwnedValue::Unset, _) => return Err(unset()),
        (OwnedValue::Null, Operator::Eq) => return Ok(stored.is_none()),
        (OwnedValue::Null, Operator::Neq) => return Ok(stored.is_some()),
        (OwnedValue::Null, _) => {
            let sign = operator_text(operator);
            return refuse(format!("Invalid comparison with null for operator \"{sign}\""));
        }
    };
    let Some(stored) = stored else { return Ok(operator == Operator::Neq) };
    match operator {
        Operator::Contains | Operator::ContainsKey => frozen_contains(operator, ty, stored, value),
        _ => Ok(satisfies(operator, ty.compare(stored, value))),
    }
}

fn frozen_contains(
    operator: Operator,
    ty: &CqlType,
    stored: &[u8],
    value: &[u8],
) -> Result<bool, CqlError> {
    if let CqlType::Map { key: key_type, value: value_type, .. } = ty {
        for entry in Entries::of(stored).map_err(malformed)? {
            let (key, of_key) = entry.map_err(malformed)?;
            let does = match operator {
                Operator::ContainsKey => key_type.compare(key, value).is_eq(),
                _ => value_type.compare(of_key, value).is_eq(),
            };
            if does {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    let (CqlType::List { element, .. } | CqlType::Set { element, .. }) = ty else {
        return Ok(false);
    };
    for item in Elements::of_list(stored).map_err(malformed)? {
        if element.compare(item.map_err(malformed)?.unwrap_or_default(), value).is_eq() {
            return Ok(true);
        }
    }
    Ok(false)
}
