//! Rings of whole nodes: clients everywhere, changes of the schema under way, and everything that
//! can go wrong with processes, disks, clocks and the network. What was acknowledged at QUORUM is
//! read at QUORUM, what was read once is not lost, and when it is quiet again all nodes agree.
//!
//! Rings have three to six nodes in one or two data centers. Each place that is written is a
//! register with rising numbers (`register.rs`). QUORUM reads what QUORUM acknowledged, and what it
//! has shown for longer than a log takes to be synced.
//!
//! Then it is quiet (`settle.rs`). All nodes know the same of each other and have one schema with
//! all that was acknowledged. Hints have brought each replica what it missed, and no batch is torn.
//!
//! `cargo xtask campaign ring-seeds` runs them. `campaign ring-story SEED` says what happened in
//! one.

mod ask;
mod asked;
mod client;
mod definer;
mod definitions;
pub mod elastic;
mod harm;
mod member;
mod model;
mod plan;
mod register;
pub mod repair;
mod settle;
mod trouble;

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::Duration;

use env::sim::{Fault, World, WorldOptions};
use env::{Class, Env, Rng, Task};
use protocol::Consistency;

use self::ask::{Statement, ask};
use self::client::Client;
use self::definer::Definer;
use self::member::{Members, member};
use self::model::Model;
use self::plan::Plan;
use self::settle::Settle;
use self::trouble::Trouble;
use crate::world::{Outcome, options};

/// Who works at a ring.
#[derive(Clone, Copy)]
struct Crowd {
    /// Clients that write and read.
    clients: usize,
    /// Between two operations of such a client, in milliseconds.
    think_millis: (u64, u64),
    /// Clients that change the schema.
    definers: usize,
}

const CROWD: Crowd = Crowd { clients: 5, think_millis: (10, 250), definers: 2 };
/// Virtual time that anything may take before it counts as stuck.
const MAX: Duration = Duration::from_secs(200);
/// Between two looks at the ring.
const LOOK_MILLIS: (u64, u64) = (50, 400);
/// How long clients go on when nothing goes wrong any more.
const QUIET: Duration = Duration::from_secs(5);
/// Operations that a world must have.
const OPERATIONS_MIN: u64 = 100;

/// Runs a seed, with a bug in the nodes if one is named.
pub fn run(seed: u64, bug: Option<&'static str>) -> Outcome {
    let mut story = Story::new(seed, bug, Plan::new(seed));
    let result = story.tell(seed, bug.is_some());
    story.outcome(seed, result.err())
}

/// Runs a seed, and says what happened.
pub fn story(seed: u64, bug: Option<&'static str>) -> (Vec<String>, Outcome) {
    let mut story = Story::new(seed, bug, Plan::new(seed));
    story.model.be_told();
    let result = story.tell(seed, bug.is_some());
    let told = story.model.story();
    (told, story.outcome(seed, result.err()))
}

struct Story {
    world: World,
    plan: Plan,
    /// All nodes, those too that are none of the ring yet.
    machines: Members,
    /// The nodes of the ring.
    members: Members,
    model: Rc<Model>,
    clients: Env,
}

fn clients_address() -> IpAddr {
    Ipv4Addr::new(10, 0, 1, 1).into()
}

impl Story {
    fn new(seed: u64, bug: Option<&'static str>, plan: Plan) -> Self {
        let world = World::new(seed, options(seed));
        if let Some(bug) = bug {
            world.plant(bug);
        }
        let machines = (0..plan.nodes.len()).map(|node| member(&world, &plan, node));
        let machines: Vec<_> = machines.collect();
        let members = Rc::new(machines[..plan.begin_with].to_vec());
        let clients = world.client(clients_address());
        Self { world, plan, machines: Rc::new(machines), members, model: Rc::default(), clients }
    }

    fn run_for(&self, time: Duration) -> Result<(), String> {
        self.world.run_for(time).map_err(|failure| failure.what.to_string())
    }

    fn settle(&self) -> Settle<'_> {
        Settle {
            world: &self.world,
            clients: &self.clients,
            members: &self.members,
            model: &self.model,
            centers: self.plan.replicas.len(),
            hints: self.plan.hints,
        }
    }

    fn tell(&mut self, seed: u64, has_bug: bool) -> Result<(), String> {
        self.world.set_fault(Fault::Loss { one_in: 50 });
        self.begin()?;
        self.define()?;
        let tasks = self.spawn(seed, CROWD);
        let mut trouble = Trouble::new(seed, &self.plan, &self.members, &self.model);
        let end = self.world.now() + self.plan.trouble;
        while self.world.now() < end {
            trouble.step(&self.world)?;
            let look = self.world.rng().between(LOOK_MILLIS.0, LOOK_MILLIS.1);
            self.run_for(Duration::from_millis(look))?;
            self.model.wrong()?;
        }
        trouble.calm(&self.world, WorldOptions::default().latency)?;
        self.model.is_quiet.set(true);
        self.run_for(QUIET)?;
        self.model.is_over.set(true);
        let are_over = || tasks.iter().all(Task::is_finished);
        let over = self.world.run_until(are_over, MAX);
        over.map_err(|failure| format!("clients do not end: {}", failure.what))?;
        self.model.wrong()?;
        // what they did last is hinted by then
        self.run_for(register::HINTED_AFTER + Duration::from_secs(1))?;
        trouble.look(&self.world)?;
        self.settle().agree().map_err(|why| format!("they do not agree: {why}"))?;
        self.settle().has_all()?;
        self.model.wrong()?;
        match self.model.done.get() {
            done if done < OPERATIONS_MIN && !has_bug => {
                Err(format!("too tame: {done} operations"))
            }
            _ => Ok(()),
        }
    }

    /// Starts the ring: its first node, then all others.
    fn begin(&self) -> Result<(), String> {
        for (node, member) in self.members.iter().enumerate() {
            member.start(&self.world, &self.plan, &[])?;
            if node == 0 {
                let serves = || member.way().is_some();
                let served = self.world.run_until(serves, MAX);
                served.map_err(|failure| format!("node 1 does not start: {}", failure.what))?;
            }
        }
        self.settle().agree().map_err(|why| format!("no ring comes about: {why}"))
    }

    /// Makes what the clients need.
    fn define(&self) -> Result<(), String> {
        let retry = self.plan.speculative_retry;
        let texts = [
            format!("CREATE KEYSPACE ring WITH replication = {}", self.plan.replication()),
            format!(
                "CREATE TABLE ring.r (k int PRIMARY KEY, a bigint, b bigint) \
                 WITH speculative_retry = '{retry}'"
            ),
            "CREATE TABLE ring.c (k int PRIMARY KEY, n counter)".to_owned(),
            "CREATE TABLE ring.l (k int PRIMARY KEY, n bigint)".to_owned(),
            "CREATE TABLE ring.p (k int PRIMARY KEY, n bigint)".to_owned(),
            "CREATE TABLE ring.h (k int PRIMARY KEY, n bigint)".to_owned(),
        ];
        self.define_all(texts)
    }

    /// Has statements carried out, and waits until all know of them.
    fn define_all(&self, texts: impl IntoIterator<Item = String>) -> Result<(), String> {
        for text in texts {
            let way = self.members[0].way().ok_or("node 1 does not serve")?;
            let (clients, asked) = (self.clients.clone(), text.clone());
            let done = async move {
                ask(&clients, &way, Statement::new(Consistency::One, asked)).await.map(drop)
            };
            let done = self.world.block_on(&self.clients, MAX, done);
            let done = done.map_err(|failure| failure.what.to_string())?;
            done.map_err(|failed| format!("{text}: {failed:?}"))?;
        }
        self.settle().agree().map_err(|why| format!("no schema comes about: {why}"))
    }

    fn spawn(&self, seed: u64, crowd: Crowd) -> Vec<Task<()>> {
        let rng = Rng::new(seed ^ 0x636c_6965_6e74);
        let clients = (0..crowd.clients).map(|_| {
            let client = Client {
                env: self.clients.clone(),
                members: Rc::clone(&self.machines),
                model: Rc::clone(&self.model),
                rng: Rng::new(rng.next()),
                centers: self.plan.replicas.len(),
                think_millis: crowd.think_millis,
            };
            self.clients.spawn_task(Class::Statement, client.run())
        });
        let definers = (0..crowd.definers).map(|number| {
            let definer = Definer {
                env: self.clients.clone(),
                members: Rc::clone(&self.machines),
                model: Rc::clone(&self.model),
                rng: Rng::new(rng.next()),
                number,
                drops: !self.plan.clocks_jump,
            };
            self.clients.spawn_task(Class::Statement, definer.run())
        });
        clients.chain(definers).collect()
    }

    /// What each node sees of the ring.
    fn views(&self) -> String {
        let view = |node: usize| {
            let way = self.machines[node].way()?;
            let ring = way.shard.peers().ring()?;
            let of = |node: &ring::Node| {
                let address = node.address.ip;
                format!(" {address} {:?} {}", node.state, if node.is_up { "up" } else { "down" })
            };
            Some(ring.nodes().iter().map(of).collect::<String>())
        };
        let line = |node| {
            let view = view(node).unwrap_or_else(|| " nothing".to_owned());
            format!("  node {} sees{view}\n", node + 1)
        };
        (0..self.machines.len()).map(line).collect()
    }

    fn outcome(self, seed: u64, wrong: Option<String>) -> Outcome {
        let mut faults = self.world.faults();
        for (name, count) in self.model.counts() {
            *faults.entry(name).or_default() += count;
        }
        let wrong = wrong.map(|wrong| format!("{wrong}\n  {:?}\n{}", self.plan, self.views()));
        let mut outcome = Outcome {
            seed,
            wrong,
            faults,
            marks: self.world.marks(),
            trace: self.world.trace_hash() ^ self.model.digest(),
            operations: self.model.done.get(),
            steps: self.world.steps(),
        };
        let Self { world, members, machines, model, clients, .. } = self;
        machines.iter().for_each(|member| member.close());
        drop((members, machines, model, clients));
        let left = world.end();
        if left > 0 {
            outcome.faults.insert("ring.shards_left", left as u64);
        }
        outcome
    }
}
