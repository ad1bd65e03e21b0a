//! Additions, deletions and reads as CQL.

use protocol::client::OwnedRows;

use super::history::{Counts, Deleted, Place, Unit};
use crate::operation::{Column, Partition};
use crate::statement::{Statement, bound, int};
use crate::tables::KEYSPACE;

/// The name of a table of counters.
pub fn table(number: u8) -> String {
    format!("n{number}")
}

fn name(partition: Partition) -> String {
    format!("{KEYSPACE}.{}", table(partition.table))
}

/// `WHERE`, with its values, of a partition or one row of it.
fn at(partition: Partition, row: Option<i32>) -> Statement {
    let key = int(partition.key);
    match row {
        None => Statement { text: "WHERE k = ?".into(), values: vec![key] },
        Some(row) => {
            Statement { text: "WHERE k = ? AND c = ?".into(), values: vec![key, int(row)] }
        }
    }
}

fn column((partition, unit): Place) -> (String, Statement) {
    match unit {
        Unit::Static => ("s".into(), at(partition, None)),
        Unit::Cell(row, column) => (format!("{column:?}"), at(partition, Some(row))),
    }
}

/// Adds to a counter.
pub fn of_addition(place: Place, delta: i64) -> Statement {
    let (column, Statement { text, values }) = column(place);
    let sign = if delta < 0 { '-' } else { '+' };
    let table = name(place.0);
    let text = format!("UPDATE {table} SET {column} = {column} {sign} ? {text}");
    let delta = bound(delta.unsigned_abs().to_be_bytes());
    Statement { text, values: std::iter::once(delta).chain(values).collect() }
}

/// Deletes counters.
pub fn of_deletion(what: Deleted) -> Statement {
    let (head, at) = match what {
        Deleted::Counter(place) => {
            let (column, at) = column(place);
            (format!("DELETE {column} FROM {}", name(place.0)), at)
        }
        Deleted::Row(partition, row) => {
            (format!("DELETE FROM {}", name(partition)), at(partition, Some(row)))
        }
        Deleted::Partition(partition) => {
            (format!("DELETE FROM {}", name(partition)), at(partition, None))
        }
        Deleted::Table(number) => {
            let text = format!("TRUNCATE {KEYSPACE}.{}", table(number));
            return Statement { text, values: Vec::new() };
        }
    };
    Statement { text: format!("{head} {}", at.text), values: at.values }
}

/// Reads a partition, or one row of it.
pub fn of_read(partition: Partition, row: Option<i32>) -> Statement {
    let Statement { text, values } = at(partition, row);
    Statement { text: format!("SELECT c, s, a, b FROM {} {text}", name(partition)), values }
}

/// What a read of a row, or of all rows, shows; `None` if it is no such answer.
pub fn counts(row: Option<i32>, rows: &OwnedRows) -> Option<Counts> {
    let mut counts = Counts { row, ..Counts::default() };
    let mut statics = None;
    for cells in &rows.rows {
        let [c, s, a, b] = &cells[..] else { return None };
        if statics.replace(s).is_some_and(|before| before != s) {
            return None;
        }
        let mut show = |unit: Unit, cell: &Option<Vec<u8>>| {
            let Some(bytes) = cell else { return Some(()) };
            let value = i64::from_be_bytes(bytes.as_slice().try_into().ok()?);
            counts.values.insert(unit, value);
            Some(())
        };
        show(Unit::Static, s)?;
        let Some(c) = c else { continue };
        let row = i32::from_be_bytes(c.as_slice().try_into().ok()?);
        show(Unit::Cell(row, Column::A), a)?;
        show(Unit::Cell(row, Column::B), b)?;
    }
    counts.shows_statics = row.is_none() || statics.is_some();
    Some(counts)
}
