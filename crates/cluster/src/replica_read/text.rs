//! A replica's read as CQL, for samples of it (`ReadCommand.toCQLString`). It does not show what
//! rows are filtered by.

use cql::select::{NO_LIMIT, PartitionKey, RangeBound, ReplicaRead, RowFilter};
use internode::payload::read::{KeyRange, Position, ReadCommand, RowChoice, RowsOf, Target};
use schema::{Column, Table};
use types::Token;

/// The read of a partition, or of all of a range.
pub(super) fn text(table: &Table, command: &ReadCommand) -> String {
    let (key, range, rows) = match &command.target {
        Target::Partition { key, rows } => (Some(&**key), NO_RANGE, rows),
        Target::Range { keys, rows, .. } => (None, bounds(keys), rows),
    };
    let limit = |limit: i32| match limit {
        i32::MAX => NO_LIMIT,
        limit => u32::try_from(limit).unwrap_or_default(),
    };
    let limits = [command.limits.rows, command.limits.per_partition].map(limit);
    let read = ReplicaRead {
        table,
        columns: columns(table, command),
        key,
        range,
        rows: filter(rows),
        reversed: rows.reversed,
        limits,
    };
    read.text()
}

const NO_RANGE: [RangeBound; 2] = [RangeBound::Unbounded, RangeBound::Unbounded];

/// None where all were asked for.
fn columns<'t>(table: &'t Table, command: &ReadCommand) -> Vec<&'t str> {
    let queried = command.columns.queried();
    let statics = table.statics.iter().filter(|column| queried.statics.contains(column.index));
    let regulars = table.regulars.iter().filter(|column| queried.regulars.contains(column.index));
    let asked: Vec<&Column> = statics.chain(regulars).collect();
    match asked.len() == table.statics.len() + table.regulars.len() {
        true => Vec::new(),
        false => asked.iter().map(|column| &*column.name).collect(),
    }
}

fn filter(rows: &RowsOf) -> RowFilter {
    match &rows.choice {
        RowChoice::Slices(slices) => RowFilter::Slices(slices.iter().cloned().collect()),
        RowChoice::Names(names) => RowFilter::Names(names.iter().cloned().collect()),
    }
}

fn bounds(keys: &KeyRange) -> [RangeBound; 2] {
    let bound = |place: &Position, is_inclusive, after_is_inclusive: bool| match place {
        Position::Before(Token(i64::MIN)) | Position::After(Token(i64::MIN)) => {
            RangeBound::Unbounded
        }
        Position::Before(token) => {
            RangeBound::Token { token: *token, inclusive: !after_is_inclusive }
        }
        Position::After(token) => {
            RangeBound::Token { token: *token, inclusive: after_is_inclusive }
        }
        Position::Key(key) => {
            let key = PartitionKey::new(key.clone());
            RangeBound::Key { key, inclusive: is_inclusive }
        }
    };
    [bound(&keys.from, keys.from_inclusive, false), bound(&keys.to, keys.to_inclusive, true)]
}
