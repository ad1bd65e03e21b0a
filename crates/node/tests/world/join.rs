//! Nodes that become a part of a ring that has data: what was acknowledged stays there, whoever
//! dies meanwhile, and what must not happen at the same time does not.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use cluster::{Answer, Standing};
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
    /// Reads that found less than what was acknowledged before them.
    stale: Rc<RefCell<Vec<String>>>,
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

    /// Reads at a node until it is told to end, at a quorum: nothing may be older than what was
    /// acknowledged before.
    fn read_at(&self, n: u8) {
        let client = self.members.nodes[usize::from(n) - 1].1.borrow().clone().unwrap();
        let (written, is_over) = (Rc::clone(&self.written), Rc::clone(&self.is_over));
        let (running, stale) = (Rc::clone(&self.running), Rc::clone(&self.stale));
        running.set(running.get() + 1);
        client.env.clone().spawn(Class::Statement, async move {
            let all: Vec<_> = (0..KEYS).flat_map(|k| (1..=REPLICAS).map(move |r| (r, k))).collect();
            while !is_over.get() {
                for (replicas, k) in &all {
                    let acked = written.borrow()[&(*replicas, *k)].1;
                    let text = format!("SELECT v FROM r{replicas}.t WHERE k = {k}");
                    let read = client.try_at(Consistency::Quorum, &text).await;
                    let Ok(Answer::Rows(page)) = read else { continue };
                    let found = page.cells.get(4..8).map_or(0, |v| {
                        i32::from_be_bytes(v.try_into().unwrap())
                    });
                    if found < acked {
                        let what = format!("node {n}: {text}: {found} where {acked} was acknowledged");
                        stale.borrow_mut().push(what);
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

    /// No request failed, and none was answered with less than there was.
    fn went_well(&self) -> Result<(), String> {
        for (what, of) in [("refused", &self.refused), ("stale", &self.stale)] {
            if let Some(first) = of.borrow().first() {
                return Err(format!("{} were {what}, as {first}", of.borrow().len()));
            }
        }
        Ok(())
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
    (1..=NODES).for_each(|n| story.read_at(n));
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
    story.went_well()
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
        [
            "join_fetches_unannounced",
            "join_serves_empty",
            "join_fetches_from_anybody",
            "join_forgets_former",
        ]
    {
        let found = (1..=WORLDS_OF_BUG).any(|seed| join(seed, Some(bug)).is_err());
        assert!(found, "{bug}");
    }
    let bug = "join_counts_what_failed";
    let found = (1..=WORLDS_OF_BUG).any(|seed| die(seed, Some(bug)).is_err());
    assert!(found, "{bug}");
}

/// The last node dies, and another takes its place: what does not hold of that.
fn replace(seed: u64, is_same_address: bool) -> Result<(), String> {
    let mut story = Story::new(seed, &[]);
    let old = NODES;
    story.write_at(1);
    story.members.world.kill(story.members.id(old));
    story.until("it is down", || [1, 2].iter().all(|n| story.members.seen(*n) == (3, 2)))?;
    // what has one replica went with the node
    story.written.borrow_mut().retain(|(replicas, _), _| *replicas > 1);
    let new = if is_same_address { old } else { NEW };
    let setting = format!("replace_address_first_boot={}", ip(old));
    let host = |story: &Story, n: u8| {
        let ring = story.members.shard(1).peers().ring().unwrap();
        let address = ip(n).parse::<std::net::IpAddr>().unwrap();
        ring.nodes().iter().find(|node| node.address.ip == address).map(|node| node.host_id)
    };
    let before = host(&story, old);
    // a directory of its own, as that of the dead one is lost
    story.launch(new, &[setting.as_str(), "data_dir=/d2"]);
    if !is_same_address {
        let address = types::Address::new([10, 0, 0, old], 7000);
        story.until("it is seen replacing", || {
            let ring = story.members.shard(1).peers().ring().unwrap();
            ring.nodes().iter().any(|node| node.state == ring::State::Replacing(address))
        })?;
        assert_eq!(story.letters(1, new), "UJ", "seed {seed}");
    }
    story.until("it took the place", || story.standing(new) == Some(Standing::Member))?;
    let all: Vec<u8> = (1..old).chain([new]).collect();
    story.settles(&all)?;
    let after = host(&story, new);
    assert_eq!(before == after, is_same_address, "who takes its own place is the same host");
    if !is_same_address {
        assert_eq!(host(&story, old), None, "who was replaced is gone");
        assert_eq!(story.letters(1, old), "");
    }
    // what was written while it was silent comes as hints where it is the same host
    story.until("it has all", || story.lost(&[new]).is_empty())?;
    // it may keep the setting, for it has its data now
    let (id, serving) = &story.members.nodes[usize::from(new) - 1];
    story.members.world.kill(*id);
    serving.borrow_mut().take();
    story.members.world.restart(*id);
    story.until("it is back", || story.standing(new) == Some(Standing::Member))?;
    story.settles(&all)
}

#[test]
fn a_node_takes_the_place_of_a_dead_one() {
    for seed in 1..=3 {
        assert_eq!(replace(seed, false), Ok(()), "seed {seed}");
        assert_eq!(replace(seed, true), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_node_waits_until_it_is_told_to_join() {
    let mut story = Story::new(1, &[]);
    story.launch(NEW, &["join_ring=false"]);
    story.until("it waits", || story.standing(NEW) == Some(Standing::Apart)).unwrap();
    let members = &story.members;
    assert!(members.out(NEW, "netstats").starts_with("Mode: STARTING\n"));
    assert!(members.out(NEW, "info").contains("Bootstrap state        : NEEDS_BOOTSTRAP\n"));
    assert_eq!(story.letters(1, NEW), "");
    // it passes on what it is asked
    assert_eq!(members.at(NEW, Consistency::Quorum, "SELECT v FROM r1.t").unwrap().0, KEYS as u32);
    assert_eq!(members.out(NEW, "join"), "");
    assert!(members.out(NEW, "netstats").starts_with("Mode: NORMAL\n"));
    assert!(members.out(NEW, "info").contains("Bootstrap state        : COMPLETED\n"));
    assert_eq!(members.verb(NEW, "join").exit, 2);
    assert_eq!(members.out(NEW, "bootstrap resume -f"), "Node is already bootstrapped.\n");
    let all: Vec<u8> = (1..=NEW).collect();
    story.settles(&all).unwrap();
    assert!(story.lacks(NEW).is_empty());
}

#[test]
fn a_survey_takes_writes_and_owns_nothing() {
    let mut story = Story::new(2, &[]);
    story.write_at(1);
    story.launch(NEW, &["write_survey=true"]);
    story.until("it surveys", || story.standing(NEW) == Some(Standing::Surveying)).unwrap();
    assert_eq!(story.letters(1, NEW), "UJ");
    assert!(story.members.out(NEW, "info").contains("Bootstrap state        : IN_PROGRESS\n"));
    assert_eq!(story.members.out(NEW, "join"), "");
    let all: Vec<u8> = (1..=NEW).collect();
    story.settles(&all).unwrap();
    assert!(story.lacks(NEW).is_empty());
}

/// Of two that begin at the same time the second gives up, or begins where the first has ended.
#[test]
fn of_two_that_join_at_the_same_time_one_waits() {
    let mut refused = 0;
    for seed in 1..=6 {
        let mut story = Story::new(seed, &[]);
        story.write_at(1);
        story.launch(NEW, &[]);
        story.launch(NEW + 1, &[]);
        let world = &story.members.world;
        let is_out = |n: u8| !world.exits(story.members.id(n)).is_empty();
        let is_in = |n: u8| story.standing(n) == Some(Standing::Member);
        let both = [NEW, NEW + 1];
        let done = || both.iter().all(|n| is_out(*n) || is_in(*n));
        story.until("both come to an end", done).unwrap();
        assert!(both.iter().any(|n| is_in(*n)), "seed {seed}: {}", story.said());
        if let Some(late) = both.into_iter().find(|n| is_out(*n)) {
            refused += 1;
            let exits = format!("{:?}", world.exits(story.members.id(late)));
            assert!(exits.contains("OthersMove"), "{exits}");
            // later it does
            story.members.nodes[usize::from(late) - 1].1.borrow_mut().take();
            world.restart(story.members.id(late));
            story.until("it joined", || is_in(late)).unwrap();
        }
        let five: Vec<u8> = (1..=NEW + 1).collect();
        assert_eq!(story.settles(&five), Ok(()), "seed {seed}");
        assert!(both.iter().all(|n| story.lacks(*n).is_empty()), "seed {seed}");
    }
    assert!(refused > 0, "none was refused");
}

/// A node that cannot fetch all stays, says so, serves nobody, and goes on when it is told to.
#[test]
fn a_join_that_failed_can_go_on() {
    let mut story = Story::new(3, &[]);
    let gone = story.members.id(2);
    story.launch(NEW, &[]);
    let members = &story.members;
    story
        .until("it is seen joining", || {
            let ring = members.shard(1).peers().ring().unwrap();
            ring.nodes().iter().any(|node| node.state == ring::State::Joining)
        })
        .unwrap();
    members.world.kill(gone);
    story.until("it failed", || story.standing(NEW) == Some(Standing::Broken)).unwrap();
    assert!(members.out(NEW, "netstats").starts_with("Mode: JOINING_FAILED\n"));
    let info = members.out(NEW, "info");
    assert!(info.contains("Bootstrap state        : IN_PROGRESS\n"), "{info}");
    assert!(info.contains("Bootstrap failed       : true\n"), "{info}");
    let reply = members.verb(NEW, "enablebinary");
    assert!(reply.err.contains("Node is not yet bootstrapped completely"), "{}", reply.err);
    assert_eq!(members.verb(NEW, "bootstrap resume -f").exit, 2, "it cannot be fetched still");
    assert_eq!(members.verb(NEW, "bootstrap resume").exit, 1);
    members.nodes[1].1.borrow_mut().take();
    members.world.restart(gone);
    let is_back = || members.nodes[1].1.borrow().is_some() && members.seen(NEW) == (4, 4);
    story.until("it is back", is_back).unwrap();
    let out = members.out(NEW, "bootstrap resume -f");
    assert_eq!(out, "Resuming bootstrap\nResume bootstrap complete\n");
    let all: Vec<u8> = (1..=NEW).collect();
    story.settles(&all).unwrap();
    assert!(story.lacks(NEW).is_empty());
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let cases: &[(&[&str], &str)] = &[
        (&["replace_address=10.0.0.77"], "ReplaceUnknown"),
        (&["replace_address=10.0.0.2"], "ReplaceLive"),
        (&["replace_address=10.0.0.2", "join_ring=false"], "ReplaceApart"),
        (&["replace_address=10.0.0.2", "auto_bootstrap=false"], "ReplaceWithoutData"),
    ];
    let mut story = Story::new(5, &[]);
    for (n, (settings, expected)) in (NEW..).zip(cases) {
        story.launch(n, settings);
        let id = story.members.id(n);
        story.until("it ends", || !story.members.world.exits(id).is_empty()).unwrap();
        let exits = format!("{:?}", story.members.world.exits(id));
        assert!(exits.contains(expected), "{settings:?}: {exits}");
    }
    let token = story.members.shard(2).peers().ring().unwrap().tokens()[0].0;
    let (n, setting) = (NEW + cases.len() as u8, format!("initial_token={token}"));
    story.launch(n, &["num_tokens=1", setting.as_str()]);
    let id = story.members.id(n);
    story.until("it ends", || !story.members.world.exits(id).is_empty()).unwrap();
    let exits = format!("{:?}", story.members.world.exits(id));
    assert!(exits.contains("TokenTaken"), "{exits}");
    // none of them is left behind
    assert_eq!(story.letters(1, NEW), "");
}
