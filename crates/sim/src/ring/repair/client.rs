//! A client of a ring that is repaired: writes, deletes and reads, one after the other.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use cluster::Answer;
use env::{Env, Rng};
use protocol::Consistency;

use super::data::{COLUMNS, Data, End, KEYS, ROWS, Spot, TABLES, Write};
use crate::ring::ask::{Statement, number, rows};
use crate::ring::client::ask_any;
use crate::ring::member::Members;
use crate::ring::model::{Model, value_in};

/// Between two operations, in milliseconds.
const THINK_MILLIS: (u64, u64) = (150, 1_300);
/// How long what expires lives, in seconds.
const LIVES_SECONDS: (u64, u64) = (5, 50);

/// A client.
pub struct Client {
    /// Where it is.
    pub env: Env,
    /// Whom it asks.
    pub members: Members,
    /// Who is told.
    pub model: Rc<Model>,
    /// What it knows.
    pub data: Rc<Data>,
    /// Its dice.
    pub rng: Rng,
}

impl Client {
    /// Works until all is over.
    pub async fn run(self) {
        while !self.model.is_over.get() {
            let think = self.rng.between(THINK_MILLIS.0, THINK_MILLIS.1);
            self.env.sleep(Duration::from_millis(think)).await;
            let of = (self.below(TABLES.len()), self.below(KEYS));
            match self.rng.below(10) {
                0..3 => self.read(of).await,
                3..7 => self.put(of).await,
                7 => self.put_expiring(of).await,
                _ => self.delete(of).await,
            }
        }
    }

    fn below(&self, bound: usize) -> usize {
        self.rng.below(bound as u64) as usize
    }

    /// A partition to which nothing is under way, if there is one among a few.
    fn quiet(&self, (table, key): (usize, usize)) -> Option<(usize, usize)> {
        let keys = (0..KEYS).map(|step| (table, (key + step) % KEYS));
        keys.into_iter().find(|of| self.data.is_quiet(*of, self.env.now()))
    }

    fn some_of_a_row(&self, (table, key): (usize, usize)) -> Vec<Spot> {
        let row = self.below(ROWS);
        let columns = match self.rng.below(3) {
            2 => 0..COLUMNS.len(),
            one => one as usize..one as usize + 1,
        };
        columns.map(|column| Spot { table, key, row, column }).collect()
    }

    async fn put(&self, of: (usize, usize)) {
        let spots = self.some_of_a_row(of);
        self.write(of, spots, Write::Put).await;
    }

    async fn put_expiring(&self, of: (usize, usize)) {
        let Some(of) = self.quiet(of) else { return self.put(of).await };
        let spots = self.some_of_a_row(of);
        let lives = Duration::from_secs(self.rng.between(LIVES_SECONDS.0, LIVES_SECONDS.1));
        self.write(of, spots, Write::Expiring(lives)).await;
        self.model.count("repair.expires");
    }

    async fn write(&self, of: (usize, usize), spots: Vec<Spot>, write: Write) {
        let next = self.data.write(&spots, write, self.env.now());
        let [table, key, row] =
            [TABLES[of.0].to_owned(), of.1.to_string(), spots[0].row.to_string()];
        let value = |spot: &Spot| value_in(spot.column, next);
        let lives = match write {
            Write::Expiring(lives) => format!(" AND TTL {}", lives.as_secs()),
            _ => String::new(),
        };
        let text = if self.rng.one_in(2) {
            let set = |spot: &Spot| format!("{} = {}", COLUMNS[spot.column], value(spot));
            let sets = spots.iter().map(set).collect::<Vec<_>>().join(", ");
            format!(
                "UPDATE ring.{table} USING TIMESTAMP {next}{lives} SET {sets} WHERE k = {key} AND \
                 c = {row}"
            )
        } else {
            let names: String =
                spots.iter().map(|spot| format!(", {}", COLUMNS[spot.column])).collect();
            let values: String = spots.iter().map(|spot| format!(", {}", value(spot))).collect();
            format!(
                "INSERT INTO ring.{table} (k, c{names}) VALUES ({key}, {row}{values}) USING \
                 TIMESTAMP {next}{lives}"
            )
        };
        self.send(of, spots, next, text).await;
        self.model.count("repair.write");
    }

    async fn send(&self, of: (usize, usize), spots: Vec<Spot>, number: i64, text: String) {
        let level = match self.rng.one_in(4) {
            true => Consistency::One,
            false => Consistency::Quorum,
        };
        self.data.goes(of);
        let asked = (&self.members, &*self.model, &self.rng);
        let answer = ask_any(&self.env, asked, None, Statement::new(level, text)).await;
        let now = self.env.now();
        let is_done = matches!(answer, Some((_, Ok(_))));
        self.data.came(of, is_done || answer.is_none(), now);
        let end = match (is_done, level) {
            (true, Consistency::Quorum) => End::AtQuorum,
            (true, _) => End::AtOne,
            (false, _) => End::Unknown,
        };
        self.data.written(&spots, number, end, now);
    }

    /// Deletes a cell, a row, a range of rows or a partition.
    async fn delete(&self, of: (usize, usize)) {
        let Some(of) = self.quiet(of) else { return self.put(of).await };
        let (table, key) = of;
        let row = self.below(ROWS);
        let all = Spot::of_key(table, key);
        let (what, spots, more, name): (&str, Vec<Spot>, String, _) = match self.rng.below(5) {
            0 | 1 => {
                let column = self.below(COLUMNS.len());
                let spot = Spot { table, key, row, column };
                (COLUMNS[column], vec![spot], format!(" AND c = {row}"), "repair.delete_cell")
            }
            2 => {
                let spots = all.filter(|spot| spot.row == row).collect();
                ("", spots, format!(" AND c = {row}"), "repair.delete_row")
            }
            3 => {
                let end = row + 1 + self.below(ROWS - row);
                let spots = all.filter(|spot| (row..end).contains(&spot.row)).collect();
                ("", spots, format!(" AND c >= {row} AND c < {end}"), "repair.delete_range")
            }
            _ => ("", all.collect(), String::new(), "repair.delete_partition"),
        };
        let next = self.data.write(&spots, Write::Delete, self.env.now());
        let text = format!(
            "DELETE {what} FROM ring.{} USING TIMESTAMP {next} WHERE k = {key}{more}",
            TABLES[table]
        );
        self.send(of, spots, next, text).await;
        self.model.count(name);
    }

    /// Reads a partition.
    async fn read(&self, of: (usize, usize)) {
        let (table, key) = of;
        let began = self.env.now();
        let floors: Vec<(Spot, i64)> =
            Spot::of_key(table, key).map(|spot| (spot, self.data.floor(spot))).collect();
        let statement = Statement::new(Consistency::Quorum, text_of(table, key));
        self.data.goes(of);
        let asked = (&self.members, &*self.model, &self.rng);
        let answer = ask_any(&self.env, asked, None, statement).await;
        let now = self.env.now();
        let is_done = matches!(answer, Some((_, Ok(_))) | None);
        self.data.came(of, is_done, now);
        let Some((node, Ok(Answer::Rows(page)))) = answer else { return };
        let found = values(&rows(&page));
        for (spot, floor) in floors {
            let value = found.get(&(spot.row, spot.column)).copied();
            if let Some(wrong) = self.data.wrong(spot, (floor, began), value, now) {
                let by = node + 1;
                self.model.fail(format!("read by node {by} from {began:?} to {now:?}: {wrong}"));
            }
        }
        self.model.count("repair.read");
    }
}

/// Reads a partition.
pub fn text_of(table: usize, key: usize) -> String {
    format!("SELECT c, a, b FROM ring.{} WHERE k = {key}", TABLES[table])
}

/// The numbers that are there, by row and column.
pub fn values(rows: &[Vec<Option<Vec<u8>>>]) -> BTreeMap<(usize, usize), i64> {
    let mut found = BTreeMap::new();
    for row in rows {
        let at = number(row.first()).and_then(|at| usize::try_from(at).ok()).unwrap_or(ROWS);
        for column in 0..COLUMNS.len() {
            if let Some(value) = number(row.get(1 + column)) {
                found.insert((at, column), value_in(column, value));
            }
        }
    }
    found
}
