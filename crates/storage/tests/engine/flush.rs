//! How a flush treats the disk: an even load where memory is not needed, haste where it is, and no
//! file that the disk did not take.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::sim::{Fault, FileFault, NodeId, World, WorldOptions};
use env::{Class, Env, IO_WINDOW, IO_WINDOWS, IoKind, Mesh};
use schema::Schema;
use storage::commitlog::SyncMode;
use storage::shards::Job;
use storage::{Engine, NodeStore, Options, StorageError};

use crate::engine::{SHARDS, is_there, options, schema, start, table, write};

/// What a flush writes in a second where no memory is needed, and what two steps more are in a
/// window.
const LEAST_RATE: u64 = 16 << 20;
const STEPS: u64 = 512 << 10;
/// Bytes of a value, and keys of memtables that are due.
const VALUE_BYTES: usize = 30_000;
const KEYS: i32 = 300;

/// What a world showed.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Bytes that flushes wrote in each window.
    written: Vec<u64>,
    /// Flushes that ended.
    flushes: u64,
    /// Writes that waited for memory.
    waits: u64,
    /// How long each write took.
    took: Vec<Duration>,
    wrong: Vec<String>,
}

/// Memory for some two flushes: one is due when there are `KEYS` keys. The log holds nobody up.
fn roomy() -> Options {
    Options {
        sync: SyncMode::Periodic {
            period: Duration::from_secs(10),
            lag_block: Duration::from_secs(15),
        },
        segment_bytes: 16 << 20,
        commitlog_bytes: 1 << 30,
        memtable_bytes: 24 << 20,
        cleanup_threshold: 0.33,
        ..options()
    }
}

async fn observe(engine: &Rc<Engine>, node: &Rc<NodeStore>, seen: &RefCell<Seen>) {
    let env = engine.env();
    let last = env.io_window() + 1;
    let pattern = env.io_pattern(last.saturating_sub(IO_WINDOWS as u64)..last);
    let of = |window: &env::IoWindow| {
        let flushed = window
            .sums()
            .filter(|(class, kind, _)| *class == Class::Flush && *kind == IoKind::Write);
        flushed.map(|(.., sums)| sums.bytes).sum()
    };
    let mut seen = seen.borrow_mut();
    seen.written = pattern.windows.iter().map(of).collect();
    seen.flushes = node.stats.flushes.get();
    seen.waits = engine.stats.waits_for_memory.get();
}

/// How fast keys are written.
#[derive(Clone, Copy)]
struct Load {
    keys: i32,
    /// Keys that are written at a time, one after the other by each of so many.
    writers: i32,
    /// What each of them waits after a key.
    pause: Duration,
}

/// Writes keys until a flush has ended; then reads them back.
async fn shard(
    env: Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    load: Load,
    seen: Rc<RefCell<Seen>>,
) -> Result<(), StorageError> {
    let (engine, node) = start(&env, mesh, roomy(), &BTreeMap::new()).await?;
    if let Some(node) = node {
        let table = table(0);
        let writer = |writer| {
            let (engine, table, seen) = (Rc::clone(&engine), Arc::clone(&table), Rc::clone(&seen));
            env.spawn_task(Class::Statement, async move {
                for key in (writer..load.keys).step_by(load.writers as usize) {
                    let begun = engine.env().now();
                    write(&engine, &table, key, VALUE_BYTES).await?;
                    let took = engine.env().now().since(begun);
                    seen.borrow_mut().took.push(took);
                    engine.env().sleep(load.pause).await;
                }
                Ok::<_, StorageError>(())
            })
        };
        let writers: Vec<_> = (0..load.writers).map(writer).collect();
        for writer in writers {
            writer.await?;
        }
        let deadline = env.now() + Duration::from_secs(30);
        while node.stats.flushes.get() == 0 && env.now() < deadline {
            env.sleep(IO_WINDOW).await;
        }
        observe(&engine, &node, &seen).await;
        for key in (0..load.keys).step_by(10) {
            if !is_there(&engine, &table, key).await? {
                seen.borrow_mut().wrong.push(format!("key {key} is gone"));
            }
        }
        env.terminate();
    }
    env.terminated().await;
    Ok(())
}

fn run(seed: u64, load: Load, bug: Option<&'static str>) -> Seen {
    let world = World::new(seed, WorldOptions::default());
    if let Some(bug) = bug {
        world.plant(bug);
    }
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    let seen = Rc::new(RefCell::new(Seen::default()));
    let theirs = Rc::clone(&seen);
    world.start(node, SHARDS, move |env, mesh| shard(env, mesh, load, Rc::clone(&theirs)));
    world.run_until(|| !world.is_up(node), Duration::from_secs(300)).unwrap();
    assert!(world.exits(node).iter().all(Result::is_ok), "seed {seed}: {:?}", world.exits(node));
    let seen = seen.borrow().clone();
    assert_eq!(seen.wrong, Vec::<String>::new(), "seed {seed}");
    assert!(seen.flushes > 0, "seed {seed}: nothing was flushed");
    seen
}

/// A load that leaves much time between flushes.
const EASY: Load = Load { keys: KEYS, writers: 1, pause: Duration::from_millis(5) };
/// A load that fills the rest of the memory while a flush takes its time.
const HARD: Load = Load { keys: 10 * KEYS, writers: 16, pause: Duration::from_millis(6) };

/// More than the disk can take.
const FLOOD: Load = Load { keys: 10 * KEYS, writers: 8, pause: Duration::ZERO };

fn most(seen: &Seen) -> u64 {
    seen.written.iter().copied().max().unwrap_or(0)
}

/// So long or longer each writer waited some five times.
fn often(mut seen: Seen) -> Duration {
    seen.took.sort();
    let nth = 5 * FLOOD.writers as usize;
    seen.took.iter().rev().nth(nth).copied().unwrap_or_default()
}

fn in_a_window() -> u64 {
    (LEAST_RATE as f64 * IO_WINDOW.as_secs_f64()) as u64 + STEPS
}

#[test]
fn a_flush_is_an_even_load_while_there_is_memory() {
    for seed in 1..=3 {
        let seen = run(seed, EASY, None);
        assert!(most(&seen) <= in_a_window(), "seed {seed}: {} bytes in a window", most(&seen));
        let busy = seen.written.iter().filter(|written| **written > 0).count();
        assert!(busy > 1, "seed {seed}: the flush fits into a window");
    }
}

#[test]
fn a_flush_at_full_speed_would_be_found() {
    let seen = run(1, EASY, Some("flush_at_full_speed"));
    assert!(most(&seen) > in_a_window(), "{} bytes in a window", most(&seen));
}

#[test]
fn a_flush_hurries_when_memory_is_needed_and_one_that_does_not_would_be_found() {
    for seed in 1..=3 {
        let hurried = run(seed, HARD, None).waits;
        let calm = run(seed, HARD, Some("flush_without_haste")).waits;
        assert!(calm > 0, "seed {seed}: nobody needed memory");
        assert!(hurried * 10 <= calm, "seed {seed}: {hurried} writes waited, {calm} without haste");
    }
}

/// Else they all wait for the last part of it, when no memory is left.
#[test]
fn writes_get_memory_as_the_flush_gets_on() {
    let all = |bug| (1..=3).map(|seed| often(run(seed, FLOOD, bug))).sum::<Duration>();
    let (held, free) = (all(None), all(Some("writes_run_ahead_of_flush")));
    assert!(held * 3 <= free * 2, "{held:?}, and {free:?} where they run ahead");
}

/// A node gets to a mark before it ends.
fn reach(world: &World, node: NodeId, name: &'static str) {
    let is_there = || world.marks().contains_key(name);
    world.run_until(|| is_there() || !world.is_up(node), Duration::from_secs(60)).unwrap();
    assert!(is_there(), "seed {}: {:?}", world.seed(), world.exits(node));
}

/// The disk refuses what it is sent before the sync: nothing of it may be published, and the log
/// has it still.
#[test]
fn a_file_that_the_disk_did_not_take_is_none() {
    for seed in 1..=3 {
        let world = World::new(seed, WorldOptions::default());
        let node = world.node(IpAddr::from([10, 0, 0, 1]));
        let lives = Rc::new(std::cell::Cell::new(0));
        let theirs = Rc::clone(&lives);
        world.start(node, 1, move |env, mesh| life(env, mesh, Rc::clone(&theirs)));
        world.set_fault(Fault::File { node, what: Some(("Data.db".into(), FileFault::Sync)) });
        let reached = |name| reach(&world, node, name);
        reached("refused");
        world.power_cut(node);
        world.set_fault(Fault::File { node, what: None });
        world.restart(node);
        reached("all there");
    }
}

async fn life(
    env: Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    lives: Rc<std::cell::Cell<u32>>,
) -> Result<(), StorageError> {
    const FEW: i32 = 100;
    let options = Options { sync: SyncMode::Batch, ..roomy() };
    let (engine, node) = start(&env, mesh, options, &BTreeMap::new()).await?;
    let table = table(0);
    lives.set(lives.get() + 1);
    if let (1, Some(node)) = (lives.get(), node) {
        for key in 0..FEW {
            write(&engine, &table, key, VALUE_BYTES).await?;
        }
        assert!(node.flush(table.id).await.is_err());
        env.mark("refused");
    } else {
        for key in 0..FEW {
            assert!(is_there(&engine, &table, key).await?, "key {key} is gone");
        }
        env.mark("all there");
    }
    env.terminated().await;
    Ok(())
}

/// A sync of the directory above fails once, and what a later one says of the name is nothing.
#[test]
fn a_new_directory_whose_name_was_not_durable_is_made_anew() {
    for seed in 1..=3 {
        let world = World::new(seed, WorldOptions::default());
        let node = world.node(IpAddr::from([10, 0, 0, 1]));
        let lives = Rc::new(std::cell::Cell::new(0));
        let theirs = Rc::clone(&lives);
        world.start(node, 1, move |env, mesh| life_of_a_directory(env, mesh, Rc::clone(&theirs)));
        let above = Some(("/data/ks".to_owned(), FileFault::SyncNames));
        world.set_fault(Fault::File { node, what: above });
        let reached = |name| reach(&world, node, name);
        reached("refused");
        world.set_fault(Fault::File { node, what: None });
        reached("flushed");
        world.power_cut(node);
        world.restart(node);
        reached("the directory is there");
    }
}

async fn life_of_a_directory(
    env: Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    lives: Rc<std::cell::Cell<u32>>,
) -> Result<(), StorageError> {
    let (options, table) = (roomy(), table(0));
    let directory = storage::table_directory(&options.data_directories[0], &table);
    lives.set(lives.get() + 1);
    if lives.get() == 1 {
        let (engine, node) = start(&env, mesh, options, &BTreeMap::new()).await?;
        let node = node.expect("the first shard");
        write(&engine, &table, 1, VALUE_BYTES).await?;
        assert!(node.flush(table.id).await.is_err());
        env.mark("refused");
        while node.flush(table.id).await.is_err() {
            env.sleep(Duration::from_millis(10)).await;
        }
        env.mark("flushed");
    } else {
        let is_there = env.exists(&directory).await;
        assert!(is_there.is_ok_and(|is_there| is_there), "{directory:?} is gone");
        env.mark("the directory is there");
    }
    env.terminated().await;
    Ok(())
}

/// To write a table without the compression that its schema asks for would be a change that nobody
/// hears of.
#[test]
fn a_compressor_that_is_not_known_is_an_error() {
    let world = World::new(1, WorldOptions::default());
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    world.start(node, 1, async move |env, mesh| {
        let (engine, node) = start(&env, mesh, roomy(), &BTreeMap::new()).await?;
        let mut odd = (*table(0)).clone();
        odd.params.compression.class = Some("org.example.OddCompressor".into());
        let mut keyspace = (**schema().keyspace("ks").expect("there")).clone();
        keyspace.tables.insert("t0".into(), Arc::new(odd));
        let node = node.expect("the first shard");
        let after = Schema::new([Arc::new(keyspace)], Schema::empty_version(), 2);
        node.set_schema(&Arc::new(after)).await?;
        write(&engine, &table(0), 1, VALUE_BYTES).await?;
        let error = node.flush(table(0).id).await.expect_err("nobody can compress so");
        assert!(error.to_string().contains("OddCompressor"), "{error}");
        assert_eq!(node.flushes().unflushed(), 1, "it is tried again");
        assert_eq!(node.stats.disk_failures.get(), 0);
        assert!(is_there(&engine, &table(0), 1).await?);
        env.mark("refused");
        env.terminated().await;
        Ok::<_, StorageError>(())
    });
    let refused = || world.marks().contains_key("refused") || !world.is_up(node);
    world.run_until(refused, Duration::from_secs(60)).unwrap();
    assert!(world.marks().contains_key("refused"), "{:?}", world.exits(node));
}
