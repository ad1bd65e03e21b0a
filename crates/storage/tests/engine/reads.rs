//! What reads of what is not in memory have the disk do.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use env::sim::{World, WorldOptions};
use env::{Class, Env, Mesh};
use storage::shards::Job;
use storage::{Engine, StorageError};

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

/// A row is one read of the disk where the index is in memory, wherever it lies.
#[test]
fn a_partition_in_two_chunks_is_read_at_once() {
    let world = World::new(1, WorldOptions::default());
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    world.start(node, 1, life);
    world.run_until(|| !world.is_up(node), Duration::from_secs(300)).unwrap();
    assert!(world.exits(node).iter().all(Result::is_ok), "{:?}", world.exits(node));
}
