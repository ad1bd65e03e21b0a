//! Caches are saved when a node ends and filled at the next start; whatever lies there, no answer
//! changes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use config::Config;
use env::sim::{NodeId, World, WorldOptions};
use env::{Class, Rng};
use storage::CacheKind;

use crate::{Client, PATIENCE, Serving, await_serving, config, start, told};

/// Partitions of each table.
const KEYS: i64 = 30;
/// Rounds of damage in a world, and worlds.
const ROUNDS: u64 = 12;
const WORLDS: u64 = 3;
/// Files that are damaged.
const CACHES: [&str; 3] = ["KeyCache", "RowCache", "CounterCache"];
const EXTENSIONS: [&str; 3] = ["db", "crc", "metadata"];

fn small() -> Config {
    let mut config = config();
    config.set_all(["row_cache_size=1MiB", "row_cache_save_period=1h"]).unwrap();
    // reads wait for the disk
    config.file_cache_size = Some(0);
    config
}

async fn create(client: &Client) {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    client.run(&format!("CREATE KEYSPACE t WITH replication = {replication}")).await;
    client
        .run("CREATE TABLE t.c (k int, c text, s counter static, v counter, PRIMARY KEY (k, c))")
        .await;
    client
        .run("CREATE TABLE t.r (k int, c int, PRIMARY KEY (k, c)) WITH caching = {'rows_per_partition': 'ALL'}")
        .await;
    for k in 0..KEYS {
        client.run(&format!("INSERT INTO t.r (k, c) VALUES ({k}, 1)")).await;
    }
    for _ in 0..2 {
        add(client).await;
    }
    flush(client).await;
    add(client).await;
    read(client).await;
}

/// Adds one to each counter.
async fn add(client: &Client) {
    for k in 0..KEYS {
        client.run(&format!("UPDATE t.c SET v = v + 1, s = s + 1 WHERE k = {k} AND c = 'a'")).await;
    }
}

async fn flush(client: &Client) {
    let engine = client.node.engine();
    let schema = engine.schema();
    for table in ["c", "r"] {
        let id = schema.table("t", table).unwrap().id;
        let flush = move |engine: Rc<storage::Engine>| async move {
            engine.node().unwrap().flush(id).await.map(drop)
        };
        engine.shards().call_async(0, Class::Admin, flush).await.unwrap().unwrap();
    }
}

/// What both tables show, partition by partition.
async fn read(client: &Client) -> Vec<(u32, Vec<u8>)> {
    let mut found = Vec::new();
    for k in 0..KEYS {
        found.push(client.run(&format!("SELECT * FROM t.c WHERE k = {k}")).await);
        found.push(client.run(&format!("SELECT * FROM t.r WHERE k = {k}")).await);
    }
    found
}

async fn stats(client: &Client, kind: CacheKind) -> storage::CacheStats {
    let mut all = storage::CacheStats::default();
    for shard in 0..client.node.engine().shards().count() {
        let look = move |engine: &Rc<storage::Engine>| engine.caches().stats(kind);
        all += client.node.engine().shards().call(shard, look).await.unwrap();
    }
    all
}

/// Ends the node in order, or kills it, and starts it again.
fn again(world: &World, node: NodeId, serving: &Serving, kill: bool) {
    drop(serving.take());
    match kill {
        true => world.kill(node),
        false => world.terminate(node),
    }
    world.run_until(|| !world.is_up(node), PATIENCE).unwrap();
    world.restart(node);
    await_serving(world, serving);
}

/// Waits until what was saved of a cache is there again.
async fn await_entries(client: &Client, kind: CacheKind, entries: u64) {
    let deadline = client.env.now() + PATIENCE;
    while stats(client, kind).await.entries < entries {
        assert!(client.env.now() < deadline, "{kind:?}: {:?}", stats(client, kind).await);
        client.env.sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn what_was_kept_is_kept_again() {
    let world = World::new(1, WorldOptions::default());
    let (node, serving) = start(&world, 2, small());
    let before = told(&world, &serving, async move |client| {
        create(&client).await;
        let counters = stats(&client, CacheKind::Counters).await;
        assert_eq!(counters.entries, 2 * KEYS as u64);
        let rows = stats(&client, CacheKind::Rows).await;
        assert_eq!(rows.entries, KEYS as u64);
        read(&client).await
    });
    again(&world, node, &serving, false);
    told(&world, &serving, async move |client| {
        await_entries(&client, CacheKind::Counters, 2 * KEYS as u64).await;
        await_entries(&client, CacheKind::Rows, KEYS as u64).await;
        // of two tables
        await_entries(&client, CacheKind::Keys, 2 * KEYS as u64).await;
        let rows = stats(&client, CacheKind::Rows).await;
        assert_eq!(read(&client).await, before);
        assert_eq!(stats(&client, CacheKind::Rows).await.hits, rows.hits + KEYS as u64);
        let counters = stats(&client, CacheKind::Counters).await;
        add(&client).await;
        let after = stats(&client, CacheKind::Counters).await;
        assert_eq!(after.hits, counters.hits + 2 * KEYS as u64);
        assert_eq!(after.misses, counters.misses);
    });
}

#[test]
fn as_many_are_saved_as_the_operator_wants() {
    let world = World::new(1, WorldOptions::default());
    let mut config = small();
    config.set_all(["counter_cache_keys_to_save=5", "key_cache_save_period=0s"]).unwrap();
    let (node, serving) = start(&world, 2, config);
    told(&world, &serving, async move |client| create(&client).await);
    again(&world, node, &serving, false);
    told(&world, &serving, async move |client| {
        await_entries(&client, CacheKind::Counters, 5).await;
        client.env.sleep(Duration::from_secs(1)).await;
        assert_eq!(stats(&client, CacheKind::Counters).await.entries, 5);
        let saved = client.env.read_dir("/d/saved_caches").await.unwrap();
        let names: Vec<String> = saved.into_iter().map(|entry| entry.name).collect();
        // those of two caches
        assert_eq!(names.len(), 6, "{names:?}");
    });
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

async fn files(client: &Client) -> Files {
    let mut files = Files::new();
    for cache in CACHES {
        for extension in EXTENSIONS {
            let path = PathBuf::from(format!("/d/saved_caches/{cache}-g.{extension}"));
            if let Ok(bytes) = client.env.read_file(&path, 1 << 20).await {
                files.insert(path, bytes);
            }
        }
    }
    files
}

/// Sums up the chunks of a file anew.
fn checksums(data: &[u8]) -> Vec<u8> {
    let mut bytes = (64_u32 << 10).to_be_bytes().to_vec();
    for chunk in data.chunks(64 << 10) {
        bytes.extend(crc32fast::hash(chunk).to_be_bytes());
    }
    bytes
}

/// Files as they may be after bad times.
fn damage(rng: &Rng, good: &Files, old: &Files) -> Files {
    let mut files = if rng.one_in(3) { old.clone() } else { good.clone() };
    for _ in 0..rng.between(0, 4) {
        let at = rng.below(files.len() as u64) as usize;
        let Some((path, bytes)) = files.iter().nth(at).map(|(p, b)| (p.clone(), b.clone())) else {
            continue;
        };
        let other = good.values().nth(rng.below(good.len() as u64) as usize).cloned();
        let mut changed = bytes;
        match rng.below(5) {
            0 => changed.truncate(rng.below(changed.len() as u64 + 1) as usize),
            1 => changed = other.unwrap_or_default(),
            2 => {
                files.remove(&path);
                continue;
            }
            _ => {
                for _ in 0..rng.between(1, 6) {
                    let place = rng.below(changed.len().max(1) as u64) as usize;
                    if let Some(byte) = changed.get_mut(place) {
                        *byte = rng.next() as u8;
                    }
                }
            }
        }
        files.insert(path, changed);
    }
    // now and then nothing tells that it is damaged
    for cache in CACHES {
        let path = |extension| PathBuf::from(format!("/d/saved_caches/{cache}-g.{extension}"));
        if let Some(data) = files.get(&path("db")).filter(|_| rng.one_in(2)) {
            let crcs = checksums(data);
            files.insert(path("crc"), crcs);
        }
    }
    files
}

/// Puts files there, but for those that are not.
async fn place(client: &Client, good: &Files, files: &Files) {
    for path in good.keys().filter(|path| !files.contains_key(*path)) {
        let _ = client.env.remove_file(path).await;
    }
    for (path, bytes) in files {
        client.env.write_file_atomically(path, bytes.clone()).await.unwrap();
    }
}

#[test]
fn no_file_changes_an_answer() {
    for seed in 1..=WORLDS {
        let world = World::new(seed, WorldOptions::default());
        let rng = Rng::new(seed);
        let (node, serving) = start(&world, 2, small());
        told(&world, &serving, async move |client| create(&client).await);
        again(&world, node, &serving, false);
        let old = told(&world, &serving, async move |client| {
            let old = files(&client).await;
            // what is in them is not so any more
            for k in 0..KEYS / 2 {
                client.run(&format!("DELETE FROM t.c WHERE k = {k}")).await;
                client.run(&format!("DELETE FROM t.r WHERE k = {k}")).await;
            }
            client.env.sleep(Duration::from_secs(1)).await;
            add(&client).await;
            flush(&client).await;
            read(&client).await;
            old
        });
        assert_eq!(old.len(), CACHES.len() * EXTENSIONS.len());
        again(&world, node, &serving, false);
        for _ in 0..ROUNDS {
            let (old, rng) = (old.clone(), Rng::new(rng.next()));
            let before = told(&world, &serving, async move |client| {
                // what is found at a start is soon written anew
                client.env.sleep(Duration::from_secs(1)).await;
                let good = files(&client).await;
                place(&client, &good, &damage(&rng, &good, &old)).await;
                read(&client).await
            });
            again(&world, node, &serving, true);
            told(&world, &serving, async move |client| {
                client.env.sleep(Duration::from_millis(300)).await;
                assert_eq!(read(&client).await, before);
                // what is kept of counters is what is stored of them
                add(&client).await;
                let with = read(&client).await;
                for shard in 0..2 {
                    let empty = |engine: &Rc<storage::Engine>| {
                        engine.caches().clear(CacheKind::Counters);
                        engine.caches().clear(CacheKind::Rows);
                        engine.caches().clear(CacheKind::Keys);
                    };
                    client.node.engine().shards().call(shard, empty).await.unwrap();
                }
                assert_eq!(read(&client).await, with);
                for k in 0..KEYS {
                    let less =
                        format!("UPDATE t.c SET v = v - 1, s = s - 1 WHERE k = {k} AND c = 'a'");
                    client.run(&less).await;
                }
                assert_eq!(read(&client).await, before);
            });
            again(&world, node, &serving, false);
        }
    }
}

/// How many counters are wrong after additions that ran while what was saved was read.
fn raced(seed: u64, bug: Option<&'static str>) -> usize {
    let world = World::new(seed, WorldOptions::default());
    if let Some(bug) = bug {
        world.plant(bug);
    }
    let (node, serving) = start(&world, 2, small());
    told(&world, &serving, async move |client| {
        create(&client).await;
        flush(&client).await;
    });
    again(&world, node, &serving, false);
    told(&world, &serving, async move |client| {
        let adders: Vec<_> = (0..3)
            .map(|_| {
                let client = client.clone();
                client.env.clone().spawn_task(Class::Statement, async move { add(&client).await })
            })
            .collect();
        for adder in adders {
            adder.await;
        }
        await_entries(&client, CacheKind::Counters, 2 * KEYS as u64).await;
        add(&client).await;
        let mut wrong = 0;
        for k in 0..KEYS {
            let (_, cells) = client.run(&format!("SELECT v FROM t.c WHERE k = {k}")).await;
            wrong += usize::from(cells.last_chunk::<8>() != Some(&7_i64.to_be_bytes()));
        }
        wrong
    })
}

#[test]
fn additions_while_it_is_read_are_counted() {
    for seed in 1..=WORLDS {
        assert_eq!(raced(seed, None), 0, "seed {seed}");
    }
    let found = (1..=40).map(|seed| raced(seed, Some("counter_cache_filled_out_of_turn")));
    assert!(found.into_iter().any(|wrong| wrong > 0));
}
