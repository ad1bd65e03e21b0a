//! A ring under load, and what must hold of it while nodes come and go: no acknowledged write is
//! lost, no request fails, and no read finds less than there was.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use admin::Verb;
use cluster::{Answer, Standing};
use env::Class;
use env::sim::Fault;
use protocol::Consistency;

use crate::ring::{Members, NODES, ip, member};
use crate::{PATIENCE, launch};

/// How often a read is tried.
const TRIES: usize = 4;
/// Keys of each keyspace.
pub(crate) const KEYS: i32 = 60;
/// Keyspaces `r1` to `r3`, by their replicas.
pub(crate) const REPLICAS: u8 = 3;
/// A node that says nothing any more is given up in seconds, not in minutes.
const PATIENCE_OF_STREAMS: [&str; 2] =
    ["streaming_keep_alive_period=5s", "internode_streaming_tcp_user_timeout=10s"];

/// What was written last to a key, and what of that was acknowledged.
pub(crate) type Written = BTreeMap<(u8, i32), (i32, i32)>;

/// A ring with a load.
pub(crate) struct Story {
    pub members: Members,
    pub written: Rc<RefCell<Written>>,
    is_over: Rc<Cell<bool>>,
    running: Rc<Cell<usize>>,
    /// Writes that were refused.
    refused: Rc<RefCell<Vec<String>>>,
    /// Reads that found less than what was acknowledged before them.
    stale: Rc<RefCell<Vec<String>>>,
}

impl Story {
    pub fn new(seed: u64, settings: &[&str]) -> Self {
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
            stale: Rc::default(),
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
    pub fn write_at(&self, n: u8) {
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
                        // what was lost with a node is not looked for any more
                        Ok(_) => _ = written.borrow_mut().get_mut(&(replicas, k)).map(|w| w.1 = v),
                        Err(error) => {
                            let ring = client.node.peers().ring();
                            let nodes = ring.iter().flat_map(|ring| ring.nodes());
                            let seen = nodes.map(|node| (node.address, node.state, node.is_up));
                            let seen: Vec<_> = seen.collect();
                            let what = format!(
                                "{text}: {} at node {n}, which saw {seen:?}",
                                error.message
                            );
                            refused.borrow_mut().push(what);
                            client.env.sleep(Duration::from_millis(20)).await;
                        }
                    }
                }
            }
            running.set(running.get() - 1);
        });
    }

    /// Reads at a node until it is told to end, at a quorum: nothing may be older than what was
    /// acknowledged before.
    pub fn read_at(&self, n: u8) {
        let client = self.members.nodes[usize::from(n) - 1].1.borrow().clone().unwrap();
        let (written, is_over) = (Rc::clone(&self.written), Rc::clone(&self.is_over));
        let (running, stale) = (Rc::clone(&self.running), Rc::clone(&self.stale));
        running.set(running.get() + 1);
        client.env.clone().spawn(Class::Statement, async move {
            let all: Vec<_> = (0..KEYS).flat_map(|k| (1..=REPLICAS).map(move |r| (r, k))).collect();
            while !is_over.get() {
                for (replicas, k) in &all {
                    let acked = written.borrow().get(&(*replicas, *k)).map_or(0, |w| w.1);
                    let text = format!("SELECT v FROM r{replicas}.t WHERE k = {k}");
                    let read = client.try_at(Consistency::Quorum, &text).await;
                    let Ok(Answer::Rows(page)) = read else { continue };
                    let found = page
                        .cells
                        .get(4..8)
                        .map_or(0, |v| i32::from_be_bytes(v.try_into().unwrap()));
                    if found < acked {
                        let what =
                            format!("node {n}: {text}: {found} where {acked} was acknowledged");
                        stale.borrow_mut().push(what);
                    }
                }
            }
            running.set(running.get() - 1);
        });
    }

    pub fn end_load(&self) {
        self.is_over.set(true);
        self.members.until("the load is over", || self.running.get() == 0);
    }

    /// Begins a node, and does not wait for it.
    pub fn launch(&mut self, n: u8, settings: &[&str]) {
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

    pub fn standing(&self, n: u8) -> Option<Standing> {
        let serving = self.members.nodes[usize::from(n) - 1].1.borrow().clone()?;
        serving.node.join().map(|join| join.standing())
    }

    /// How one node sees another, as `nodetool status` shows it.
    pub fn letters(&self, at: u8, of: u8) -> String {
        let status = self.members.out(at, "status");
        let address = format!(" {} ", ip(of));
        let line = status.lines().find(|line| line.contains(&address)).unwrap_or_default();
        line.split_whitespace().next().unwrap_or_default().to_owned()
    }

    /// No request failed, and none was answered with less than there was.
    pub fn went_well(&self) -> Result<(), String> {
        for (what, of) in [("refused", &self.refused), ("stale", &self.stale)] {
            if let Some(first) = of.borrow().first() {
                let count = of.borrow().len();
                return Err(format!("{count} were {what}, as {first}\n{}", self.said()));
            }
        }
        Ok(())
    }

    /// What a node has by itself of what it is a replica of: it is asked while it reaches nobody.
    /// Writes that are acknowledged by all that are, or are about to be, replicas must be there.
    pub fn lacks(&self, n: u8) -> Vec<String> {
        let members = &self.members;
        let others = (0..members.nodes.len()).filter(|at| at + 1 != usize::from(n));
        let others: Vec<_> = others.map(|at| members.nodes[at].0).collect();
        let up = members.seen(n).1;
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
        let is_seen = |by: usize| {
            members.world.is_up(members.nodes[by].0) && {
                let ring = members.nodes[by].1.borrow().clone().and_then(|c| c.node.peers().ring());
                ring.is_none_or(|ring| ring.nodes().iter().filter(|node| node.is_up).count() >= up)
            }
        };
        // who has left the ring and runs still need not see it
        let is_member = |by: usize| {
            let address = ip(by as u8 + 1);
            ring.nodes().iter().any(|node| node.address.ip.to_string() == address)
        };
        let all = || {
            (0..members.nodes.len())
                .filter(|by| is_member(*by))
                .all(|by| !members.world.is_up(members.nodes[by].0) || is_seen(by))
        };
        members.until("it is not alone", || members.seen(n).1 == up && all());
        lacking
    }

    /// Is what a read finds older than what was acknowledged?
    pub fn stale(
        &self,
        n: u8,
        level: Consistency,
        (replicas, k): (u8, i32),
        acked: i32,
    ) -> Option<String> {
        let text = format!("SELECT v FROM r{replicas}.t WHERE k = {k}");
        // a connection that ended is only found out by who uses it
        let read = |_| {
            let read = self.members.at(n, level, &text);
            if read.is_err() {
                self.members.world.run_for(Duration::from_millis(500)).unwrap();
            }
            read
        };
        let found = match (1..TRIES).find_map(|time| read(time).ok()).map_or_else(|| read(0), Ok) {
            Ok((1, cells)) => i32::from_be_bytes(cells[4..8].try_into().unwrap()),
            Ok(_) => 0,
            Err(error) => return Some(error),
        };
        (found < acked).then(|| format!("node {n}: {text}: {found} where {acked} was acknowledged"))
    }

    /// Everything that was acknowledged is there for who asks a quorum.
    pub fn lost(&self, nodes: &[u8]) -> Vec<String> {
        let written = self.written.borrow().clone();
        let mut lost = Vec::new();
        for n in nodes {
            for (key, (_, acked)) in &written {
                lost.extend(self.stale(*n, Consistency::Quorum, *key, *acked));
            }
        }
        lost
    }

    pub fn until(&self, what: &str, holds: impl Fn() -> bool) -> Result<(), String> {
        let done = self.members.world.run_until(holds, PATIENCE);
        done.map_err(|failure| format!("{what}: {failure:?}, {}", self.said()))
    }

    /// Begins what `nodetool` asks for, and does not wait for it; its exit code and text come.
    pub fn begin(&self, n: u8, line: &str) -> Rc<RefCell<Option<(u8, String)>>> {
        let ended = Rc::new(RefCell::new(None));
        let theirs = Rc::clone(&ended);
        let client = self.members.nodes[usize::from(n) - 1].1.borrow().clone().unwrap();
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        client.env.clone().spawn(Class::Background, async move {
            let Some(node) = client.whole.upgrade() else { return };
            let reply = node.carry_out(Verb::parse(&words).unwrap()).await;
            drop(node);
            *theirs.borrow_mut() = Some((reply.exit, reply.err + &reply.out));
        });
        ended
    }

    /// Joins another node, and waits for it.
    pub fn join(&mut self, n: u8) {
        self.launch(n, &[]);
        self.until("it joined", || self.standing(n) == Some(Standing::Member)).unwrap();
        let all: Vec<u8> = (1..=n).collect();
        self.agree(&all).unwrap();
    }

    /// What the nodes said last, for who looks at a failure.
    pub fn said(&self) -> String {
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

    /// All see all, and nobody else.
    pub fn agree(&self, nodes: &[u8]) -> Result<(), String> {
        let all = nodes.len();
        let sees = |n: &u8| {
            let ring = self.members.nodes[usize::from(*n) - 1].1.borrow().clone();
            let ring = ring.and_then(|client| client.node.peers().ring());
            ring.is_some_and(|ring| {
                let is_right = |node: &ring::Node| node.is_up && node.state == ring::State::Normal;
                ring.nodes().len() == all && ring.nodes().iter().all(is_right)
            })
        };
        self.until("all see all", || nodes.iter().all(sees))
    }

    /// The node is a member for all, and all is there.
    pub fn settles(&self, nodes: &[u8]) -> Result<(), String> {
        self.agree(nodes)?;
        self.end_load();
        // before anybody reads, which mends what is lacking
        for n in nodes {
            let lacking = self.lacks(*n);
            if let Some(first) = lacking.first() {
                return Err(format!("{} are lacking, as {first}\n{}", lacking.len(), self.said()));
            }
        }
        match self.lost(nodes).first() {
            Some(first) => Err(format!("{first}\n{}", self.said())),
            None => Ok(()),
        }
    }
}
