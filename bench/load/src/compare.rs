//! All rows at ALL through each host: the same everywhere, and nothing acknowledged lost.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use scylla::client::session::Session;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlValue, Row};

use crate::Outcome;
use crate::judge::{Conditions, Rows};
use crate::session;
use crate::usertable::{KEYSPACE, number};
use crate::wanted::Wanted;

/// Reads at a time.
const READS: usize = 8;

/// What is wrong.
pub async fn compare(
    wanted: &Wanted,
    parts: &[Rows],
    conditions: &Conditions,
) -> Outcome<Vec<String>> {
    let mut wrong = Vec::new();
    let mut seen = BTreeMap::new();
    for host in &wanted.through {
        let session = session::through(host).await?;
        let place = format!("{host} at ALL");
        let all = parts.iter().flat_map(|rows| (0..rows.len()).map(move |at| (rows, at)));
        let select = format!("SELECT * FROM {KEYSPACE}.usertable WHERE y_id = ?");
        let select = session.prepare(select).await?;
        let reads = all.map(|(rows, at)| {
            let read = read(&session, &select, rows.key(at));
            async move { Outcome::Ok((rows, at, read.await?)) }
        });
        let mut reads = stream::iter(reads).buffer_unordered(READS);
        while let Some((rows, at, row)) = reads.try_next().await? {
            if !wanted.keeps {
                wrong.extend(rows.wrong(at, row.as_deref().and_then(number), &place));
            }
            let key = rows.key(at);
            let elsewhere = seen.entry(key).or_insert_with(|| row.clone());
            if *elsewhere != row {
                wrong.push(format!("{place}: {key} is {row:?}, elsewhere {elsewhere:?}"));
            }
        }
        for key in conditions.keys() {
            let value = condition(&session, &key).await?;
            let is_wrong = conditions.wrong(&key, value).filter(|_| !wanted.keeps);
            wrong.extend(is_wrong.map(|is_wrong| format!("{host}: {is_wrong}")));
        }
    }
    Ok(wrong)
}

/// All columns of a row.
async fn read(
    session: &Session,
    select: &PreparedStatement,
    key: &str,
) -> Outcome<Option<Vec<Option<CqlValue>>>> {
    let answer = session.execute_unpaged(select, (key,)).await?.into_rows_result()?;
    Ok(answer.maybe_first_row::<Row>()?.map(|row| row.columns))
}

/// The value that a row to which one was added has.
async fn condition(session: &Session, key: &str) -> Outcome<Option<i32>> {
    let look = format!("SELECT v FROM {KEYSPACE}.conditions WHERE k = ?");
    let mut look = session.prepare(look).await?;
    look.set_consistency(Consistency::Serial);
    let answer = session.execute_unpaged(&look, (key,)).await?.into_rows_result()?;
    let row = answer.maybe_first_row::<(Option<i32>,)>()?;
    Ok(row.and_then(|(value,)| value))
}
