//! `load lag`: how long a write that was acknowledged in one data centre is not there yet in
//! another one.

use std::time::{Duration, Instant};

use scylla::client::session::Session;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;

use crate::Outcome;
use crate::figures::Figures;
use crate::options::Options;
use crate::reasons::Failure;
use crate::session::{self, Pool, Retries};
use crate::times::Times;

const TABLE: &str = "bench.lag";
/// Between two reads of a row that is not there yet.
const PAUSE: Duration = Duration::from_micros(500);
/// A row that is not there by then is one that failed.
const LAG_MAX: Duration = Duration::from_secs(10);
/// How long the other data centre may take to know the table.
const SCHEMA_LIMIT: Duration = Duration::from_secs(30);

/// `lag HOST... --far HOST... [OPTIONS]`
pub async fn run(words: &[String]) -> Outcome<bool> {
    let known = [&["far", "level", "replicas"], &Times::OPTIONS[..], &Pool::OPTIONS];
    let options = Options::parse(words, &known.concat())?;
    if options.plain.is_empty() || options.all("far").is_empty() {
        return Err("which hosts? load lag HOST... --far HOST...".into());
    }
    let level = session::level(&options.one("level", "LOCAL_QUORUM".to_owned())?)?;
    let (times, pool) = (Times::parse(&options)?, Pool::parse(&options)?);
    let open = |hosts, level| session::plain(hosts, false, level, &pool, Retries::None);
    let (here, there) = (&options.plain[..], options.all("far"));
    let here = open(here, level).await?;
    create(&here, options.one("replicas", 1)?).await?;
    let insert = here.prepare(format!("INSERT INTO {TABLE} (k, v) VALUES (?, ?)")).await?;
    let there = open(there, Consistency::LocalOne).await?;
    let read = prepare_read(&there).await?;
    // rows of a run before are others
    let run = i64::try_from(std::time::UNIX_EPOCH.elapsed()?.as_micros())?;

    let from = Instant::now() + times.warm;
    let mut figures = Figures::new(from)?;
    for n in run.. {
        if Instant::now() >= from + times.measured {
            break;
        }
        here.execute_unpaged(&insert, (n, n)).await?;
        let answered = Instant::now();
        figures.count(answered, arrived(&there, &read, n, answered).await);
    }
    figures.say("")
}

async fn create(session: &Session, replicas: u32) -> Outcome {
    let (keyspace, _) = TABLE.split_once('.').ok_or("a table is named KEYSPACE.TABLE")?;
    for statement in [
        format!(
            "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = \
             {{'class': 'NetworkTopologyStrategy', 'replication_factor': {replicas}}}"
        ),
        format!("CREATE TABLE IF NOT EXISTS {TABLE} (k bigint PRIMARY KEY, v bigint)"),
    ] {
        session.query_unpaged(statement, ()).await?;
    }
    Ok(())
}

/// Once the other data centre knows the table.
async fn prepare_read(session: &Session) -> Outcome<PreparedStatement> {
    let until = Instant::now() + SCHEMA_LIMIT;
    loop {
        match session.prepare(format!("SELECT v FROM {TABLE} WHERE k = ?")).await {
            Ok(read) => return Ok(read),
            Err(e) if Instant::now() > until => return Err(e.into()),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Waits until a row is there.
async fn arrived(
    session: &Session,
    read: &PreparedStatement,
    n: i64,
    answered: Instant,
) -> Result<(), Failure> {
    while answered.elapsed() < LAG_MAX {
        let answer = session.execute_unpaged(read, (n,)).await?;
        if answer.into_rows_result().map_err(Failure::answer)?.rows_num() == 1 {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(Failure::answer(format!("row {n} is not there after {LAG_MAX:?}")))
}
