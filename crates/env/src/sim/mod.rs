//! The make that tests: a world of nodes on one thread, with virtual time, where every choice
//! follows from a seed.
//!
//! A [`World`] has nodes of one or more shards, each with the same executor as in `real`, a disk
//! and a wall clock per node, and a network between them. It advances from event to event: a turn
//! of a shard, the end of a disk operation, the arrival of bytes. What takes time takes a random
//! time; what may happen in any order happens in a random order. The same seed gives the same run.

mod disk;
mod fault;
pub(crate) mod files;
mod later;
mod machine;
pub(crate) mod net;
mod node;
pub(crate) mod port;
pub(crate) mod watch;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Debug;
use std::future::Future;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

pub use disk::FileFault;
pub use fault::Fault;
pub use machine::NodeId;
pub use watch::{Change, Phase};

use crate::env::Env;
use crate::mesh::Mesh;
use crate::rng::Rng;
use crate::time::{Instant, nanos};
use machine::SimNode;

/// How a world is made.
#[derive(Clone, Copy, Debug)]
pub struct WorldOptions {
    /// The wall clocks at the start, in microseconds since 1970.
    pub unix_micros: i64,
    /// Shortest and longest time that bytes travel.
    pub latency: (Duration, Duration),
    /// Bytes under way and unread per direction of a connection before writes wait.
    pub window: usize,
    /// After how long without a sign of the other end a connection breaks.
    pub tcp_timeout: Duration,
    /// Size of each disk, in bytes.
    pub disk_bytes: u64,
    /// Shortest and longest time that a disk takes for a small read or write; a sync takes ten
    /// times that.
    pub disk: (Duration, Duration),
    /// Operations that a shard has at its disk at a time; more wait, by class.
    pub io_depth: usize,
    /// Most CPU time that one poll is said to take.
    pub poll_cpu: Duration,
    /// Are half of all moments a time for [`File::write_now`](crate::File::write_now)? Else none
    /// is.
    pub writes_now: bool,
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self {
            unix_micros: 1_700_000_000_000_000,
            latency: (Duration::from_micros(20), Duration::from_millis(1)),
            window: 64 << 10,
            tcp_timeout: Duration::from_secs(15),
            disk_bytes: 64 << 30,
            disk: (Duration::from_micros(20), Duration::from_micros(200)),
            io_depth: 16,
            poll_cpu: Duration::from_micros(8),
            writes_now: false,
        }
    }
}

/// Why a run did not reach its goal. Its text names the seed: the run can be repeated.
#[derive(Clone, Debug, thiserror::Error)]
#[error("seed {seed}, at {at:?}: {what}")]
pub struct Failure {
    /// The world's seed.
    pub seed: u64,
    /// Virtual time.
    pub at: Instant,
    /// What happened.
    pub what: FailureKind,
}

/// What ended a run.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum FailureKind {
    /// A task panicked.
    #[error("node {node} shard {shard} panicked: {message}")]
    Panic {
        /// The node's address.
        node: IpAddr,
        /// The shard.
        shard: usize,
        /// The panic's message.
        message: String,
    },
    /// The condition did not come true in the virtual time given.
    #[error("the condition did not come true in time")]
    TimedOut,
    /// Nothing will ever happen any more.
    #[error("nothing is left to happen")]
    Stuck,
}

type Action = Box<dyn FnOnce(&Rc<Inner>)>;

struct Event {
    at: u64,
    /// The order of simultaneous events is a dice roll.
    tie: u64,
    seq: u64,
    /// Only while this life of the node lasts.
    of: Option<(NodeId, u64)>,
    action: Action,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// Reversed: the heap gives the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.tie, other.seq).cmp(&(self.at, self.tie, self.seq))
    }
}

/// The world behind the handles.
pub(crate) struct Inner {
    pub seed: u64,
    pub options: WorldOptions,
    pub rng: Rng,
    pub now: Cell<u64>,
    events: RefCell<BinaryHeap<Event>>,
    seq: Cell<u64>,
    pub nodes: RefCell<Vec<Rc<SimNode>>>,
    /// Shards that run: those of all nodes that are up.
    pub shards: RefCell<Vec<Env>>,
    pub net: net::Net,
    fired: RefCell<BTreeMap<&'static str, u64>>,
    marks: RefCell<BTreeMap<&'static str, u64>>,
    /// When each node last passed a mark, in nanoseconds.
    last_marked: RefCell<BTreeMap<(NodeId, &'static str), u64>>,
    /// The bug that the nodes have, if any.
    planted: Cell<Option<&'static str>>,
    trace: Cell<u64>,
    steps: Cell<u64>,
    failure: RefCell<Option<Failure>>,
}

impl Inner {
    /// A time between two durations.
    pub fn dice(&self, range: (Duration, Duration)) -> u64 {
        self.rng.between(nanos(range.0), nanos(range.1))
    }

    /// Something happens `after` nanoseconds from `from`.
    pub fn at(
        &self,
        at: u64,
        of: Option<(NodeId, u64)>,
        action: impl FnOnce(&Rc<Inner>) + 'static,
    ) {
        let seq = self.seq.get() + 1;
        self.seq.set(seq);
        let at = at.max(self.now.get());
        let event = Event { at, tie: self.rng.next(), seq, of, action: Box::new(action) };
        self.events.borrow_mut().push(event);
    }

    /// Folds a fact into the trace.
    pub fn note(&self, fact: u64) {
        let mixed = (self.trace.get() ^ fact).wrapping_mul(0x0000_0100_0000_01b3);
        self.trace.set(mixed ^ (mixed >> 29));
    }

    /// Counts a fault that fired.
    pub fn fired(&self, name: &'static str) {
        *self.fired.borrow_mut().entry(name).or_default() += 1;
    }

    pub fn mark(&self, node: NodeId, name: &'static str) {
        *self.marks.borrow_mut().entry(name).or_default() += 1;
        self.last_marked.borrow_mut().insert((node, name), self.now.get());
    }

    pub fn has_planted(&self, name: &'static str) -> bool {
        let planted = self.planted.get() == Some(name);
        if planted {
            *self.marks.borrow_mut().entry(name).or_default() += 1;
        }
        planted
    }

    pub fn node(&self, id: NodeId) -> Option<Rc<SimNode>> {
        self.nodes.borrow().get(id.0).cloned()
    }

    fn alive(&self, of: Option<(NodeId, u64)>) -> bool {
        of.is_none_or(|(id, life)| self.node(id).is_some_and(|n| n.is_up() && n.life.get() == life))
    }

    fn fail(&self, what: FailureKind) -> Failure {
        Failure { seed: self.seed, at: Instant::from_nanos(self.now.get()), what }
    }

    /// When and which shard turns next; simultaneous ones by dice.
    fn next_turn(&self) -> Option<(u64, Env)> {
        let mut best: Option<(u64, usize)> = None;
        let mut ties = 0;
        let shards = self.shards.borrow();
        for (at, env) in shards.iter().enumerate() {
            let Some(time) = node::next_turn(env, self.now.get()) else { continue };
            match best {
                Some((t, _)) if t < time => {}
                Some((t, _)) if t == time => {
                    ties += 1;
                    if self.rng.below(ties) == 0 {
                        best = Some((time, at));
                    }
                }
                _ => {
                    ties = 1;
                    best = Some((time, at));
                }
            }
        }
        best.map(|(time, at)| (time, shards[at].clone()))
    }
}

/// One step of the world: false when nothing is left to happen before `until`.
fn step(world: &Rc<Inner>, until: u64) -> bool {
    let turn = world.next_turn();
    let event_at = world.events.borrow().peek().map(|e| e.at);
    let event_first = match (&turn, event_at) {
        (None, None) => return false,
        (Some((turn, _)), Some(event)) if *turn == event => world.rng.one_in(2),
        (Some((turn, _)), Some(event)) => event < *turn,
        (None, Some(_)) => true,
        (Some(_), None) => false,
    };
    let at = if event_first { event_at } else { turn.as_ref().map(|(at, _)| *at) };
    let Some(at) = at.filter(|at| *at <= until) else { return false };
    world.now.set(world.now.get().max(at));
    world.steps.set(world.steps.get() + 1);
    if event_first {
        let Some(event) = world.events.borrow_mut().pop() else { return false };
        world.note(event.at ^ event.seq.rotate_left(32));
        if world.alive(event.of) {
            let addr = event.of.and_then(|(id, _)| world.node(id)).map_or(NOBODY, |n| n.addr);
            guard(world, (addr, 0), || (event.action)(world));
        }
    } else if let Some((_, env)) = turn {
        let addr = env.port().map_or(NOBODY, |p| p.node.addr);
        guard(world, (addr, env.shard()), || node::turn(world, &env));
    }
    true
}

/// Runs code of a node; a panic becomes the world's failure.
fn guard(world: &Rc<Inner>, (node, shard): (IpAddr, usize), f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        let message = panic_message(payload.as_ref());
        let failure = world.fail(FailureKind::Panic { node, shard, message });
        world.failure.borrow_mut().get_or_insert(failure);
    }
}

const NOBODY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_string())
}

/// A simulated world. Dropped, everything in it ends.
pub struct World(Rc<Inner>);

impl World {
    /// A world in which everything follows from `seed`.
    pub fn new(seed: u64, options: WorldOptions) -> Self {
        Self(Rc::new(Inner {
            seed,
            options,
            rng: Rng::new(seed),
            now: Cell::new(1_000_000),
            events: RefCell::default(),
            seq: Cell::new(0),
            nodes: RefCell::default(),
            shards: RefCell::default(),
            net: net::Net::default(),
            fired: RefCell::default(),
            marks: RefCell::default(),
            last_marked: RefCell::default(),
            planted: Cell::new(None),
            trace: Cell::new(seed),
            steps: Cell::new(0),
            failure: RefCell::default(),
        }))
    }

    /// The node with this address: there from now on, with an empty disk, but not started.
    pub fn node(&self, addr: IpAddr) -> NodeId {
        let known = self.0.nodes.borrow().iter().position(|n| n.addr == addr);
        NodeId(known.unwrap_or_else(|| {
            let mut nodes = self.0.nodes.borrow_mut();
            let id = nodes.len();
            nodes.push(Rc::new(SimNode::new(&self.0, NodeId(id), addr)));
            id
        }))
    }

    /// Gives all nodes a bug: [`Env::planted`] says yes to its name from now on.
    pub fn plant(&self, bug: &'static str) {
        self.0.planted.set(Some(bug));
    }

    /// Starts a node: `main` runs on each of its shards, as in [`real::run`](crate::real::run).
    ///
    /// # Panics
    /// If the node is up.
    pub fn start<M, F, Fut, E>(&self, node: NodeId, shards: usize, main: F)
    where
        M: Send + 'static,
        F: Fn(Env, Mesh<M>) -> Fut + 'static,
        Fut: Future<Output = Result<(), E>> + 'static,
        E: Debug + 'static,
    {
        node::start(&self.0, node, shards, main);
    }

    /// Starts a node again, with the same `main` and as many shards as last time.
    pub fn restart(&self, node: NodeId) {
        node::restart(&self.0, node, None);
    }

    /// Starts a node again with another number of shards.
    pub fn restart_with(&self, node: NodeId, shards: usize) {
        node::restart(&self.0, node, Some(shards));
    }

    /// Asks a node to end, as SIGTERM does.
    pub fn terminate(&self, node: NodeId) {
        node::terminate(&self.0, node);
    }

    /// Ends a node's process at once. What it wrote stays, synced or not; its connections break.
    pub fn kill(&self, node: NodeId) {
        self.0.fired("kill");
        node::stop(&self.0, node, false);
    }

    /// Takes a node's power. Its disk keeps what the syncs allow; its peers hear nothing.
    pub fn power_cut(&self, node: NodeId) {
        self.0.fired("power_cut");
        node::stop(&self.0, node, true);
    }

    /// True while a node runs.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.0.node(node).is_some_and(|n| n.is_up())
    }

    /// How the mains of a node's current or last life ended, in the order of their ends.
    pub fn exits(&self, node: NodeId) -> Vec<Result<(), String>> {
        self.0.node(node).map(|n| n.exits.borrow().clone()).unwrap_or_default()
    }

    /// An [`Env`] outside of all nodes, with its own address, for clients. Tasks spawned on it run
    /// like a node's.
    pub fn client(&self, addr: IpAddr) -> Env {
        let id = self.node(addr);
        node::client(&self.0, id)
    }

    /// The disk of a node, to look at or prepare.
    pub fn disk<T>(&self, node: NodeId, f: impl FnOnce(&mut crate::DiskModel) -> T) -> Option<T> {
        self.0.node(node).map(|n| f(&mut n.disk.model.borrow_mut()))
    }

    /// Tells `f` of every change of a node's disk from now on: what changes, where, how far it is,
    /// and the disk as it is then. It must not ask the world for that disk.
    pub fn watch_disk(
        &self,
        node: NodeId,
        f: impl Fn(Change, &std::path::Path, Phase, &crate::DiskModel) + 'static,
    ) {
        if let Some(node) = self.0.node(node) {
            *node.disk.watch.borrow_mut() = Some(watch::Watch::new(f));
        }
    }

    /// Arms, changes or ends a fault.
    pub fn set_fault(&self, fault: Fault) {
        fault::set(&self.0, fault);
    }

    /// Runs until the condition holds.
    pub fn run_until(
        &self,
        mut condition: impl FnMut() -> bool,
        max: Duration,
    ) -> Result<(), Failure> {
        let until = self.0.now.get().saturating_add(nanos(max));
        loop {
            if let Some(failure) = self.0.failure.borrow().clone() {
                return Err(failure);
            }
            if condition() {
                return Ok(());
            }
            if !step(&self.0, until) {
                let stuck = self.0.next_turn().is_none() && self.0.events.borrow().is_empty();
                if !stuck {
                    self.0.now.set(until);
                }
                let what = if stuck { FailureKind::Stuck } else { FailureKind::TimedOut };
                return Err(self.0.fail(what));
            }
        }
    }

    /// Runs for a while.
    pub fn run_for(&self, duration: Duration) -> Result<(), Failure> {
        let until = self.0.now.get().saturating_add(nanos(duration));
        while step(&self.0, until) {
            if self.0.failure.borrow().is_some() {
                break;
            }
        }
        match self.0.failure.borrow().clone() {
            Some(failure) => Err(failure),
            None => {
                self.0.now.set(until);
                Ok(())
            }
        }
    }

    /// Runs a future on a client to its end, and gives its result.
    pub fn block_on<T: 'static>(
        &self,
        env: &Env,
        max: Duration,
        future: impl Future<Output = T> + 'static,
    ) -> Result<T, Failure> {
        let slot = Rc::new(RefCell::new(None));
        let theirs = slot.clone();
        let task = env.spawn_task(crate::Class::Admin, async move {
            let value = future.await;
            theirs.replace(Some(value));
        });
        self.run_until(|| slot.borrow().is_some(), max)?;
        drop(task);
        let value = slot.take();
        value.ok_or_else(|| self.0.fail(FailureKind::Stuck))
    }

    /// Ends the world, and says how many shards somebody still holds: none, once the caller has
    /// dropped what it had of them, or a node holds on to itself and stays in memory with its disk
    /// and the world.
    pub fn end(self) -> usize {
        let inner = Rc::downgrade(&self.0);
        drop(self);
        inner.strong_count()
    }

    /// Virtual time.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.0.now.get())
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.0.seed
    }

    /// The world's dice, for the test's own choices.
    pub fn rng(&self) -> &Rng {
        &self.0.rng
    }

    /// A number that stands for everything that happened so far, in order.
    pub fn trace_hash(&self) -> u64 {
        self.0.trace.get()
    }

    /// Steps taken.
    pub fn steps(&self) -> u64 {
        self.0.steps.get()
    }

    /// How often each fault fired.
    pub fn faults(&self) -> BTreeMap<&'static str, u64> {
        self.0.fired.borrow().clone()
    }

    /// How often the [`Env::mark`] of this name was passed.
    pub fn marked(&self, name: &'static str) -> u64 {
        self.0.marks.borrow().get(name).copied().unwrap_or_default()
    }

    /// When a node last passed the [`Env::mark`] of this name, if it ever did.
    pub fn last_marked(&self, node: NodeId, name: &'static str) -> Option<Instant> {
        self.0.last_marked.borrow().get(&(node, name)).copied().map(Instant::from_nanos)
    }

    /// How often each [`Env::mark`] was passed.
    pub fn marks(&self) -> BTreeMap<&'static str, u64> {
        self.0.marks.borrow().clone()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let nodes = self.0.nodes.borrow().len();
        for id in 0..nodes {
            // Tasks may panic in their drops; the world is over anyway.
            let _ = catch_unwind(AssertUnwindSafe(|| node::stop(&self.0, NodeId(id), true)));
        }
        let events = self.0.events.take();
        drop(events);
        self.0.net.clear();
        let nodes = self.0.nodes.take();
        for node in nodes {
            drop(node.factory.take());
            drop(node.disk.watch.take());
        }
    }
}

impl Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World(seed {}, at {:?})", self.0.seed, self.now())
    }
}
