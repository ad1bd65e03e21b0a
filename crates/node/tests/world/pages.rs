//! Pages of random reads of random tables: put together they are the whole result, of whatever size
//! they are, and whichever nodes of a ring are asked for them.

use std::fmt::Write as _;

use cluster::Answer;
use config::Config;
use env::Rng;
use env::sim::{World, WorldOptions};
use protocol::{Consistency, PagingState, QueryOptions, Version};

use crate::ring::{Members, NODES};
use crate::{Client, Serving, config, start, told};

const SIZES: [i32; 5] = [1, 2, 3, 7, 100];
/// Tables of each world.
const TABLES: usize = 4;
const READS: usize = 40;
/// No read of these tables has so many pages.
const PAGES_MAX: usize = 400;

/// A table `ks.tN`: its clustering columns with the number of values that each has, and the number
/// of keys.
struct Table {
    name: String,
    clustering: Vec<(&'static str, u64, bool)>,
    has_static: bool,
    keys: u64,
}

/// One of some.
fn one<T: Copy>(rng: &Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

impl Table {
    fn new(rng: &Rng, number: usize) -> Self {
        let columns = one(rng, &[0, 1, 1, 2, 2, 3]);
        let clustering: Vec<_> = ["a", "b", "c"][..columns]
            .iter()
            .map(|name| (*name, 1 + rng.below(5), rng.one_in(3)))
            .collect();
        let has_static = columns > 0 && !rng.one_in(3);
        Self { name: format!("ks.t{number}"), clustering, has_static, keys: 2 + rng.below(5) }
    }

    fn create(&self) -> String {
        let (mut columns, mut key, mut order) = (String::new(), String::new(), Vec::new());
        for (name, _, is_descending) in &self.clustering {
            write!(columns, "{name} int, ").unwrap();
            write!(key, ", {name}").unwrap();
            order.push(format!("{name} {}", if *is_descending { "DESC" } else { "ASC" }));
        }
        let statics = if self.has_static { "s int static, " } else { "" };
        let order = match order.is_empty() {
            true => String::new(),
            false => format!(" WITH CLUSTERING ORDER BY ({})", order.join(", ")),
        };
        format!(
            "CREATE TABLE {} (k int, {columns}{statics}v int, w int, PRIMARY KEY (k{key})){order}",
            self.name
        )
    }

    /// So many of the clustering columns are given.
    fn place(&self, rng: &Rng, depth: usize) -> String {
        let mut place = format!("k = {}", rng.below(self.keys));
        for (name, values, _) in &self.clustering[..depth] {
            write!(place, " AND {name} = {}", rng.below(*values)).unwrap();
        }
        place
    }

    fn write(&self, rng: &Rng, timestamp: usize) -> String {
        let (name, all) = (&self.name, self.clustering.len());
        let value = |rng: &Rng| one(rng, &["null", "0", "1", "2"]);
        let using = format!("USING TIMESTAMP {timestamp}");
        match rng.below(20) {
            0 if all > 0 => {
                let (column, values, _) = self.clustering[0];
                let place = self.place(rng, 0);
                format!(
                    "DELETE FROM {name} {using} WHERE {place} AND {column} > {}",
                    rng.below(values)
                )
            }
            1..4 => {
                let depth = rng.below(all as u64 + 1) as usize;
                format!("DELETE FROM {name} {using} WHERE {}", self.place(rng, depth))
            }
            4..6 if self.has_static => {
                let place = self.place(rng, 0);
                format!("UPDATE {name} {using} SET s = {} WHERE {place}", value(rng))
            }
            6..8 => {
                let place = self.place(rng, all);
                format!("UPDATE {name} {using} SET v = {} WHERE {place}", value(rng))
            }
            _ => {
                let (mut columns, mut values) = ("k".to_owned(), rng.below(self.keys).to_string());
                for (column, of, _) in &self.clustering {
                    write!(columns, ", {column}").unwrap();
                    write!(values, ", {}", rng.below(*of)).unwrap();
                }
                write!(columns, ", v, w").unwrap();
                write!(values, ", {}, {}", value(rng), value(rng)).unwrap();
                format!("INSERT INTO {name} ({columns}) VALUES ({values}) {using}")
            }
        }
    }

    fn read(&self, rng: &Rng) -> String {
        let mut wanted = Vec::new();
        let kind = rng.below(6);
        match kind {
            0 => {
                let token =
                    one(rng, &[-4_069_959_284_402_364_209_i64, 0, 9_010_454_139_840_013_625]);
                wanted.push(format!("token(k) {} {token}", one(rng, &["<", ">=", ">"])));
            }
            1 => wanted.push(self.place(rng, 0)),
            2 | 3 => {
                let some: Vec<_> = (0..=self.keys).filter(|_| !rng.one_in(3)).collect();
                let some: Vec<_> = some.iter().map(u64::to_string).collect();
                wanted.push(format!("k IN ({})", some.join(", ")));
            }
            _ => {}
        }
        let (is_range, is_key) = (matches!(kind, 0 | 4 | 5), kind == 1);
        let (mut filters, mut tail) = (false, String::new());
        let is_distinct = rng.one_in(8) && (is_range || self.has_static);
        let groups = !is_distinct && rng.one_in(4);
        let mut selected = "*".to_owned();
        if is_distinct {
            let with_static = self.has_static && !rng.one_in(3);
            selected = format!("DISTINCT k{}", if with_static { ", s" } else { "" });
        } else {
            if let Some((column, values, _)) = self.clustering.first().filter(|_| rng.one_in(3)) {
                wanted.push(format!(
                    "{column} {} {}",
                    one(rng, &[">", "<=", "="]),
                    rng.below(*values)
                ));
                filters |= is_range;
            }
            if rng.one_in(4) {
                wanted.push(format!("{} > {}", one(rng, &["v", "w"]), rng.below(2)));
                filters = true;
            }
            if groups {
                let depth = rng.below(self.clustering.len() as u64 + 1) as usize;
                let by = self.clustering[..depth]
                    .iter()
                    .fold("k".to_owned(), |by, (name, ..)| by + ", " + name);
                selected = format!("{by}, count(*), max(v), w");
                write!(tail, " GROUP BY {by}").unwrap();
            }
            if is_key && rng.one_in(2) && !self.clustering.is_empty() {
                let turned = |(name, _, is_descending): &(&str, u64, bool)| {
                    format!("{name} {}", if *is_descending { "ASC" } else { "DESC" })
                };
                let order: Vec<_> = self.clustering.iter().map(turned).collect();
                write!(tail, " ORDER BY {}", order.join(", ")).unwrap();
            }
            if rng.one_in(2) {
                write!(tail, " PER PARTITION LIMIT {}", 1 + rng.below(4)).unwrap();
            }
        }
        if rng.one_in(3) {
            write!(tail, " LIMIT {}", 1 + rng.below(9)).unwrap();
        }
        if filters {
            tail.push_str(" ALLOW FILTERING");
        }
        let wanted = match wanted.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", wanted.join(" AND ")),
        };
        format!("SELECT {selected} FROM {}{wanted}{tail}", self.name)
    }
}

/// A page: its rows, their cells, and where the next one begins.
async fn page(
    client: &Client,
    text: &str,
    level: Consistency,
    size: Option<i32>,
    state: Option<&[u8]>,
) -> (u32, Vec<u8>, Option<Vec<u8>>) {
    let paging_state = state.map(|state| PagingState::parse(state, Version::V5).unwrap());
    let options = QueryOptions {
        consistency: level,
        page_size: size,
        paging_state,
        ..QueryOptions::default()
    };
    match client.node.coordinator().query(text, client.request(&options)).await.result {
        Ok(Answer::Rows(page)) => (page.rows, page.cells, page.paging_state),
        Ok(_) => panic!("{text}: no rows"),
        Err(error) => panic!("{text}: {}", error.message),
    }
}

/// The pages of a read are its whole result, whoever is asked for each.
async fn check(clients: &[Client], rng: &Rng, text: &str, level: Consistency) {
    let any = |rng: &Rng| &clients[rng.below(clients.len() as u64) as usize];
    let (rows, whole, _) = page(any(rng), text, level, None, None).await;
    for size in SIZES {
        let (mut found, mut cells, mut state, mut pages) = (0, Vec::new(), None::<Vec<u8>>, 0);
        loop {
            let (rows, more, next) =
                page(any(rng), text, level, Some(size), state.as_deref()).await;
            assert!(rows <= size as u32, "{text}: a page of {rows} rows, not {size}");
            assert!(rows > 0 || next.is_none(), "{text}: a page without rows, and another one");
            found += rows;
            cells.extend(more);
            pages += 1;
            assert!(pages < PAGES_MAX, "{text}: pages of {size} without end");
            state = next;
            if state.is_none() {
                break;
            }
        }
        assert_eq!((found, &cells), (rows, &whole), "{text}: pages of {size}");
    }
}

/// Random tables in a world that has the keyspace `ks`, written to and read through some of its
/// nodes.
fn tables(
    world: &World,
    servings: &[&Serving],
    seed: u64,
    made: impl Fn(usize),
    levels: &'static [Consistency],
) {
    let clients: Vec<Client> = servings.iter().map(|it| it.borrow().clone().unwrap()).collect();
    for number in 0..TABLES {
        let rng = Rng::new(seed * 1000 + number as u64);
        let table = Table::new(&rng, number);
        let create = table.create();
        told(world, servings[0], async move |client| drop(client.run(&create).await));
        made(number);
        let clients = clients.clone();
        told(world, servings[0], async move |client| {
            for at in 0..10 + rng.below(40) as usize {
                let text = table.write(&rng, 1000 + at);
                if let Err(error) = client.try_at(Consistency::All, &text).await {
                    panic!("{text}: {}", error.message);
                }
            }
            for _ in 0..READS {
                let text = table.read(&rng);
                check(&clients, &rng, &text, one(&rng, levels)).await;
            }
        });
    }
}

#[test]
fn pages_are_the_whole_on_one_shard_and_on_three() {
    for seed in 1..=6 {
        let world = World::new(seed, WorldOptions::default());
        let config: Config = config();
        let (_, serving) = start(&world, if seed % 2 == 0 { 1 } else { 3 }, config);
        let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        let keyspace = format!("CREATE KEYSPACE ks WITH replication = {replication}");
        told(&world, &serving, async move |client| drop(client.run(&keyspace).await));
        tables(&world, &[&serving], seed, |_| {}, &[Consistency::One]);
    }
}

#[test]
fn pages_are_the_whole_in_a_ring() {
    for seed in 1..=3 {
        let members = Members::new(seed);
        members.world.set_fault(env::sim::Fault::Heal);
        let replication = "{'class': 'SimpleStrategy', 'replication_factor': 2}";
        members.statement(1, format!("CREATE KEYSPACE ks WITH replication = {replication}"));
        let servings: Vec<&Serving> = members.nodes.iter().map(|(_, serving)| serving).collect();
        let made = |number: usize| {
            let name = format!("t{number}");
            members.until("it is everywhere", || (1..=NODES).all(|n| members.has_table(n, &name)));
            members.one_schema();
        };
        tables(&members.world, &servings, seed, made, &[Consistency::All, Consistency::One]);
    }
}
