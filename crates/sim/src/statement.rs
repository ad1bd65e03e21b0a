//! Changes and reads as CQL.

use protocol::client::BoundValue;

use crate::operation::{Change, Column, Partition, Query, Range, Value};
use crate::tables::KEYSPACE;

/// A statement and its values.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its text.
    pub text: String,
    /// Its values, by position.
    pub values: Vec<BoundValue>,
}

/// What the clients need, as statements: two tables of plain values, two of counters.
pub fn definitions() -> Vec<String> {
    let keyspace = format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = \
         {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    );
    let class = "'class': 'SizeTieredCompactionStrategy', 'min_threshold': '2'";
    let options = [
        format!(
            "compaction = {{{class}}} AND caching = {{'keys': 'ALL', 'rows_per_partition': '3'}}"
        ),
        format!(
            "CLUSTERING ORDER BY (c DESC) AND gc_grace_seconds = 0 \
             AND compaction = {{{class}, 'min_sstable_size': '1024'}} \
             AND compression = {{'enabled': false}} \
             AND caching = {{'keys': 'ALL', 'rows_per_partition': 'ALL'}}"
        ),
    ];
    let kinds =
        [("t", "s blob static, a blob, b bigint"), ("n", "s counter static, a counter, b counter")];
    let tables = kinds.iter().flat_map(|(name, columns)| {
        options.iter().enumerate().map(move |(number, options)| {
            format!(
                "CREATE TABLE {KEYSPACE}.{name}{number} (k int, c int, {columns}, \
                 PRIMARY KEY (k, c)) WITH {options}"
            )
        })
    });
    std::iter::once(keyspace).chain(tables).collect()
}

/// A bound value.
pub fn bound(bytes: impl Into<Vec<u8>>) -> BoundValue {
    BoundValue::Bytes(bytes.into())
}

pub(crate) fn int(value: i32) -> BoundValue {
    bound(value.to_be_bytes())
}

fn number(value: Value) -> BoundValue {
    bound(value.0.to_be_bytes())
}

fn blob(value: Value) -> BoundValue {
    bound(value.to_blob())
}

fn in_column(column: Column, value: Value) -> BoundValue {
    match column {
        Column::A => blob(value),
        Column::B => number(value),
    }
}

fn table(partition: Partition) -> String {
    format!("{KEYSPACE}.t{}", partition.table)
}

/// The conditions of a range, and their values after that of the key.
fn conditions(range: Range, values: &mut Vec<BoundValue>) -> String {
    let mut text = String::new();
    let mut condition = |bound: Option<(i32, bool)>, with: &str, without: &str| {
        if let Some((value, inclusive)) = bound {
            text += &format!(" AND c {} ?", if inclusive { with } else { without });
            values.push(int(value));
        }
    };
    match (range.from, range.to) {
        (Some((from, true)), Some((to, true))) if from == to => {
            condition(Some((from, true)), "=", "=");
        }
        (from, to) => {
            condition(from, ">=", ">");
            condition(to, "<=", "<");
        }
    }
    text
}

/// A change as a statement.
pub fn of_change(partition: Partition, change: &Change) -> Statement {
    let table = table(partition);
    let key = int(partition.key);
    let using = |ttl: Option<u32>| if ttl.is_some() { " USING TTL ?" } else { "" };
    let seconds = |ttl: Option<u32>| ttl.map(|ttl| int(ttl as i32));
    let (text, values) = match *change {
        Change::Insert { row, a, b, ttl } => {
            let (names, marks) = if b.is_some() { (", b", ", ?") } else { ("", "") };
            let text = format!(
                "INSERT INTO {table} (k, c, a{names}) VALUES (?, ?, ?{marks}){}",
                using(ttl)
            );
            let values = [key, int(row), blob(a)].into_iter().chain(b.map(number));
            (text, values.chain(seconds(ttl)).collect())
        }
        Change::Set { row, column, value: Some(value), ttl } => {
            let text =
                format!("UPDATE {table}{} SET {column:?} = ? WHERE k = ? AND c = ?", using(ttl));
            let values = seconds(ttl).into_iter().chain([in_column(column, value), key, int(row)]);
            (text, values.collect())
        }
        Change::Set { row, column, value: None, .. } => {
            (format!("DELETE {column:?} FROM {table} WHERE k = ? AND c = ?"), vec![key, int(row)])
        }
        Change::Static { value: Some(value) } => {
            (format!("UPDATE {table} SET s = ? WHERE k = ?"), vec![blob(value), key])
        }
        Change::Static { value: None } => (format!("DELETE s FROM {table} WHERE k = ?"), vec![key]),
        Change::DeleteRow { row } => {
            (format!("DELETE FROM {table} WHERE k = ? AND c = ?"), vec![key, int(row)])
        }
        Change::DeleteRange { range } => {
            let mut values = vec![key];
            let from = range.from.or(range.to.is_none().then_some((i32::MIN, true)));
            let range = conditions(Range { from, ..range }, &mut values);
            (format!("DELETE FROM {table} WHERE k = ?{range}"), values)
        }
        Change::DeletePartition => (format!("DELETE FROM {table} WHERE k = ?"), vec![key]),
    };
    Statement { text, values }
}

/// A read as a statement: `c`, `s`, `a`, `b` of each row.
pub fn of_query(query: &Query) -> Statement {
    let mut values = vec![int(query.partition.key)];
    let range = conditions(query.range, &mut values);
    let order = match (query.reversed, query.is_ascending()) {
        (false, _) => "",
        (true, true) => " ORDER BY c ASC",
        (true, false) => " ORDER BY c DESC",
    };
    let table = table(query.partition);
    Statement { text: format!("SELECT c, s, a, b FROM {table} WHERE k = ?{range}{order}"), values }
}
