//! Counters lose no increment, logged batches are all or nothing, whatever ends the node and
//! however many shards it comes back with.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use env::Class;
use env::sim::{NodeId, World, WorldOptions};

use crate::{PATIENCE, Serving, all, await_serving, config, start};

const SEEDS: u64 = 12;
const KEYS: usize = 20;

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
        let (id, serving) = start(&world, 1 + seed as usize % 3, config());
        all(&world, &serving, schema());
        let client = serving.borrow().clone().unwrap();
        let done = Rc::new(Cell::new(0));
        for n in 0..60 {
            let (client, done) = (client.clone(), Rc::clone(&done));
            let (key, sign) = (n % 3, if n % 10 == 0 { '-' } else { '+' });
            client.env.clone().spawn(Class::Statement, async move {
                let update = format!("UPDATE t.c SET n = n {sign} 2 WHERE k = {key} AND c = {key}");
                let batch = format!("BEGIN COUNTER BATCH {update}; {update}; APPLY BATCH");
                client.run(&batch).await;
                done.set(done.get() + 1);
            });
        }
        world.run_until(|| done.get() == 60, PATIENCE).unwrap();
        drop(client);
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
        let (id, serving) = start(&world, 1 + seed as usize % 3, config());
        all(&world, &serving, schema());
        let client = serving.borrow().clone().unwrap();
        let acknowledged = Rc::new(Cell::new(false));
        let theirs = Rc::clone(&acknowledged);
        client.env.clone().spawn(Class::Statement, async move {
            let inserts = (0..KEYS).map(|k| format!("INSERT INTO t.b (k, v) VALUES ({k}, 1); "));
            let batch = format!("BEGIN BATCH {}APPLY BATCH", inserts.collect::<String>());
            client.run(&batch).await;
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
