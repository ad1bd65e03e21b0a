//! Aggregations: over all rows of a read, or over each group of GROUP BY.

use rows::{Clustering, ClusteringRef};
use schema::Table;
use types::CqlType;

use crate::error::CqlError;
use crate::select::expr::{Env, Expr};
use crate::select::project::put;
use crate::term::function::aggregate::{Aggregate, State};

/// An aggregate of the selection.
#[derive(Clone, Debug)]
pub(super) struct Aggregated {
    pub work: Aggregate,
    /// The type of the argument.
    pub ty: CqlType,
    /// The argument; none where rows are counted.
    pub argument: Option<Expr>,
}

/// What is computed of rows, and what of groups: see [`Aggregation`].
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregates {
    pub all: Vec<Aggregated>,
    /// How many parts of the outputs are kept of the first row.
    pub firsts: usize,
}

/// Aggregates on their way, and parts of the first row.
#[derive(Clone, Debug)]
pub struct Aggregation {
    states: Vec<State>,
    firsts: Option<Vec<Option<Box<[u8]>>>>,
}

impl Aggregates {
    pub(super) fn begin(&self) -> Aggregation {
        let states = self.all.iter().map(|one| State::new(one.work, &one.ty)).collect();
        Aggregation { states, firsts: None }
    }

    /// Is the result the same whoever takes which rows in?
    pub(super) fn merge(&self) -> bool {
        let has_decimal = |ty: &CqlType| ty.any(&mut |ty| *ty == CqlType::Decimal);
        // of values that compare equal the first one counts, and only those of decimals may differ
        let merges = |one: &Aggregated| {
            let is_extreme = matches!(one.work, Aggregate::Min | Aggregate::Max);
            State::new(one.work, &one.ty).merges() && !(is_extreme && has_decimal(&one.ty))
        };
        self.firsts == 0 && self.all.iter().all(merges)
    }

    /// Appends what an aggregation takes of a row as cells: the arguments of the aggregates, and
    /// the parts that are kept of the first.
    pub(super) fn inputs(
        &self,
        outputs: &[Expr],
        env: &Env<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), CqlError> {
        for one in &self.all {
            match &one.argument {
                Some(argument) => put(out, env.value(argument)?.as_deref()),
                None => put(out, Some(&[])),
            }
        }
        let mut result = Ok(());
        for output in outputs {
            output.for_each_first(&mut |inner| {
                if result.is_ok() {
                    result = env.value(inner).map(|value| put(out, value.as_deref()));
                }
            });
        }
        result
    }
}

impl Aggregation {
    pub(super) fn value(&self, index: usize) -> Option<Vec<u8>> {
        self.states.get(index)?.value()
    }

    /// A part of the first row; nothing if there was no row.
    pub(super) fn first(&self, index: usize) -> Option<Option<&[u8]>> {
        self.firsts.as_ref()?.get(index).map(Option::as_deref)
    }

    /// Takes in what another shard aggregated; only for those that [`Aggregates::merge`].
    pub fn merge(&mut self, other: Self) -> Result<(), CqlError> {
        for (state, more) in self.states.iter_mut().zip(other.states) {
            state.merge(more)?;
        }
        Ok(())
    }

    /// Takes a row in.
    pub(super) fn add(
        &mut self,
        aggregates: &Aggregates,
        outputs: &[Expr],
        env: &Env<'_>,
    ) -> Result<(), CqlError> {
        for (state, one) in self.states.iter_mut().zip(&aggregates.all) {
            match &one.argument {
                Some(argument) => state.add(env.value(argument)?.as_deref())?,
                None => state.add(Some(&[]))?,
            }
        }
        if self.firsts.is_none() && aggregates.firsts > 0 {
            let mut firsts = Vec::with_capacity(aggregates.firsts);
            let mut result = Ok(());
            for output in outputs {
                output.for_each_first(&mut |inner| {
                    if result.is_ok() {
                        result = env
                            .value(inner)
                            .map(|value| firsts.push(value.as_deref().map(Into::into)));
                    }
                });
            }
            result?;
            self.firsts = Some(firsts);
        }
        Ok(())
    }

    /// Takes a row in by its cells ([`Aggregates::inputs`]).
    pub(super) fn add_inputs(&mut self, firsts: usize, cells: &mut &[u8]) -> Result<(), CqlError> {
        for state in &mut self.states {
            state.add(next_cell(cells))?;
        }
        let given: Vec<_> = (0..firsts).map(|_| next_cell(cells)).collect();
        if self.firsts.is_none() && firsts > 0 {
            self.firsts = Some(given.into_iter().map(|value| value.map(Into::into)).collect());
        }
        Ok(())
    }
}

/// The next of the cells that were put one after the other.
fn next_cell<'c>(cells: &mut &'c [u8]) -> Option<&'c [u8]> {
    let (length, rest) = cells.split_first_chunk::<4>()?;
    *cells = rest;
    let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
    let (value, rest) = cells.split_at_checked(length)?;
    *cells = rest;
    Some(value)
}

/// How rows are grouped.
#[derive(Clone, Debug)]
pub(super) struct GroupBy {
    /// So many clustering columns tell groups apart; partitions do in any case.
    pub prefix: usize,
    /// Of the last of these columns, not the value does but what a function makes of it.
    pub function: Option<(Expr, CqlType)>,
    /// Why the function cannot be used, which is found when the statement is run.
    pub refused: Option<String>,
}

/// A group that is being aggregated.
#[derive(Clone, Debug)]
pub struct Group {
    /// What is aggregated of it.
    pub aggregation: Aggregation,
    /// The clustering of its first row.
    pub first: Clustering,
    /// The clustering of its last row up to now, packed.
    last: Vec<u8>,
    /// Is there a row in it, or static values alone?
    pub has_row: bool,
    output: Option<Vec<u8>>,
}

impl Group {
    /// The clustering of its last row up to now.
    pub fn last(&self) -> ClusteringRef<'_> {
        ClusteringRef::from_packed(&self.last)
    }

    pub(super) fn set_last(&mut self, row: ClusteringRef<'_>) {
        self.last.clear();
        self.last.extend_from_slice(row.as_packed());
    }
}

impl GroupBy {
    pub(super) fn output(&self, env: &Env<'_>) -> Result<Option<Vec<u8>>, CqlError> {
        match &self.function {
            Some((expr, _)) => Ok(env.value(expr)?.map(std::borrow::Cow::into_owned)),
            None => Ok(None),
        }
    }

    pub(super) fn open(
        &self,
        aggregation: Aggregation,
        row: ClusteringRef<'_>,
        has_row: bool,
        env: &Env<'_>,
    ) -> Result<Group, CqlError> {
        let output = if has_row { self.output(env)? } else { None };
        let last = row.as_packed().to_vec();
        Ok(Group { aggregation, first: row.to_owned(), last, has_row, output })
    }

    /// Does a row of the same partition belong to a group?
    pub(super) fn contains(
        &self,
        group: &Group,
        table: &Table,
        row: ClusteringRef<'_>,
        env: &Env<'_>,
    ) -> Result<bool, CqlError> {
        if !group.has_row {
            return Ok(false);
        }
        let values = self.prefix - usize::from(self.function.is_some());
        let columns = table.clustering.iter().take(values);
        let same = columns.zip(group.last().iter()).zip(row.iter()).all(
            |((column, left), right)| match (left, right) {
                (Some(left), Some(right)) => column.ty.compare(left, right).is_eq(),
                (left, right) => left.is_none() == right.is_none(),
            },
        );
        let Some((_, ty)) = &self.function else { return Ok(same) };
        let output = self.output(env)?;
        Ok(same
            && match (&group.output, &output) {
                (Some(left), Some(right)) => ty.compare(left, right).is_eq(),
                (left, right) => left.is_none() == right.is_none(),
            })
    }
}
