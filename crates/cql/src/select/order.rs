//! ORDER BY: which way rows are read, and how those of several partitions are sorted.

use std::cmp::Ordering;

use rows::ClusteringRef;
use schema::{ColumnKind, Table};

use crate::ast;
use crate::error::CqlError;
use crate::scope::Scope;
use crate::select::restrictions::Restrictions;
use crate::select::row::Place;

/// The order of rows of several partitions, by their clusterings. Rows that compare equal stay as
/// they come.
#[derive(Clone, Debug)]
pub struct PostOrder {
    columns: Vec<u16>,
    reversed: bool,
}

impl PostOrder {
    /// Compares two rows by clustering; that of a row made of static values alone is empty.
    pub fn compare(&self, table: &Table, a: ClusteringRef<'_>, b: ClusteringRef<'_>) -> Ordering {
        let order = self.columns.iter().map(|&index| {
            let column = table.clustering.get(usize::from(index));
            let (a, b) = (a.get(usize::from(index)).flatten(), b.get(usize::from(index)).flatten());
            match (a, b, column) {
                (Some(a), Some(b), Some(column)) => {
                    column.ty.compare_clustering(column.reversed, a, b)
                }
                (a, b, _) => a.is_some().cmp(&b.is_some()),
            }
        });
        let order = order.fold(Ordering::Equal, Ordering::then);
        if self.reversed { order.reverse() } else { order }
    }
}

/// What ORDER BY asks.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// Read rows backwards?
    pub reversed: bool,
    /// Sort afterwards?
    pub post: Option<PostOrder>,
}

/// The columns of ORDER BY, each once, with the last direction given for it.
pub(super) fn columns_of(
    select: &ast::Select,
    table: &Table,
) -> Result<Vec<(Place, bool)>, CqlError> {
    let mut columns: Vec<(Place, bool)> = Vec::new();
    for ordering in &select.order_by {
        let place = Place::of(Scope::column(table, &ordering.column)?);
        match columns.iter_mut().find(|(seen, _)| *seen == place) {
            Some((_, descending)) => *descending = ordering.descending,
            None => columns.push((place, ordering.descending)),
        }
    }
    Ok(columns)
}

impl Order {
    /// Checks the columns and finds the direction.
    pub(super) fn prepare(
        columns: &[(Place, bool)],
        restrictions: &Restrictions,
        table: &Table,
    ) -> Result<Self, CqlError> {
        if columns.is_empty() {
            return Ok(Self::default());
        }
        if restrictions.uses_index {
            return Err(CqlError::invalid(
                "ORDER BY with 2ndary indexes is not supported, except for ANN queries.",
            ));
        }
        if restrictions.is_range {
            return Err(CqlError::invalid(
                "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.",
            ));
        }
        let reversed = direction(columns, restrictions, table)?;
        let post = restrictions.key_has_in(table).then(|| PostOrder {
            columns: columns.iter().map(|(place, _)| place.index).collect(),
            reversed,
        });
        Ok(Self { reversed, post })
    }
}

/// Against the clustering order or with it? All columns must agree, and follow each other but for
/// those that an equality fixes.
fn direction(
    columns: &[(Place, bool)],
    restrictions: &Restrictions,
    table: &Table,
) -> Result<bool, CqlError> {
    let mut next = 0;
    let mut directions = vec![None; table.clustering.len()];
    for (place, descending) in columns {
        let column = place.column(table);
        let Some(column) = column.filter(|column| column.kind == ColumnKind::Clustering) else {
            return Err(CqlError::invalid(format!(
                "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got {}",
                column.map_or("", |column| &column.name)
            )));
        };
        let at = usize::from(column.index);
        while next != at {
            let skipped = table.clustering.get(next);
            if !skipped.is_some_and(|skipped| restrictions.is_equal(skipped)) {
                return Err(CqlError::invalid(
                    "Order by currently only supports the ordering of columns following their declared order in the PRIMARY KEY",
                ));
            }
            next += 1;
        }
        next += 1;
        if let Some(slot) = directions.get_mut(at) {
            *slot = Some(*descending != column.reversed);
        }
    }
    let mut given = directions.into_iter().flatten();
    let first = given.next().unwrap_or_default();
    if given.any(|direction| direction != first) {
        return Err(CqlError::invalid("Unsupported order by relation"));
    }
    Ok(first)
}
