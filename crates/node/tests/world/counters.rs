//! What is kept of counters changes no answer: the same statements on a node with the counter cache
//! and on one without.

use std::rc::Rc;
use std::time::Duration;

use cluster::Shard;
use env::Rng;
use env::sim::{World, WorldOptions};
use schema::TableId;
use storage::CacheKind;

use crate::{Client, config, start, told};

/// Statements of a story.
const STATEMENTS: usize = 400;
/// Stories, each on a node of its own, with the cache and without.
const STORIES: u64 = 4;
/// Bytes that the cache of a node may take: few enough that entries go to make room.
const CACHE_BYTES: u64 = 6 << 10;

/// After so long compactions forget what was deleted.
const FORGOTTEN: Duration = Duration::from_secs(2);

struct Story {
    rng: Rng,
    columns: Vec<String>,
}

impl Story {
    fn place(&self) -> String {
        format!("k = {} AND c = {}", self.rng.below(4), self.rng.below(3))
    }

    fn column(&self) -> &str {
        &self.columns[self.rng.below(self.columns.len() as u64) as usize]
    }

    fn addition(&self) -> String {
        let delta = self.rng.below(9) as i64 - 3;
        match self.rng.one_in(6) {
            true => format!("UPDATE t.a SET s = s + {delta} WHERE k = {}", self.rng.below(4)),
            false => {
                let column = self.column();
                format!("UPDATE t.a SET {column} = {column} + {delta} WHERE {}", self.place())
            }
        }
    }

    fn deletion(&self) -> String {
        let (key, row) = (self.rng.below(4), self.rng.below(3));
        match self.rng.below(8) {
            0 => format!("DELETE s FROM t.a WHERE k = {key}"),
            // what is added to it later counts once this is forgotten
            1 => format!("DELETE {} FROM t.a WHERE k = {key} AND c = {row}", self.column()),
            2 => format!("DELETE FROM t.a WHERE k = {key} AND c >= {row} AND c < 9"),
            3 => format!("DELETE FROM t.a WHERE k = {key}"),
            _ => format!("DELETE FROM t.a WHERE k = {key} AND c = {row}"),
        }
    }
}

async fn batch(client: &Client, statements: &[String]) {
    let text = format!("BEGIN COUNTER BATCH {} APPLY BATCH", statements.join("; "));
    client.run(&text).await;
}

/// Flushes the table, or compacts it so that deletions are forgotten.
async fn maintain(node: &Rc<Shard>, compact: bool) {
    let schema = node.engine().schema();
    let id: TableId = schema.table("t", "a").unwrap().id;
    let storage = node.engine().node().unwrap();
    storage.flush(id).await.unwrap();
    if compact {
        node.engine().env().sleep(FORGOTTEN).await;
        storage.compactions().merge_all(id).await.unwrap();
    }
}

/// Does something to the cache, where there is one.
async fn bother(client: &Client, what: u64, cache: u64) {
    for shard in 0..client.node.engine().shards().count() {
        let bother = move |engine: &Rc<storage::Engine>| match what {
            0 => engine.caches().clear(CacheKind::Counters),
            1 => engine.caches().set_limit(CacheKind::Counters, 0),
            _ => engine.caches().set_limit(CacheKind::Counters, cache),
        };
        client.node.engine().shards().call(shard, bother).await.unwrap();
    }
}

/// What the table showed after each statement, and how often the cache had what was asked for.
async fn story(client: Client, seed: u64, cache: u64) -> (Vec<(String, Vec<u8>)>, u64) {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    client.run(&format!("CREATE KEYSPACE t WITH replication = {replication}")).await;
    // No compaction of its own accord: what it forgets is added to again, sooner in one story than
    // in the other.
    client
        .run("CREATE TABLE t.a (k int, c int, s counter static, v counter, w counter, PRIMARY KEY (k, c)) \
              WITH gc_grace_seconds = 0 AND compaction = \
              {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}")
        .await;
    let mut story = Story { rng: Rng::new(seed), columns: vec!["v".into(), "w".into()] };
    let mut shown = Vec::new();
    for number in 0..STATEMENTS {
        let text = match story.rng.below(100) {
            0..70 => story.addition(),
            70..80 => {
                let mut parts: Vec<String> =
                    (0..story.rng.between(2, 4)).map(|_| story.addition()).collect();
                if story.rng.one_in(4) {
                    parts.push(story.deletion());
                }
                batch(&client, &parts).await;
                parts.join("; ")
            }
            80..90 => story.deletion(),
            90 if story.rng.one_in(2) => "TRUNCATE t.a".to_owned(),
            91 if story.columns.len() < 4 => {
                story.columns.push(format!("x{number}"));
                format!("ALTER TABLE t.a ADD x{number} counter")
            }
            91 => "ALTER TABLE t.a WITH comment = ''".to_owned(),
            92..98 => {
                maintain(&client.node, story.rng.one_in(3)).await;
                "maintenance".to_owned()
            }
            _ => {
                bother(&client, story.rng.below(4), cache).await;
                "setcachecapacity".to_owned()
            }
        };
        if ["UPDATE", "DELETE", "TRUNCATE", "ALTER"].iter().any(|it| text.starts_with(it))
            && !text.contains("; ")
        {
            client.run(&text).await;
        }
        shown.push((text, client.run("SELECT * FROM t.a").await.1));
    }
    let mut hits = 0;
    for shard in 0..client.node.engine().shards().count() {
        let look = |engine: &Rc<storage::Engine>| engine.caches().stats(CacheKind::Counters).hits;
        hits += client.node.engine().shards().call(shard, look).await.unwrap();
    }
    (shown, hits)
}

/// Tells a story to a node with a cache of so many bytes.
fn tell(seed: u64, cache: u64, bug: Option<&'static str>) -> (Vec<(String, Vec<u8>)>, u64) {
    let world = World::new(seed, WorldOptions::default());
    if let Some(bug) = bug {
        world.plant(bug);
    }
    let mut config = config();
    config.counter_cache_size = Some(cache);
    let (_, serving) = start(&world, 2, config);
    told(&world, &serving, async move |client| story(client, seed, cache).await)
}

/// The first statement after which the table shows something else with the cache.
fn difference(seed: u64, bug: Option<&'static str>) -> Option<(usize, String)> {
    let (without, none) = tell(seed, 0, None);
    let (with, hits) = tell(seed, CACHE_BYTES, bug);
    assert_eq!(none, 0);
    assert!(hits > 20, "{hits} of {STATEMENTS}");
    let both = without.into_iter().zip(with).enumerate();
    both.into_iter().find(|(_, (a, b))| a != b).map(|(at, (a, _))| (at, a.0))
}

#[test]
fn a_counter_is_the_same_with_the_cache_and_without() {
    for seed in 1..=STORIES {
        assert_eq!(difference(seed, None), None, "seed {seed}");
    }
}

#[test]
fn a_cache_that_is_wrong_shows() {
    for bug in [
        "counter_cache_survives_delete",
        "counter_cache_keeps_what_is_dead",
        "row_cache_survives_truncate",
    ] {
        let is_found = (1..=STORIES).any(|seed| difference(seed, Some(bug)).is_some());
        assert!(is_found, "{bug}");
    }
}
