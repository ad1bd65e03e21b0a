//! A disk that fails SSTables: what each `disk_failure_policy` does, and what it never does.

use std::time::Duration;

use config::CommitLogSync;
use env::Class;
use env::sim::{Fault, FileFault, NodeId, World, WorldOptions};

use crate::failure::is_served;
use crate::{PATIENCE, Serving, all, await_serving, config, start, told};

/// Rows of half a kilobyte that memtables have no room for.
const MANY: usize = 3000;

fn node(policy: &str) -> (World, NodeId, Serving) {
    let world = World::new(11, WorldOptions::default());
    let mut config = config();
    config.set(&format!("disk_failure_policy={policy}")).unwrap();
    config.set("memtable_heap_space=1MiB").unwrap();
    // a setting makes the fields anew
    config.commitlog_sync = CommitLogSync::Batch;
    let (id, serving) = start(&world, 2, config);
    let schema =
        "CREATE KEYSPACE t WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    let table = "CREATE TABLE t.a (k int PRIMARY KEY, v text)".to_owned();
    all(&world, &serving, vec![schema.to_owned(), table, insert(0)]);
    (world, id, serving)
}

fn insert(row: usize) -> String {
    format!("INSERT INTO t.a (k, v) VALUES ({row}, '{}')", "v".repeat(512))
}

fn fail(world: &World, node: NodeId, what: Option<(&str, FileFault)>) {
    let what = what.map(|(part, what)| (part.to_owned(), what));
    world.set_fault(Fault::File { node, what });
}

/// Writes until one is refused; how many were acknowledged, and what was said.
fn write_until_refused(world: &World, serving: &Serving) -> (usize, String) {
    for row in 0..MANY {
        let text = insert(row);
        let written = told(world, serving, async move |client| client.try_run(&text).await);
        if let Err(refusal) = written {
            return (row, refusal.message);
        }
    }
    panic!("nothing was refused");
}

fn flush(world: &World, serving: &Serving) -> Result<(), String> {
    told(world, serving, async |client| {
        let engine = client.node.engine();
        let Some(table) = engine.schema().table("t", "a").cloned() else { return Ok(()) };
        let flush = async move |engine: std::rc::Rc<storage::Engine>| match engine.node() {
            Some(node) => node.flush(table.id).await.map(drop),
            None => Ok(()),
        };
        let flushed = engine.shards().call_async(0, Class::Admin, flush).await;
        flushed.unwrap().map_err(|error| error.to_string())
    })
}

fn is_soon(world: &World, is: impl Fn() -> bool) -> bool {
    (0..600).any(|_| {
        world.run_for(Duration::from_millis(100)).unwrap();
        is()
    })
}

fn check_after_a_power_cut(world: &World, id: NodeId, serving: &Serving, rows: usize) {
    serving.take();
    world.power_cut(id);
    world.restart(id);
    await_serving(world, serving);
    for row in 0..rows {
        let found = all(world, serving, vec![format!("SELECT v FROM t.a WHERE k = {row}")]);
        assert_eq!(found[0].0, 1, "row {row} of {rows}");
    }
}

#[test]
fn what_cannot_be_flushed_is_kept_and_tried_again_and_what_finds_no_room_is_refused() {
    for what in [FileFault::Full, FileFault::Write, FileFault::Sync] {
        let (world, id, serving) = node("ignore");
        fail(&world, id, Some(("-Data.db", what)));
        let (rows, refusal) = write_until_refused(&world, &serving);
        assert!(rows > 100 && refusal.contains("cannot flush memtables"), "{refusal}");
        assert!(refusal.contains("-Data.db"), "{refusal}");
        assert!(is_served(&world) && world.is_up(id));
        fail(&world, id, None);
        let accepted = is_soon(&world, || {
            told(&world, &serving, async |client| client.try_run(&insert(0)).await.is_ok())
        });
        assert!(accepted, "{what:?}: no write is taken after the disk is well again");
        check_after_a_power_cut(&world, id, &serving, rows);
    }
}

#[test]
fn overwriting_ends_before_the_log_grows_without_bound() {
    let world = World::new(12, WorldOptions::default());
    let mut config = config();
    config.set("disk_failure_policy=ignore").unwrap();
    config.commitlog_sync = CommitLogSync::Batch;
    config.commitlog_total_space = Some(2 << 20);
    let (id, serving) = start(&world, 1, config);
    let schema =
        "CREATE KEYSPACE t WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    let table = "CREATE TABLE t.a (k int PRIMARY KEY, v text)".to_owned();
    all(&world, &serving, vec![schema.to_owned(), table]);
    fail(&world, id, Some(("-Data.db", FileFault::Full)));
    let refused = (0..400).any(|_| {
        let text = format!("INSERT INTO t.a (k, v) VALUES (1, '{}')", "v".repeat(200 << 10));
        let done = told(&world, &serving, async move |client| client.try_run(&text).await);
        done.is_err_and(|error| error.message.contains("cannot flush memtables"))
    });
    assert!(refused);
    fail(&world, id, None);
    let accepted = is_soon(&world, || {
        told(&world, &serving, async |client| client.try_run(&insert(0)).await.is_ok())
    });
    assert!(accepted);
}

#[test]
fn stop_and_best_effort_without_another_directory_serve_no_clients_and_go_on() {
    for policy in ["stop", "stop_paranoid", "best_effort"] {
        let (world, id, serving) = node(policy);
        fail(&world, id, Some(("-Index.db", FileFault::Write)));
        assert!(flush(&world, &serving).is_err());
        assert!(is_soon(&world, || !is_served(&world)), "{policy}");
        assert!(world.is_up(id), "nodetool still sees it");
        fail(&world, id, None);
        check_after_a_power_cut(&world, id, &serving, 1);
    }
}

#[test]
fn die_ends_the_node() {
    let (world, id, serving) = node("die");
    fail(&world, id, Some(("-Data.db", FileFault::Full)));
    let client = serving.take().unwrap();
    let env = client.env.clone();
    env.spawn(Class::Statement, async move {
        let engine = std::rc::Rc::clone(client.node.engine());
        let Some(table) = engine.schema().table("t", "a").cloned() else { return };
        if let Some(node) = engine.node() {
            drop(node.flush(table.id).await);
        }
    });
    world.run_until(|| !world.is_up(id), PATIENCE).unwrap();
    assert!(world.exits(id).iter().any(Result::is_err), "{:?}", world.exits(id));
}

/// Flips a bit of the table's data, and reads.
fn read_damage(policy: &str) -> (World, NodeId, Serving) {
    let (world, id, serving) = node(policy);
    flush(&world, &serving).unwrap();
    world.disk(id, |disk| {
        for (path, _) in disk.files() {
            if path.contains("/t/a-") && path.ends_with("-Data.db") {
                disk.damage(std::path::Path::new(&path), |bytes| bytes[20] ^= 1);
            }
        }
    });
    let read = "SELECT v FROM t.a WHERE k = 0".to_owned();
    let read = told(&world, &serving, async move |client| client.try_run(&read).await);
    assert!(read.is_err_and(|error| error.message.contains("-Data.db")));
    (world, id, serving)
}

#[test]
fn damage_stops_only_the_paranoid() {
    for policy in ["stop", "best_effort", "ignore"] {
        let (world, id, _serving) = read_damage(policy);
        world.run_for(Duration::from_secs(5)).unwrap();
        assert!(is_served(&world) && world.is_up(id), "{policy}");
    }
    let (world, id, _serving) = read_damage("stop_paranoid");
    assert!(is_soon(&world, || !is_served(&world)) && world.is_up(id));
    let (world, id, serving) = read_damage("die");
    serving.take();
    world.run_until(|| !world.is_up(id), PATIENCE).unwrap();
}

/// Is there a node after a start on a table that lost a component of its SSTable?
fn starts_without(policy: &str) -> bool {
    let (world, id, serving) = node(policy);
    flush(&world, &serving).unwrap();
    serving.take();
    world.power_cut(id);
    world.disk(id, |disk| {
        let files = disk.files().into_iter().map(|(path, _)| path);
        let lost = files.filter(|path| path.contains("/t/a-") && path.ends_with("-Summary.db"));
        lost.for_each(|path| assert!(disk.lose(std::path::Path::new(&path))));
    });
    world.restart(id);
    world.run_until(|| serving.borrow().is_some() || !world.is_up(id), PATIENCE).unwrap();
    if !world.is_up(id) {
        return false;
    }
    // from the log, which has it still
    let found = all(&world, &serving, vec!["SELECT v FROM t.a WHERE k = 0".to_owned()]);
    assert_eq!(found[0].0, 1);
    let truncate = "TRUNCATE t.a".to_owned();
    let emptied = told(&world, &serving, async move |client| client.try_run(&truncate).await);
    assert!(emptied.is_err_and(|error| error.message.contains("put aside")));
    let said = "SELECT message FROM system_views.system_logs".to_owned();
    let said = all(&world, &serving, vec![said]).remove(0).1;
    assert!(String::from_utf8_lossy(&said).contains("; skipping table"));
    true
}

#[test]
fn a_start_goes_without_an_sstable_only_where_the_policy_wants_it() {
    assert!(starts_without("best_effort") && starts_without("ignore"));
    assert!(!starts_without("stop") && !starts_without("stop_paranoid") && !starts_without("die"));
}

#[test]
fn a_compaction_leaves_the_space_that_is_reserved() {
    let world = World::new(13, WorldOptions::default());
    let mut config = config();
    config.set("min_free_space_per_drive=1000000000MiB").unwrap();
    config.commitlog_sync = CommitLogSync::Batch;
    let (_, serving) = start(&world, 1, config);
    let schema =
        "CREATE KEYSPACE t WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    let table = "CREATE TABLE t.a (k int PRIMARY KEY, v text)".to_owned();
    all(&world, &serving, vec![schema.to_owned(), table]);
    for row in 0..2 {
        all(&world, &serving, vec![insert(row)]);
        flush(&world, &serving).unwrap();
    }
    let compacted = told(&world, &serving, async |client| {
        let engine = client.node.engine();
        let table = engine.schema().table("t", "a").map(|table| table.id).unwrap();
        engine
            .node()
            .unwrap()
            .compactions()
            .merge_all(table)
            .await
            .map_err(|error| error.to_string())
    });
    let refused = compacted.unwrap_err();
    assert!(refused.contains("Not enough space for compaction of t.a"), "{refused}");
    assert!(is_served(&world));
    all(&world, &serving, vec!["SELECT v FROM t.a WHERE k = 1".to_owned()]);
}

#[test]
fn chunks_of_an_older_file_of_the_same_length_are_no_answer() {
    let (world, id, serving) = node("stop");
    let write = |value: &str| {
        let text = format!("INSERT INTO t.a (k, v) VALUES (0, '{}')", value.repeat(512));
        all(&world, &serving, vec![text]);
        flush(&world, &serving).unwrap();
    };
    // what is there already has an older time, and is as long as that
    flush(&world, &serving).unwrap();
    write("a");
    write("b");
    serving.take();
    world.kill(id);
    let copied = world.disk(id, |disk| {
        let files = disk.files().into_iter();
        let ours = |path: &str| path.contains("/t/a-") && path.ends_with("-Data.db");
        let mut data: Vec<_> = files.filter(|(path, _)| ours(path)).collect();
        data.sort();
        let (Some((newer, old)), Some((_, older))) = (data.pop(), data.pop()) else { return false };
        assert_eq!(old.len(), older.len(), "the files are not alike enough");
        disk.damage(std::path::Path::new(&newer), |bytes| bytes.clone_from(&older))
    });
    assert_eq!(copied, Some(true));
    world.restart(id);
    await_serving(&world, &serving);
    let read = "SELECT v FROM t.a WHERE k = 0".to_owned();
    let read = told(&world, &serving, async move |client| client.try_run(&read).await);
    let error = read.map(drop).unwrap_err();
    assert!(error.message.contains("not the one that was written"), "{}", error.message);
}
