//! A whole node in simulated worlds: counters lose no increment, logged batches are all or nothing, whatever ends the
//! node and however many shards it comes back with.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Answer, Coordinator, Request};
use config::{CommitLogSync, Config};
use env::sim::{NodeId, World, WorldOptions};
use env::{Class, Env, Mesh};
use helenus::{Message, run_shard};
use protocol::{QueryOptions, Version};
use server::ConnectionLimits;

const SEEDS: u64 = 12;
const PATIENCE: Duration = Duration::from_secs(120);
const KEYS: usize = 20;

fn config() -> Arc<Config> {
    let mut config = Config::default();
    for setting in ["data_dir=/d", "listen_address=10.0.0.1", "rpc_address=10.0.0.1"] {
        config.set(setting).unwrap();
    }
    // what is acknowledged survives a power cut
    config.commitlog_sync = CommitLogSync::Batch;
    Arc::new(config)
}

/// One statement: the number of its rows and their cells.
async fn run(env: &Env, node: &Rc<Coordinator>, text: &str) -> Result<(u32, Vec<u8>), String> {
    let options = QueryOptions::default();
    let deadline = env.now() + Duration::from_secs(10);
    let request = Request { keyspace: None, version: Version::V5, options: &options, deadline };
    match node.query(text, request).await.result {
        Ok(Answer::Rows(page)) => Ok((page.rows, page.cells)),
        Ok(_) => Ok((0, Vec::new())),
        Err(error) => Err(error.message),
    }
}

type Serving = Rc<RefCell<Option<(Env, Rc<Coordinator>)>>>;

/// A node whose first coordinator is there to be asked once it serves.
fn start(world: &World, shards: usize) -> (NodeId, Serving) {
    let node = world.node("10.0.0.1".parse().unwrap());
    let serving = Serving::default();
    let theirs = Rc::clone(&serving);
    world.start(node, shards, move |env: Env, mesh: Mesh<Message>| {
        let serving = Rc::clone(&theirs);
        run_shard(env.clone(), mesh, config(), ConnectionLimits::new(), move |node, _| {
            *serving.borrow_mut() = node.coordinator().map(|it| (env, Rc::clone(it)));
        })
    });
    await_serving(world, &serving);
    (node, serving)
}

fn await_serving(world: &World, serving: &Serving) {
    world.run_until(|| serving.borrow().is_some(), PATIENCE).unwrap();
}

/// Runs statements one after another on a node, and waits for all.
fn all(world: &World, serving: &Serving, texts: Vec<String>) -> Vec<(u32, Vec<u8>)> {
    let (env, node) = serving.borrow().clone().unwrap();
    let results = Rc::new(RefCell::new(Vec::new()));
    let theirs = Rc::clone(&results);
    let count = texts.len();
    env.clone().spawn(Class::Statement, async move {
        for text in texts {
            let result = run(&env, &node, &text).await.unwrap_or_else(|e| panic!("{text}: {e}"));
            theirs.borrow_mut().push(result);
        }
    });
    world.run_until(|| results.borrow().len() == count, PATIENCE).unwrap();
    results.take()
}

fn schema() -> Vec<String> {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    vec![
        format!("CREATE KEYSPACE t WITH replication = {replication}"),
        "CREATE TABLE t.b (k int PRIMARY KEY, v int)".into(),
        "CREATE TABLE t.c (k int, c int, n counter, PRIMARY KEY (k, c))".into(),
    ]
}

fn restart(world: &World, node: NodeId, serving: &Serving, shards: usize) {
    serving.take();
    world.restart_with(node, shards);
    await_serving(world, serving);
}

#[test]
fn counters_lose_nothing() {
    for seed in 0..SEEDS {
        let world = World::new(seed, WorldOptions::default());
        let (id, serving) = start(&world, 1 + seed as usize % 3);
        all(&world, &serving, schema());
        let (env, node) = serving.borrow().clone().unwrap();
        let done = Rc::new(Cell::new(0));
        for n in 0..60 {
            let (env, node, done) = (env.clone(), Rc::clone(&node), Rc::clone(&done));
            let (key, sign) = (n % 3, if n % 10 == 0 { '-' } else { '+' });
            env.clone().spawn(Class::Statement, async move {
                let update = format!("UPDATE t.c SET n = n {sign} 2 WHERE k = {key} AND c = {key}");
                let batch = format!("BEGIN COUNTER BATCH {update}; {update}; APPLY BATCH");
                run(&env, &node, &batch).await.unwrap();
                done.set(done.get() + 1);
            });
        }
        world.run_until(|| done.get() == 60, PATIENCE).unwrap();
        drop((env, node));
        for life in 0..2 {
            let rows = all(&world, &serving, vec!["SELECT k, c, n FROM t.c".into()]);
            let (_, cells) = &rows[0];
            let counts: Vec<i64> = cells
                .chunks(4 + 4 + 4 + 4 + 4 + 8)
                .map(|row| i64::from_be_bytes(*row.last_chunk().unwrap()))
                .collect();
            // of 20 batches of 2 updates each, 2 go down
            assert_eq!(counts, vec![(18 - 2) * 4; 3], "seed {seed}, life {life}");
            world.power_cut(id);
            restart(&world, id, &serving, 1 + (seed as usize + life) % 4);
        }
    }
}

#[test]
fn logged_batches_are_all_or_nothing() {
    let mut halves = [0; 2];
    for seed in 0..SEEDS * 4 {
        let world = World::new(seed, WorldOptions::default());
        let (id, serving) = start(&world, 1 + seed as usize % 3);
        all(&world, &serving, schema());
        let (env, node) = serving.borrow().clone().unwrap();
        let acknowledged = Rc::new(Cell::new(false));
        let theirs = Rc::clone(&acknowledged);
        env.clone().spawn(Class::Statement, async move {
            let inserts = (0..KEYS).map(|k| format!("INSERT INTO t.b (k, v) VALUES ({k}, 1); "));
            let batch = format!("BEGIN BATCH {}APPLY BATCH", inserts.collect::<String>());
            run(&env, &node, &batch).await.unwrap();
            theirs.set(true);
        });
        world.run_for(Duration::from_micros(world.rng().below(6000))).unwrap();
        match seed % 2 {
            0 => world.kill(id),
            _ => world.power_cut(id),
        }
        restart(&world, id, &serving, 1 + seed as usize % 4);
        let rows = all(&world, &serving, vec!["SELECT k FROM t.b".into()])[0].0 as usize;
        assert!(rows == 0 || rows == KEYS, "seed {seed}: {rows} of {KEYS} rows");
        assert!(rows == KEYS || !acknowledged.get(), "seed {seed}: lost what was acknowledged");
        let left = all(&world, &serving, vec!["SELECT id FROM system.batches".into()])[0].0;
        assert_eq!(left, 0, "seed {seed}: the log is empty after a start");
        halves[usize::from(rows == KEYS)] += 1;
    }
    assert!(halves.iter().all(|count| *count > 0), "the ends were {halves:?}");
}
