//! A node with three data directories: each has a part of the ring, and one that fails takes only
//! its part with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use config::{CommitLogSync, Config};
use env::Class;
use env::sim::{Fault, FileFault, NodeId, World, WorldOptions};
use types::Token;

use crate::failure::is_served;
use crate::{PATIENCE, Serving, all, await_serving, config, start, told};

const DIRECTORIES: [&str; 3] = ["/d1", "/d2", "/d3"];
const ROWS: i32 = 60;

fn three(policy: &str) -> Config {
    let mut config = config();
    config.set(&format!("disk_failure_policy={policy}")).unwrap();
    config.commitlog_sync = CommitLogSync::Batch;
    config.data_file_directories = DIRECTORIES.iter().map(Into::into).collect();
    config
}

fn create(world: &World, serving: &Serving) {
    let schema =
        "CREATE KEYSPACE t WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    let table = "CREATE TABLE t.a (k int PRIMARY KEY, v int)".to_owned();
    all(world, serving, vec![schema.to_owned(), table]);
}

fn write(world: &World, serving: &Serving, value: i32) {
    let insert = |row| format!("INSERT INTO t.a (k, v) VALUES ({row}, {value})");
    all(world, serving, (0..ROWS).map(insert).collect());
}

/// The directory of the part of the ring that a key is in.
fn part(row: i32) -> usize {
    storage::compaction::shard_of(Token::of(&row.to_be_bytes()), 3) as usize
}

/// What an operator does to the table.
#[derive(Clone, Copy)]
enum Order {
    Flush,
    Compact,
    Relocate,
}

fn order(world: &World, serving: &Serving, order: Order) -> Result<(), String> {
    told(world, serving, async move |client| {
        let engine = client.node.engine();
        let id = engine.schema().table("t", "a").map(|table| table.id).unwrap();
        let run = async move |engine: Rc<storage::Engine>| {
            let node = engine.node().unwrap();
            match order {
                Order::Flush => node.flush(id).await.map(drop),
                Order::Compact => node.compactions().merge_all(id).await,
                Order::Relocate => node.compactions().relocate(id).await,
            }
        };
        let done = engine.shards().call_async(0, Class::Admin, run).await;
        done.unwrap().map_err(|error| error.to_string())
    })
}

/// The values of all rows, as far as there are rows.
fn values(world: &World, serving: &Serving) -> BTreeMap<i32, i32> {
    let mut values = BTreeMap::new();
    for row in 0..ROWS {
        let found = all(world, serving, vec![format!("SELECT v FROM t.a WHERE k = {row}")]);
        if let (1, cells) = &found[0] {
            let value = cells.last_chunk::<4>().copied().map_or(0, i32::from_be_bytes);
            values.insert(row, value);
        }
    }
    values
}

/// The names of the table's data files, by directory.
fn files(world: &World, id: NodeId) -> [Vec<String>; 3] {
    let all = world.disk(id, |disk| disk.files()).unwrap_or_default();
    DIRECTORIES.map(|directory| {
        let names = all.iter().map(|(path, _)| path.clone());
        let ours = |path: &String| path.starts_with(&format!("{directory}/t/a-"));
        names.filter(|path| ours(path) && path.ends_with("-Data.db")).collect()
    })
}

fn restart(world: &World, id: NodeId, serving: &Serving) {
    serving.take();
    world.power_cut(id);
    world.restart(id);
    await_serving(world, serving);
}

#[test]
fn each_directory_has_its_part_of_the_ring_after_flushes_compactions_and_starts() {
    let world = World::new(5, WorldOptions::default());
    let (id, serving) = start(&world, 2, three("stop"));
    create(&world, &serving);
    for value in 1..=3 {
        write(&world, &serving, value);
        order(&world, &serving, Order::Flush).unwrap();
    }
    assert!(files(&world, id).iter().all(|files| !files.is_empty()), "{:?}", files(&world, id));
    restart(&world, id, &serving);
    let right: BTreeMap<i32, i32> = (0..ROWS).map(|row| (row, 3)).collect();
    assert_eq!(values(&world, &serving), right);
    order(&world, &serving, Order::Compact).unwrap();
    let settled = (0..100).any(|_| {
        world.run_for(Duration::from_millis(100)).unwrap();
        files(&world, id).iter().all(|files| files.len() == 1)
    });
    assert!(settled, "{:?}", files(&world, id));
    restart(&world, id, &serving);
    assert_eq!(values(&world, &serving), right);
    // without one of them just its part is missing, and nothing older is back
    serving.take();
    world.kill(id);
    let [_, lost, _] = files(&world, id);
    let gone = world.disk(id, |disk| {
        let paths = disk.files().into_iter().map(|(path, _)| path);
        let of = lost[0].trim_end_matches("Data.db").to_owned();
        paths.filter(|path| path.starts_with(&of)).collect::<Vec<_>>()
    });
    for path in gone.unwrap_or_default() {
        world.disk(id, |disk| disk.lose(Path::new(&path)));
    }
    world.restart(id);
    await_serving(&world, &serving);
    let left: BTreeMap<i32, i32> = right.into_iter().filter(|(row, _)| part(*row) != 1).collect();
    assert_eq!(values(&world, &serving), left);
}

#[test]
fn what_lies_in_the_wrong_directory_is_relocated() {
    let world = World::new(6, WorldOptions::default());
    let mut one = three("stop");
    one.data_file_directories.truncate(1);
    let configs = Rc::new(std::cell::RefCell::new(std::sync::Arc::new(one)));
    let node = world.node("10.0.0.1".parse().unwrap());
    let serving = Serving::default();
    let (theirs, of) = (Rc::clone(&serving), Rc::clone(&configs));
    world.start(node, 1, move |env: env::Env, mesh: env::Mesh<node::Message>| {
        let (serving, config) = (Rc::clone(&theirs), std::sync::Arc::clone(&of.borrow()));
        let limits = server::ConnectionLimits::new();
        node::run_shard(env.clone(), mesh, config, limits, move |node, _| {
            *serving.borrow_mut() = Some(crate::Client {
                env,
                node: Rc::clone(node.shard()),
                whole: Rc::downgrade(node),
            });
        })
    });
    await_serving(&world, &serving);
    create(&world, &serving);
    write(&world, &serving, 1);
    order(&world, &serving, Order::Flush).unwrap();
    configs.replace(std::sync::Arc::new(three("stop")));
    restart(&world, node, &serving);
    assert_eq!(files(&world, node).map(|files| files.len()), [1, 0, 0]);
    order(&world, &serving, Order::Relocate).unwrap();
    let settled = (0..100).any(|_| {
        world.run_for(Duration::from_millis(100)).unwrap();
        files(&world, node).iter().all(|files| files.len() == 1)
    });
    assert!(settled, "{:?}", files(&world, node));
    let before = files(&world, node);
    order(&world, &serving, Order::Relocate).unwrap();
    world.run_for(Duration::from_secs(1)).unwrap();
    assert_eq!(files(&world, node), before, "what is where it belongs stays");
    restart(&world, node, &serving);
    assert_eq!(values(&world, &serving), (0..ROWS).map(|row| (row, 1)).collect());
}

#[test]
fn best_effort_goes_on_without_a_directory_that_fails() {
    let world = World::new(7, WorldOptions::default());
    let (id, serving) = start(&world, 2, three("best_effort"));
    create(&world, &serving);
    write(&world, &serving, 1);
    order(&world, &serving, Order::Flush).unwrap();
    // it cannot be written: its part goes to the others
    write(&world, &serving, 2);
    world
        .set_fault(Fault::File { node: id, what: Some(("/d2/t/a-".to_owned(), FileFault::Write)) });
    assert!(order(&world, &serving, Order::Flush).is_err());
    order(&world, &serving, Order::Flush).unwrap();
    assert_eq!(files(&world, id).map(|files| files.len()), [2, 1, 2]);
    assert_eq!(values(&world, &serving), (0..ROWS).map(|row| (row, 2)).collect());
    // it cannot be read: what only it has is missing, what is newer is not
    restart(&world, id, &serving);
    world.set_fault(Fault::File { node: id, what: Some(("/d1/t/a-".to_owned(), FileFault::Read)) });
    let read = |row: i32| format!("SELECT v FROM t.a WHERE k = {row}");
    let row = (0..ROWS).find(|row| part(*row) == 0).unwrap();
    let text = read(row);
    let failed = told(&world, &serving, async move |client| client.try_run(&text).await.is_err());
    assert!(failed);
    world.run_for(Duration::from_secs(1)).unwrap();
    let left = values(&world, &serving);
    assert!(left.len() < ROWS as usize && !left.contains_key(&row), "{left:?}");
    // what the second had, and what came after it in the first, may show as it was
    assert!(left.iter().all(|(row, value)| *value == 2 || part(*row) == 1), "{left:?}");
    assert!(is_served(&world) && world.is_up(id));
    write(&world, &serving, 3);
    order(&world, &serving, Order::Flush).unwrap();
    order(&world, &serving, Order::Compact).unwrap();
    world.set_fault(Fault::File { node: id, what: None });
    restart(&world, id, &serving);
    assert_eq!(values(&world, &serving), (0..ROWS).map(|row| (row, 3)).collect());
}

#[test]
fn what_is_put_aside_keeps_the_tombstones_that_it_needs() {
    let survives = |bug: Option<&'static str>| {
        let world = World::new(8, WorldOptions::default());
        if let Some(bug) = bug {
            world.plant(bug);
        }
        let (id, serving) = start(&world, 1, three("best_effort"));
        create(&world, &serving);
        all(&world, &serving, vec!["ALTER TABLE t.a WITH gc_grace_seconds = 0".to_owned()]);
        write(&world, &serving, 1);
        order(&world, &serving, Order::Flush).unwrap();
        world.run_for(Duration::from_secs(2)).unwrap();
        let row = (0..ROWS).find(|row| part(*row) == 0).unwrap();
        world.set_fault(Fault::File {
            node: id,
            what: Some(("/d1/t/a-".to_owned(), FileFault::Read)),
        });
        let text = format!("SELECT v FROM t.a WHERE k = {row}");
        let read = told(&world, &serving, async move |client| client.try_run(&text).await);
        assert!(read.is_err());
        world.run_for(Duration::from_secs(1)).unwrap();
        // something is left, so that what is written anew names its part of the log
        let kept = (0..ROWS).find(|row| part(*row) == 2).unwrap();
        for row in (0..ROWS).filter(|row| *row != kept) {
            all(&world, &serving, vec![format!("DELETE FROM t.a WHERE k = {row}")]);
        }
        world.run_for(Duration::from_secs(2)).unwrap();
        order(&world, &serving, Order::Flush).unwrap();
        world.run_for(Duration::from_secs(2)).unwrap();
        order(&world, &serving, Order::Compact).unwrap();
        world.run_for(Duration::from_secs(2)).unwrap();
        world.set_fault(Fault::File { node: id, what: None });
        restart(&world, id, &serving);
        values(&world, &serving).into_keys().eq([kept])
    };
    assert!(survives(None));
    assert!(!survives(Some("purged_beside_what_is_aside")), "the bug is not found");
}

#[test]
fn a_crash_leaves_all_of_a_transaction_or_nothing_in_every_directory() {
    // the power goes at each of many moments of flushes and compactions
    for seed in 1..=24 {
        let world = World::new(seed, WorldOptions::default());
        let (id, serving) = start(&world, 2, three("stop"));
        create(&world, &serving);
        for value in 1..=2 {
            write(&world, &serving, value);
            order(&world, &serving, Order::Flush).unwrap();
        }
        write(&world, &serving, 3);
        let client = serving.borrow().clone().unwrap();
        let env = client.env.clone();
        env.spawn(Class::Admin, async move {
            let engine = Rc::clone(client.node.engine());
            let id = engine.schema().table("t", "a").map(|table| table.id).unwrap();
            if let Some(node) = engine.node() {
                drop(node.flush(id).await);
                drop(node.compactions().merge_all(id).await);
            }
        });
        world.run_for(Duration::from_micros(world.rng().below(30_000))).unwrap();
        serving.take();
        world.power_cut(id);
        world.restart(id);
        world.run_until(|| serving.borrow().is_some() || !world.is_up(id), PATIENCE).unwrap();
        assert!(world.is_up(id), "seed {seed}: {:?}", world.exits(id));
        assert_eq!(values(&world, &serving), (0..ROWS).map(|row| (row, 3)).collect(), "{seed}");
    }
}
