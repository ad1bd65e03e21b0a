//! Several nodes in a world: they find each other, come to one schema, and know who is up.

use std::rc::Rc;

use cluster::Shard;
use config::Config;
use env::sim::{Fault, NodeId, World, WorldOptions};

use crate::{PATIENCE, Serving, config, start_at, told};

/// Worlds, each with its own delays and losses.
const WORLDS: u64 = 12;
pub(crate) const NODES: u8 = 3;

pub(crate) fn ip(n: u8) -> String {
    format!("10.0.0.{n}")
}

pub(crate) fn member(n: u8, settings: &[&str]) -> Config {
    let mut config = config();
    let own = [
        format!("listen_address={}", ip(n)),
        format!("rpc_address={}", ip(n)),
        "ring_delay=2s".to_owned(),
        "auto_bootstrap=false".to_owned(),
        format!(
            "seed_provider={{class_name: SimpleSeedProvider, parameters: {{seeds: '{}'}}}}",
            ip(1)
        ),
    ];
    config.set_all(own.iter().map(String::as_str)).unwrap();
    config.set_all(settings.iter().copied()).unwrap();
    config.commitlog_sync = config::CommitLogSync::Batch;
    config
}

pub(crate) struct Members {
    pub world: World,
    pub nodes: Vec<(NodeId, Serving)>,
}

impl Members {
    /// A ring of nodes that start one after the other.
    pub fn new(seed: u64) -> Self {
        Self::with(seed, &[])
    }

    /// The same with settings.
    pub fn with(seed: u64, settings: &[&str]) -> Self {
        let world = World::new(seed, WorldOptions::default());
        world.set_fault(Fault::Loss { one_in: 30 });
        let mut nodes = Vec::new();
        for n in 1..=NODES {
            let shards = 1 + usize::from(n) % 2;
            nodes.push(start_at(&world, &ip(n), shards, member(n, settings)));
        }
        let members = Self { world, nodes };
        members.all_up();
        members
    }

    pub fn shard(&self, n: u8) -> Rc<Shard> {
        let (_, serving) = &self.nodes[usize::from(n) - 1];
        let serving = serving.borrow();
        Rc::clone(&serving.as_ref().expect("it serves").node)
    }

    pub fn id(&self, n: u8) -> NodeId {
        self.nodes[usize::from(n) - 1].0
    }

    /// How many nodes one sees, and how many of them as up.
    pub fn seen(&self, n: u8) -> (usize, usize) {
        let Some(ring) = self.shard(n).peers().ring() else { return (0, 0) };
        (ring.nodes().len(), ring.nodes().iter().filter(|node| node.is_up).count())
    }

    pub fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let done = self.world.run_until(holds, PATIENCE);
        assert!(done.is_ok(), "seed {}: {what}: {done:?}", self.world.seed());
    }

    pub fn all_up(&self) {
        let all = usize::from(NODES);
        self.until("all are up", || (1..=NODES).all(|n| self.seen(n) == (all, all)));
    }

    pub fn one_schema(&self) {
        let version = |n| self.shard(n).schema().version();
        self.until("one schema", || (2..=NODES).all(|n| version(n) == version(1)));
    }

    pub fn statement(&self, n: u8, text: String) {
        let (_, serving) = &self.nodes[usize::from(n) - 1];
        told(&self.world, serving, async move |client| drop(client.run(&text).await));
    }

    pub fn has_table(&self, n: u8, table: &str) -> bool {
        self.shard(n).schema().table("ks", table).is_some()
    }
}

#[test]
fn nodes_become_a_ring_with_one_schema() {
    for seed in 1..=WORLDS {
        let members = Members::new(seed);
        let replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
        members.statement(2, format!("CREATE KEYSPACE ks WITH replication = {replication}"));
        members.statement(2, "CREATE TABLE ks.a (k int PRIMARY KEY)".to_owned());
        members.until("the table is everywhere", || (1..=NODES).all(|n| members.has_table(n, "a")));
        members.one_schema();
        // on both sides of a partition
        let [one, two, three] = [1, 2, 3].map(|n| members.id(n));
        members.world.set_fault(Fault::Partition { a: vec![one], b: vec![two, three] });
        members.statement(1, "CREATE TABLE ks.b (k int PRIMARY KEY)".to_owned());
        members.statement(3, "CREATE TABLE ks.c (k int PRIMARY KEY)".to_owned());
        members.world.set_fault(Fault::Heal);
        let has_all = |n| ["b", "c"].iter().all(|table| members.has_table(n, table));
        members.until("both tables are everywhere", || (1..=NODES).all(has_all));
        members.one_schema();
    }
}

#[test]
fn a_node_that_ends_is_down_and_comes_back_as_itself() {
    for seed in 1..=WORLDS {
        let members = Members::new(seed);
        let before = members.shard(3).engine().host_id();
        match seed % 3 {
            0 => members.world.kill(members.id(3)),
            1 => members.world.power_cut(members.id(3)),
            _ => members.world.terminate(members.id(3)),
        }
        members.until("it is down", || [1, 2].iter().all(|n| members.seen(*n) == (3, 2)));
        members.until("it has ended", || !members.world.is_up(members.id(3)));
        members.nodes[2].1.borrow_mut().take();
        members.world.restart(members.id(3));
        members.until("it is there again", || members.nodes[2].1.borrow().is_some());
        assert_eq!(members.shard(3).engine().host_id(), before);
        members.all_up();
    }
}
