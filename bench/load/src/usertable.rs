//! The tables of `load ring`: one of rows as YCSB has them, one of conditions.

use scylla::client::session::Session;
use scylla::value::CqlValue;

use crate::Outcome;
use crate::judge;

pub const KEYSPACE: &str = "swap";
const REPLICATION: &str = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}";
/// Of a row.
pub const COLUMNS: usize = 10;
pub const COLUMN_BYTES: usize = 100;
/// Where a row has its number: its key is the first column.
const NUMBER_COLUMN: usize = 1;

/// The number that a row holds.
pub fn number(columns: &[Option<CqlValue>]) -> Option<u64> {
    let column = columns.get(NUMBER_COLUMN)?.as_ref()?;
    judge::number(column.as_text().map(String::as_str))
}

/// Makes the tables, where they are not there yet.
pub async fn create(session: &Session) -> Outcome {
    let columns: Vec<String> = (0..COLUMNS).map(|n| format!("field{n} text")).collect();
    let columns = columns.join(", ");
    for statement in [
        format!("CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = {REPLICATION}"),
        format!(
            "CREATE TABLE IF NOT EXISTS {KEYSPACE}.usertable (y_id text PRIMARY KEY, {columns})"
        ),
        format!("CREATE TABLE IF NOT EXISTS {KEYSPACE}.conditions (k text PRIMARY KEY, v int)"),
    ] {
        session.query_unpaged(statement, ()).await?;
    }
    Ok(())
}
