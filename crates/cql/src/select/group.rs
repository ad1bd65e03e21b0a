//! GROUP BY: which rows belong to a group, and the group that is being aggregated.

use rows::{Clustering, ClusteringRef};
use schema::Table;
use types::CqlType;

use crate::error::CqlError;
use crate::select::aggregation::Aggregation;
use crate::select::expr::{Env, Expr};

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
