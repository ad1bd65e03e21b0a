//! Memtables that were flushed answer reads in place of their SSTables, for as long as there is
//! memory, and until something else becomes of those.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use env::sim::{World, WorldOptions};
use env::{Class, Env, Mesh};
use storage::shards::Job;
use storage::{CacheKind, Engine, Options, ScanStart, StorageError};

use crate::engine::{SHARDS, is_there, options, start, table, write};

const KEYS: i32 = 40;
const VALUE_BYTES: usize = 1000;

/// Memory for many times as many keys, or for these once and a half.
fn with_memory(bytes: u64, keeps_flushed: bool) -> Options {
    Options { memtable_bytes: bytes, keeps_flushed, ..options() }
}
const MUCH: u64 = 8 << 20;
const LITTLE: u64 = little(KEYS);
const fn little(keys: i32) -> u64 {
    3 * keys as u64 * (VALUE_BYTES as u64 + 300) / 2
}

/// What happens between the flush and the reads.
#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    Compaction,
    MoreWrites,
    Truncation,
}

/// How often reads of the flushed keys asked for chunks of SSTables, and how many of the keys they
/// found.
async fn looks(engine: &Rc<Engine>, keys: i32) -> Result<(u64, i32), StorageError> {
    let mut asked = 0;
    let count = |engine: &Rc<Engine>| engine.caches().stats(CacheKind::Chunks).requests();
    for shard in 0..SHARDS {
        asked += engine.shards().call(shard, count).await?;
    }
    let mut found = 0;
    for key in 0..keys {
        found += i32::from(is_there(engine, &table(0), key).await?);
    }
    let mut after = 0;
    for shard in 0..SHARDS {
        after += engine.shards().call(shard, count).await?;
    }
    Ok((after - asked, found))
}

/// How many keys the shards' scans find.
async fn scanned(engine: &Rc<Engine>) -> Result<i32, StorageError> {
    let mut found = 0;
    for shard in 0..SHARDS {
        let count = |engine: Rc<Engine>| async move {
            let mut scan = engine.scan(&table(0), ScanStart::Beginning).await?;
            let mut found = 0;
            while scan.next().await?.is_some() {
                found += 1;
            }
            Ok::<_, StorageError>(found)
        };
        found += engine.shards().call_async(shard, Class::Statement, count).await??;
    }
    Ok(found)
}

async fn story(
    env: Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    options: Options,
    keys: i32,
    then: Then,
) -> Result<Option<(u64, i32)>, StorageError> {
    let (engine, node) = start(&env, mesh, options, &BTreeMap::new()).await?;
    let Some(node) = node else {
        env.terminated().await;
        return Ok(None);
    };
    let (id, table) = (table(0).id, table(0));
    for half in [0..keys / 2, keys / 2..keys] {
        for key in half {
            write(&engine, &table, key, VALUE_BYTES).await?;
        }
        assert!(node.flush(id).await?);
    }
    match then {
        Then::Nothing => {}
        Then::Compaction => node.compactions().merge_all(id).await?,
        Then::MoreWrites => {
            for key in keys..2 * keys {
                write(&engine, &table, key, VALUE_BYTES).await?;
            }
        }
        Then::Truncation => {
            node.truncations().truncate(id, None, async |_| Ok::<_, StorageError>(())).await?
        }
    }
    let looks = looks(&engine, keys).await?;
    let written = match then {
        Then::MoreWrites => 2 * keys,
        Then::Truncation => 0,
        Then::Nothing | Then::Compaction => keys,
    };
    assert_eq!(scanned(&engine).await?, written);
    env.terminate();
    Ok(Some(looks))
}

fn run(options: &Options, then: Then) -> (u64, i32) {
    run_with(options, KEYS, then)
}

fn run_with(options: &Options, keys: i32, then: Then) -> (u64, i32) {
    let world = World::new(3, WorldOptions::default());
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    let seen = Rc::new(Cell::new(None));
    let (theirs, options) = (Rc::clone(&seen), options.clone());
    world.start(node, SHARDS, move |env, mesh| {
        let (seen, options) = (Rc::clone(&theirs), options.clone());
        async move {
            if let Some(looks) = story(env, mesh, options, keys, then).await? {
                seen.set(Some(looks));
            }
            Ok::<_, StorageError>(())
        }
    });
    world.run_until(|| !world.is_up(node), Duration::from_secs(300)).unwrap();
    assert!(world.exits(node).iter().all(Result::is_ok), "{:?}", world.exits(node));
    seen.get().expect("it was told")
}

#[test]
fn what_was_flushed_is_read_from_memory_while_there_is_some() {
    assert_eq!(run(&with_memory(MUCH, true), Then::Nothing), (0, KEYS));
}

#[test]
fn it_is_read_from_files_where_that_is_asked_for() {
    let (chunks, found) = run(&with_memory(MUCH, false), Then::Nothing);
    assert!(chunks >= KEYS as u64, "{chunks}");
    assert_eq!(found, KEYS);
}

#[test]
fn what_was_compacted_is_read_from_files() {
    let (chunks, found) = run(&with_memory(MUCH, true), Then::Compaction);
    assert!(chunks >= KEYS as u64, "{chunks}");
    assert_eq!(found, KEYS);
}

#[test]
fn writes_take_the_memory_that_they_need() {
    let (chunks, found) = run(&with_memory(LITTLE, true), Then::MoreWrites);
    assert!(chunks >= KEYS as u64 / 2, "{chunks}");
    assert_eq!(found, KEYS);
}

/// Of many partitions, those whose memory is needed go, in the order of the ring, and not all.
#[test]
fn what_they_do_not_need_stays() {
    let keys = 25 * KEYS;
    let run = |keeps| run_with(&with_memory(little(keys), keeps), keys, Then::MoreWrites);
    let ((all, _), (chunks, found)) = (run(false), run(true));
    assert!((all / 3..all / 2).contains(&chunks), "{chunks} of {all}");
    assert_eq!(found, keys);
}

#[test]
fn what_was_truncated_is_not_there() {
    assert_eq!(run(&with_memory(MUCH, true), Then::Truncation), (0, 0));
}
