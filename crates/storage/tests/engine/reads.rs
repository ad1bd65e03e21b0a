//! What reads of what is not in memory have the disk do.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use env::sim::{World, WorldOptions};
use env::{Class, Env, Mesh};
use storage::shards::Job;
use storage::{CacheKind, Engine, Options, StorageError};

use crate::engine::{is_there, options, reads, start, table, write};

/// Partitions of which every third one lies in two chunks.
const KEYS: i32 = 200;
const VALUE_BYTES: usize = 5000;

async fn life(env: Env, mesh: Mesh<Job<Rc<Engine>>>) -> Result<(), StorageError> {
    let (engine, node) = start(&env, mesh, options(), &BTreeMap::new()).await?;
    let (Some(node), table) = (node, table(0)) else { return Ok(()) };
    for key in 0..KEYS {
        write(&engine, &table, key, VALUE_BYTES).await?;
    }
    node.flush(table.id).await?;
    let (before, _) = reads(&env, Class::Statement);
    for key in 0..KEYS {
        // another order than that of writing, or of tokens
        let key = key * 77 % KEYS;
        assert!(is_there(&engine, &table, key).await?, "key {key} is gone");
    }
    let asked = reads(&env, Class::Statement).0 - before;
    // The index is in memory after a few; and now and then the simulated disk reads short.
    assert!(asked <= KEYS as u64 * 11 / 10, "{asked} reads of the disk for {KEYS} rows");
    env.terminate();
    Ok(())
}

/// Caches that hold some of the partitions, and a page cache so small that few chunks come again
/// soon enough.
fn small() -> Options {
    Options {
        chunk_cache_bytes: 512 << 10,
        key_cache_bytes: 8 << 10,
        page_cache_bytes: Some(8 << 10),
        ..options()
    }
}
/// So many that those of one chunk are seldom read soon after one another.
const MANY: i32 = 800;
const HOT: i32 = 10;
const ROUNDS: i32 = 3;
const COLD: i32 = 60;

async fn full_life(env: Env, mesh: Mesh<Job<Rc<Engine>>>) -> Result<(), StorageError> {
    let (engine, node) = start(&env, mesh, small(), &BTreeMap::new()).await?;
    let (Some(node), table) = (node, table(0)) else { return Ok(()) };
    for key in 0..MANY {
        write(&engine, &table, key, VALUE_BYTES).await?;
    }
    node.flush(table.id).await?;
    let read = async |keys: std::ops::Range<i32>| {
        let hits = engine.caches().stats(CacheKind::Keys).hits;
        let (before, _) = reads(&env, Class::Statement);
        for key in keys {
            assert!(is_there(&engine, &table, key).await?, "key {key} is gone");
        }
        let hits = engine.caches().stats(CacheKind::Keys).hits - hits;
        Ok::<_, StorageError>((reads(&env, Class::Statement).0 - before, hits))
    };
    // others are in front of them when it is chosen who goes
    read(MANY - HOT..MANY).await?;
    read(0..HOT).await?;
    let (mut asked, mut found) = (0, 0);
    for round in 0..ROUNDS {
        let (all, _) = read(HOT + round * COLD..HOT + (round + 1) * COLD).await?;
        assert!(all > COLD as u64 / 2, "{all} reads of the disk: the cache holds them");
        let (more, hits) = read(0..HOT).await?;
        (asked, found) = (asked + more, found + hits);
    }
    let hot = (HOT * ROUNDS) as u64;
    // as many as there are, and more, where each that is read is kept
    assert!(
        asked < hot * 2 / 3,
        "{asked} reads of the disk for {hot} rows that are read more often"
    );
    assert!(found > hot * 2 / 3, "{found} of {hot} places were kept");
    env.terminate();
    Ok(())
}

fn lives<F: Future<Output = Result<(), StorageError>> + 'static>(
    life: impl Fn(Env, Mesh<Job<Rc<Engine>>>) -> F + 'static,
) {
    let world = World::new(1, WorldOptions::default());
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    world.start(node, 1, life);
    world.run_until(|| !world.is_up(node), Duration::from_secs(300)).unwrap();
    assert!(world.exits(node).iter().all(Result::is_ok), "{:?}", world.exits(node));
}

/// What is read once throws out little of caches that are full.
#[test]
fn reads_all_over_leave_caches_what_they_have() {
    lives(full_life);
}

/// A row is one read of the disk where the index is in memory, wherever it lies.
#[test]
fn a_partition_in_two_chunks_is_read_at_once() {
    lives(life);
}
