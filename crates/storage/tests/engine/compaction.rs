//! What a compaction has the disk do.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use env::sim::{World, WorldOptions};
use env::{Class, Env, Mesh};
use std::rc::Rc;
use storage::shards::Job;
use storage::{Engine, StorageError};

use crate::engine::{is_there, options, reads, start, table, write};

/// Rows of an SSTable: each a partition, many in a chunk.
const KEYS: i32 = 400;
const VALUE_BYTES: usize = 300;

async fn life(env: Env, mesh: Mesh<Job<Rc<Engine>>>) -> Result<(), StorageError> {
    let (engine, node) = start(&env, mesh, options(), &BTreeMap::new()).await?;
    let (Some(node), table) = (node, table(0)) else { return Ok(()) };
    node.compactions().set_auto(table.id, false);
    for _ in 0..2 {
        for key in 0..KEYS {
            write(&engine, &table, key, VALUE_BYTES).await?;
        }
        node.flush(table.id).await?;
    }
    let before = reads(&env, Class::Compaction);
    let (compacting, id) = (Rc::clone(&node), table.id);
    let compact = async move { compacting.compactions().merge_all(id).await };
    env.spawn_task(Class::Compaction, compact).await?;
    let after = reads(&env, Class::Compaction);
    let (ops, bytes) = (after.0 - before.0, after.1 - before.1);
    // Two SSTables of values that cannot be compressed, with their indexes: each byte of them once.
    let data = 2 * KEYS as u64 * VALUE_BYTES as u64;
    assert!(bytes >= data && bytes <= data * 3 / 2, "{bytes} bytes read of {data}");
    assert!(ops <= 16, "{ops} reads");
    for key in 0..KEYS {
        assert!(is_there(&engine, &table, key).await?, "key {key} is gone");
    }
    env.terminate();
    Ok(())
}

/// Partitions that share a chunk have it read and decompressed once, and chunks are read many at a
/// time.
#[test]
fn a_compaction_reads_its_inputs_once_in_large_pieces() {
    let world = World::new(1, WorldOptions::default());
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    world.start(node, 1, life);
    world.run_until(|| !world.is_up(node), Duration::from_secs(300)).unwrap();
    assert!(world.exits(node).iter().all(Result::is_ok), "{:?}", world.exits(node));
}

/// Partitions of an SSTable whose filter and index take long to make.
const MANY: i32 = 5000;

async fn large(env: Env, mesh: Mesh<Job<Rc<Engine>>>) -> Result<(), StorageError> {
    let (engine, node) = start(&env, mesh, options(), &BTreeMap::new()).await?;
    let (Some(node), table) = (node, table(0)) else { return Ok(()) };
    node.compactions().set_auto(table.id, false);
    let helped = || env.stats().helper_jobs;
    for half in 0..2 {
        for key in half * MANY / 2..MANY / 2 * half + MANY {
            write(&engine, &table, key, 8).await?;
        }
        let before = helped();
        node.flush(table.id).await?;
        assert!(helped() >= before + 2, "a helper begins and ends a large table");
    }
    let before = helped();
    let (compacting, id) = (Rc::clone(&node), table.id);
    let compact = async move { compacting.compactions().merge_all(id).await };
    env.spawn_task(Class::Compaction, compact).await?;
    assert!(helped() >= before + 2, "a helper begins and ends a large table");
    for key in 0..MANY / 2 * 3 {
        assert!(is_there(&engine, &table, key).await?, "key {key} is gone");
    }
    env.terminate();
    Ok(())
}

/// The shard goes on meanwhile; what is written is the same.
#[test]
fn helpers_make_what_is_kept_of_a_large_table() {
    let world = World::new(1, WorldOptions::default());
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    world.start(node, 1, large);
    world.run_until(|| !world.is_up(node), Duration::from_secs(600)).unwrap();
    assert!(world.exits(node).iter().all(Result::is_ok), "{:?}", world.exits(node));
}
