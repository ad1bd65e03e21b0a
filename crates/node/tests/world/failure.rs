//! A disk that fails the commit log: what each `commit_failure_policy` does, and what it never
//! does.

use std::net::SocketAddr;
use std::time::Duration;

use config::CommitLogSync;
use env::TcpStream;
use env::sim::{Fault, FileFault, NodeId, World, WorldOptions};

use crate::{PATIENCE, Serving, all, await_serving, config, start, told};

/// Rows that are written while the disk fails.
const ROWS: usize = 60;

fn node(policy: &str) -> (World, NodeId, Serving) {
    node_with(policy, "stop")
}

fn node_with(policy: &str, disk_policy: &str) -> (World, NodeId, Serving) {
    let world = World::new(7, WorldOptions::default());
    let mut config = config();
    config.set(&format!("disk_failure_policy={disk_policy}")).unwrap();
    config.set(&format!("commit_failure_policy={policy}")).unwrap();
    // a setting makes the fields anew
    config.commitlog_sync = CommitLogSync::Batch;
    let (id, serving) = start(&world, 2, config);
    let schema =
        "CREATE KEYSPACE t WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    let table = "CREATE TABLE t.a (k int PRIMARY KEY, v int)".to_owned();
    all(&world, &serving, vec![schema.to_owned(), table, insert(0)]);
    (world, id, serving)
}

fn insert(row: usize) -> String {
    format!("INSERT INTO t.a (k, v) VALUES ({row}, {row})")
}

/// Which of the rows are acknowledged while the log of each third fails to be synced.
fn write_on_a_bad_disk(world: &World, id: NodeId, serving: &Serving) -> Vec<usize> {
    let mut acknowledged = Vec::new();
    for row in 1..=ROWS {
        let what = (row % 3 == 0).then(|| ("CommitLog-".to_owned(), FileFault::Sync));
        world.set_fault(Fault::File { node: id, what });
        let insert = insert(row);
        if told(world, serving, async move |client| client.try_run(&insert).await.is_ok()) {
            acknowledged.push(row);
        }
    }
    world.set_fault(Fault::File { node: id, what: None });
    acknowledged
}

pub fn is_served(world: &World) -> bool {
    let client = world.client("10.0.0.9".parse().unwrap());
    let address: SocketAddr = "10.0.0.1:9042".parse().unwrap();
    let env = client.clone();
    let ask = async move { TcpStream::connect(&env, address).await.is_ok() };
    world.block_on(&client, PATIENCE, ask).unwrap()
}

/// After a power cut all that was acknowledged is there.
fn check_after_a_power_cut(world: &World, id: NodeId, serving: &Serving, acknowledged: &[usize]) {
    serving.take();
    world.power_cut(id);
    world.restart(id);
    await_serving(world, serving);
    for row in acknowledged.iter().chain(&[0]) {
        let found = all(world, serving, vec![format!("SELECT v FROM t.a WHERE k = {row}")]);
        assert_eq!(found[0].0, 1, "row {row}");
    }
}

#[test]
fn stop_commit_takes_no_writes_and_serves_reads() {
    let (world, id, serving) = node("stop_commit");
    let acknowledged = write_on_a_bad_disk(&world, id, &serving);
    assert!(acknowledged.len() < ROWS / 2, "{acknowledged:?}");
    assert!(is_served(&world) && world.is_up(id));
    all(&world, &serving, vec!["SELECT v FROM t.a WHERE k = 0".to_owned()]);
    check_after_a_power_cut(&world, id, &serving, &acknowledged);
}

#[test]
fn stop_serves_no_clients_and_goes_on() {
    let (world, id, serving) = node("stop");
    assert!(is_served(&world));
    let acknowledged = write_on_a_bad_disk(&world, id, &serving);
    let steps = (0..100).take_while(|_| is_served(&world));
    steps.for_each(|_| world.run_for(Duration::from_millis(100)).unwrap());
    assert!(!is_served(&world));
    assert!(world.is_up(id), "nodetool still sees it");
    check_after_a_power_cut(&world, id, &serving, &acknowledged);
}

#[test]
fn die_ends_the_node_with_an_error() {
    let (world, id, serving) = node("die");
    let client = serving.borrow().clone().unwrap();
    world.set_fault(Fault::SyncError { node: id, one_in: 1 });
    let env = client.env.clone();
    env.spawn(env::Class::Statement, async move { drop(client.try_run(&insert(1)).await) });
    serving.take();
    world.run_until(|| !world.is_up(id), PATIENCE).unwrap();
    assert!(world.exits(id).iter().any(Result::is_err), "{:?}", world.exits(id));
}

#[test]
fn ignore_goes_on_and_acknowledges_nothing_that_is_not_durable() {
    let (world, id, serving) = node("ignore");
    let acknowledged = write_on_a_bad_disk(&world, id, &serving);
    assert!((10..ROWS).contains(&acknowledged.len()), "{acknowledged:?}");
    assert!(is_served(&world) && world.is_up(id));
    let healthy: Vec<usize> = (ROWS + 1..ROWS + 20).collect();
    let texts = healthy.iter().map(|row| insert(*row)).collect();
    all(&world, &serving, texts);
    check_after_a_power_cut(&world, id, &serving, &[acknowledged, healthy].concat());
}

/// The clock's reserve needs no room to move on, so reads go on for as long as the disk is full.
#[test]
fn a_full_disk_does_not_end_the_node() {
    let (world, id, serving) = node_with("stop_commit", "ignore");
    world.set_fault(Fault::NoSpace { node: id, on: true });
    world.run_for(Duration::from_secs(60)).unwrap();
    assert!(is_served(&world) && world.is_up(id), "{:?}", world.exits(id));
    all(&world, &serving, vec!["SELECT v FROM t.a WHERE k = 0".to_owned()]);
    world.set_fault(Fault::NoSpace { node: id, on: false });
    check_after_a_power_cut(&world, id, &serving, &[]);
}

#[test]
fn a_clock_reserve_that_cannot_be_kept_ends_the_node_and_is_said() {
    let (world, id, serving) = node("stop");
    serving.take();
    let what = Some(("clock_reserve".to_owned(), FileFault::Sync));
    world.set_fault(Fault::File { node: id, what });
    world.run_until(|| !world.is_up(id), PATIENCE).unwrap();
    let exits = world.exits(id);
    let why = exits.iter().find_map(|exit| exit.as_ref().err()).expect("it ends with an error");
    assert!(why.starts_with("ClockLost(Io { path: \"/d/clock_reserve\""), "{why}");
    let source = std::io::Error::other("it is full");
    let lost = cluster::ReserveError::Io { path: "/d/clock_reserve".into(), source };
    assert_eq!(
        node::NodeError::ClockLost(lost).to_string(),
        "cannot read or write the clock reserve /d/clock_reserve: it is full; stopping the node, \
         as timestamps could repeat after a crash; check the disk of data_dir"
    );
}
