//! Statements whose keys and values are made up when they run, by `uuid()` and `now()`: each
//! carries numbers that stand nowhere else, so that what was acknowledged is counted however nobody
//! knows where it is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use env::{Env, Rng};
use protocol::client::{Answer, OwnedRows, Parameters};

use super::statement::KEYSPACE;
use crate::connection::Connection;
use crate::cql_node::CqlNode;
use crate::failed::Failed;
use crate::statement::bound;

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// One statement: its text after `cas.` was put in place of `@`, how many numbers it takes, and
/// whether it has conditions.
type Shape = (&'static str, u64, bool);

const SHAPES: &[Shape] = &[
    ("INSERT INTO @one (k, v, n) VALUES (uuid(), now(), ?) IF NOT EXISTS", 1, true),
    ("INSERT INTO @one (k, v, n) VALUES (now(), uuid(), ?)", 1, false),
    ("UPDATE @one SET v = uuid(), n = ? WHERE k = uuid() IF n = null", 1, true),
    ("INSERT INTO @many (k, c, v, n) VALUES (1, now(), uuid(), ?) IF NOT EXISTS", 1, true),
    ("UPDATE @many SET v = uuid(), n = ? WHERE k = 1 AND c = now() IF n = null", 1, true),
    ("UPDATE @many SET v = uuid(), n = ? WHERE k = 2 AND c = now()", 1, false),
    (
        "BEGIN BATCH INSERT INTO @one (k, v, n) VALUES (uuid(), now(), ?); \
         INSERT INTO @many (k, c, v, n) VALUES (2, now(), uuid(), ?); APPLY BATCH",
        2,
        false,
    ),
    (
        "BEGIN BATCH INSERT INTO @many (k, c, v, n) VALUES (1, now(), uuid(), ?) IF NOT EXISTS; \
         INSERT INTO @many (k, c, v, n) VALUES (1, now(), uuid(), ?); APPLY BATCH",
        2,
        true,
    ),
];

/// What became of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Acknowledged,
    Refused,
    Unknown,
}

/// What was asked, and what was seen.
pub struct Fresh {
    rng: Rng,
    /// Of each statement: its first number, how many it has, and its fate.
    asked: RefCell<Vec<(u64, u64, Fate)>>,
    /// The value beside each number that was seen: it stays.
    seen: RefCell<BTreeMap<u64, Option<Vec<u8>>>>,
}

impl Fresh {
    /// Nothing was asked yet.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed ^ 0x6672_6573),
            asked: RefCell::default(),
            seen: RefCell::default(),
        }
    }

    /// The tables.
    pub fn definitions() -> [String; 2] {
        [
            format!("CREATE TABLE {KEYSPACE}.one (k uuid PRIMARY KEY, v uuid, n bigint)"),
            format!(
                "CREATE TABLE {KEYSPACE}.many (k int, c timeuuid, v uuid, n bigint, PRIMARY KEY (k, c))"
            ),
        ]
    }

    /// Runs one of the statements. Was it acknowledged?
    ///
    /// # Errors
    /// If its answer is wrong.
    pub async fn write(&self, env: &Env, site: &CqlNode) -> Result<bool, String> {
        let (text, count, is_conditional) = SHAPES[self.rng.below(SHAPES.len() as u64) as usize];
        let at = self.asked.borrow().len();
        let first = self.asked.borrow().last().map_or(1, |(first, count, _)| first + count);
        self.asked.borrow_mut().push((first, count, Fate::Unknown));
        let text = text.replace('@', &format!("{KEYSPACE}."));
        let values = (first..first + count).map(|number| bound(number.to_be_bytes())).collect();
        let parameters = Parameters { values, ..Parameters::default() };
        let prepared = self.rng.one_in(2);
        let run = async |open: &mut Connection| open.run(&text, &parameters, prepared).await;
        let ran = env.timeout(PATIENCE, site.on(self.rng.next(), run)).await;
        let is_acknowledged = |answer: &Answer| match answer {
            Answer::Rows(rows) => is_conditional && first_cell(rows) == Some(&[1]),
            Answer::Void => !is_conditional,
            _ => false,
        };
        let fate = match ran {
            Ok(Ok(answer)) if is_acknowledged(&answer) => Fate::Acknowledged,
            Ok(Err(Failed::Refused(_))) => Fate::Refused,
            Ok(Err(Failed::Unknown(_))) => Fate::Unknown,
            Ok(Ok(answer)) => return Err(format!("{text} gave {answer:?}")),
            Ok(Err(error)) => return Err(format!("{text}: {error}")),
            Err(_) => return Err(format!("{text} takes for ever")),
        };
        self.asked.borrow_mut()[at].2 = fate;
        Ok(fate == Fate::Acknowledged)
    }

    /// Counts what is there. `is_quiet`: nobody writes.
    ///
    /// # Errors
    /// If something is missing, there twice, there by half, or another than before. Nothing is
    /// known if nobody answers.
    pub async fn verify(&self, env: &Env, site: &CqlNode, is_quiet: bool) -> Result<(), String> {
        let asked = self.asked.borrow().clone();
        let mut found: BTreeMap<u64, Vec<Option<Vec<u8>>>> = BTreeMap::new();
        for table in ["one", "many"] {
            let text = format!("SELECT n, v FROM {KEYSPACE}.{table}");
            let run =
                async |open: &mut Connection| open.run(&text, &Parameters::default(), false).await;
            let rows = match env.timeout(PATIENCE, site.on(0, run)).await {
                Ok(Ok(Answer::Rows(rows))) => rows,
                Ok(Err(Failed::Refused(_) | Failed::Unknown(_))) if !is_quiet => return Ok(()),
                Ok(answer) => return Err(format!("{text} gave {answer:?}")),
                Err(_) => return Err(format!("{text} takes for ever")),
            };
            for row in rows.rows {
                let [Some(number), value] = &row[..] else {
                    return Err(format!("{table}: {row:?}"));
                };
                let number =
                    number.as_slice().try_into().map_err(|_| format!("{table}: {row:?}"))?;
                found.entry(u64::from_be_bytes(number)).or_default().push(value.clone());
            }
        }
        for (first, count, fate) in &asked {
            let times = |number: u64| found.get(&number).map_or(0, Vec::len);
            let times: Vec<usize> = (*first..first + count).map(times).collect();
            let is_whole = |wanted: usize| times.iter().all(|times| *times == wanted);
            let is_right = match fate {
                Fate::Acknowledged => is_whole(1),
                Fate::Refused => is_whole(0),
                Fate::Unknown if is_quiet => is_whole(0) || is_whole(1),
                Fate::Unknown => times.iter().all(|times| *times <= 1),
            };
            if !is_right {
                return Err(format!(
                    "a statement of keys made up when it ran, {fate:?}, numbers {first} and {count} in all: there are {times:?} rows of them"
                ));
            }
        }
        let mut seen = self.seen.borrow_mut();
        for (number, values) in found {
            let value = values.into_iter().next().flatten();
            if seen.entry(number).or_insert_with(|| value.clone()) != &value {
                return Err(format!("the value beside {number} is another than it was"));
            }
        }
        Ok(())
    }
}

fn first_cell(rows: &OwnedRows) -> Option<&[u8]> {
    rows.rows.first()?.first()?.as_deref()
}
