//! What rows must satisfy, as another node asks (`RowFilter`). Conditions of indexes are among
//! them: their rows are found by going over all.

use cql::select::{BoundFilter, Comparison, ResultRow, Test};
use internode::payload::PayloadError;
use internode::payload::read::{Expression, Operator};
use rows::{ClusteringRef, Purger, RowBuilder, RowRef, purge_row};
use schema::{Column, ColumnKind, Table};
use types::value::Elements;

/// The conditions of a read.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    /// Of the key and static columns: for whole partitions.
    of_partition: BoundFilter,
    /// Of clustering and regular columns.
    of_row: BoundFilter,
    /// Does a row pass as it is, what is deleted and has expired with it? Else as clients see it.
    sees_dead: bool,
}

impl Conditions {
    /// # Errors
    /// If they are none that are served.
    pub fn new(
        table: &Table,
        expressions: &[Expression],
        sees_dead: bool,
    ) -> Result<Self, PayloadError> {
        let tests: Vec<(&Column, Test)> =
            expressions.iter().map(|one| test(table, one)).collect::<Result<_, _>>()?;
        let (of_partition, of_row): (Vec<_>, Vec<_>) =
            tests.into_iter().partition(|(column, _)| {
                matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Static)
            });
        let (of_partition, of_row) = (BoundFilter::new(of_partition), BoundFilter::new(of_row));
        Ok(Self { of_partition, of_row, sees_dead })
    }

    /// Are there any of rows?
    pub fn has_of_row(&self) -> bool {
        !self.of_row.is_empty()
    }

    /// Does a partition pass?
    pub fn partition_passes(
        &self,
        table: &Table,
        key: &[u8],
        statics: Option<RowRef<'_>>,
        now: i64,
    ) -> bool {
        let clustering = ClusteringRef::EMPTY;
        let row = ResultRow { key, clustering, statics, row: None, now_seconds: now };
        self.of_partition.is_empty() || self.of_partition.passes(table, &row)
    }

    /// Does a row pass? Where there are conditions at all, what clients do not see does not
    /// (`RowFilter.applyToRow`).
    pub fn row_passes(
        &self,
        table: &Table,
        key: &[u8],
        row: RowRef<'_>,
        now: i64,
        scratch: &mut RowBuilder,
    ) -> bool {
        if self.of_partition.is_empty() && self.of_row.is_empty() {
            return true;
        }
        let seen = match self.sees_dead {
            true => Some(row),
            false => purge_row(&table.layout, row, &Purger::live_only(now, false), scratch),
        };
        let Some(row) = seen else { return false };
        let clustering = row.clustering();
        let row = ResultRow { key, clustering, statics: None, row: Some(row), now_seconds: now };
        self.of_row.passes(table, &row)
    }
}

fn test<'t>(table: &'t Table, expression: &Expression) -> Result<(&'t Column, Test), PayloadError> {
    let column_of =
        |name: &str| table.column(name).ok_or_else(|| PayloadError::UnknownColumn(name.to_owned()));
    match expression {
        Expression::Simple { column, operator, value } => {
            let column = column_of(column)?;
            let compare = |comparison| Test::Compare(comparison, value.to_vec());
            let test = match operator {
                Operator::Eq => compare(Comparison::Equal),
                Operator::Greater => compare(Comparison::Above),
                Operator::GreaterOrEqual => compare(Comparison::AtLeast),
                Operator::Less => compare(Comparison::Below),
                Operator::LessOrEqual => compare(Comparison::AtMost),
                Operator::Contains => Test::Contains(value.to_vec()),
                Operator::ContainsKey => Test::ContainsKey(value.to_vec()),
                Operator::In => Test::In(choices(value)?),
                _ => return Err(PayloadError::NotServed("operators of custom indexes")),
            };
            Ok((column, test))
        }
        Expression::MapEntry { column, operator: Operator::Eq, key, value } => {
            Ok((column_of(column)?, Test::Entry(key.to_vec(), value.to_vec())))
        }
        _ => Err(PayloadError::NotServed("conditions of custom indexes")),
    }
}

/// The values of a list, as IN has it.
fn choices(list: &[u8]) -> Result<Vec<Vec<u8>>, PayloadError> {
    let elements = Elements::of_list(list)?;
    let mut choices = Vec::new();
    for element in elements {
        choices.extend(element?.map(<[u8]>::to_vec));
    }
    Ok(choices)
}
