//! What a WHERE clause asks of columns, relation by relation, and how relations about the same
//! columns merge.

use std::cmp::Ordering;
use std::sync::Arc;

use schema::{ColumnKind, Table};
use types::java_order;

use crate::error::CqlError;
use crate::select::operand::{Choices, Operand};
use crate::term::Term;

/// One end of a slice.
#[derive(Clone, Debug)]
pub(super) struct SliceEnd {
    /// Its values; fewer than the restriction has columns where a longer slice was merged in.
    pub operand: Operand,
    /// Does it belong to the slice?
    pub inclusive: bool,
}

/// What is asked of a collection.
#[derive(Clone, Debug)]
pub(super) enum Containing {
    /// `CONTAINS v`.
    Value(Term),
    /// `CONTAINS KEY k`.
    Key(Term),
    /// `m[k] = v`.
    Entry(Term, Term),
}

/// What is asked of the columns.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    /// Equality.
    Equal(Operand),
    /// One of several.
    In(Choices),
    /// Between two ends, of which at least one is given. The start is the lower value whatever the
    /// clustering order.
    Slice(Option<SliceEnd>, Option<SliceEnd>),
    /// Things in a collection.
    Contains(Vec<Containing>),
    /// To be near a vector: ORDER BY .. ANN OF.
    Near,
}

/// A restriction of one column or of several of the clustering in a row.
#[derive(Clone, Debug)]
pub(super) struct Restriction {
    /// Kind of the columns.
    pub kind: ColumnKind,
    /// Their indexes among the columns of the kind.
    pub columns: Vec<u16>,
    /// Was it written as a tuple, or merged with one that was?
    pub multi: bool,
    /// What is asked.
    pub ask: Ask,
}

impl Restriction {
    /// The first column's place.
    pub(super) fn first(&self) -> u16 {
        self.columns.first().copied().unwrap_or_default()
    }

    /// The last column's place.
    pub(super) fn last(&self) -> u16 {
        self.columns.last().copied().unwrap_or_default()
    }

    pub(super) fn is_slice(&self) -> bool {
        matches!(self.ask, Ask::Slice(..))
    }

    pub(super) fn is_contains(&self) -> bool {
        matches!(self.ask, Ask::Contains(_))
    }

    pub(super) fn is_equal(&self) -> bool {
        matches!(self.ask, Ask::Equal(_))
    }

    /// Name of the column at an index of its kind.
    pub(super) fn name<'t>(&self, table: &'t Table, column: u16) -> &'t str {
        table.columns_of(self.kind).get(usize::from(column)).map_or("", |column| &column.name)
    }

    fn names_in_common(&self, other: &Self, table: &Table) -> String {
        let common = self.columns.iter().filter(|column| other.columns.contains(column));
        common.map(|column| self.name(table, *column)).collect::<Vec<_>>().join(" ,")
    }

    /// Both restrictions as one, if two such may stand side by side.
    fn merge(&self, other: &Self, table: &Table) -> Result<Self, CqlError> {
        let names = self.names_in_common(other, table);
        match (&self.ask, &other.ask) {
            (Ask::Equal(_), _) => Err(CqlError::invalid(format!(
                "{names} cannot be restricted by more than one relation if it includes an Equal"
            ))),
            (Ask::In(_), _) => Err(CqlError::invalid(format!(
                "{names} cannot be restricted by more than one relation if it includes a IN"
            ))),
            (Ask::Slice(start, end), Ask::Slice(other_start, other_end)) => {
                self.check_slices(other, table, &names)?;
                let longer = if self.columns.len() >= other.columns.len() { self } else { other };
                Ok(Self {
                    kind: self.kind,
                    columns: longer.columns.clone(),
                    multi: self.multi || other.multi,
                    ask: Ask::Slice(
                        start.clone().or_else(|| other_start.clone()),
                        end.clone().or_else(|| other_end.clone()),
                    ),
                })
            }
            (Ask::Slice(..), _) => Err(CqlError::invalid(format!(
                "Column \"{names}\" cannot be restricted by both an equality and an inequality relation"
            ))),
            (Ask::Contains(asked), Ask::Contains(more)) => Ok(Self {
                ask: Ask::Contains(asked.iter().chain(more).cloned().collect()),
                ..self.clone()
            }),
            (Ask::Contains(_), _) => Err(CqlError::invalid(format!(
                "Collection column {names} can only be restricted by CONTAINS, CONTAINS KEY, or map-entry equality"
            ))),
            (Ask::Near, _) => Err(CqlError::invalid(format!(
                "{names} cannot be restricted by more than one relation in an ANN ordering"
            ))),
        }
    }

    fn check_slices(&self, other: &Self, table: &Table, names: &str) -> Result<(), CqlError> {
        let (Ask::Slice(start, end), Ask::Slice(other_start, other_end)) = (&self.ask, &other.ask)
        else {
            return Ok(());
        };
        if self.first() != other.first() {
            let later = self.name(table, self.first().max(other.first()));
            return Err(CqlError::invalid(format!(
                "Column \"{later}\" cannot be restricted by two inequalities not starting with the same column"
            )));
        }
        for (which, twice) in [
            ("start", start.is_some() && other_start.is_some()),
            ("end", end.is_some() && other_end.is_some()),
        ] {
            if twice {
                return Err(CqlError::invalid(format!(
                    "More than one restriction was found for the {which} bound on {names}"
                )));
            }
        }
        Ok(())
    }
}

/// The restrictions of the columns of one kind (or of regular and static ones together), by place
/// of the column, then by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Set {
    by_column: Vec<(SetKey, Arc<Restriction>)>,
    /// Is any of them an IN?
    pub has_in: bool,
    /// Is any of them a slice?
    pub has_slice: bool,
    /// Is any of them about what a collection contains?
    pub has_contains: bool,
    /// Is any of them neither an equality nor an IN?
    pub has_inequality: bool,
}

/// Place (-1 off the key) and name.
type SetKey = (i32, Arc<str>);

/// By place, then as Java compares the bytes of names.
fn compare_keys((a, a_name): &SetKey, (b, b_name): &SetKey) -> Ordering {
    a.cmp(b).then_with(|| java_order::buffers(a_name.as_bytes(), b_name.as_bytes()))
}

impl Set {
    pub(super) fn is_empty(&self) -> bool {
        self.by_column.is_empty()
    }

    /// Number of restricted columns.
    pub(super) fn len(&self) -> usize {
        self.by_column.len()
    }

    /// Each restriction once, in the order of their columns.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Restriction> {
        let mut before: Option<&Arc<Restriction>> = None;
        self.by_column.iter().filter_map(move |(_, restriction)| {
            let again = before.is_some_and(|before| Arc::ptr_eq(before, restriction));
            before = Some(restriction);
            (!again).then_some(&**restriction)
        })
    }

    /// The places of the restricted columns, in order.
    pub(super) fn places(&self) -> impl Iterator<Item = (i32, &str)> {
        self.by_column.iter().map(|((place, name), _)| (*place, &**name))
    }

    /// The restriction of the last restricted column.
    pub(super) fn last(&self) -> Option<&Restriction> {
        self.by_column.last().map(|(_, restriction)| &**restriction)
    }

    /// The name of the restricted column after a place.
    pub(super) fn name_after(&self, place: u16) -> Option<&str> {
        self.places().find(|(at, _)| *at > i32::from(place)).map(|(_, name)| name)
    }

    /// The restriction of a column.
    pub(super) fn of(&self, column: &schema::Column) -> Option<&Restriction> {
        let found = self.by_column.iter().find(|((_, name), _)| *name == column.name);
        found.map(|(_, restriction)| &**restriction)
    }

    /// What is asked of the contents of a column so far.
    fn contains_of(&mut self, keys: &[SetKey]) -> Option<&mut Vec<Containing>> {
        let [key] = keys else { return None };
        let found = self.by_column.iter_mut().find(|(at, r)| at == key && r.is_contains());
        let (_, restriction) = found?;
        match &mut Arc::make_mut(restriction).ask {
            Ask::Contains(asked) => Some(asked),
            _ => None,
        }
    }

    /// Adds a restriction, merging it with those of its columns.
    pub(super) fn add(&mut self, new: Restriction, table: &Table) -> Result<(), CqlError> {
        self.has_in |= matches!(new.ask, Ask::In(_));
        self.has_slice |= new.is_slice();
        self.has_contains |= new.is_contains();
        self.has_inequality |= !matches!(new.ask, Ask::Equal(_) | Ask::In(_));
        let columns = table.columns_of(new.kind);
        let keys = new.columns.iter().filter_map(|index| columns.get(usize::from(*index)));
        let keys: Vec<SetKey> = keys.map(|c| (c.position, Arc::clone(&c.name))).collect();
        if let Some(asked) = self.contains_of(&keys)
            && let Ask::Contains(more) = &new.ask
        {
            // Any number of these may be given: each costs its own length only.
            asked.extend(more.iter().cloned());
            return Ok(());
        }
        let mut existing: Vec<Arc<Restriction>> = Vec::new();
        for (_, restriction) in self.by_column.iter().filter(|(key, _)| keys.contains(key)) {
            if !existing.iter().any(|seen| Arc::ptr_eq(seen, restriction)) {
                existing.push(Arc::clone(restriction));
            }
        }
        let mut merged = Arc::new(new);
        for before in existing {
            merged = Arc::new(before.merge(&merged, table)?);
        }
        for key in keys {
            let entry = (key, Arc::clone(&merged));
            match self.by_column.binary_search_by(|(at, _)| compare_keys(at, &entry.0)) {
                Ok(at) => self.by_column[at] = entry,
                Err(at) => self.by_column.insert(at, entry),
            }
        }
        Ok(())
    }
}
