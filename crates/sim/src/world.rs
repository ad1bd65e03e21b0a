//! One seed: a node with several lives, four clients, and what goes wrong. What the clients do and
//! check is a [`Load`].

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::Duration;

use env::sim::{Failure, Fault, NodeId, World, WorldOptions};
use env::{Class, Env, Instant, Task};

use crate::plan::{End, Life, Plan};
use crate::site::Site;

/// Clients of a world.
const CLIENTS: usize = 4;
/// Crashes that a world must have.
const CRASHES_MIN: u64 = 2;
/// Virtual time that anything may take before it counts as stuck.
const MAX: Duration = Duration::from_secs(600);

/// What came of a seed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What was wrong, if anything.
    pub wrong: Option<String>,
    /// How often each fault fired.
    pub faults: BTreeMap<&'static str, u64>,
    /// How often each named branch was passed.
    pub marks: BTreeMap<&'static str, u64>,
    /// Stands for everything that happened.
    pub trace: u64,
    /// Operations that clients ended.
    pub operations: u64,
    /// Steps of the world.
    pub steps: u64,
}

/// What the clients of a world share: what they do to a node, and what they know of it.
pub trait Load<S: Site>: Sized + 'static {
    /// Operations that a world must have, all clients together.
    const OPERATIONS_MIN: u64;

    /// For a world that begins.
    fn new(seed: u64, clients: Env) -> Rc<Self>;

    /// What the seed decides.
    fn plan(seed: u64) -> Plan {
        Plan::new(seed)
    }

    /// Makes what the clients need, once, when the node serves for the first time.
    async fn prepare(self: Rc<Self>, site: Rc<S>) -> Result<(), String>;

    /// One client: operations one after the other until there were enough of all clients.
    async fn client(self: Rc<Self>, env: Env, site: Rc<S>, until: u64);

    /// Checks while nothing else is asked for, after each start.
    async fn verify(self: Rc<Self>, site: Rc<S>) -> Result<(), String>;

    /// Has all tables written and compacted, whose content it leaves as it is.
    async fn compact(self: Rc<Self>, _: Rc<S>) -> Result<(), String> {
        Ok(())
    }

    /// Operations that were answered.
    fn done(&self) -> u64;

    /// The first thing that was wrong.
    fn wrong(&self) -> Option<String>;

    /// How often what was done.
    fn counts(&self) -> BTreeMap<&'static str, u64>;

    /// Stands for what was read.
    fn digest(&self) -> u64;

    /// The node's clock jumps; `jump` does it.
    fn jump(&self, micros: i64, jump: &mut dyn FnMut());

    /// The clients are gone in the middle of what they did, and the node with them. What was
    /// acknowledged before `safe` must be there. Is anything in doubt?
    fn ended(&self, safe: Instant) -> bool;

    /// The last word, when all is over.
    fn judge(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A world under way.
pub(crate) struct Run<S, L> {
    pub(crate) world: World,
    pub(crate) plan: Plan,
    pub(crate) node: NodeId,
    pub(crate) site: Rc<S>,
    pub(crate) load: Rc<L>,
    pub(crate) clients: Env,
    counts: BTreeMap<&'static str, u64>,
    started: bool,
    /// Since when syncs fail.
    bad_since: Option<Instant>,
    /// Since when the node is down, or up and not verified.
    pub(crate) down_since: Rc<Cell<Option<Instant>>>,
}

/// What a seed's world is like.
pub(crate) fn options(seed: u64) -> WorldOptions {
    WorldOptions { writes_now: seed.is_multiple_of(2), ..WorldOptions::default() }
}

/// Runs a seed, with a bug in the node if one is named.
pub fn run<S: Site, L: Load<S>>(seed: u64, bug: Option<&'static str>) -> Outcome {
    let mut run = Run::<S, L>::new(seed, bug, options(seed), L::plan(seed));
    // a bug may well keep a world from what it else has
    let enough = |run: &Run<S, L>| if bug.is_some() { Ok(()) } else { run.check_enough() };
    let result = run.lives().and_then(|()| enough(&run)).and_then(|()| run.load.judge());
    run.outcome(result.err())
}

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

impl<S: Site, L: Load<S>> Run<S, L> {
    pub(crate) fn new(
        seed: u64,
        bug: Option<&'static str>,
        options: WorldOptions,
        plan: Plan,
    ) -> Self {
        let world = World::new(seed, options);
        if let Some(bug) = bug {
            world.plant(bug);
        }
        let node = world.node(address(1));
        let clients = world.client(address(2));
        let site = S::new(&plan, &clients, address(1));
        let load = L::new(seed, clients.clone());
        let counts = BTreeMap::new();
        Self {
            world,
            plan,
            node,
            site,
            load,
            clients,
            counts,
            started: false,
            bad_since: None,
            down_since: Rc::default(),
        }
    }

    fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    /// Ends it, and says what came of it.
    pub(crate) fn outcome(self, wrong: Option<String>) -> Outcome {
        let mut outcome = self.so_far(wrong);
        let left = self.leave();
        if left > 0 && outcome.wrong.is_none() {
            outcome.wrong = Some(format!("{left} shards are still in memory when all is over"));
        }
        outcome
    }

    fn so_far(&self, wrong: Option<String>) -> Outcome {
        let mut faults = self.world.faults();
        for (name, count) in self.counts.iter().chain(&self.load.counts()) {
            *faults.entry(name).or_default() += count;
        }
        Outcome {
            seed: self.world.seed(),
            wrong,
            faults,
            marks: self.world.marks(),
            trace: self.world.trace_hash() ^ self.load.digest(),
            operations: self.load.done(),
            steps: self.world.steps(),
        }
    }

    /// Drops everything; how many shards hold on to themselves?
    fn leave(self) -> usize {
        let Self { world, site, load, clients, .. } = self;
        drop((site, load, clients));
        world.end()
    }

    /// Lives through the plan.
    pub(crate) fn lives(&mut self) -> Result<(), String> {
        let lives = self.plan.lives.clone();
        let mut stumble = None;
        let mut before = None;
        for life in &lives {
            self.start(life.shards)?;
            if let Some((after, end)) = stumble.take() {
                self.run_for(after)?;
                self.end(end)?;
                self.count("crash_while_starting");
                self.start(life.shards)?;
            }
            self.wait_until_serving()?;
            if before.is_none() {
                self.prepare()?;
            }
            if before.replace(life.shards).is_some_and(|before| before != life.shards) {
                self.count("other_shards");
            }
            self.verify()?;
            self.live(life)?;
            stumble = life.stumble.map(|after| (after, life.end));
        }
        self.start(lives.first().map_or(1, |life| life.shards))?;
        self.wait_until_serving()?;
        self.verify()?;
        if self.world.marks().contains_key("compaction.done") {
            return Ok(());
        }
        // chance had none of it
        let compacted = Rc::clone(&self.load).compact(Rc::clone(&self.site));
        self.world
            .block_on(&self.clients, MAX, compacted)
            .map_err(|failure| Self::text(&failure))??;
        self.verify()
    }

    /// A world must be what it is counted for.
    fn check_enough(&self) -> Result<(), String> {
        let (faults, marks) = (self.world.faults(), self.world.marks());
        let of = |name| faults.get(name).or(marks.get(name)).copied().unwrap_or(0);
        let counted = |name| self.counts.get(name).copied().unwrap_or(0);
        let least = [
            ("operations", self.load.done(), L::OPERATIONS_MIN),
            ("crashes", of("kill") + of("power_cut"), CRASHES_MIN),
            ("clocks set forward", counted("clock_forward"), 1),
            ("clocks set back", counted("clock_back"), 1),
            ("flushes", of("flush.done"), 1),
            ("compactions", of("compaction.done"), 1),
        ];
        match least.iter().find(|(_, there, wanted)| there < wanted) {
            Some((what, there, wanted)) => Err(format!("too tame: {there} of {wanted} {what}")),
            None => Ok(()),
        }
    }

    fn text(failure: &Failure) -> String {
        failure.what.to_string()
    }

    fn run_for(&self, duration: Duration) -> Result<(), String> {
        self.world.run_for(duration).map_err(|failure| Self::text(&failure))
    }

    fn start(&mut self, shards: usize) -> Result<(), String> {
        if std::mem::replace(&mut self.started, true) {
            self.world.restart_with(self.node, shards);
            return Ok(());
        }
        self.site.start(&self.world, self.node, shards);
        Ok(())
    }

    fn wait_until_serving(&self) -> Result<(), String> {
        let site = Rc::clone(&self.site);
        let over = || site.is_serving() || !self.world.is_up(self.node);
        let ran = self.world.run_until(over, MAX);
        ran.map_err(|failure| format!("the node does not start: {}", Self::text(&failure)))?;
        match self.world.is_up(self.node) {
            true => Ok(()),
            false => Err(format!("the node does not start: {:?}", self.world.exits(self.node))),
        }
    }

    fn prepare(&self) -> Result<(), String> {
        let prepared = Rc::clone(&self.load).prepare(Rc::clone(&self.site));
        self.world.block_on(&self.clients, MAX, prepared).map_err(|failure| Self::text(&failure))?
    }

    fn verify(&self) -> Result<(), String> {
        let verified = Rc::clone(&self.load).verify(Rc::clone(&self.site));
        let verified = self.world.block_on(&self.clients, MAX, verified);
        self.down_since.set(None);
        verified.map_err(|failure| Self::text(&failure))?.map_err(|violation| {
            let life = self.plan.lives.iter().filter(|life| life.until <= self.load.done());
            format!(
                "after start {} of {:?}: {violation}\n  {:?}",
                life.count() + 1,
                self.plan.sync,
                self.plan.lives
            )
        })
    }

    /// Lets the clients work until the life is over.
    fn live(&mut self, life: &Life) -> Result<(), String> {
        let until = if life.end == End::Drain { life.until } else { u64::MAX };
        let tasks: Vec<Task<()>> = (0..CLIENTS)
            .map(|_| {
                let (load, site) = (Rc::clone(&self.load), Rc::clone(&self.site));
                self.clients
                    .spawn_task(Class::Statement, load.client(self.clients.clone(), site, until))
            })
            .collect();
        self.work_until(life.until)?;
        if life.bad_syncs {
            self.count("bad_syncs");
            self.bad_since = Some(self.world.now());
            self.world.set_fault(Fault::SyncError { node: self.node, one_in: 3 });
        }
        self.run_for(life.linger)?;
        if life.end == End::Drain {
            self.wait_for_clients(&tasks)?;
        }
        drop(tasks);
        if self.bad_since.is_none() {
            self.check_background()?;
        }
        self.end(life.end)
    }

    /// Runs to a number of operations, with what the plan has on the way.
    fn work_until(&mut self, until: u64) -> Result<(), String> {
        loop {
            let done = self.load.done();
            let next = self.disturb(done).min(until);
            let load = Rc::clone(&self.load);
            let reached = || load.done() >= next || load.wrong().is_some();
            self.world.run_until(reached, MAX).map_err(|failure| Self::text(&failure))?;
            if let Some(wrong) = self.load.wrong() {
                self.check_background()?;
                return Err(wrong);
            }
            if self.load.done() >= until {
                return Ok(());
            }
        }
    }

    /// Does what is due after so many operations; says when something is due again.
    fn disturb(&mut self, done: u64) -> u64 {
        while let Some(&(at, micros)) = self.plan.jumps.first().filter(|(at, _)| *at <= done) {
            let _ = at;
            self.plan.jumps.remove(0);
            self.jump(micros);
        }
        let mut next = self.plan.jumps.first().map_or(u64::MAX, |(at, _)| *at);
        if let Some((from, to, factor)) = self.plan.slow {
            let slow = (from..to).contains(&done);
            self.world.set_fault(Fault::SlowDisk {
                node: self.node,
                factor: if slow { factor } else { 1 },
            });
            if slow {
                self.count("slow_disk");
            }
            next = [from, to].into_iter().filter(|at| *at > done).fold(next, u64::min);
        }
        next
    }

    fn jump(&mut self, micros: i64) {
        let (world, node) = (&self.world, self.node);
        self.load.jump(micros, &mut || world.set_fault(Fault::ClockJump { node, micros }));
        self.count(if micros < 0 { "clock_back" } else { "clock_forward" });
    }

    fn wait_for_clients(&self, tasks: &[Task<()>]) -> Result<(), String> {
        let load = Rc::clone(&self.load);
        let over = || load.wrong().is_some() || tasks.iter().all(Task::is_finished);
        self.world.run_until(over, MAX).map_err(|failure| Self::text(&failure))?;
        self.load.wrong().map_or(Ok(()), Err)
    }

    fn check_background(&self) -> Result<(), String> {
        match self.site.failure() {
            Some(error) => Err(format!("background work failed: {error}")),
            None => Ok(()),
        }
    }

    /// Ends a life, and says what may be lost by it.
    fn end(&mut self, end: End) -> Result<(), String> {
        self.world.set_fault(Fault::SyncError { node: self.node, one_in: 0 });
        let bad = self.bad_since.take();
        let safe = match (end, self.plan.window(end)) {
            (End::Drain, _) => Instant::FAR_FUTURE,
            (End::Kill | End::PowerCut, Duration::ZERO) => self.world.now(),
            (End::Kill | End::PowerCut, window) => {
                before(bad.unwrap_or_else(|| self.world.now()), window)
            }
        };
        match end {
            End::Kill => self.world.kill(self.node),
            End::PowerCut => self.cut_power(),
            End::Drain => {
                self.world.terminate(self.node);
                let down = self.world.run_until(|| !self.world.is_up(self.node), MAX);
                down.map_err(|failure| format!("the node does not end: {}", Self::text(&failure)))?;
                let exits = self.world.exits(self.node);
                if let Some(Err(error)) = exits.iter().find(|exit| exit.is_err()) {
                    return Err(format!("the node did not end well: {error}"));
                }
            }
        }
        self.down_since.set(Some(self.down_since.get().unwrap_or_else(|| self.world.now())));
        self.site.closed();
        if self.load.ended(safe) {
            self.count("writes_in_doubt");
        }
        Ok(())
    }

    /// Cuts the power, and counts what that did to the disk.
    fn cut_power(&mut self) {
        let files = |world: &World, node| {
            let files = world.disk(node, |disk| disk.files()).unwrap_or_default();
            files.into_iter().collect::<BTreeMap<String, Vec<u8>>>()
        };
        let live = files(&self.world, self.node);
        self.world.power_cut(self.node);
        let left = files(&self.world, self.node);
        for (path, bytes) in &live {
            match left.get(path) {
                None => self.count("cut_lost_name"),
                Some(left) if left.len() != bytes.len() => self.count("cut_changed_size"),
                Some(left) if left != bytes => self.count("cut_lost_bytes"),
                Some(_) => {}
            }
        }
        if left.keys().any(|path| !live.contains_key(path)) {
            self.count("cut_old_name");
        }
    }
}

/// An instant earlier than another by a duration.
pub(crate) fn before(at: Instant, by: Duration) -> Instant {
    let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
    Instant::from_nanos(at.as_nanos().saturating_sub(by))
}
