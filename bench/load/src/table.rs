//! The table of measurements, like YCSB's `usertable`, and operations on it.

use std::cell::Cell;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;

use crate::Outcome;
use crate::options::Options;
use crate::reasons::Failure;

/// Inserts at a time, before a measurement begins.
const INSERTS: usize = 64;
/// Bytes of random text of which columns are pieces, beside those of one column.
const TEXT_BYTES: usize = 1 << 16;
/// Rows of a scan, unless told.
const SCANNED: u32 = 1000;
/// How keys begin: of rows that are there, and of others.
const PRESENT: &str = "user";
const ABSENT: &str = "none";
/// What is compressed at once, unless told: Cassandra's default.
const CHUNK_KIB: u32 = 16;
/// Options of the table.
pub const OPTIONS: [&str; 10] =
    ["table", "rows", "columns", "bytes", "load", "replicas", "chunk", "absent", "scanned", "seed"];

/// Of keys and values, unless told: each measurement has the same.
const SEED: u64 = 1;

/// What chooses them, for one of several that are not to choose the same.
pub fn rng(options: &Options, number: u64) -> Outcome<StdRng> {
    let seed: u64 = options.one("seed", SEED)?;
    // those of the next seed are others, too
    Ok(StdRng::seed_from_u64((seed << 32) + number))
}

/// What is done with a row.
#[derive(Clone, Copy)]
pub enum Kind {
    Read,
    /// Of one column.
    Update,
    /// Of a row that there was none of.
    Insert,
    /// Of many rows, from anywhere in the table.
    Scan,
}

/// One operation.
pub struct Operation {
    kind: Kind,
    row: u64,
    column: usize,
    /// Where its value begins in the text.
    from: usize,
}

pub struct Table {
    session: Session,
    read: PreparedStatement,
    /// Of each column.
    updates: Vec<PreparedStatement>,
    insert: PreparedStatement,
    scan: PreparedStatement,
    rows: u64,
    /// Of the next row that is inserted.
    next: Cell<u64>,
    /// Bytes of a column.
    bytes: usize,
    text: String,
    /// Are rows read that there are none of?
    is_absent: bool,
}

impl Table {
    /// The one that options name, made and filled if they say so.
    pub async fn open(
        session: Session,
        options: &Options,
        replicas: u32,
        rng: &mut StdRng,
    ) -> Outcome<Self> {
        let name: String = options.one("table", "bench.usertable".to_owned())?;
        let columns: usize = options.one("columns", 10)?;
        let bytes: usize = options.one("bytes", 100)?;
        let rows = options.one("rows", 100_000)?;
        if columns == 0 || rows == 0 {
            return Err("a table has a column and a row at least".into());
        }
        if options.has("load") {
            let replicas = options.one("replicas", replicas)?;
            create(&session, &name, columns, replicas, options.one("chunk", CHUNK_KIB)?).await?;
        }
        let names: Vec<String> = (0..columns).map(|n| format!("field{n}")).collect();
        let marks = vec!["?"; columns + 1].join(", ");
        let insert = format!("INSERT INTO {name} (y_id, {}) VALUES ({marks})", names.join(", "));
        let mut updates = Vec::new();
        for column in &names {
            let update = format!("UPDATE {name} SET {column} = ? WHERE y_id = ?");
            let mut update = session.prepare(update).await?;
            update.set_is_idempotent(true);
            updates.push(update);
        }
        let mut read = session.prepare(format!("SELECT * FROM {name} WHERE y_id = ?")).await?;
        read.set_use_cached_result_metadata(true);
        read.set_is_idempotent(true);
        let text = (0..TEXT_BYTES + bytes).map(|_| char::from(rng.random_range(b' '..=b'~')));
        let mut insert = session.prepare(insert).await?;
        insert.set_is_idempotent(true);
        let limit: u32 = options.one("scanned", SCANNED)?;
        let scan = format!("SELECT * FROM {name} WHERE token(y_id) > ? LIMIT {limit}");
        let scan = session.prepare(scan).await?;
        let table = Self {
            read,
            updates,
            insert,
            scan,
            rows,
            next: Cell::new(rows),
            bytes,
            text: text.collect(),
            is_absent: options.has("absent"),
            session,
        };
        if options.has("load") {
            table.fill(rng).await?;
        }
        Ok(table)
    }

    async fn fill(&self, rng: &mut StdRng) -> Outcome {
        let inserts = (0..self.rows).map(|row| {
            let operation = self.operation(Kind::Insert, row, rng);
            async move { self.run(&operation).await }
        });
        let done = stream::iter(inserts).buffer_unordered(INSERTS);
        let filled = done.try_for_each(|()| async { Ok(()) }).await;
        filled.map_err(|failure| failure.to_string().into())
    }

    fn operation(&self, kind: Kind, row: u64, rng: &mut StdRng) -> Operation {
        let column = rng.random_range(0..self.updates.len());
        Operation { kind, row, column, from: rng.random_range(0..TEXT_BYTES) }
    }

    /// An operation on any row.
    pub fn any(&self, kind: Kind, rng: &mut StdRng) -> Operation {
        let row = match kind {
            Kind::Read | Kind::Update | Kind::Scan => rng.random_range(0..self.rows),
            Kind::Insert => self.next.replace(self.next.get() + 1),
        };
        self.operation(kind, row, rng)
    }

    pub async fn run(&self, operation: &Operation) -> Result<(), Failure> {
        let is_absent = self.is_absent && matches!(operation.kind, Kind::Read);
        let begin = if is_absent { ABSENT } else { PRESENT };
        let key = format!("{begin}{}", operation.row);
        let value = |n: usize| {
            let from = (operation.from + n * self.bytes) % TEXT_BYTES;
            self.text.get(from..from + self.bytes).unwrap_or_default()
        };
        match operation.kind {
            Kind::Read => {
                let answer = self.session.execute_unpaged(&self.read, (&key,)).await?;
                let answer = answer.into_rows_result().map_err(Failure::answer)?;
                if answer.rows_num() != usize::from(!is_absent) {
                    return Err(Failure::answer(format!("{} rows of {key}", answer.rows_num())));
                }
            }
            Kind::Update => {
                let update = self.updates.get(operation.column);
                let update = update.ok_or_else(|| Failure::answer("no such column"))?;
                self.session.execute_unpaged(update, (value(0), &key)).await?;
            }
            Kind::Insert => {
                let mut values = vec![key.as_str()];
                values.extend((0..self.updates.len()).map(value));
                self.session.execute_unpaged(&self.insert, values).await?;
            }
            Kind::Scan => {
                let from = token(operation.row, self.rows);
                let answer = self.session.execute_unpaged(&self.scan, (from,)).await?;
                let answer = answer.into_rows_result().map_err(Failure::answer)?;
                if answer.rows_num() == 0 {
                    return Err(Failure::answer("a scan of no rows"));
                }
            }
        }
        Ok(())
    }
}

/// A token that stands where that row does when all rows are laid from the least token to the
/// middle of all: rows are behind it.
fn token(row: u64, rows: u64) -> i64 {
    let share = row as f64 / rows as f64;
    i64::MIN + (share * (i64::MAX as f64)) as i64
}

async fn create(
    session: &Session,
    name: &str,
    columns: usize,
    replicas: u32,
    chunk: u32,
) -> Outcome {
    let (keyspace, _) = name.split_once('.').ok_or("a table is named KEYSPACE.TABLE")?;
    let columns: Vec<String> = (0..columns).map(|n| format!("field{n} varchar")).collect();
    let class = "'class': 'NetworkTopologyStrategy'";
    for statement in [
        format!(
            "CREATE KEYSPACE IF NOT EXISTS {keyspace} \
             WITH replication = {{{class}, 'replication_factor': {replicas}}}"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {name} (y_id varchar PRIMARY KEY, {}) \
             WITH compression = {{'class': 'LZ4Compressor', 'chunk_length_in_kb': {chunk}}}",
            columns.join(", ")
        ),
    ] {
        session.query_unpaged(statement, ()).await?;
    }
    Ok(())
}
