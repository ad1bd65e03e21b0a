//! What is computed of a row: values, and the times of cells.

use std::borrow::Cow;

use rows::CellRef;
use schema::Table;
use types::CqlType;
use types::value::{
    Components, Elements, Entries, pack_components, pack_list, pack_map, pack_vector,
};

use crate::ast::CellMeta;
use crate::context::Bind;
use crate::error::CqlError;
use crate::select::aggregation::Aggregation;
use crate::select::cell::{put, put_bytes, put_i32};
use crate::select::row::{
    Computed, Place, ResultRow, cells_of, column_value, field_index, live_cells,
};
use crate::term::function::Function;
use crate::term::sort_entries;

/// A part of a value.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// A field of a user type.
    Field(usize),
    /// `[key]` of a set or map; the key is a bound term.
    Element { key: usize, key_type: CqlType, is_map: bool },
    /// `[from..to]` of a set or map, both inclusive; the ends are bound terms.
    Slice { from: Option<usize>, to: Option<usize>, key_type: CqlType, is_map: bool, frozen: bool },
}

/// An expression over a row.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    /// A column.
    Column(Place),
    /// A term, bound once a request.
    Term(usize),
    /// The result of an aggregate, by its number in the selection.
    Aggregate(usize),
    /// What an expression was in the first row of those that are aggregated.
    First(usize, Box<Expr>),
    /// When the cells of a column were written, or how long they have to live.
    Meta(CellMeta, Box<Expr>),
    /// A part of a value.
    Part(Box<Expr>, Part),
    /// A call.
    Call(Box<Function>, Vec<Expr>),
    /// A tuple or a user type.
    Tuple(Vec<Expr>),
    /// A list, or a set of elements of a type.
    Elements { exprs: Vec<Expr>, sorted_by: Option<CqlType> },
    /// A vector of elements of a type.
    Vector(CqlType, Vec<Expr>),
    /// A map with keys of a type.
    Map { key: CqlType, keys: Vec<Expr>, values: Vec<Expr> },
}

/// What expressions are computed in.
#[derive(Clone, Copy)]
pub(super) struct Env<'v> {
    pub table: &'v Table,
    /// The row; none where an aggregation met none.
    pub row: Option<&'v ResultRow<'v>>,
    /// Bound terms.
    pub terms: &'v [Option<Box<[u8]>>],
    pub bind: &'v Bind<'v>,
    /// What was aggregated up to now; nothing outside of an aggregation.
    pub aggregation: Option<&'v Aggregation>,
}

impl<'v> Env<'v> {
    /// The value of an expression.
    pub(super) fn value(&self, expr: &'v Expr) -> Result<Computed<'v>, CqlError> {
        Ok(match expr {
            Expr::Column(place) => self.column(*place),
            Expr::Term(index) => self.term(*index).map(Cow::Borrowed),
            Expr::Aggregate(index) => {
                self.aggregation.and_then(|all| all.value(*index)).map(Cow::Owned)
            }
            Expr::First(index, inner) => match self.aggregation.and_then(|all| all.first(*index)) {
                Some(first) => first.map(Cow::Borrowed),
                // there was no row
                None => self.value(inner)?,
            },
            Expr::Meta(kind, inner) => {
                let times = self.times(*kind, inner)?;
                let times = if *kind == CellMeta::MaxWritetime { times.max() } else { times };
                times.serialize(*kind).map(Cow::Owned)
            }
            Expr::Part(inner, part) => match self.value(inner)? {
                Some(value) => self.part(value, part),
                None => None,
            },
            Expr::Call(function, arguments) => self.call(function, arguments)?.map(Cow::Owned),
            Expr::Tuple(exprs) => Some(Cow::Owned(pack_components(self.values(exprs)?))),
            Expr::Elements { exprs, sorted_by: None } => {
                let mut list = Vec::new();
                put_i32(&mut list, exprs.len());
                self.values(exprs)?.iter().for_each(|item| put(&mut list, item.as_deref()));
                Some(Cow::Owned(list))
            }
            Expr::Elements { exprs, sorted_by: Some(ty) } => {
                let mut values = self.items(exprs, "collections")?;
                values.sort_by(|a, b| ty.compare(a, b));
                values.dedup_by(|b, a| ty.compare(a, b).is_eq());
                Some(Cow::Owned(pack_list(values)))
            }
            Expr::Vector(element, exprs) => {
                Some(Cow::Owned(pack_vector(element, self.items(exprs, "vectors")?)))
            }
            Expr::Map { key, keys, values } => {
                let keys = self.items(keys, "collections")?;
                let entries = keys.into_iter().zip(self.values(values)?).collect();
                let entries = sort_entries(key, entries);
                let mut map = Vec::new();
                put_i32(&mut map, entries.len());
                for (key, value) in entries {
                    put_bytes(&mut map, &key);
                    put(&mut map, value.as_deref());
                }
                Some(Cow::Owned(map))
            }
        })
    }

    fn call(
        &self,
        function: &Function,
        arguments: &'v [Expr],
    ) -> Result<Option<Vec<u8>>, CqlError> {
        // most functions have one or two arguments: those need no allocation
        match arguments {
            [one] => function.execute(&[self.value(one)?.as_deref()], self.bind),
            [one, two] => {
                let (one, two) = (self.value(one)?, self.value(two)?);
                function.execute(&[one.as_deref(), two.as_deref()], self.bind)
            }
            _ => {
                let values = self.values(arguments)?;
                let values: Vec<_> = values.iter().map(Option::as_deref).collect();
                function.execute(&values, self.bind)
            }
        }
    }

    fn values(&self, exprs: &'v [Expr]) -> Result<Vec<Computed<'v>>, CqlError> {
        exprs.iter().map(|expr| self.value(expr)).collect()
    }

    /// The elements of a collection or vector, none of them null.
    fn items(&self, exprs: &'v [Expr], of: &str) -> Result<Vec<Cow<'v, [u8]>>, CqlError> {
        let values = self.values(exprs)?.into_iter().collect::<Option<Vec<_>>>();
        values.ok_or_else(|| CqlError::invalid(format!("null is not supported inside {of}")))
    }

    fn term(&self, index: usize) -> Option<&'v [u8]> {
        self.terms.get(index)?.as_deref()
    }

    pub(super) fn column(&self, place: Place) -> Computed<'v> {
        column_value(self.table, self.row?, place)
    }

    fn part(&self, value: Cow<'v, [u8]>, part: &Part) -> Computed<'v> {
        match part {
            Part::Field(index) => {
                let field = Components::of(&value).nth(*index)?.ok()??;
                Some(Cow::Owned(field.to_vec()))
            }
            Part::Element { key, key_type, is_map } => {
                let key = self.term(*key)?;
                let (_, found) = find(&value, key, key_type, *is_map)?;
                Some(Cow::Owned(found.to_vec()))
            }
            Part::Slice { key_type, is_map, frozen, .. } => {
                let range = self.range(&value, part)?;
                if range.is_empty() && !frozen {
                    return None;
                }
                let entries = entries(&value, *is_map);
                let kept = entries.into_iter().skip(range.start).take(range.len());
                debug_assert!(*key_type != CqlType::Empty);
                Some(Cow::Owned(if *is_map {
                    pack_map(kept)
                } else {
                    pack_list(kept.map(|(key, _)| key))
                }))
            }
        }
    }

    /// The indexes of the elements that a slice takes.
    fn range(&self, value: &[u8], part: &Part) -> Option<std::ops::Range<usize>> {
        let Part::Slice { from, to, key_type, is_map, .. } = part else { return None };
        let entries = entries(value, *is_map);
        let from = from.and_then(|from| self.term(from));
        let to = to.and_then(|to| self.term(to));
        let start = from.map_or(0, |from| {
            entries.partition_point(|(key, _)| key_type.compare(key, from).is_lt())
        });
        let end = to.map_or(entries.len(), |to| {
            entries.partition_point(|(key, _)| key_type.compare(key, to).is_le())
        });
        Some(start..end.max(start))
    }

    fn times(&self, kind: CellMeta, expr: &'v Expr) -> Result<Times, CqlError> {
        Ok(match expr {
            Expr::Column(place) => self.column_times(kind, *place),
            Expr::Part(inner, part) => {
                let times = self.times(kind, inner)?;
                let Some(value) = self.value(inner)? else { return Ok(Times::None) };
                match part {
                    Part::Field(index) => match self.part(value, part) {
                        Some(_) => times.get(*index),
                        None => Times::None,
                    },
                    Part::Element { key, key_type, is_map } => {
                        let found =
                            self.term(*key).and_then(|key| find(&value, key, key_type, *is_map));
                        found.map_or(Times::None, |(index, _)| times.get(index))
                    }
                    Part::Slice { .. } => {
                        self.range(&value, part).map_or(Times::None, |range| times.slice(range))
                    }
                }
            }
            _ => Times::None,
        })
    }

    fn column_times(&self, kind: CellMeta, place: Place) -> Times {
        let (Some(row), Some(column)) = (self.row, place.column(self.table)) else {
            return Times::None;
        };
        let Some(cells) = cells_of(row, place) else { return Times::None };
        let now = row.now_seconds;
        let time = |cell: CellRef<'_>| match kind {
            CellMeta::Writetime | CellMeta::MaxWritetime => Some(cell.timestamp),
            CellMeta::Ttl if cell.is_expiring() => {
                cell.local_deletion_time.checked_sub(now).filter(|left| *left >= 0)
            }
            CellMeta::Ttl => None,
        };
        if !column.is_complex() {
            let cell = cells.cell(place.index).filter(|cell| cell.is_live(now));
            return Times::One(cell.and_then(time));
        }
        let live = live_cells(cells, place.index, now);
        let CqlType::Udt { definition, .. } = &column.ty else {
            return Times::Many(live.map(time).collect());
        };
        let mut times = Vec::new();
        for cell in live {
            if times.is_empty() {
                times.resize(definition.fields.len(), None);
            }
            if let Some(slot) = field_index(&cell).and_then(|index| times.get_mut(index)) {
                *slot = time(cell);
            }
        }
        Times::Many(times)
    }
}

/// The entries of a set (with empty values) or of a map. What does not read as one has none: it was
/// checked when it was written.
fn entries(value: &[u8], is_map: bool) -> Vec<(&[u8], &[u8])> {
    if is_map {
        Entries::of(value).map(|entries| entries.flatten().collect()).unwrap_or_default()
    } else {
        let elements = Elements::of_list(value);
        let elements = elements.map(|items| items.flatten().flatten().map(|key| (key, key)));
        elements.map(Iterator::collect).unwrap_or_default()
    }
}

/// The place of a key and its value.
fn find<'c>(
    value: &'c [u8],
    key: &[u8],
    key_type: &CqlType,
    is_map: bool,
) -> Option<(usize, &'c [u8])> {
    let entries = entries(value, is_map);
    let index = entries.iter().position(|(at, _)| key_type.compare(at, key).is_eq())?;
    entries.get(index).map(|(_, value)| (index, *value))
}

/// Times of the cells of a value: of one, or of each of its cells.
enum Times {
    None,
    One(Option<i64>),
    Many(Vec<Option<i64>>),
}

impl Times {
    fn get(self, index: usize) -> Self {
        match self {
            Self::Many(times) => times.get(index).map_or(Self::None, |time| Self::One(*time)),
            one => one,
        }
    }

    fn slice(self, range: std::ops::Range<usize>) -> Self {
        match self {
            _ if range.is_empty() => Self::None,
            Self::Many(times) => Self::Many(times.get(range).unwrap_or_default().to_vec()),
            one => one,
        }
    }

    fn max(self) -> Self {
        match self {
            Self::Many(times) if times.is_empty() => Self::None,
            Self::Many(times) => Self::One(times.into_iter().max().flatten()),
            one => one,
        }
    }

    fn serialize(self, kind: CellMeta) -> Option<Vec<u8>> {
        let one = |time: i64| match kind {
            CellMeta::Ttl => i32::try_from(time).unwrap_or(i32::MAX).to_be_bytes().to_vec(),
            CellMeta::Writetime | CellMeta::MaxWritetime => time.to_be_bytes().to_vec(),
        };
        match self {
            Self::None => None,
            Self::One(time) => time.map(one),
            Self::Many(times) if times.is_empty() => None,
            Self::Many(times) => {
                let mut out = Vec::new();
                put_i32(&mut out, times.len());
                for time in times {
                    put(&mut out, time.map(one).as_deref());
                }
                Some(out)
            }
        }
    }
}

impl Expr {
    /// The terms that say which part of a value is meant, with what Cassandra calls the part.
    pub(super) fn part_terms(&self, out: &mut Vec<(usize, &'static str)>) {
        match self {
            Self::Part(inner, part) => {
                match part {
                    Part::Field(_) => {}
                    Part::Element { key, .. } => out.push((*key, "element")),
                    Part::Slice { from, to, .. } => {
                        out.extend(from.iter().chain(to).map(|end| (*end, "slice")));
                    }
                }
                inner.part_terms(out);
            }
            Self::Meta(_, inner) | Self::First(_, inner) => inner.part_terms(out),
            Self::Call(_, items)
            | Self::Tuple(items)
            | Self::Elements { exprs: items, .. }
            | Self::Vector(_, items) => items.iter().for_each(|item| item.part_terms(out)),
            Self::Map { keys, values, .. } => {
                keys.iter().chain(values).for_each(|item| item.part_terms(out));
            }
            Self::Column(_) | Self::Term(_) | Self::Aggregate(_) => {}
        }
    }

    /// The column of which a term picks a part.
    pub(super) fn part_of(&self, term: usize) -> Option<Place> {
        let mut terms = Vec::new();
        self.part_terms(&mut terms);
        if !terms.iter().any(|(at, _)| *at == term) {
            return None;
        }
        let mut at = self;
        loop {
            at = match at {
                Self::Column(place) => return Some(*place),
                Self::Part(inner, _) | Self::Meta(_, inner) | Self::First(_, inner) => inner,
                Self::Call(_, items)
                | Self::Tuple(items)
                | Self::Elements { exprs: items, .. }
                | Self::Vector(_, items) => {
                    items.iter().find(|item| item.part_of(term).is_some())?
                }
                Self::Map { keys, values, .. } => {
                    keys.iter().chain(values).find(|item| item.part_of(term).is_some())?
                }
                Self::Term(_) | Self::Aggregate(_) => return None,
            };
        }
    }

    /// Is there an aggregate in it?
    fn aggregates(&self) -> bool {
        match self {
            Self::Aggregate(_) => true,
            Self::Column(_) | Self::Term(_) => false,
            Self::Part(inner, _) | Self::Meta(_, inner) | Self::First(_, inner) => {
                inner.aggregates()
            }
            Self::Call(_, items)
            | Self::Tuple(items)
            | Self::Elements { exprs: items, .. }
            | Self::Vector(_, items) => items.iter().any(Self::aggregates),
            Self::Map { keys, values, .. } => keys.iter().chain(values).any(Self::aggregates),
        }
    }

    /// In an aggregation what stands beside aggregates is that of the first row: marks those parts,
    /// `count` of which were found before.
    pub(super) fn keep_firsts(self, count: &mut usize) -> Self {
        let mut all = |items: Vec<Self>| -> Vec<Self> {
            items.into_iter().map(|item| item.keep_firsts(count)).collect()
        };
        match self {
            Self::Term(_) | Self::Aggregate(_) | Self::First(..) => self,
            plain if !plain.aggregates() => {
                *count += 1;
                Self::First(*count - 1, Box::new(plain))
            }
            Self::Part(inner, part) => Self::Part(Box::new(inner.keep_firsts(count)), part),
            Self::Meta(kind, inner) => Self::Meta(kind, Box::new(inner.keep_firsts(count))),
            Self::Call(function, items) => Self::Call(function, all(items)),
            Self::Tuple(items) => Self::Tuple(all(items)),
            Self::Elements { exprs, sorted_by } => Self::Elements { exprs: all(exprs), sorted_by },
            Self::Vector(element, items) => Self::Vector(element, all(items)),
            Self::Map { key, keys, values } => {
                let keys = all(keys);
                Self::Map { key, keys, values: all(values) }
            }
            Self::Column(_) => self,
        }
    }

    /// Is all of it known before the first row?
    fn is_constant(&self) -> bool {
        match self {
            Self::Term(_) => true,
            Self::Call(function, items) => {
                function.is_pure() && items.iter().all(Self::is_constant)
            }
            Self::Tuple(items) | Self::Elements { exprs: items, .. } | Self::Vector(_, items) => {
                items.iter().all(Self::is_constant)
            }
            Self::Map { keys, values, .. } => keys.iter().chain(values).all(Self::is_constant),
            Self::Column(_)
            | Self::Aggregate(_)
            | Self::First(..)
            | Self::Meta(..)
            | Self::Part(..) => false,
        }
    }

    /// Takes constant calls out, to be computed once a request: they become terms from number
    /// `first` on.
    pub(super) fn lift_constants(self, first: usize, out: &mut Vec<Self>) -> Self {
        if matches!(self, Self::Call(..)) && self.is_constant() {
            out.push(self);
            return Self::Term(first + out.len() - 1);
        }
        let mut all = |items: Vec<Self>| -> Vec<Self> {
            items.into_iter().map(|item| item.lift_constants(first, out)).collect()
        };
        match self {
            Self::Call(function, items) => Self::Call(function, all(items)),
            Self::Tuple(items) => Self::Tuple(all(items)),
            Self::Elements { exprs, sorted_by } => Self::Elements { exprs: all(exprs), sorted_by },
            Self::Vector(element, items) => Self::Vector(element, all(items)),
            Self::Map { key, keys, values } => {
                let keys = all(keys);
                Self::Map { key, keys, values: all(values) }
            }
            Self::Part(inner, part) => Self::Part(Box::new(inner.lift_constants(first, out)), part),
            other => other,
        }
    }

    /// Visits the parts that are kept of the first row, in order.
    pub(super) fn for_each_first<'e>(&'e self, visit: &mut impl FnMut(&'e Self)) {
        match self {
            Self::First(_, inner) => visit(inner),
            other => other.for_each_part(&mut |part| part.for_each_first(visit)),
        }
    }

    /// Visits what it is made of, one level down.
    pub(super) fn for_each_part<'e>(&'e self, visit: &mut dyn FnMut(&'e Self)) {
        match self {
            Self::Column(_) | Self::Term(_) | Self::Aggregate(_) => {}
            Self::First(_, inner) | Self::Part(inner, _) | Self::Meta(_, inner) => visit(inner),
            Self::Call(_, items)
            | Self::Tuple(items)
            | Self::Elements { exprs: items, .. }
            | Self::Vector(_, items) => items.iter().for_each(visit),
            Self::Map { keys, values, .. } => keys.iter().chain(values).for_each(visit),
        }
    }
}
