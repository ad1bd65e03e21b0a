//! A client of a ring: writes and reads through whatever node serves, one after the other.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use cluster::Answer;
use env::{Env, Rng};
use protocol::Consistency;

use super::ask::{Failed, Statement, ask, number, rows};
use super::member::Members;
use super::model::{
    COLUMNS, CONDITIONED, COUNTED, KEYS, LOCAL_KEYS, Model, ONCE_MAX, PAIRS, Spot, WIDE_KEYS,
    center_of, value_in,
};

/// Conditional statements that a client makes in a row.
const CONDITIONS: usize = 3;
/// While nobody serves.
const NOBODY: Duration = Duration::from_millis(500);

/// A client.
pub struct Client {
    /// Where it is.
    pub env: Env,
    /// Whom it asks.
    pub members: Members,
    /// What it knows.
    pub model: Rc<Model>,
    /// Its dice.
    pub rng: Rng,
    /// Data centres.
    pub centers: usize,
    /// Between two of its operations, in milliseconds.
    pub think_millis: (u64, u64),
}

/// Asks some node, of a data centre if it has to be there: which, and what it says.
pub async fn ask_any(
    env: &Env,
    (members, model, rng): (&Members, &Model, &Rng),
    center: Option<usize>,
    statement: Statement,
) -> Option<(usize, Result<Answer, Failed>)> {
    let fits = |at: &usize| {
        let member = &members[*at];
        center.is_none_or(|center| member.center == center) && member.door().is_some()
    };
    let there: Vec<usize> = (0..members.len()).filter(fits).collect();
    let node = there.get(rng.below(there.len().max(1) as u64) as usize).copied();
    let Some((node, way)) = node.and_then(|node| Some((node, members[node].door()?))) else {
        env.sleep(NOBODY).await;
        return None;
    };
    let text = statement.text.clone();
    let began = env.now();
    let answer = ask(env, &way, statement).await;
    model.tell(env.now(), || {
        let answer = match &answer {
            Ok(_) => "done".to_owned(),
            Err(failed) => format!("{failed:?}"),
        };
        format!("node {} since {began:?}: {text}: {answer}", node + 1)
    });
    match &answer {
        Ok(_) => model.done.set(model.done.get() + 1),
        Err(Failed::Error(_)) => model.count("ring.refused"),
        Err(Failed::Gone) => model.count("ring.gone"),
        Err(Failed::Stuck) => model.fail(format!("node {} never ends {text}", node + 1)),
    }
    Some((node, answer))
}

impl Client {
    /// Works until all is over.
    pub async fn run(self) {
        while !self.model.is_over.get() {
            let think = self.rng.between(self.think_millis.0, self.think_millis.1);
            self.env.sleep(Duration::from_millis(think)).await;
            match self.rng.below(20) {
                0 | 1 => self.write_once().await,
                2..6 => self.write().await,
                6..13 => self.read().await,
                13 => self.scan().await,
                14 => self.count().await,
                15 => self.read_count().await,
                16 | 17 => {
                    // often enough that others are in the way
                    for _ in 0..CONDITIONS {
                        self.condition().await;
                    }
                }
                18 => self.write_pair().await,
                _ => self.read_half().await,
            }
        }
    }

    fn key(&self) -> usize {
        self.rng.below((WIDE_KEYS + LOCAL_KEYS * self.centers) as u64) as usize
    }

    async fn ask(
        &self,
        center: Option<usize>,
        statement: Statement,
    ) -> Option<(usize, Result<Answer, Failed>)> {
        ask_any(&self.env, (&self.members, &self.model, &self.rng), center, statement).await
    }

    fn level(key: usize) -> Consistency {
        match center_of(key) {
            None => Consistency::Quorum,
            Some(_) => Consistency::LocalQuorum,
        }
    }

    /// Writes one column or both, or deletes.
    async fn write(&self) {
        let key = self.key();
        let which = self.rng.below(3) as usize;
        let deletes = self.rng.one_in(8);
        let columns: Vec<usize> = if which == 2 { vec![0, 1] } else { vec![which] };
        let spots: Vec<Spot> = columns.iter().map(|column| Spot::Cell(key, *column)).collect();
        let tried = spots.iter().map(|spot| self.model.with(*spot, |register| register.tried));
        let next = tried.max().unwrap_or(0) + 1;
        for spot in &spots {
            self.model.with(*spot, |register| register.tries(next, deletes));
        }
        let names: Vec<&str> = columns.iter().map(|column| COLUMNS[*column]).collect();
        let text = if deletes {
            format!(
                "DELETE {} FROM ring.r USING TIMESTAMP {next} WHERE k = {key}",
                names.join(", ")
            )
        } else {
            let set =
                |column: &usize| format!("{} = {}", COLUMNS[*column], value_in(*column, next));
            let sets = columns.iter().map(set).collect::<Vec<_>>().join(", ");
            format!("UPDATE ring.r USING TIMESTAMP {next} SET {sets} WHERE k = {key}")
        };
        let statement = Statement::new(Self::level(key), text);
        self.acknowledged(center_of(key), statement, next, &spots).await;
    }

    /// Writes what nobody reads before the end, so that no read repairs it. Once it is quiet there
    /// is nothing to be missed.
    async fn write_once(&self) {
        let key = self.model.written_once.get();
        if key >= ONCE_MAX || self.model.is_quiet.get() {
            return self.write().await;
        }
        self.model.written_once.set(key + 1);
        let spot = Spot::Once(key);
        let number = self.model.with(spot, |register| register.next());
        let text = format!("INSERT INTO ring.h (k, n) VALUES ({key}, {number})");
        self.acknowledged(None, Statement::new(Consistency::Quorum, text), number, &[spot]).await;
    }

    /// Both of a pair, or neither in the end.
    async fn write_pair(&self) {
        let pair = 2 * self.rng.below(PAIRS as u64) as usize;
        let spots = [Spot::Half(pair), Spot::Half(pair + 1)];
        let next = self.model.with(spots[0], |register| register.tried) + 1;
        let one = |key| format!("UPDATE ring.p SET n = {next} WHERE k = {key}; ");
        let text =
            format!("BEGIN BATCH USING TIMESTAMP {next} {}{}APPLY BATCH", one(pair), one(pair + 1));
        for spot in spots {
            self.model.with(spot, |register| register.tries(next, false));
        }
        let statement = Statement::new(Consistency::Quorum, text);
        self.acknowledged(None, statement, next, &spots).await;
        self.model.count("ring.batch");
    }

    /// Writes, and notes what is acknowledged.
    async fn acknowledged(
        &self,
        center: Option<usize>,
        statement: Statement,
        number: i64,
        spots: &[Spot],
    ) {
        if let Some((node, Ok(_))) = self.ask(center, statement).await {
            let is_sound = self.members[node].bad_since.get().is_none();
            for spot in spots {
                let now = self.env.now();
                self.model.with(*spot, |register| {
                    register.acknowledge(number, node, now, is_sound);
                });
            }
            self.model.count("ring.write");
        }
    }

    async fn read(&self) {
        let key = self.key();
        let spots: Vec<Spot> = (0..COLUMNS.len()).map(|column| Spot::Cell(key, column)).collect();
        let floors: Vec<_> =
            spots.iter().map(|spot| self.model.floor(*spot, self.env.now())).collect();
        let text = format!("SELECT a, b FROM ring.r WHERE k = {key}");
        let statement = Statement::new(Self::level(key), text);
        let Some((node, Ok(Answer::Rows(page)))) = self.ask(center_of(key), statement).await else {
            return;
        };
        let rows = rows(&page);
        for ((spot, floor), column) in spots.iter().zip(floors).zip(0..) {
            let value = number(rows.first().and_then(|row| row.get(column)));
            let value = value.map(|value| value_in(column, value));
            let how = format!("by node {}", node + 1);
            self.model.read(*spot, floor, value, self.env.now(), &how);
        }
        self.model.count("ring.read");
    }

    /// Reads all keys, page by page, each page through another node.
    async fn scan(&self) {
        let keys = 0..WIDE_KEYS;
        let floors: Vec<[_; 2]> = keys
            .clone()
            .map(|key| [0, 1].map(|at| self.model.floor(Spot::Cell(key, at), self.env.now())))
            .collect();
        let mut found: BTreeMap<usize, [Option<i64>; 2]> = BTreeMap::new();
        let mut statement = Statement::new(Consistency::Quorum, "SELECT k, a, b FROM ring.r");
        statement.page_size = self.rng.one_in(2).then(|| self.rng.between(1, 5) as i32);
        loop {
            let Some((_, Ok(Answer::Rows(page)))) = self.ask(None, statement.clone()).await else {
                return;
            };
            for row in rows(&page) {
                let [key, a, b] = [0, 1, 2].map(|at| number(row.get(at)));
                let key = key.and_then(|key| usize::try_from(key).ok()).unwrap_or(KEYS);
                let b = b.map(|value| value_in(1, value));
                if found.insert(key, [a, b]).is_some() {
                    self.model.fail(format!("a scan has key {key} twice"));
                }
            }
            match page.paging_state {
                Some(state) => {
                    statement.state = Some(state);
                    self.model.count("ring.page");
                }
                None => break,
            }
        }
        for (key, floors) in keys.zip(floors) {
            let values = found.get(&key).copied().unwrap_or_default();
            for (at, (floor, value)) in floors.into_iter().zip(values).enumerate() {
                self.model.read(Spot::Cell(key, at), floor, value, self.env.now(), "by a scan");
            }
        }
        self.model.count("ring.scan");
    }

    async fn count(&self) {
        let key = self.rng.below(COUNTED as u64) as usize;
        let spot = Spot::Count(key);
        self.model.with(spot, |register| register.next());
        let text = format!("UPDATE ring.c SET n = n + 1 WHERE k = {key}");
        if let Some((_, Ok(_))) = self.ask(None, Statement::new(Consistency::Quorum, text)).await {
            self.model.with(spot, |register| register.add());
            self.model.count("ring.count");
        }
    }

    async fn read_one(&self, spot: Spot, level: Consistency, text: String) -> Option<Option<i64>> {
        let floor = self.model.floor(spot, self.env.now());
        let (node, answer) = self.ask(None, Statement::new(level, text)).await?;
        let Ok(Answer::Rows(page)) = answer else { return None };
        let value = number(rows(&page).first().and_then(|row| row.first()));
        self.model.read(spot, floor, value, self.env.now(), &format!("by node {}", node + 1));
        Some(value)
    }

    async fn read_count(&self) {
        let key = self.rng.below(COUNTED as u64) as usize;
        let text = format!("SELECT n FROM ring.c WHERE k = {key}");
        self.read_one(Spot::Count(key), Consistency::Quorum, text).await;
    }

    async fn read_half(&self) {
        let key = self.rng.below(2 * PAIRS as u64) as usize;
        let text = format!("SELECT n FROM ring.p WHERE k = {key}");
        self.read_one(Spot::Half(key), Consistency::Quorum, text).await;
    }

    /// Adds one to what nobody else has added to since it was read.
    async fn condition(&self) {
        if self.model.is_lax.get() {
            // a quorum may not see what was applied
            return;
        }
        let key = self.rng.below(CONDITIONED as u64) as usize;
        let spot = Spot::Condition(key);
        let text = format!("SELECT n FROM ring.l WHERE k = {key}");
        let Some(read) = self.read_one(spot, Consistency::Serial, text).await else { return };
        let next = read.unwrap_or(0) + 1;
        let was = read.map_or("null".to_owned(), |read| read.to_string());
        self.model.with(spot, |register| register.tried = register.tried.max(next));
        let floor = self.model.floor(spot, self.env.now());
        let text = format!("UPDATE ring.l SET n = {next} WHERE k = {key} IF n = {was}");
        let asked = self.ask(None, Statement::new(Consistency::Quorum, text)).await;
        let Some((node, Ok(Answer::Rows(page)))) = asked else { return };
        let rows = rows(&page);
        let row = rows.first().map_or(&[][..], |row| &row[..]);
        if matches!(row.first(), Some(Some(applied)) if applied[..] == [1]) {
            let now = self.env.now();
            self.model.with(spot, |register| register.acknowledge(next, node, now, false));
            self.model.apply(key, next);
            self.model.count("ring.condition");
        } else {
            self.model.read(spot, floor, number(row.get(1)), self.env.now(), "as refused");
        }
    }
}
