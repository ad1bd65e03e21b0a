//! Which rows of a partition are wanted: by clustering, or between bounds.
//!
//! A tuple of columns is compared as a whole, `(a, b) > (1, 2)`, whatever the clustering order of
//! each; where the directions differ such a slice is several ranges of rows.

use std::cmp::Ordering;

use rows::{Bound as RowBound, BoundKind, Clustering, Layout, compare, compare_clusterings};
use schema::Table;
use types::Few;

use crate::context::Bind;
use crate::error::CqlError;
use crate::select::operand::Operand;
use crate::select::restriction::{Ask, Restriction, Set, SliceEnd};
use crate::value::Bound;

/// The most combinations that several INs may make together
/// (`in_select_cartesian_product_fail_threshold` has no limit by default, and memory none to give).
pub const MAX_COMBINATIONS: usize = 100_000;

/// The wanted rows of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowFilter {
    /// Ranges: start and end bounds, in clustering order, without overlap.
    Slices(Few<(RowBound, RowBound)>),
    /// Rows by clustering, in clustering order, each once. For a table without clustering columns
    /// its only row.
    Names(Few<Clustering>),
}

impl RowFilter {
    /// All rows of a partition.
    pub fn all() -> Self {
        Self::Slices(Few::one((RowBound::bottom(), RowBound::top())))
    }

    /// No row at all?
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Slices(slices) => slices.is_empty(),
            Self::Names(names) => names.is_empty(),
        }
    }

    /// Is a row of this clustering wanted?
    pub fn selects(&self, layout: &Layout, clustering: &Clustering) -> bool {
        match self {
            Self::Names(names) => names
                .binary_search_by(|name| {
                    compare_clusterings(layout, name.as_ref(), clustering.as_ref())
                })
                .is_ok(),
            Self::Slices(slices) => slices.iter().any(|(start, end)| {
                compare(layout, start, clustering) == Ordering::Less
                    && compare(layout, clustering, end) == Ordering::Less
            }),
        }
    }

    /// What is left after a row, on the way through the rows forwards or backwards.
    pub fn after(self, layout: &Layout, last: &Clustering, reversed: bool) -> Self {
        let beyond = if reversed { Ordering::Less } else { Ordering::Greater };
        match self {
            Self::Names(mut names) => {
                names.retain(|name| {
                    compare_clusterings(layout, name.as_ref(), last.as_ref()) == beyond
                });
                Self::Names(names)
            }
            Self::Slices(slices) => {
                let kept = slices.into_iter().filter_map(|(mut start, mut end)| {
                    if reversed {
                        if compare(layout, last, &end) == Ordering::Less {
                            end = RowBound::new(BoundKind::ExclEnd, last.clone());
                        }
                    } else if compare(layout, last, &start) == Ordering::Greater {
                        start = RowBound::new(BoundKind::ExclStart, last.clone());
                    }
                    (compare(layout, &start, &end) == Ordering::Less).then_some((start, end))
                });
                Self::Slices(kept.collect())
            }
        }
    }
}

/// Values of the first few columns, in the making.
pub(super) type Prefix<'a> = Few<std::borrow::Cow<'a, [u8]>>;

/// All combinations so far; none at all after an empty IN.
pub(super) struct Combinations<'a> {
    /// The combinations; starts as one empty prefix.
    pub prefixes: Few<Prefix<'a>>,
    /// What the columns are, for the message about too many.
    what: &'static str,
    /// Is any of the restrictions an IN?
    has_in: bool,
}

impl<'a> Combinations<'a> {
    pub(super) fn new(what: &'static str, has_in: bool) -> Self {
        Self { prefixes: Few::one(Prefix::new()), what, has_in }
    }

    /// Appends what an equality or an IN asks.
    pub(super) fn append(
        &mut self,
        restriction: &'a Restriction,
        table: &Table,
        bind: &Bind<'a>,
    ) -> Result<(), CqlError> {
        self.combine(restriction, table, bind)?;
        match self.has_in {
            true => bind.guarded(|guard| guard.combinations(self.what, self.prefixes.len())),
            false => Ok(()),
        }
    }

    /// Has each combination a value for each of the first `columns` clustering columns? A bound
    /// tuple may have fewer, but nothing can follow these: Cassandra gives what follows to the
    /// wrong column.
    fn check_complete(&self, columns: u16, table: &Table) -> Result<(), CqlError> {
        let shortest = self.prefixes.iter().map(|prefix| prefix.len()).min().unwrap_or_default();
        match table.clustering.get(shortest) {
            Some(missing) if shortest < usize::from(columns) => Err(null_value(&missing.name)),
            _ => Ok(()),
        }
    }

    fn combine(
        &mut self,
        restriction: &'a Restriction,
        table: &Table,
        bind: &Bind<'a>,
    ) -> Result<(), CqlError> {
        match &restriction.ask {
            Ask::Equal(operand) => {
                let values = equal_values(restriction, operand, table, bind)?;
                match values.split_last() {
                    // Values are cloned for all prefixes but one.
                    Some(_) if self.prefixes.len() == 1 => {
                        if let Some(prefix) = self.prefixes.first_mut() {
                            prefix.extend(values);
                        }
                    }
                    _ => {
                        for prefix in &mut self.prefixes {
                            prefix.extend(values.iter().cloned());
                        }
                    }
                }
                Ok(())
            }
            Ask::In(choices) => {
                let name = restriction.name(table, restriction.first());
                let rows = choices.bind(name, bind)?;
                let mut wanted = Vec::with_capacity(rows.len());
                for row in rows {
                    wanted.push(in_values(restriction, row, table)?);
                }
                self.multiply(&wanted)
            }
            Ask::Slice(..) | Ask::Contains(_) | Ask::Near => Ok(()),
        }
    }

    fn multiply(&mut self, rows: &[Prefix<'a>]) -> Result<(), CqlError> {
        let product = self.prefixes.len().saturating_mul(rows.len());
        if product > MAX_COMBINATIONS && self.prefixes.len() > 1 {
            return Err(CqlError::invalid(format!(
                "Guardrail in_select_cartesian_product violated: The cartesian product of the IN restrictions on {} produces {product} values, this exceeds fail threshold of {MAX_COMBINATIONS}",
                self.what
            )));
        }
        let mut prefixes = Vec::with_capacity(product);
        for prefix in &self.prefixes {
            for row in rows {
                prefixes.push(prefix.iter().chain(row).cloned().collect());
            }
        }
        self.prefixes = prefixes.into();
        Ok(())
    }
}

/// The values of an equality, of which none may be null or unset.
fn equal_values<'a>(
    restriction: &Restriction,
    operand: &'a Operand,
    table: &Table,
    bind: &Bind<'a>,
) -> Result<Prefix<'a>, CqlError> {
    let mut out = Prefix::with_capacity(restriction.columns.len());
    let values = operand.bind(bind)?;
    if values.is_empty() && operand.is_null(bind) {
        return Err(null_value(restriction.name(table, restriction.first())));
    }
    // a bound tuple may have fewer values than there are columns
    for (value, column) in values.into_iter().zip(&restriction.columns) {
        let name = restriction.name(table, *column);
        match value {
            Bound::Bytes(value) => out.push(value),
            Bound::Null if restriction.multi => return Err(null_value(name)),
            Bound::Null => return Err(null_in_condition(name)),
            Bound::Unset => {
                return Err(CqlError::invalid(format!("Invalid unset value for column {name}")));
            }
        }
    }
    Ok(out)
}

/// The values of one alternative of an IN.
fn in_values<'a>(
    restriction: &Restriction,
    row: Few<Bound<'a>>,
    table: &Table,
) -> Result<Prefix<'a>, CqlError> {
    let name = restriction.name(table, restriction.first());
    let mut out = Prefix::with_capacity(restriction.columns.len());
    for value in row {
        match value {
            Bound::Bytes(value) => out.push(value),
            Bound::Null if restriction.multi => {
                let names: Vec<&str> =
                    restriction.columns.iter().map(|c| restriction.name(table, *c)).collect();
                return Err(CqlError::invalid(format!(
                    "Invalid null value in condition for columns: [{}]",
                    names.join(", ")
                )));
            }
            Bound::Null => return Err(null_in_condition(name)),
            Bound::Unset => {
                return Err(CqlError::invalid(format!("Invalid unset value for column {name}")));
            }
        }
    }
    Ok(out)
}

fn null_value(name: &str) -> CqlError {
    CqlError::invalid(format!("Invalid null value for column {name}"))
}

fn null_in_condition(name: &str) -> CqlError {
    CqlError::invalid(format!("Invalid null value in condition for column {name}"))
}

/// The rows that restrictions of clustering columns select, those that only filter left aside.
pub(super) fn rows_of<'a>(
    set: &'a Set,
    table: &Table,
    bind: &Bind<'a>,
) -> Result<RowFilter, CqlError> {
    let layout = &*table.layout;
    let mut combinations = Combinations::new("clustering key", set.has_in);
    let mut slice = None;
    let mut place = 0;
    for restriction in set.iter() {
        if restriction.is_contains() || restriction.first() != place {
            break;
        }
        if let Ask::Slice(start, end) = &restriction.ask {
            slice = Some((restriction, start.as_ref(), end.as_ref()));
            break;
        }
        combinations.check_complete(place, table)?;
        combinations.append(restriction, table, bind)?;
        if combinations.prefixes.is_empty() {
            return Ok(RowFilter::Names(Few::new()));
        }
        place = restriction.last() + 1;
    }
    if slice.is_some() {
        combinations.check_complete(place, table)?;
    }
    // A slice's values are checked even if no prefix is left.
    let ends = match slice {
        Some((restriction, start, end)) => Some(Ends::bind(restriction, start, end, table, bind)?),
        None => None,
    };
    let mut prefixes = sorted(&combinations.prefixes, layout);
    if slice.is_none() && usize::from(place) == table.clustering.len() {
        // no row has fewer values than there are columns
        prefixes.retain(|prefix| prefix.as_ref().len() == table.clustering.len());
        return Ok(RowFilter::Names(prefixes));
    }
    let mut slices = Few::with_capacity(prefixes.len());
    for prefix in &prefixes {
        match &ends {
            None => slices.push((
                RowBound::new(BoundKind::InclStart, prefix.clone()),
                RowBound::new(BoundKind::InclEnd, prefix.clone()),
            )),
            Some(ends) => slices.extend(ends.ranges(prefix, layout)),
        }
    }
    slices.retain(|(start, end)| compare(layout, start, end) == Ordering::Less);
    // the rows of a tuple that was bound with all its values lie within those of one with its first
    // only
    slices.dedup_by(|next, before| compare(layout, &next.1, &before.1) != Ordering::Greater);
    Ok(RowFilter::Slices(slices))
}

/// Prefixes as clusterings, in order, each once.
fn sorted(prefixes: &[Prefix<'_>], layout: &Layout) -> Few<Clustering> {
    let clustering = |prefix: &Prefix<'_>| Clustering::new(prefix.iter().map(|v| Some(&**v)));
    let mut out: Few<Clustering> = prefixes.iter().map(clustering).collect();
    if out.len() > 1 {
        out.sort_by(|a, b| compare_clusterings(layout, a.as_ref(), b.as_ref()));
        out.dedup_by(|b, a| compare_clusterings(layout, a.as_ref(), b.as_ref()).is_eq());
    }
    out
}

/// One end of a slice, bound.
struct End {
    /// Null, which sorts before every value, is taken where the slice is of one column.
    values: Vec<Option<Vec<u8>>>,
    inclusive: bool,
}

/// The ends of a slice that begins with some clustering column.
struct Ends {
    /// The place of the first column.
    place: usize,
    start: Option<End>,
    end: Option<End>,
}

impl Ends {
    fn bind(
        restriction: &Restriction,
        start: Option<&SliceEnd>,
        end: Option<&SliceEnd>,
        table: &Table,
        bind: &Bind<'_>,
    ) -> Result<Self, CqlError> {
        let one = |end: Option<&SliceEnd>| {
            let end = end.map(|end| bind_end(restriction, end, table, bind)).transpose()?;
            Ok::<_, CqlError>(end.flatten())
        };
        let place = usize::from(restriction.first());
        Ok(Self { place, start: one(start)?, end: one(end)? })
    }

    /// The ranges of rows that have a prefix and lie between the ends, in clustering order; some
    /// may be empty.
    fn ranges(&self, prefix: &Clustering, layout: &Layout) -> Vec<(RowBound, RowBound)> {
        let side = |end: &Option<End>, above: bool| match end {
            Some(end) => half_ranges(prefix, end, above, self.place, layout),
            None => vec![(
                RowBound::new(BoundKind::InclStart, prefix.clone()),
                RowBound::new(BoundKind::InclEnd, prefix.clone()),
            )],
        };
        let above = side(&self.start, true);
        let below = side(&self.end, false);
        let mut out = Vec::with_capacity(above.len() + below.len());
        // Both are in order, and few: a column more makes one range more at most.
        for (start, end) in &above {
            for (other_start, other_end) in &below {
                let later = compare(layout, start, other_start) == Ordering::Less;
                let start = if later { other_start } else { start };
                let sooner = compare(layout, other_end, end) == Ordering::Less;
                let end = if sooner { other_end } else { end };
                if compare(layout, start, end) == Ordering::Less {
                    out.push((start.clone(), end.clone()));
                }
            }
        }
        out
    }
}

/// The end that an operand gives, if it gives a value at all.
fn bind_end(
    restriction: &Restriction,
    end: &SliceEnd,
    table: &Table,
    bind: &Bind<'_>,
) -> Result<Option<End>, CqlError> {
    let bound = end.operand.bind(bind)?;
    let mut values = Vec::with_capacity(bound.len());
    for (value, column) in bound.into_iter().zip(&restriction.columns) {
        let name = restriction.name(table, *column);
        match value {
            Bound::Bytes(value) => values.push(Some(value.into_owned())),
            Bound::Null if !restriction.multi => values.push(None),
            Bound::Null => return Err(null_in_condition(name)),
            Bound::Unset => {
                return Err(CqlError::invalid(format!("Invalid unset value for column {name}")));
            }
        }
    }
    if values.is_empty() && end.operand.is_null(bind) {
        return Err(null_in_condition(restriction.name(table, restriction.first())));
    }
    // a tuple without components limits nothing
    Ok((!values.is_empty()).then_some(End { values, inclusive: end.inclusive }))
}

/// The ranges of rows with a prefix whose next columns compare above (or below) a tuple of values,
/// in clustering order.
///
/// Columns in a row of one direction make one range: those that are equal before them, and above
/// from them on. In ascending columns what is above comes after what is equal, in descending ones
/// before.
fn half_ranges(
    prefix: &Clustering,
    end: &End,
    above: bool,
    place: usize,
    layout: &Layout,
) -> Vec<(RowBound, RowBound)> {
    let directions: Vec<bool> = layout
        .clustering
        .iter()
        .skip(place)
        .take(end.values.len())
        .map(|column| column.reversed)
        .collect();
    let with = |count: usize| {
        let values = end.values.iter().take(count).map(Option::as_deref);
        Clustering::new(prefix.as_ref().iter().chain(values))
    };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut from = 0;
    for run in directions.chunk_by(|a, b| a == b) {
        let to = from + run.len();
        let last = to == directions.len();
        let inclusive = last && end.inclusive;
        let follows = above != run.first().copied().unwrap_or_default();
        if follows {
            let kind = if inclusive { BoundKind::InclStart } else { BoundKind::ExclStart };
            after.push((
                RowBound::new(kind, with(to)),
                RowBound::new(BoundKind::InclEnd, with(from)),
            ));
        } else {
            let kind = if inclusive { BoundKind::InclEnd } else { BoundKind::ExclEnd };
            before.push((
                RowBound::new(BoundKind::InclStart, with(from)),
                RowBound::new(kind, with(to)),
            ));
        }
        from = to;
    }
    before.extend(after.into_iter().rev());
    before
}
