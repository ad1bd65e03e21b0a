//! What goes wrong in a ring: processes, disks, clocks, and the network between nodes.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use env::sim::{Fault, NodeId, World};
use env::{Instant, Rng};

use super::member::{Member, Members};
use super::model::Model;
use super::plan::Plan;

/// Between two things that go wrong, in milliseconds.
const PAUSE_MILLIS: (u64, u64) = (200, 2_500);
/// How long a node is down, in milliseconds.
const DOWN_MILLIS: (u64, u64) = (500, 12_000);
/// How long nodes are parted, in milliseconds.
const PARTED_MILLIS: (u64, u64) = (500, 10_000);
/// How far a clock jumps at most, in microseconds.
const JUMP_MAX: u64 = 30_000_000;
/// How much slower a disk gets at most.
const SLOWER_MAX: u64 = 8;
/// How long a disk fails syncs before its machine is put out of its misery, in milliseconds.
const BAD_MILLIS: (u64, u64) = (200, 3_000);
/// How long bytes travel on a bad line at most, in milliseconds.
const FAR_MILLIS: u64 = 80;

/// How a node's life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Kill,
    PowerCut,
    /// SIGTERM.
    Order,
}

/// What goes wrong, by a seed.
pub struct Trouble {
    rng: Rng,
    plan: Plan,
    members: Members,
    model: Rc<Model>,
    next: Instant,
    heal_at: Option<Instant>,
    /// When a machine whose disk fails syncs is cut off.
    cut_at: BTreeMap<usize, Instant>,
    latencies: Vec<(NodeId, NodeId)>,
}

impl Trouble {
    /// Nothing has gone wrong yet.
    pub fn new(seed: u64, plan: &Plan, members: &Members, model: &Rc<Model>) -> Self {
        Self {
            rng: Rng::new(seed ^ 0x7472_6f75_626c),
            plan: plan.clone(),
            members: Rc::clone(members),
            model: Rc::clone(model),
            next: Instant::ZERO,
            heal_at: None,
            cut_at: BTreeMap::new(),
            latencies: Vec::new(),
        }
    }

    fn millis(&self, (least, most): (u64, u64)) -> Duration {
        Duration::from_millis(self.rng.between(least, most))
    }

    /// Does what is due.
    pub fn step(&mut self, world: &World) -> Result<(), String> {
        let now = world.now();
        self.look(world)?;
        if self.heal_at.is_some_and(|at| at <= now) {
            self.heal_at = None;
            self.model.tell(now, || "healed".to_owned());
            world.set_fault(Fault::Heal);
        }
        let due = self.cut_at.iter().filter(|(_, at)| **at <= now).map(|(node, _)| *node);
        for node in due.collect::<Vec<_>>() {
            self.end(world, node, End::PowerCut);
        }
        for node in 0..self.members.len() {
            if self.members[node].back_at.get().is_some_and(|at| at <= now) {
                self.restart(world, node);
            }
        }
        if self.next <= now {
            self.next = now + self.millis(PAUSE_MILLIS);
            self.happen(world);
        }
        Ok(())
    }

    /// Sees who ended by itself, and what became durable.
    pub fn look(&mut self, world: &World) -> Result<(), String> {
        let now = world.now();
        for (node, member) in self.members.iter().enumerate() {
            if world.is_up(member.id) || member.back_at.get().is_some() {
                continue;
            }
            member.close();
            self.model
                .tell(now, || format!("node {} ended: {:?}", node + 1, world.exits(member.id)));
            member.back_at.set(Some(now + self.millis(DOWN_MILLIS)));
            let error = world.exits(member.id).into_iter().find_map(Result::err);
            match error {
                Some(error) if error.contains("NoPeers") => self.model.count("ring.no_peers"),
                _ if member.bad_since.get().is_some() => {
                    self.model.count("ring.disk_ended");
                    self.model.ended(node, world.now());
                }
                Some(error) => return Err(format!("node {} ended: {error}", node + 1)),
                // it was told to
                None => {}
            }
        }
        let bad = self.members.iter().filter_map(|member| member.bad_since.get()).min();
        self.model.settle(now, bad);
        Ok(())
    }

    fn restart(&mut self, world: &World, node: usize) {
        let shards = match self.rng.one_in(4) {
            true => self.rng.between(1, 2) as usize,
            false => self.plan.nodes[node].shards,
        };
        self.model.tell(world.now(), || format!("node {} starts with {shards} shards", node + 1));
        self.members[node].restart(world, shards);
    }

    fn down(&self) -> usize {
        self.members.iter().filter(|member| member.way().is_none()).count()
    }

    fn end(&mut self, world: &World, node: usize, end: End) {
        let member = &self.members[node];
        self.model.tell(world.now(), || format!("node {}: {end:?}", node + 1));
        member.close();
        if member.back_at.get().is_none() {
            member.back_at.set(Some(world.now() + self.millis(DOWN_MILLIS)));
        }
        match end {
            End::Kill => world.kill(member.id),
            End::PowerCut => world.power_cut(member.id),
            End::Order => {
                self.model.count("ring.ordered");
                // it takes a while; who looks sees when it is down
                member.back_at.set(None);
                return world.terminate(member.id);
            }
        }
        self.model.ended(node, world.now());
        world.set_fault(Fault::SyncError { node: member.id, one_in: 0 });
        self.cut_at.remove(&node);
    }

    fn happen(&mut self, world: &World) {
        let node = self.rng.below(self.members.len() as u64) as usize;
        match self.rng.below(16) {
            0..4 => self.end_one(world, node),
            4 | 5 => self.part(world, node),
            6 => world.set_fault(Fault::Loss {
                one_in: if self.rng.one_in(2) { 0 } else { self.rng.between(15, 100) },
            }),
            7 => world.set_fault(Fault::Reset {
                one_in: if self.rng.one_in(2) { 0 } else { self.rng.between(100, 1_000) },
            }),
            8 => self.lengthen(world, node),
            9..11 if self.plan.clocks_jump => self.jump(world, node),
            11 => {
                let factor = self.rng.between(1, SLOWER_MAX);
                world.set_fault(Fault::SlowDisk { node: self.members[node].id, factor });
                self.model.count("slow_disk");
            }
            12 => self.spoil(world, node),
            _ => {}
        }
    }

    fn may_fall(&self, node: usize) -> bool {
        self.members[node].way().is_some() && self.down() < self.plan.down_max
    }

    fn end_one(&mut self, world: &World, node: usize) {
        if !self.may_fall(node) || self.members[node].bad_since.get().is_some() {
            return;
        }
        let end = match self.rng.below(3) {
            0 => End::Kill,
            1 => End::PowerCut,
            _ => End::Order,
        };
        self.end(world, node, end);
    }

    /// Syncs fail; sooner or later the machine is cut off, so that nobody takes for durable what
    /// its memory holds.
    fn spoil(&mut self, world: &World, node: usize) {
        if !self.may_fall(node) || self.members[node].bad_since.get().is_some() {
            return;
        }
        let now = world.now();
        self.members[node].bad_since.set(Some(now));
        self.cut_at.insert(node, now + self.millis(BAD_MILLIS));
        // what it acknowledged just now it may not live to keep for others
        self.model.ended(node, world.now());
        let one_in = self.rng.between(1, 3);
        self.model.tell(now, || format!("node {}: syncs fail", node + 1));
        world.set_fault(Fault::SyncError { node: self.members[node].id, one_in });
        self.model.count("bad_syncs");
    }

    fn jump(&mut self, world: &World, node: usize) {
        let micros = self.rng.between(1_000, JUMP_MAX).cast_signed();
        let micros = if self.rng.one_in(2) { -micros } else { micros };
        let member = &self.members[node];
        // a clock that was set is set right again before it is set wrong another way
        let micros = if member.ahead.get() == 0 { micros } else { -member.ahead.get() };
        set_clock(world, member, micros);
        self.model.tell(world.now(), || format!("clock of node {}: {micros}", node + 1));
        self.model.count(if micros < 0 { "clock_back" } else { "clock_forward" });
    }

    fn part(&mut self, world: &World, node: usize) {
        let ids = |wanted: &dyn Fn(usize, &Member) -> bool| -> Vec<NodeId> {
            let all = self.members.iter().enumerate();
            all.filter(|(at, member)| wanted(*at, member)).map(|(_, member)| member.id).collect()
        };
        let sides = self.rng.next();
        let (a, b, name) = match self.rng.below(4) {
            0 if self.plan.replicas.len() > 1 => {
                (ids(&|_, m| m.center == 0), ids(&|_, m| m.center == 1), "ring.centers_parted")
            }
            1 => (
                ids(&|at, _| sides >> at & 1 == 0),
                ids(&|at, _| sides >> at & 1 == 1),
                "ring.parted",
            ),
            _ => (ids(&|at, _| at == node), ids(&|at, _| at != node), "ring.cut_off"),
        };
        self.model.tell(world.now(), || format!("parted {a:?} {b:?}"));
        // one at a time
        world.set_fault(Fault::Heal);
        world.set_fault(Fault::Partition { a, b });
        self.model.count(name);
        self.heal_at = Some(world.now() + self.millis(PARTED_MILLIS));
    }

    fn lengthen(&mut self, world: &World, node: usize) {
        let other = self.rng.below(self.members.len() as u64) as usize;
        let (a, b) = (self.members[node].id, self.members[other].id);
        let most = Duration::from_millis(self.rng.between(2, FAR_MILLIS));
        world.set_fault(Fault::Latency { a, b, range: (most / 4, most) });
        self.latencies.push((a, b));
        self.model.count("ring.far");
    }

    /// Ends all that went wrong, and starts who is down. Where the plan says so, everybody is
    /// killed before.
    pub fn calm(&mut self, world: &World, usual: (Duration, Duration)) -> Result<(), String> {
        self.look(world)?;
        self.model.tell(world.now(), || "it is quiet".to_owned());
        world.set_fault(Fault::Heal);
        world.set_fault(Fault::Loss { one_in: 0 });
        world.set_fault(Fault::Reset { one_in: 0 });
        for (a, b) in std::mem::take(&mut self.latencies) {
            world.set_fault(Fault::Latency { a, b, range: usual });
        }
        for node in 0..self.members.len() {
            let member = &self.members[node];
            set_clock(world, member, -member.ahead.get());
            world.set_fault(Fault::SlowDisk { node: member.id, factor: 1 });
            let is_up = world.is_up(member.id);
            if member.bad_since.get().is_some() {
                self.end(world, node, End::PowerCut);
            } else if is_up && (self.plan.restarts_all || member.way().is_none()) {
                self.end(world, node, End::Kill);
            }
        }
        for node in 0..self.members.len() {
            if !world.is_up(self.members[node].id) {
                self.restart(world, node);
            }
        }
        Ok(())
    }
}

fn set_clock(world: &World, member: &Member, micros: i64) {
    member.ahead.set(member.ahead.get() + micros);
    if micros != 0 {
        world.set_fault(Fault::ClockJump { node: member.id, micros });
    }
}
