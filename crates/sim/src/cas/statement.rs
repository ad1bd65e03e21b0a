//! Operations as CQL, and answers as outcomes.

use protocol::client::{BoundValue, OwnedRows};

use super::model::{Condition, Effect, Outcome, Part, State, Value};
use crate::statement::{Statement, bound};

/// The keyspace of these worlds.
pub const KEYSPACE: &str = "cas";

/// Kinds of partitions, each with a table of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One number.
    Register,
    /// Two rows of a number each.
    Pair,
    /// A list.
    List,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Register, Self::Pair, Self::List];

    /// Its table.
    pub fn table(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Pair => "pair",
            Self::List => "list",
        }
    }

    /// Its rows.
    pub fn rows(self) -> usize {
        if self == Self::Pair { 2 } else { 1 }
    }

    fn value(self, value: &Value) -> BoundValue {
        match (self, value) {
            (_, None) => BoundValue::Null,
            (Self::List, Some(numbers)) => list(numbers),
            (_, Some(numbers)) => bound(numbers.first().copied().unwrap_or_default().to_be_bytes()),
        }
    }

    fn parse(self, cell: Option<&Vec<u8>>) -> Option<Value> {
        let Some(cell) = cell else { return Some(None) };
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_be_bytes);
        match self {
            Self::List => {
                let (_, items) = cell.split_at_checked(4)?;
                let numbers = items.chunks(12).map(|item| number(item.get(4..)?));
                numbers.collect::<Option<Vec<_>>>().map(Some)
            }
            _ => Some(Some(vec![number(cell)?])),
        }
    }
}

fn list(numbers: &[u64]) -> BoundValue {
    let mut bytes = (numbers.len() as u32).to_be_bytes().to_vec();
    for number in numbers {
        bytes.extend(8_u32.to_be_bytes());
        bytes.extend(number.to_be_bytes());
    }
    bound(bytes)
}

/// What the clients need.
pub fn definitions() -> Vec<String> {
    let columns = |kind: Kind| match kind {
        Kind::Register => "k int PRIMARY KEY, v bigint",
        Kind::Pair => "k int, c int, v bigint, PRIMARY KEY (k, c)",
        Kind::List => "k int PRIMARY KEY, v list<bigint>",
    };
    let table =
        |kind: Kind| format!("CREATE TABLE {KEYSPACE}.{} ({})", kind.table(), columns(kind));
    let keyspace = format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = \
         {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    );
    std::iter::once(keyspace).chain(Kind::ALL.map(table)).collect()
}

/// A read of a partition.
pub fn of_read(kind: Kind, key: i32) -> Statement {
    let columns = if kind == Kind::Pair { "c, v" } else { "v" };
    let text = format!("SELECT {columns} FROM {KEYSPACE}.{} WHERE k = ?", kind.table());
    Statement { text, values: vec![bound(key.to_be_bytes())] }
}

/// A part of a change.
pub fn of_part(kind: Kind, key: i32, part: &Part) -> Statement {
    let table = format!("{KEYSPACE}.{}", kind.table());
    let key = bound(key.to_be_bytes());
    let row = bound((part.row as i32).to_be_bytes());
    let (at, mut names) = match kind {
        Kind::Pair => ("k = ? AND c = ?", vec![key, row]),
        _ => ("k = ?", vec![key]),
    };
    if part.condition == Condition::Missing
        && let Effect::Set(value) = &part.effect
    {
        let (columns, marks) = if kind == Kind::Pair { ("k, c", "?, ?") } else { ("k", "?") };
        names.push(kind.value(value));
        let text = format!("INSERT INTO {table} ({columns}, v) VALUES ({marks}, ?) IF NOT EXISTS");
        return Statement { text, values: names };
    }
    let (text, mut values) = match &part.effect {
        Effect::Set(None) => (format!("DELETE FROM {table} WHERE {at}"), Vec::new()),
        Effect::Set(value) => {
            (format!("UPDATE {table} SET v = ? WHERE {at}"), vec![kind.value(value)])
        }
        Effect::Append(number) => {
            (format!("UPDATE {table} SET v = v + ? WHERE {at}"), vec![list(&[*number])])
        }
        Effect::Prepend(number) => {
            (format!("UPDATE {table} SET v = ? + v WHERE {at}"), vec![list(&[*number])])
        }
    };
    values.append(&mut names);
    let condition = match &part.condition {
        Condition::Is(value) => {
            values.push(kind.value(value));
            "IF v = ?"
        }
        Condition::Exists | Condition::Missing => "IF EXISTS",
    };
    Statement { text: format!("{text} {condition}"), values }
}

/// The rows of an answer by number; `None` if it is not such an answer. `alone` is the row of an
/// answer that names none.
fn by_row(kind: Kind, rows: &OwnedRows, alone: usize) -> Option<State> {
    let named = |name: &str| rows.metadata.columns.iter().position(|column| column.name == name);
    let mut state = vec![None; kind.rows()];
    let Some(value) = named("v") else { return Some(state) };
    for row in &rows.rows {
        let at = match named("c") {
            Some(at) => match row.get(at)? {
                Some(cell) => i32::from_be_bytes(cell.as_slice().try_into().ok()?) as usize,
                None => continue,
            },
            None => alone,
        };
        *state.get_mut(at)? = kind.parse(row.get(value)?.as_ref())?;
    }
    Some(state)
}

/// What a change was told.
pub fn outcome(kind: Kind, parts: &[Part], rows: &OwnedRows) -> Option<Outcome> {
    let applied = rows.rows.first()?.first()?.as_deref()? == [1];
    if applied {
        return (rows.rows.len() == 1 && rows.metadata.columns.len() == 1)
            .then_some(Outcome::Applied);
    }
    let state = by_row(kind, rows, parts.first()?.row)?;
    let seen = parts.iter().map(|part| state.get(part.row).cloned().flatten());
    Some(Outcome::Refused(seen.collect()))
}

/// What a read gave.
pub fn seen(kind: Kind, rows: &OwnedRows) -> Option<Outcome> {
    by_row(kind, rows, 0).map(Outcome::Saw)
}
