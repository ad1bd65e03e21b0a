//! The paths that are counted, as data: what is in the tables, what is asked.

use protocol::BatchKind;
use protocol::client::BoundValue;

/// Rows of a table whose partitions have one row each.
pub const ROWS: u64 = 1000;
/// Rows of the wide partition.
pub const WIDE_ROWS: u64 = 10_000;
/// YCSB's ten fields of 100 bytes.
pub const FIELDS: u64 = 10;
const FIELD_BYTES: usize = 100;

/// The tables. `{caching}` stands for the path's own.
pub const TABLES: [&str; 4] = [
    "CREATE TABLE y.usertable (y_id text PRIMARY KEY, field0 text, field1 text, field2 text, field3 text, field4 text, \
     field5 text, field6 text, field7 text, field8 text, field9 text) WITH caching = {caching}",
    "CREATE TABLE y.wide (p int, c int, v text, PRIMARY KEY (p, c)) WITH caching = {caching}",
    "CREATE TABLE y.counted (k int PRIMARY KEY, n counter)",
    "CREATE TABLE y.maps (k int PRIMARY KEY, m map<int, text>)",
];

const KEYS: &str = "{'keys': 'ALL', 'rows_per_partition': 'NONE'}";
const NOTHING: &str = "{'keys': 'NONE', 'rows_per_partition': 'NONE'}";
const ALL_ROWS: &str = "{'keys': 'ALL', 'rows_per_partition': 'ALL'}";

pub const INSERT: &str = "INSERT INTO y.usertable (y_id, field0, field1, field2, field3, field4, field5, field6, field7, field8, field9) \
                          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
pub const INSERT_WIDE: &str = "INSERT INTO y.wide (p, c, v) VALUES (0, ?, ?)";
const SELECT: &str = "SELECT * FROM y.usertable WHERE y_id = ?";
const COUNT: &str = "UPDATE y.counted SET n = n + 1 WHERE k = ?";

/// What is written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// Nothing.
    Nothing,
    /// The rows of `usertable`.
    Rows,
    /// The same, and flushed.
    Flushed,
    /// The wide partition.
    Wide,
    /// The same, and flushed.
    FlushedWide,
}

/// How it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A statement.
    One,
    /// A page of so many rows of it.
    Page,
    /// So many of it in a batch.
    Batch(BatchKind),
}

/// A path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Its name; where it is counted with twice the rows too, that one's follows.
    pub name: &'static str,
    pub loaded: Loaded,
    /// What is cached of the tables.
    pub caching: &'static str,
    pub statement: &'static str,
    pub shape: Shape,
    /// Rows that are read or written.
    pub rows: u64,
    /// The values of the statement of a number, over so many rows.
    pub values: fn(u64, u64) -> Vec<BoundValue>,
}

/// All of them.
pub const PATHS: [Path; 23] = [
    Path { name: "read", loaded: Loaded::Rows, ..READ },
    Path { name: "disk", loaded: Loaded::Flushed, ..READ },
    Path { name: "search", loaded: Loaded::Flushed, caching: NOTHING, ..READ },
    Path { name: "rows", loaded: Loaded::Flushed, caching: ALL_ROWS, ..READ },
    Path { name: "update", ..UPDATE },
    Path { name: "insert", statement: INSERT, values: row, ..UPDATE },
    slice("slice-100", 100),
    slice("slice-200", 200),
    slice("slice-5000", 5000),
    slice("slice-10000", 10_000),
    Path { loaded: Loaded::FlushedWide, ..slice("disk-slice-100", 100) },
    Path { loaded: Loaded::FlushedWide, ..slice("disk-slice-200", 200) },
    scan("scan-100", 100),
    scan("scan-200", 200),
    several("in-10", 10),
    several("in-20", 20),
    Path { name: "counter", statement: COUNT, values: numbered, loaded: Loaded::Nothing, ..UPDATE },
    counters("counters-10", 10),
    counters("counters-20", 20),
    map("map-10", 10),
    map("map-20", 20),
    batch("batch-10", 10),
    batch("batch-20", 20),
];

const READ: Path = Path {
    name: "read",
    loaded: Loaded::Rows,
    caching: KEYS,
    statement: SELECT,
    shape: Shape::One,
    rows: 1,
    values: |number, _| vec![key(number)],
};

const UPDATE: Path = Path {
    name: "update",
    statement: "UPDATE y.usertable SET field3 = ? WHERE y_id = ?",
    values: |number, _| vec![field(number), key(number)],
    ..READ
};

const fn slice(name: &'static str, rows: u64) -> Path {
    Path {
        name,
        loaded: Loaded::Wide,
        statement: "SELECT c, v FROM y.wide WHERE p = 0 AND c >= ? LIMIT ?",
        rows,
        values: |number, rows| vec![int(number * 13 % (WIDE_ROWS - rows + 1)), int(rows)],
        ..READ
    }
}

const fn scan(name: &'static str, rows: u64) -> Path {
    let statement = "SELECT * FROM y.usertable";
    Path { name, statement, shape: Shape::Page, rows, values: |_, _| Vec::new(), ..READ }
}

const fn several(name: &'static str, rows: u64) -> Path {
    let statement = "SELECT * FROM y.usertable WHERE y_id IN ?";
    Path { name, statement, rows, values: keys, ..READ }
}

const fn counters(name: &'static str, rows: u64) -> Path {
    let (shape, loaded) = (Shape::Batch(BatchKind::Counter), Loaded::Nothing);
    Path { name, loaded, statement: COUNT, shape, rows, values: numbered, ..UPDATE }
}

const fn map(name: &'static str, rows: u64) -> Path {
    let statement = "UPDATE y.maps SET m = m + ? WHERE k = ?";
    Path { name, loaded: Loaded::Nothing, statement, rows, values: entries, ..UPDATE }
}

const fn batch(name: &'static str, rows: u64) -> Path {
    let shape = Shape::Batch(BatchKind::Unlogged);
    Path { name, loaded: Loaded::Nothing, statement: INSERT, shape, rows, values: row, ..UPDATE }
}

/// The values of a row of `usertable`.
pub fn row(number: u64, _: u64) -> Vec<BoundValue> {
    std::iter::once(key(number)).chain((0..FIELDS).map(|n| field(number + n))).collect()
}

/// The values of a row of the wide partition.
pub fn wide_row(number: u64) -> Vec<BoundValue> {
    vec![int(number), BoundValue::Bytes(format!("{number:020}").into_bytes())]
}

fn key(number: u64) -> BoundValue {
    BoundValue::Bytes(key_text(number))
}

fn key_text(number: u64) -> Vec<u8> {
    format!("user{:019}", number % ROWS).into_bytes()
}

fn field(number: u64) -> BoundValue {
    BoundValue::Bytes(vec![b'a' + (number % 26) as u8; FIELD_BYTES])
}

fn int(number: u64) -> BoundValue {
    BoundValue::Bytes((number as u32).to_be_bytes().to_vec())
}

fn numbered(number: u64, _: u64) -> Vec<BoundValue> {
    vec![int(number % ROWS)]
}

fn sized(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// A list of keys.
fn keys(number: u64, rows: u64) -> Vec<BoundValue> {
    let mut list = (rows as u32).to_be_bytes().to_vec();
    (0..rows).for_each(|n| sized(&mut list, &key_text(number + n * 37)));
    vec![BoundValue::Bytes(list)]
}

/// A map of so many entries, and the key of a row.
fn entries(number: u64, rows: u64) -> Vec<BoundValue> {
    let mut map = (rows as u32).to_be_bytes().to_vec();
    for n in 0..rows {
        sized(&mut map, &(((number + n) % 64) as u32).to_be_bytes());
        sized(&mut map, &[b'x'; 20]);
    }
    vec![BoundValue::Bytes(map), int(number % ROWS)]
}
