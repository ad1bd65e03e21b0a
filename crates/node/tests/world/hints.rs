//! Writes that a node missed, kept for it by another that may lose its power meanwhile: once the
//! node is up it has them all, and the other has nothing left.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::Shard;
use config::Config;
use env::Class;
use env::sim::{NodeId, World, WorldOptions};
use rows::codec::MutationEncoder;
use rows::{CellRef, Clustering, Mutation, RowBuilder, UpdateBuilder};
use schema::Table;
use storage::{PartitionKey, Slices};
use types::{Address, Uuid};

use crate::{PATIENCE, Serving, config, start_at, told};

const WORLDS: u64 = 6;
/// Keys that the node misses.
const KEYS: i32 = 300;
const GC_GRACE: i32 = 864_000;

fn ip(n: u8) -> String {
    format!("10.0.0.{n}")
}

fn member(n: u8, settings: &[&str]) -> Config {
    let mut config = config();
    let own = [
        format!("listen_address={}", ip(n)),
        format!("rpc_address={}", ip(n)),
        "ring_delay=2s".to_owned(),
        "auto_bootstrap=false".to_owned(),
        "seed_provider={class_name: SimpleSeedProvider, parameters: {seeds: '10.0.0.1'}}"
            .to_owned(),
    ];
    config.set_all(own.iter().map(String::as_str)).unwrap();
    config.set_all(settings.iter().copied()).unwrap();
    config.commitlog_sync = config::CommitLogSync::Batch;
    config
}

/// Three nodes, all of them replicas of `ks.t`.
struct Ring {
    world: World,
    nodes: Vec<(NodeId, Serving)>,
    hosts: Vec<Uuid>,
}

impl Ring {
    fn new(seed: u64, settings: &[&str]) -> Self {
        let world = World::new(seed, WorldOptions::default());
        let start =
            |n: u8| start_at(&world, &ip(n), if n == 1 { 2 } else { 1 }, member(n, settings));
        let nodes: Vec<_> = (1..=3).map(start).collect();
        let mut ring = Self { world, nodes, hosts: Vec::new() };
        ring.until("all are up", || (1..=3).all(|n| ring.up(n) == 3));
        let replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
        let keyspace = format!("CREATE KEYSPACE ks WITH replication = {replication}");
        told(&ring.world, &ring.nodes[0].1, async move |client| {
            drop(client.run(&keyspace).await);
            drop(client.run("CREATE TABLE ks.t (k int PRIMARY KEY, v text)").await);
        });
        let has = |n| ring.shard(n).schema().table("ks", "t").is_some();
        ring.until("the table is everywhere", || (1..=3).all(has));
        ring.hosts = (1..=3).map(|n| Uuid::from_bytes(ring.shard(n).engine().host_id())).collect();
        ring
    }

    fn shard(&self, n: u8) -> Rc<Shard> {
        let serving = self.nodes[usize::from(n) - 1].1.borrow();
        Rc::clone(&serving.as_ref().expect("it serves").node)
    }

    fn up(&self, n: u8) -> usize {
        let ring = self.shard(n).peers().ring();
        ring.map_or(0, |ring| ring.nodes().iter().filter(|node| node.is_up).count())
    }

    fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let done = self.world.run_until(holds, PATIENCE);
        assert!(done.is_ok(), "seed {}: {what}: {done:?}", self.world.seed());
    }

    fn stop(&self, n: u8) {
        self.world.power_cut(self.nodes[usize::from(n) - 1].0);
        self.nodes[usize::from(n) - 1].1.borrow_mut().take();
    }

    fn start(&self, n: u8) {
        let (id, serving) = &self.nodes[usize::from(n) - 1];
        self.world.restart(*id);
        self.until("it is there again", || serving.borrow().is_some());
    }

    /// Has a node keep keys for another, and waits for them.
    fn hint(&self, at: u8, to: Uuid, keys: std::ops::Range<i32>) {
        let acknowledged = Rc::new(Cell::new(0));
        let (count, wanted) = (Rc::clone(&acknowledged), keys.len());
        told(&self.world, &self.nodes[usize::from(at) - 1].1, async move |client| {
            let table = client.node.schema().table("ks", "t").cloned().unwrap();
            for k in keys {
                let made_at = client.env.unix_micros() / 1000;
                let mutation = mutation(&table, k);
                let ticket = client.node.handoff().keep(to, made_at, GC_GRACE, mutation);
                let count = Rc::clone(&count);
                client.env.spawn(Class::Statement, async move {
                    ticket.await.unwrap();
                    count.set(count.get() + 1);
                });
            }
        });
        self.until("all hints are kept", || acknowledged.get() == wanted);
    }

    /// Keys that a node of one shard has.
    fn keys(&self, n: u8) -> BTreeSet<i32> {
        told(&self.world, &self.nodes[usize::from(n) - 1].1, async |client| {
            let (engine, mut found) = (client.node.engine(), BTreeSet::new());
            let table = client.node.schema().table("ks", "t").cloned().unwrap();
            for k in 0..KEYS {
                let key = PartitionKey::new(k.to_be_bytes());
                let read = engine.partition(&table, key.as_ref(), &Slices::all(false)).await;
                if read.unwrap().is_some() {
                    found.insert(k);
                }
            }
            found
        })
    }

    fn has_hints(&self, n: u8) -> bool {
        !self.shard(n).handoff().pending().is_empty()
    }
}

fn mutation(table: &Table, k: i32) -> Arc<[u8]> {
    let mut row = RowBuilder::new();
    row.start_row(Clustering::new([]).as_ref());
    row.cell(CellRef::live(0, None, 1_700_000_000_000_000, &[b'v'; 90]));
    let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), &k.to_be_bytes());
    update.add(row.finish_row(&table.layout), &mut RowBuilder::new());
    let update = update.finish(&mut RowBuilder::new());
    let mut out = Vec::new();
    MutationEncoder::new().mutation(&Mutation::new(update), &mut out).unwrap();
    out.into()
}

fn all_keys() -> BTreeSet<i32> {
    (0..KEYS).collect()
}

/// The keys that the third node has in the end.
fn missed_writes(seed: u64, planted: Option<&'static str>) -> BTreeSet<i32> {
    let ring = Ring::new(seed, &[]);
    if let Some(bug) = planted {
        ring.world.plant(bug);
    }
    ring.stop(3);
    ring.until("it is down", || [1, 2].iter().all(|n| ring.up(*n) == 2));
    let third = ring.shard(1).peers().ring().unwrap();
    let third = third.nodes().iter().find(|node| node.host_id == ring.hosts[2]).cloned().unwrap();
    assert!(ring.shard(1).handoff().should_hint(&third));
    ring.hint(1, ring.hosts[2], 0..KEYS / 2);
    if seed.is_multiple_of(2) {
        ring.stop(1);
        ring.start(1);
    }
    ring.hint(1, ring.hosts[2], KEYS / 2..KEYS);
    assert_eq!(ring.shard(1).handoff().pending().len(), 1);
    ring.start(3);
    if seed.is_multiple_of(3) {
        let time = Duration::from_millis(ring.world.rng().below(4000));
        ring.world.run_for(time).unwrap();
        ring.stop(1);
        ring.start(1);
    }
    ring.until("all is delivered", || !ring.has_hints(1));
    ring.keys(3)
}

#[test]
fn a_node_gets_what_it_missed() {
    for seed in 1..=WORLDS {
        assert_eq!(missed_writes(seed, None), all_keys(), "seed {seed}");
    }
}

#[test]
fn hints_that_are_dropped_are_missed() {
    for bug in ["hint_dropped", "hint_not_sent"] {
        assert_ne!(missed_writes(1, Some(bug)), all_keys(), "{bug}");
    }
}

/// What a node kept for another, it hands on before it leaves.
#[test]
fn hints_are_handed_over() {
    let ring = Ring::new(1, &[]);
    ring.stop(3);
    ring.until("it is down", || [1, 2].iter().all(|n| ring.up(*n) == 2));
    ring.hint(1, ring.hosts[2], 0..KEYS);
    let handed = told(&ring.world, &ring.nodes[0].1, async |client| {
        client.node.handoff().hand_over(Address::new([10, 0, 0, 2], 7000)).await
    });
    assert!(handed && !ring.has_hints(1) && ring.has_hints(2));
    ring.start(3);
    ring.until("all is delivered", || !ring.has_hints(2));
    assert_eq!(ring.keys(3), all_keys());
}

/// Hints for a node that nobody knows go to the replicas that there are.
#[test]
fn hints_for_nobody_go_to_all_replicas() {
    let ring = Ring::new(2, &[]);
    ring.hint(2, Uuid(7), 0..KEYS);
    ring.until("all is delivered", || (1..=3).all(|n| !ring.has_hints(n)));
    assert_eq!((ring.keys(2), ring.keys(3)), (all_keys(), all_keys()));
}

/// While delivery is paused nothing is sent; what is thrown away is gone.
#[test]
fn hints_are_paused_and_thrown_away() {
    let ring = Ring::new(3, &[]);
    ring.shard(1).handoff().pause(true);
    ring.hint(1, ring.hosts[2], 0..KEYS / 2);
    ring.world.run_for(Duration::from_secs(20)).unwrap();
    assert!(ring.has_hints(1) && ring.keys(3).is_empty());
    let host = ring.hosts[2];
    let gone = told(&ring.world, &ring.nodes[0].1, async move |client| {
        client.node.handoff().truncate(Some(host)).await.unwrap()
    });
    assert_eq!((gone, ring.has_hints(1)), (1, false));
    ring.hint(1, ring.hosts[2], KEYS / 2..KEYS);
    ring.shard(1).handoff().pause(false);
    ring.until("all is delivered", || !ring.has_hints(1));
    assert_eq!(ring.keys(3), (KEYS / 2..KEYS).collect());
}
