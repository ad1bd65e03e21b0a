//! Which partitions and rows a bound modification names.

use std::borrow::Cow;
use std::cmp::Ordering;

use rows::{Bound, BoundKind, Clustering};
use schema::{Column, KeyError, MAX_KEY_LENGTH, Table};
use types::value::Components;
use types::{CqlType, Few, KeyBytes, Token};

use crate::context::Bind;
use crate::error::CqlError;
use crate::modify::Kind;
use crate::modify::filter::{Filter, Restriction, Row, Slice, Test, name_at};
use crate::term::Marker;
use crate::value::{self, Value};

/// The most combinations of values that the IN restrictions of one statement may make. Cassandra
/// has a guardrail for it, off by default.
pub const MAX_COMBINATIONS: usize = 65_536;

/// The rows that a modification is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// None are named: the partition, or its static row.
    Partition,
    /// Rows, in order, each once.
    Rows(Few<Clustering>),
    /// Ranges of rows, in order.
    Ranges(Vec<(Bound, Bound)>),
}

impl Target {
    /// Is it about no row at all?
    pub fn names_nothing(&self) -> bool {
        match self {
            Self::Partition => false,
            Self::Rows(rows) => rows.is_empty(),
            Self::Ranges(ranges) => ranges.is_empty(),
        }
    }
}

type Values<'a> = Few<Cow<'a, [u8]>>;

impl Filter {
    /// The partition keys, in the order of their types, each once, those with another token left
    /// out.
    pub fn keys(&self, table: &Table, bind: &Bind<'_>) -> Result<Few<KeyBytes>, CqlError> {
        let mut combinations = combine("partition key", &self.key, &table.partition_key, bind)?;
        sort_unique(&mut combinations, &table.partition_key);
        let mut keys = Few::with_capacity(combinations.len());
        for values in &combinations {
            keys.push(key_bytes(table, values)?);
        }
        if let Some(token) = &self.token {
            let window = token.window(table, bind)?;
            keys.retain(|key| window.contains(Token::of(key), key));
        }
        Ok(keys)
    }

    /// The rows. Those of which INSERT and UPDATE name the first clustering columns alone (which
    /// only tables WITH COMPACT STORAGE have) have null in the others.
    pub fn target(&self, table: &Table, kind: Kind, bind: &Bind<'_>) -> Result<Target, CqlError> {
        let columns = &table.clustering;
        if self.clustering.is_empty() {
            return Ok(Target::Partition);
        }
        let is_slice = |r: &&Restriction| matches!(r.test, Test::Slice(_));
        let slice = self.clustering.last().filter(is_slice);
        let equal = self.clustering.len() - usize::from(slice.is_some());
        let equal = self.clustering.get(..equal).unwrap_or_default();
        let mut prefixes = combine("clustering key", equal, columns, bind)?;
        sort_unique(&mut prefixes, columns);
        let names_rows = kind != Kind::Delete || self.names_rows(table);
        if names_rows || slice.is_some() {
            check_complete(&prefixes, equal.last().map_or(0, Restriction::end), columns)?;
        }
        if names_rows {
            let rows = prefixes.iter().map(|values| {
                check_length(values)?;
                Ok(match columns.len().saturating_sub(values.len()) {
                    0 => clustering(values),
                    missing => padded(values, missing),
                })
            });
            return rows.collect::<Result<_, CqlError>>().map(Target::Rows);
        }
        let mut ranges = Vec::new();
        for prefix in &prefixes {
            match slice {
                None => ranges.push((
                    Bound::new(BoundKind::InclStart, clustering(prefix)),
                    Bound::new(BoundKind::InclEnd, clustering(prefix)),
                )),
                Some(restriction) => slice_ranges(prefix, restriction, table, bind, &mut ranges)?,
            }
        }
        let order = |a: &Bound, b: &Bound| rows::compare(&table.layout, a, b);
        ranges.retain(|(start, end)| order(start, end) == Ordering::Less);
        ranges.sort_by(|a, b| order(&a.0, &b.0));
        // the rows of a tuple that was bound with all its values lie within those of one with its
        // first only
        ranges.dedup_by(|next, before| order(&next.1, &before.1) != Ordering::Greater);
        Ok(Target::Ranges(ranges))
    }
}

fn key_bytes(table: &Table, values: &Values<'_>) -> Result<KeyBytes, CqlError> {
    check_length(values)?;
    let key = table.partition_key_bytes(values).map_err(|error| match error {
        KeyError::Arity { .. } | KeyError::Malformed => {
            CqlError::invalid("Some partition key parts are missing")
        }
        error @ KeyError::TooLong(_) => CqlError::invalid(error.to_string()),
    })?;
    if key.is_empty() {
        return Err(CqlError::invalid("Key may not be empty"));
    }
    Ok(key)
}

/// Keys and clusterings are written behind lengths of 16 bits (`ClusteringPrefix.validate`).
fn check_length(values: &Values<'_>) -> Result<(), CqlError> {
    let length: usize = values.iter().map(|value| value.len()).sum();
    if length > MAX_KEY_LENGTH {
        return Err(CqlError::invalid(KeyError::TooLong(length).to_string()));
    }
    Ok(())
}

fn clustering(values: &Values<'_>) -> Clustering {
    Clustering::new(values.iter().map(|value| Some(&**value)))
}

/// A clustering the last columns of which are null.
fn padded(values: &Values<'_>, missing: usize) -> Clustering {
    let values = values.iter().map(|value| Some(&**value));
    Clustering::new(values.chain(std::iter::repeat_n(None, missing)))
}

/// All combinations of the values of restrictions other than slices.
fn combine<'a>(
    what: &str,
    restrictions: &'a [Restriction],
    columns: &[Column],
    bind: &Bind<'a>,
) -> Result<Few<Values<'a>>, CqlError> {
    let mut all = Few::one(Values::new());
    let is_in = |r: &Restriction| matches!(r.test, Test::In(_) | Test::InMarker(_));
    let has_in = restrictions.iter().any(is_in);
    let check = |count: usize| match has_in {
        true => bind.guarded(|guard| guard.combinations(what, count)),
        false => Ok(()),
    };
    for restriction in restrictions {
        check_complete(&all, restriction.first, columns)?;
        let alternatives = alternatives(restriction, columns, bind)?;
        if alternatives.is_empty() {
            return Ok(Few::new());
        }
        if let [only] = alternatives.as_slice() {
            all.iter_mut().for_each(|values| values.extend(only.iter().cloned()));
            check(all.len())?;
            continue;
        }
        if all.len().saturating_mul(alternatives.len()) > MAX_COMBINATIONS {
            return Err(CqlError::invalid(format!(
                "The IN restrictions make more than {MAX_COMBINATIONS} combinations"
            )));
        }
        let pairs = all.iter().flat_map(|before| alternatives.iter().map(move |a| (before, a)));
        all = pairs.map(|(before, after)| [&before[..], &after[..]].concat().into()).collect();
        check(all.len())?;
    }
    Ok(all)
}

/// Has each combination a value for each of the first `wanted` columns? A bound tuple may have
/// fewer, but nothing can follow these: Cassandra gives what follows to the wrong column.
fn check_complete(all: &[Values<'_>], wanted: usize, columns: &[Column]) -> Result<(), CqlError> {
    let shortest = all.iter().map(|values| values.len()).min().unwrap_or(wanted);
    if shortest < wanted {
        let name = name_at(columns, shortest);
        return Err(CqlError::invalid(format!("Invalid null value for column {name}")));
    }
    Ok(())
}

fn sort_unique(all: &mut Few<Values<'_>>, columns: &[Column]) {
    if all.len() < 2 {
        return;
    }
    let order = |a: &Values<'_>, b: &Values<'_>| {
        let pairs = a.iter().zip(b).zip(columns);
        let mut orders =
            pairs.map(|((a, b), column)| column.ty.compare_clustering(column.reversed, a, b));
        orders.find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
    };
    all.sort_by(order);
    all.dedup_by(|b, a| order(a, b).is_eq());
}

/// The values that a restriction allows, each a value a column.
fn alternatives<'a>(
    restriction: &'a Restriction,
    columns: &[Column],
    bind: &Bind<'a>,
) -> Result<Few<Values<'a>>, CqlError> {
    let name = |at: usize| name_at(columns, restriction.first + at);
    let no_null = |at: usize| {
        let place = if restriction.is_multi { "value" } else { "value in condition" };
        CqlError::invalid(format!("Invalid null {place} for column {}", name(at)))
    };
    match &restriction.test {
        Test::Equal(row) => {
            let values = bind_row(row, restriction, columns, bind)?;
            let values = values.into_iter().enumerate();
            let values = values.map(|(at, value)| value.ok_or_else(|| no_null(at)));
            Ok(Few::one(values.collect::<Result<_, _>>()?))
        }
        Test::In(rows) => {
            let mut all = Few::with_capacity(rows.len());
            for row in rows {
                let values = bind_row(row, restriction, columns, bind)?;
                let values = values.into_iter().collect::<Option<Values<'a>>>();
                all.push(values.ok_or_else(|| in_null(restriction, columns))?);
            }
            Ok(all)
        }
        Test::InMarker(marker) => in_marker(marker, restriction, columns, bind).map(Few::from),
        Test::Slice(_) => Ok(Few::new()),
    }
}

fn in_null(restriction: &Restriction, columns: &[Column]) -> CqlError {
    let names = (restriction.first..restriction.first + restriction.count)
        .map(|at| name_at(columns, at))
        .collect::<Vec<_>>()
        .join(", ");
    CqlError::invalid(if restriction.is_multi {
        format!("Invalid null value in condition for columns: [{names}]")
    } else {
        format!("Invalid null value in condition for column {names}")
    })
}

/// The values of a row of terms, `None` for null. Unset ones are refused.
fn bind_row<'a>(
    row: &'a Row,
    restriction: &Restriction,
    columns: &[Column],
    bind: &Bind<'a>,
) -> Result<Few<Option<Cow<'a, [u8]>>>, CqlError> {
    let marker = match row {
        Row::Marker(marker) => marker,
        Row::Terms(terms) => {
            let mut values = Few::with_capacity(terms.len());
            for (at, term) in terms.iter().enumerate() {
                values.push(match term.bind(bind)? {
                    value::Bound::Bytes(value) => Some(value),
                    value::Bound::Null => None,
                    value::Bound::Unset if restriction.is_multi => {
                        return Err(CqlError::invalid(format!(
                            "Invalid unset value for tuple field number {at}"
                        )));
                    }
                    value::Bound::Unset => {
                        return Err(CqlError::invalid(format!(
                            "Invalid unset value for column {}",
                            name_at(columns, restriction.first)
                        )));
                    }
                });
            }
            return Ok(values);
        }
    };
    let tuple = match bind.values.get(marker.index) {
        Value::Bytes(tuple) => tuple,
        Value::Null => {
            return Err(CqlError::invalid(format!(
                "Invalid null value for tuple {}",
                marker.receiver.name
            )));
        }
        Value::Unset => {
            return Err(CqlError::invalid(format!(
                "Invalid unset value for tuple {}",
                marker.receiver.name
            )));
        }
    };
    tuple_values(&marker.receiver.ty, tuple)
}

/// The components of a tuple that a client sent.
fn tuple_values<'a>(ty: &CqlType, tuple: &'a [u8]) -> Result<Few<Option<Cow<'a, [u8]>>>, CqlError> {
    let wanted = ty.inner().count();
    let found = Components::of(tuple).take_while(Result::is_ok).count();
    if found > wanted {
        return Err(CqlError::invalid(format!(
            "Tuple value contained too many fields (expected {wanted}, got {found})"
        )));
    }
    ty.validate(tuple).map_err(|error| CqlError::invalid(error.to_string()))?;
    Ok(Components::of(tuple).flatten().map(|value| value.map(Cow::Borrowed)).collect())
}

/// The values of `IN ?`. Null elements are refused like null terms.
fn in_marker<'a>(
    marker: &Marker,
    restriction: &Restriction,
    columns: &[Column],
    bind: &Bind<'a>,
) -> Result<Vec<Values<'a>>, CqlError> {
    let name = name_at(columns, restriction.first);
    let list = match (bind.values.get(marker.index), restriction.is_multi) {
        (Value::Bytes(list), _) => list,
        (Value::Null, true) => {
            return Err(CqlError::invalid("Invalid null value for IN restriction"));
        }
        (Value::Null, false) => {
            return Err(CqlError::invalid(format!("Invalid null value for column {name}")));
        }
        (Value::Unset, true) => {
            let name = &marker.receiver.name;
            return Err(CqlError::invalid(format!("Invalid unset value for {name}")));
        }
        (Value::Unset, false) => {
            return Err(CqlError::invalid(format!("Invalid unset value for column {name}")));
        }
    };
    let CqlType::List { element, .. } = &marker.receiver.ty else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for item in marker.elements(list)? {
        let item = item.ok_or_else(|| in_null(restriction, columns))?;
        if !restriction.is_multi {
            all.push(Few::one(item));
            continue;
        }
        let Cow::Borrowed(tuple) = item else { continue };
        let values = tuple_values(element, tuple)?.into_iter().collect::<Option<Values<'a>>>();
        all.push(values.ok_or_else(|| in_null(restriction, columns))?);
    }
    Ok(all)
}

impl Marker {
    /// The elements of a list for `IN ?`, valid and in the stored form; `None` for null.
    pub fn elements<'a>(&self, list: &'a [u8]) -> Result<Vec<Option<Cow<'a, [u8]>>>, CqlError> {
        let CqlType::List { element, .. } = &self.receiver.ty else {
            return Err(CqlError::invalid("The data cannot be deserialized as a list"));
        };
        crate::term::elements(element, list)
    }
}

/// The values of one side of a slice, in order of the columns.
struct Edge<'a> {
    values: Values<'a>,
    inclusive: bool,
}

fn bind_edge<'a>(
    side: Option<&'a crate::modify::filter::Side>,
    restriction: &Restriction,
    columns: &[Column],
    bind: &Bind<'a>,
) -> Result<Option<Edge<'a>>, CqlError> {
    let Some(side) = side else { return Ok(None) };
    let values = bind_row(&side.row, restriction, columns, bind)?.into_iter().enumerate();
    let values = values.map(|(at, value)| {
        value.ok_or_else(|| {
            CqlError::invalid(format!(
                "Invalid null value in condition for column {}",
                name_at(columns, restriction.first + at)
            ))
        })
    });
    Ok(Some(Edge { values: values.collect::<Result<_, _>>()?, inclusive: side.inclusive }))
}

/// Appends the ranges of a slice behind a prefix. Where the columns differ in direction there are
/// several.
fn slice_ranges<'a>(
    prefix: &Values<'a>,
    restriction: &'a Restriction,
    table: &Table,
    bind: &Bind<'a>,
    out: &mut Vec<(Bound, Bound)>,
) -> Result<(), CqlError> {
    let columns = &table.clustering;
    let Test::Slice(Slice { lower, upper }) = &restriction.test else { return Ok(()) };
    let lower = bind_edge(lower.as_ref(), restriction, columns, bind)?;
    let upper = bind_edge(upper.as_ref(), restriction, columns, bind)?;
    let directions: Vec<bool> =
        columns.iter().skip(restriction.first).map(|column| column.reversed).collect();
    let above = lower.map(|edge| beyond(prefix, &edge, &directions, true));
    let below = upper.map(|edge| beyond(prefix, &edge, &directions, false));
    let (above, below) = match (above, below) {
        (Some(above), Some(below)) => (above, below),
        (Some(ranges), None) | (None, Some(ranges)) => {
            out.extend(ranges);
            return Ok(());
        }
        (None, None) => return Ok(()),
    };
    let order = |a: &Bound, b: &Bound| rows::compare(&table.layout, a, b);
    for a in &above {
        for b in &below {
            let start = if order(&a.0, &b.0).is_lt() { &b.0 } else { &a.0 };
            let end = if order(&a.1, &b.1).is_lt() { &a.1 } else { &b.1 };
            if order(start, end).is_lt() {
                out.push((start.clone(), end.clone()));
            }
        }
    }
    Ok(())
}

/// The ranges, in terms of the stored order, of what is greater (or else less) than an edge.
/// Columns of one direction in a row make one range; `directions` says of each column whether it is
/// reversed.
fn beyond(
    prefix: &Values<'_>,
    edge: &Edge<'_>,
    directions: &[bool],
    greater: bool,
) -> Vec<(Bound, Bound)> {
    let direction = |at: usize| directions.get(at).copied().unwrap_or(false);
    let count = edge.values.len();
    let place = |kind: BoundKind, values: usize| {
        let values = prefix.iter().chain(edge.values.iter().take(values));
        Bound::new(kind, Clustering::new(values.map(|value| Some(&**value))))
    };
    let mut ranges = Vec::new();
    let mut from = 0;
    while from < count {
        let reversed = direction(from);
        let to = (from..count).find(|at| direction(*at) != reversed).unwrap_or(count);
        // Only the value itself, all columns of it, may be included.
        let inclusive = edge.inclusive && to == count;
        ranges.push(if greater != reversed {
            let start = if inclusive { BoundKind::InclStart } else { BoundKind::ExclStart };
            (place(start, to), place(BoundKind::InclEnd, from))
        } else {
            let end = if inclusive { BoundKind::InclEnd } else { BoundKind::ExclEnd };
            (place(BoundKind::InclStart, from), place(end, to))
        });
        from = to;
    }
    ranges
}
