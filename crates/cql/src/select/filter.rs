//! ALLOW FILTERING: what rows must satisfy beside lying where the key restrictions say
//! (`RowFilter`).

use std::cmp::Ordering;

use schema::{Column, ColumnKind, Table};
use types::value::{Elements, Entries};
use types::{CqlType, maybe_quote};

use crate::context::Bind;
use crate::error::CqlError;
use crate::select::indexed;
use crate::select::operand::Choices;
use crate::select::restriction::{Ask, Containing, Restriction, Set, SliceEnd};
use crate::select::row::{Place, ResultRow, column_value, live_cells};
use crate::term::{Term, java_equal};
use crate::value::Bound;

/// The restrictions that filter.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    restrictions: Vec<Restriction>,
}

/// How a value compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Comparison {
    Equal,
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// One test of one column.
#[derive(Clone, Debug)]
pub enum Test {
    /// Its value compares so to this.
    Compare(Comparison, Vec<u8>),
    /// Its value is one of these.
    In(Vec<Vec<u8>>),
    /// The collection holds this value.
    Contains(Vec<u8>),
    /// The map has this key.
    ContainsKey(Vec<u8>),
    /// The map has this value at this key.
    Entry(Vec<u8>, Vec<u8>),
}

impl Test {
    /// An index has no values that are longer than it can name.
    fn check_indexed(&self) -> Result<(), CqlError> {
        let size = match self {
            Self::Compare(_, value) | Self::Contains(value) | Self::ContainsKey(value) => {
                value.len()
            }
            Self::Entry(key, value) => indexed::entry_size(key, value),
            Self::In(_) => 0,
        };
        if size > indexed::MAX_SIZE {
            return Err(CqlError::invalid("Index expression values may not be larger than 64K"));
        }
        Ok(())
    }

    fn text(&self, column: &Column) -> String {
        let name = maybe_quote(&column.name);
        let (key, value) = match &column.ty {
            CqlType::Map { key, value, .. } => (&**key, &**value),
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                (&**element, &**element)
            }
            other => (other, other),
        };
        match self {
            Self::Compare(comparison, operand) => {
                let operator = match comparison {
                    Comparison::Equal => "=",
                    Comparison::Above => ">",
                    Comparison::AtLeast => ">=",
                    Comparison::Below => "<",
                    Comparison::AtMost => "<=",
                };
                format!("{name} {operator} {}", column.ty.to_cql_literal(operand))
            }
            Self::In(choices) => {
                let texts: Vec<_> =
                    choices.iter().map(|choice| column.ty.to_cql_literal(choice)).collect();
                format!("{name} IN ({})", texts.join(", "))
            }
            Self::Contains(operand) => format!("{name} CONTAINS {}", value.to_cql_literal(operand)),
            Self::ContainsKey(operand) => {
                format!("{name} CONTAINS KEY {}", key.to_cql_literal(operand))
            }
            Self::Entry(at, operand) => {
                format!("{name}[{}] = {}", key.to_cql_literal(at), value.to_cql_literal(operand))
            }
        }
    }
}

/// A filter with its values.
#[derive(Clone, Debug)]
pub struct BoundFilter {
    tests: Vec<(Place, Test)>,
}

impl BoundFilter {
    /// Of tests of columns.
    pub fn new<'c>(tests: impl IntoIterator<Item = (&'c Column, Test)>) -> Self {
        let placed = |(column, test)| (Place::of(column), test);
        Self { tests: tests.into_iter().map(placed).collect() }
    }

    /// Does everything pass?
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// Does it ask of two columns that change, or of a static one and something else
    /// (`RowFilter.isMutableIntersection`)?
    pub fn is_mutable_intersection(&self) -> bool {
        let mut first = None;
        self.tests.iter().any(|(place, _)| match place.kind {
            ColumnKind::Static => self.tests.len() > 1,
            ColumnKind::Regular => *first.get_or_insert(place.index) != place.index,
            _ => false,
        })
    }
}

impl Filter {
    /// Of the restrictions of sets that cannot find rows; nothing if there is none.
    pub(super) fn new(
        keys: Option<&Set>,
        clustering: Option<&Set>,
        others: &Set,
        table: &Table,
    ) -> Option<Self> {
        let mut restrictions: Vec<Restriction> = Vec::new();
        restrictions.extend(keys.into_iter().flat_map(Set::iter).cloned());
        let mut place = 0;
        for restriction in clustering.into_iter().flat_map(Set::iter) {
            let finds_no_rows = restriction.is_contains() || restriction.first() != place;
            if finds_no_rows || indexed::is_served(table, restriction) {
                restrictions.push(restriction.clone());
            } else if !restriction.is_slice() {
                place = restriction.last() + 1;
            }
        }
        restrictions.extend(others.iter().cloned());
        (!restrictions.is_empty()).then_some(Self { restrictions })
    }

    /// The columns that must be read for it.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        self.restrictions.iter().flat_map(|restriction| {
            let kind = restriction.kind;
            restriction.columns.iter().map(move |index| Place { kind, index: *index })
        })
    }

    pub(super) fn bind(&self, table: &Table, bind: &Bind<'_>) -> Result<BoundFilter, CqlError> {
        let mut tests = Vec::new();
        for restriction in &self.restrictions {
            let before = tests.len();
            bind_restriction(restriction, table, bind, &mut tests)?;
            if indexed::is_served(table, restriction) {
                tests.iter().skip(before).try_for_each(|(_, test)| test.check_indexed())?;
            }
        }
        Ok(BoundFilter { tests })
    }
}

fn bind_restriction(
    restriction: &Restriction,
    table: &Table,
    bind: &Bind<'_>,
    tests: &mut Vec<(Place, Test)>,
) -> Result<(), CqlError> {
    let kind = restriction.kind;
    let name = restriction.name(table, restriction.first());
    let first = Place { kind, index: restriction.first() };
    match &restriction.ask {
        Ask::Equal(operand) => {
            let mut values = operand.bind(bind)?.into_iter();
            for index in &restriction.columns {
                let name = restriction.name(table, *index);
                let value = known(values.next().unwrap_or(Bound::Null), "value", name)?;
                let test = Test::Compare(Comparison::Equal, value);
                tests.push((Place { kind, index: *index }, test));
            }
        }
        Ask::In(_) if restriction.columns.len() > 1 => {
            return Err(CqlError::invalid("Multicolumn IN filters are not supported"));
        }
        Ask::In(choices) => tests.push((first, bind_choices(choices, name, bind)?)),
        Ask::Slice(..) if restriction.multi => {
            return Err(CqlError::invalid(
                "Multi-column slice restrictions cannot be used for filtering.",
            ));
        }
        Ask::Slice(start, end) => {
            let mut side = |end: &Option<SliceEnd>, open, closed| -> Result<(), CqlError> {
                let Some(end) = end else { return Ok(()) };
                let value = known(end.operand.bind_one(bind)?, "value", name)?;
                let comparison = if end.inclusive { closed } else { open };
                tests.push((first, Test::Compare(comparison, value)));
                Ok(())
            };
            side(start, Comparison::Above, Comparison::AtLeast)?;
            side(end, Comparison::Below, Comparison::AtMost)?;
        }
        Ask::Contains(parts) => {
            for part in parts {
                let value = |term: &Term, what: &str| known(term.bind(bind)?, what, name);
                tests.push((
                    first,
                    match part {
                        Containing::Value(term) => Test::Contains(value(term, "value")?),
                        Containing::Key(term) => Test::ContainsKey(value(term, "value")?),
                        Containing::Entry(key, entry) => {
                            Test::Entry(value(key, "map key")?, value(entry, "map value")?)
                        }
                    },
                ));
            }
        }
        Ask::Near => return Err(CqlError::unsupported("ANN ordering")),
    }
    Ok(())
}

fn bind_choices(choices: &Choices, name: &str, bind: &Bind<'_>) -> Result<Test, CqlError> {
    let mut values = Vec::new();
    for row in choices.bind(name, bind)? {
        for value in row {
            match value {
                Bound::Bytes(value) => values.push(value.into_owned()),
                // Nothing equals null. What is unset is an empty value to Cassandra, here alone.
                Bound::Null => {}
                Bound::Unset => values.push(Vec::new()),
            }
        }
    }
    Ok(Test::In(values))
}

fn unsupported(how: &str, what: &str, name: &str) -> CqlError {
    CqlError::invalid(format!("Unsupported {how} {what} for column {name}"))
}

fn known(value: Bound<'_>, what: &str, name: &str) -> Result<Vec<u8>, CqlError> {
    match value {
        Bound::Bytes(value) => Ok(value.into_owned()),
        Bound::Null => Err(unsupported("null", what, name)),
        Bound::Unset => Err(unsupported("unset", what, name)),
    }
}

impl BoundFilter {
    /// The columns that it tests.
    pub(super) fn columns<'t>(&self, table: &'t Table) -> impl Iterator<Item = &'t Column> {
        self.tests.iter().filter_map(|(place, _)| place.column(table))
    }

    /// Its tests as conditions of a WHERE clause (`RowFilter.toCQLString`).
    pub(super) fn texts(&self, table: &Table) -> Vec<String> {
        self.tests
            .iter()
            .filter_map(|(place, test)| Some(test.text(place.column(table)?)))
            .collect()
    }

    /// Does a row pass?
    pub fn passes(&self, table: &Table, row: &ResultRow<'_>) -> bool {
        self.tests.iter().all(|(place, test)| match place.column(table) {
            None => false,
            Some(column) if column.is_complex() => passes_complex(column, *place, test, row),
            Some(column) => {
                let value = column_value(table, row, *place);
                value.is_some_and(|value| test.passes(&column.ty, &value))
            }
        })
    }
}

fn passes_complex(column: &Column, place: Place, test: &Test, row: &ResultRow<'_>) -> bool {
    let cells = if place.kind == ColumnKind::Static { row.statics } else { row.row };
    let Some(cells) = cells else { return false };
    let mut cells = live_cells(cells, place.index, row.now_seconds);
    match (&column.ty, test) {
        (CqlType::Set { element, .. }, Test::Contains(wanted)) => {
            cells.any(|cell| cell.path.is_some_and(|path| element.compare(path, wanted).is_eq()))
        }
        (CqlType::List { element, .. }, Test::Contains(wanted)) => {
            cells.any(|cell| element.compare(cell.value, wanted).is_eq())
        }
        (CqlType::Map { value, .. }, Test::Contains(wanted)) => {
            cells.any(|cell| value.compare(cell.value, wanted).is_eq())
        }
        (CqlType::Map { key, .. }, Test::ContainsKey(wanted)) => {
            cells.any(|cell| cell.path.is_some_and(|path| key.compare(path, wanted).is_eq()))
        }
        (CqlType::Map { key, value, .. }, Test::Entry(wanted, entry)) => cells.any(|cell| {
            cell.path.is_some_and(|path| key.compare(path, wanted).is_eq())
                && value.compare(cell.value, entry).is_eq()
        }),
        _ => false,
    }
}

impl Test {
    fn passes(&self, ty: &CqlType, value: &[u8]) -> bool {
        // The total of a counter is a bigint.
        let ty = if *ty == CqlType::Counter { &CqlType::BigInt } else { ty };
        let mut elements = Elements::of_list(value).into_iter().flatten().flatten().flatten();
        let mut entries = Entries::of(value).into_iter().flatten().flatten();
        match (self, ty) {
            (Self::Compare(comparison, wanted), _) => {
                let order = ty.compare(value, wanted);
                match comparison {
                    Comparison::Equal => order.is_eq(),
                    Comparison::Above => order.is_gt(),
                    Comparison::AtLeast => order.is_ge(),
                    Comparison::Below => order.is_lt(),
                    Comparison::AtMost => order.is_le(),
                }
            }
            (Self::In(values), _) => values.iter().any(|wanted| ty.compare(value, wanted).is_eq()),
            (
                Self::Contains(wanted),
                CqlType::List { element, .. } | CqlType::Set { element, .. },
            ) => match wanted.is_empty() && element.is_empty_meaningless() {
                // what has no meaning is as good as null, which a list that was bound may have
                true => Elements::of_list(value)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .any(|item| item.is_none_or(<[u8]>::is_empty)),
                false => elements.any(|item| java_equal(element, item, wanted)),
            },
            (Self::Contains(wanted), CqlType::Map { value: ty, .. }) => {
                entries.any(|(_, item)| java_equal(ty, item, wanted))
            }
            (Self::ContainsKey(wanted), CqlType::Map { key, .. }) => {
                // Cassandra looks no further than where the key would stand if all keys were in
                // order
                entries.map(|(item, _)| key.compare(item, wanted)).find(|o| o.is_ge())
                    == Some(Ordering::Equal)
            }
            (Self::Entry(wanted, entry), CqlType::Map { key, value: ty, .. }) => {
                entries.any(|(k, v)| key.compare(k, wanted).is_eq() && ty.compare(v, entry).is_eq())
            }
            _ => false,
        }
    }
}
