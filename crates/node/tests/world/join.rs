//! Nodes that become a part of a ring that has data: what was acknowledged stays there, whoever
//! dies meanwhile, and what must not happen at the same time does not.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use cluster::Standing;
use env::sim::Fault;
use env::{Class, Rng};
use protocol::Consistency;

use crate::ring::{Members, NODES, ip, member};
use crate::{PATIENCE, launch};

/// Worlds in which all goes well.
const WORLDS: u64 = 6;
/// Worlds in which a node dies.
const WORLDS_OF_DEATH: u64 = 12;
/// Worlds that are tried for a planted bug.
const WORLDS_OF_BUG: u64 = 40;
/// How often a read is tried.
const TRIES: usize = 4;
/// Keys of each keyspace.
const KEYS: i32 = 60;
/// Keyspaces `r1` to `r3`, by their replicas.
const REPLICAS: u8 = 3;
/// The node that joins.
const NEW: u8 = NODES + 1;
/// A join takes two times `ring_delay` and less than two seconds here.
const JOIN_MICROS: u64 = 6_000_000;
/// A node that says nothing any more is given up in seconds, not in minutes.
const PATIENCE_OF_STREAMS: [&str; 2] =
    ["streaming_keep_alive_period=5s", "internode_streaming_tcp_user_timeout=10s"];

/// What was written last to a key, and what of that was acknowledged.
type Written = BTreeMap<(u8, i32), (i32, i32)>;

/// A ring with a load.
struct Story {
    members: Members,
    written: Rc<RefCell<Written>>,
    is_over: Rc<Cell<bool>>,
    running: Rc<Cell<usize>>,
    /// Writes that were refused.
    refused: Rc<RefCell<Vec<String>>>,
}

impl Story {
    fn new(seed: u64, settings: &[&str]) -> Self {
        let settings: Vec<_> = PATIENCE_OF_STREAMS.iter().chain(settings).copied().collect();
        let members = Members::with(seed, &settings);
        members.world.set_fault(Fault::Loss { one_in: 0 });
        for n in 1..=REPLICAS {
            let replication = format!("{{'class': 'SimpleStrategy', 'replication_factor': {n}}}");
            members.statement(1, format!("CREATE KEYSPACE r{n} WITH replication = {replication}"));
            members.statement(1, format!("CREATE TABLE r{n}.t (k int PRIMARY KEY, v int)"));
        }
        let has = |n| members.shard(n).schema().table(&format!("r{REPLICAS}"), "t").is_some();
        members.until("the tables are everywhere", || (1..=NODES).all(has));
        members.one_schema();
        let story = Self {
            members,
            written: Rc::default(),
            is_over: Rc::default(),
            running: Rc::default(),
            refused: Rc::default(),
        };
        for k in 0..KEYS {
            for replicas in 1..=REPLICAS {
                let text = format!("INSERT INTO r{replicas}.t (k, v) VALUES ({k}, 1)");
                story.members.at(1, Consistency::Quorum, &text).unwrap();
                story.written.borrow_mut().insert((replicas, k), (1, 1));
            }
            if k == KEYS / 2 {
                story.members.out(1, "flush");
            }
        }
        story
    }

    /// Writes at a node until it is told to end: each key of its own share in turn.
    fn write_at(&self, n: u8) {
        let client = self.members.nodes[usize::from(n) - 1].1.borrow().clone().unwrap();
        let (written, is_over) = (Rc::clone(&self.written), Rc::clone(&self.is_over));
        let (running, refused) = (Rc::clone(&self.running), Rc::clone(&self.refused));
        running.set(running.get() + 1);
        client.env.clone().spawn(Class::Statement, async move {
            let mut v = 1;
            while !is_over.get() {
                v += 1;
                let mine = (0..KEYS).filter(|k| k % i32::from(NODES) == i32::from(n) - 1);
                for (k, replicas) in mine.flat_map(|k| (1..=REPLICAS).map(move |r| (k, r))) {
                    written.borrow_mut().entry((replicas, k)).or_default().0 = v;
                    let text = format!("INSERT INTO r{replicas}.t (k, v) VALUES ({k}, {v})");
                    match client.try_at(Consistency::Quorum, &text).await {
                        Ok(_) => written.borrow_mut().get_mut(&(replicas, k)).unwrap().1 = v,
                        Err(error) => {
                            refused.borrow_mut().push(format!("{text}: {}", error.message));
                            client.env.sleep(Duration::from_millis(20)).await;
                        }
                    }
                }
            }
            running.set(running.get() - 1);
        });
    }

    fn end_load(&self) {
        self.is_over.set(true);
        self.members.until("the load is over", || self.running.get() == 0);
    }

    /// Begins a node, and does not wait for it.
    fn launch(&mut self, n: u8, settings: &[&str]) {
        let all: Vec<_> = PATIENCE_OF_STREAMS
            .iter()
            .chain(["auto_bootstrap=true"].iter())
            .chain(settings)
            .copied()
            .collect();
        let shards = 1 + usize::from(n) % 2;
        let started = launch(&self.members.world, &ip(n), shards, member(n, &all));
        let place = usize::from(n) - 1;
        match self.members.nodes.get_mut(place) {
            Some(known) => *known = started,
            None => self.members.nodes.push(started),
        }
    }

    fn standing(&self, n: u8) -> Option<Standing> {
        let serving = self.members.nodes[usize::from(n) - 1].1.borrow().clone()?;
        serving.node.join().map(|join| join.standing())
    }

    /// How one node sees another, as `nodetool status` shows it.
    fn letters(&self, at: u8, of: u8) -> String {
        let status = self.members.out(at, "status");
        let address = format!(" {} ", ip(of));
        let line = status.lines().find(|line| line.contains(&address)).unwrap_or_default();
        line.split_whitespace().next().unwrap_or_default().to_owned()
    }

    /// What a node has by itself of what it is a replica of: it is asked while it reaches nobody.
    /// Writes that are acknowledged by all that are, or are about to be, replicas must be there.
    fn lacks(&self, n: u8) -> Vec<String> {
        let members = &self.members;
        let others = (0..members.nodes.len()).filter(|at| at + 1 != usize::from(n));
        let others: Vec<_> = others.map(|at| members.nodes[at].0).collect();
        let up: Vec<_> = others.iter().copied().filter(|id| members.world.is_up(*id)).collect();
        let ring = members.shard(n).peers().ring().unwrap();
        let schema = members.shard(n).schema();
        members.world.set_fault(Fault::Partition { a: vec![members.id(n)], b: others });
        members.until("it is alone", || members.seen(n).1 == 1);
        let mut lacking = Vec::new();
        for ((replicas, k), (_, acked)) in self.written.borrow().iter() {
            // two of three are enough, and this one may be the third
            if *replicas == REPLICAS {
                continue;
            }
            let keyspace = schema.keyspace(&format!("r{replicas}")).unwrap();
            let placement = ring.placement(&keyspace.replication.strategy).unwrap();
            let token = types::Token::of(&k.to_be_bytes());
            if placement.at(token).natural.contains(&ring.local()) {
                lacking.extend(self.stale(n, Consistency::One, (*replicas, *k), *acked));
            }
        }
        members.world.set_fault(Fault::Heal);
        members.until("it is not alone", || members.seen(n).1 == up.len() + 1);
        lacking
    }

    /// Is what a read finds older than what was acknowledged?
    fn stale(
        &self,
        n: u8,
        level: Consistency,
        (replicas, k): (u8, i32),
        acked: i32,
    ) -> Option<String> {
        let text = format!("SELECT v FROM r{replicas}.t WHERE k = {k}");
        // a connection that ended is only found out by who uses it
        let read = || self.members.at(n, level, &text);
        let found = match (1..TRIES).find_map(|_| read().ok()).map_or_else(read, Ok) {
            Ok((1, cells)) => i32::from_be_bytes(cells[4..8].try_into().unwrap()),
            Ok(_) => 0,
            Err(error) => return Some(error),
        };
        (found < acked).then(|| format!("node {n}: {text}: {found} where {acked} was acknowledged"))
    }

    /// Everything that was acknowledged is there for who asks a quorum.
    fn lost(&self, nodes: &[u8]) -> Vec<String> {
        let written = self.written.borrow().clone();
        let mut lost = Vec::new();
        for n in nodes {
            for (key, (_, acked)) in &written {
                lost.extend(self.stale(*n, Consistency::Quorum, *key, *acked));
            }
        }
        lost
    }

    fn until(&self, what: &str, holds: impl Fn() -> bool) -> Result<(), String> {
        let done = self.members.world.run_until(holds, PATIENCE);
        done.map_err(|failure| format!("{what}: {failure:?}, {}", self.said()))
    }

    /// What the nodes said last, for who looks at a failure.
    fn said(&self) -> String {
        let mut said = String::new();
        for (at, (id, serving)) in self.members.nodes.iter().enumerate() {
            said.push_str(&format!("\n{}: {:?}", at + 1, self.members.world.exits(*id)));
            if serving.borrow().is_none() || !self.members.world.is_up(*id) {
                continue;
            }
            let read = "SELECT message FROM system_views.system_logs";
            if let Ok((_, cells)) = self.members.at(at as u8 + 1, Consistency::One, read) {
                let text = String::from_utf8_lossy(&cells).into_owned();
                said.extend(text.chars().map(|c| if c.is_control() { '\n' } else { c }));
            }
        }
        said
    }

    /// The node is a member for all, and all is there.
    fn settles(&self, nodes: &[u8]) -> Result<(), String> {
        let all = nodes.len();
        let sees = |n: &u8| {
            let ring = self.members.nodes[usize::from(*n) - 1].1.borrow().clone();
            let ring = ring.and_then(|client| client.node.peers().ring());
            ring.is_some_and(|ring| {
                let is_right = |node: &ring::Node| node.is_up && node.state == ring::State::Normal;
                ring.nodes().len() == all && ring.nodes().iter().all(is_right)
            })
        };
        self.until("all see all", || nodes.iter().all(sees))?;
        self.end_load();
        match self.lost(nodes).first() {
            Some(first) => Err(format!("{first}\n{}", self.said())),
            None => Ok(()),
        }
    }
}

/// A node joins while nothing goes wrong: what does not hold of that.
fn join(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let mut story = Story::new(seed, &[]);
    if let Some(bug) = bug {
        story.members.world.plant(bug);
    }
    (1..=NODES).for_each(|n| story.write_at(n));
    story.launch(NEW, &[]);
    let seen_joining = Cell::new(false);
    if bug.is_none() {
        story.until("it is seen joining", || {
            let ring = story.members.shard(1).peers().ring().unwrap();
            let is_joining = |node: &ring::Node| node.state == ring::State::Joining;
            seen_joining.set(ring.nodes().iter().any(is_joining));
            seen_joining.get()
        })?;
        assert_eq!(story.letters(1, NEW), "UJ", "seed {seed}");
    }
    story.until("it joined", || story.standing(NEW) == Some(Standing::Member))?;
    let all: Vec<u8> = (1..=NEW).collect();
    story.settles(&all)?;
    let lacking = story.lacks(NEW);
    if let Some(first) = lacking.first() {
        return Err(format!("{} are lacking, as {first}", lacking.len()));
    }
    let refused = story.refused.borrow();
    match refused.first() {
        Some(first) => Err(format!("{} were refused, as {first}", refused.len())),
        None => Ok(()),
    }
}

#[test]
fn a_node_joins_with_the_data_of_its_ranges() {
    for seed in 1..=WORLDS {
        assert_eq!(join(seed, None), Ok(()), "seed {seed}");
    }
}

/// The node that joins, or one that it fetches from, dies: what does not hold of that.
fn die(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let mut story = Story::new(seed, &[]);
    let rng = Rng::new(seed);
    if let Some(bug) = bug {
        story.members.world.plant(bug);
    }
    // who writes lives: node 1 is the seed
    story.write_at(1);
    story.launch(NEW, &[]);
    let members = &story.members;
    members.world.run_for(Duration::from_micros(rng.below(JOIN_MICROS))).unwrap();
    let victim = 2 + rng.below(u64::from(NODES)) as u8;
    let id = members.id(victim);
    match rng.below(3) {
        0 => members.world.power_cut(id),
        1 => members.world.kill(id),
        _ => {
            let others = (1..=NEW).filter(|n| *n != victim).map(|n| members.id(n)).collect();
            members.world.set_fault(Fault::Partition { a: vec![id], b: others });
            members.world.run_for(Duration::from_secs(30)).unwrap();
            members.world.set_fault(Fault::Heal);
        }
    }
    members.world.run_for(Duration::from_micros(rng.below(JOIN_MICROS))).unwrap();
    for n in [victim, NEW] {
        let (id, serving) = &members.nodes[usize::from(n) - 1];
        if !members.world.is_up(*id) {
            serving.borrow_mut().take();
            members.world.restart(*id);
        }
    }
    // until it is in, it is told to go on, and begun again where it gave up
    let rounds = 20;
    for round in 0.. {
        let (id, serving) = &members.nodes[usize::from(NEW) - 1];
        let stands = || matches!(story.standing(NEW), Some(Standing::Member | Standing::Broken));
        let ended = || !members.world.is_up(*id) || stands();
        story.until("it comes to an end", ended)?;
        if members.world.is_up(*id) && story.standing(NEW) == Some(Standing::Member) {
            break;
        }
        if round == rounds {
            return Err(format!("it does not join: {}", story.said()));
        }
        if members.world.is_up(*id) {
            members.verb(NEW, "bootstrap resume -f");
        } else {
            serving.borrow_mut().take();
            members.world.restart(*id);
        }
    }
    story.until("who died is back", || {
        members.nodes.iter().all(|(_, serving)| serving.borrow().is_some())
    })?;
    let all: Vec<u8> = (1..=NEW).collect();
    story.settles(&all)?;
    let lacking = story.lacks(NEW);
    match lacking.first() {
        Some(first) => Err(format!("{} are lacking, as {first}\n{}", lacking.len(), story.said())),
        None => Ok(()),
    }
}

#[test]
fn a_join_in_which_a_node_dies_ends_well() {
    for seed in 1..=WORLDS_OF_DEATH {
        assert_eq!(die(seed, None), Ok(()), "seed {seed}");
    }
}

#[test]
fn planted_bugs_of_joins_are_found() {
    for bug in
        ["join_fetches_unannounced", "join_serves_empty", "join_fetches_from_anybody"]
    {
        let found = (1..=WORLDS_OF_BUG).any(|seed| join(seed, Some(bug)).is_err());
        assert!(found, "{bug}");
    }
    let bug = "join_counts_what_failed";
    let found = (1..=WORLDS_OF_BUG).any(|seed| die(seed, Some(bug)).is_err());
    assert!(found, "{bug}");
}
