//! Who repairs a ring: begins repairs of all forms at any node, two at once now and then, cancels
//! some, and has tables flushed and compacted meanwhile. What goes wrong is in `harms.rs`.

mod harms;
mod orders;

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use env::sim::World;
use env::{Instant, Rng};

use super::Terms;
use super::data::{Data, Repaired};
use super::names::Kind;
use crate::ring::asked::Asked;
use crate::ring::harm::Harmed;
use crate::ring::member::{Members, address};
use crate::ring::model::Model;
use crate::ring::plan::Plan;
use harms::Armed;
use orders::Order;

/// Between two repairs, in milliseconds.
const PAUSE_MILLIS: (u64, u64) = (500, 9_000);
/// Between two other things that an operator has done, in milliseconds.
const UPKEEP_MILLIS: (u64, u64) = (2_000, 12_000);
/// Between two looks, in milliseconds.
const LOOK_MILLIS: (u64, u64) = (50, 300);
/// A session is cancelled so long after its repair began, in milliseconds.
const CANCEL_MILLIS: (u64, u64) = (5, 900);
/// What a full repair that failed still streams ends by then.
const STREAMED_BY: Duration = Duration::from_secs(20);
/// A repair that has not ended by then never will.
const LASTS_MAX: Duration = Duration::from_secs(400);

/// A repair under way.
struct Work {
    order: Order,
    asked: Asked,
    began: Instant,
    armed: Option<Armed>,
    cancel_at: Option<Instant>,
    /// No full repair streams meanwhile, or has shortly before.
    is_alone: bool,
}

/// Who repairs a ring.
pub struct Operator {
    rng: Rng,
    plan: Plan,
    terms: Terms,
    members: Members,
    model: Rc<Model>,
    data: Rc<Data>,
    works: Vec<Work>,
    /// What is to be done next.
    queue: VecDeque<Order>,
    /// Other verbs under way.
    others: Vec<(&'static str, Asked)>,
    harmed: Option<Harmed>,
    /// A node misses what is written, until then.
    misses_until: Option<Instant>,
    next: Instant,
    next_upkeep: Instant,
    is_closed: bool,
    streamed_by: Instant,
}

impl Operator {
    /// Nothing has begun yet.
    pub fn new(
        rng: Rng,
        (plan, terms): (&Plan, Terms),
        members: &Members,
        model: &Rc<Model>,
        data: &Rc<Data>,
    ) -> Self {
        Self {
            rng,
            plan: plan.clone(),
            terms,
            members: Rc::clone(members),
            model: Rc::clone(model),
            data: Rc::clone(data),
            works: Vec::new(),
            queue: VecDeque::new(),
            others: Vec::new(),
            harmed: None,
            misses_until: None,
            next: Instant::ZERO,
            next_upkeep: Instant::ZERO,
            is_closed: false,
            streamed_by: Instant::ZERO,
        }
    }

    /// Nothing new begins, and nothing more goes wrong.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.queue.clear();
        for work in &mut self.works {
            (work.armed, work.cancel_at) = (None, None);
        }
    }

    /// Is all that began at its end?
    pub fn is_idle(&self, world: &World) -> bool {
        let serves = |member: &crate::ring::member::Member| {
            world.is_up(member.id) && member.door().is_some()
        };
        self.works.is_empty()
            && self.others.is_empty()
            && self.harmed.is_none()
            && self.misses_until.is_none()
            && self.members.iter().all(|member| serves(member))
    }

    /// What is not at its end.
    pub fn said(&self) -> String {
        let of = |work: &Work| format!("{:?} since {:?}; ", work.order, work.began);
        let works: String = self.works.iter().map(of).collect();
        let others: Vec<_> = self.others.iter().map(|(name, _)| *name).collect();
        format!("{works}{others:?}")
    }

    fn millis(&self, (least, most): (u64, u64)) -> Duration {
        Duration::from_millis(self.rng.between(least, most))
    }

    fn tell(&self, world: &World, what: impl FnOnce() -> String) {
        self.model.tell(world.now(), what);
    }

    /// Lets time go by, and does what is due.
    pub fn step(&mut self, world: &World) -> Result<(), String> {
        self.wait(world)?;
        self.lift(world);
        self.look(world)?;
        self.hurt(world);
        self.go_on(world)?;
        let now = world.now();
        if !self.is_closed && self.next <= now {
            self.next = now + self.millis(PAUSE_MILLIS);
            self.begin(world);
        }
        if !self.is_closed && self.next_upkeep <= now {
            self.next_upkeep = now + self.millis(UPKEEP_MILLIS);
            self.keep_up(world);
        }
        Ok(())
    }

    /// Sees which verbs have ended.
    fn go_on(&mut self, world: &World) -> Result<(), String> {
        let (members, model) = (Rc::clone(&self.members), Rc::clone(&self.model));
        self.others.retain(|(name, asked)| match asked.answer(world, &members) {
            None => true,
            Some(answer) => {
                model.tell(world.now(), || format!("{name}: {answer:?}"));
                if answer.is_ok() {
                    model.count(name);
                }
                false
            }
        });
        for mut work in std::mem::take(&mut self.works) {
            let now = world.now();
            if work.cancel_at.is_some_and(|at| at <= now) {
                self.cancel(world, &mut work);
            }
            match work.asked.answer(world, &self.members) {
                Some(answer) => self.end(world, &work, answer)?,
                None if now.since(work.began) > LASTS_MAX => {
                    return Err(format!("a repair never ends: {:?}", work.order));
                }
                None => self.works.push(work),
            }
        }
        Ok(())
    }

    fn end(
        &mut self,
        world: &World,
        work: &Work,
        answer: Result<String, String>,
    ) -> Result<(), String> {
        let (now, order) = (world.now(), &work.order);
        self.tell(world, || format!("{order:?} ended: {answer:?}"));
        if order.kind == Kind::Full {
            let rest = if answer.is_ok() { Duration::from_secs(2) } else { STREAMED_BY };
            self.streamed_by = self.streamed_by.max(now + rest);
        }
        if answer.is_err() {
            self.model.count("repair.failed");
            return Ok(());
        }
        self.model.count(order.kind.name());
        order.forms.iter().for_each(|form| self.model.count(form));
        let repaired = Repaired {
            began: work.began,
            ended: now,
            sets_apart: order.kind == Kind::Incremental && work.is_alone,
        };
        self.data.repaired(|table, key| order.covers.contains(&(table, key)), repaired);
        Ok(())
    }

    /// Begins a repair that makes sense now.
    fn begin(&mut self, world: &World) {
        let is_second = match self.works.len() {
            0 => false,
            1 if self.rng.one_in(3) => true,
            _ => return,
        };
        if self.misses_until.is_some() {
            return;
        }
        if !is_second && self.harmed.is_none() && self.queue.is_empty() && self.rng.one_in(3) {
            return self.miss(world);
        }
        let order = match self.queue.pop_front() {
            Some(order) => order,
            None => {
                let mut orders = self.orders();
                let Some(first) = orders.pop_front() else { return };
                self.queue = orders;
                first
            }
        };
        let Some(asked) = Asked::new(&self.members[order.by], &order.line) else { return };
        self.tell(world, || format!("{order:?} begins"));
        if is_second {
            self.model.count("repair.two_at_once");
        }
        let now = world.now();
        let full = |work: &Work| work.order.kind == Kind::Full;
        let is_alone = self.streamed_by <= now && !self.works.iter().any(full);
        if order.kind == Kind::Full {
            self.works.iter_mut().for_each(|work| work.is_alone = false);
        }
        let is_cancelled = order.kind == Kind::Incremental && self.rng.one_in(8);
        let cancel_at = is_cancelled.then(|| now + self.millis(CANCEL_MILLIS));
        let armed = self.armed(world, order.kind);
        self.works.push(Work { order, asked, began: now, armed, cancel_at, is_alone });
    }

    /// Ends sessions of an incremental repair, as an operator does: at its coordinator, or at
    /// another node by force.
    fn cancel(&mut self, world: &World, work: &mut Work) {
        work.cancel_at = None;
        let by_force = self.terms.by_force && self.rng.one_in(2);
        let node = match by_force {
            true => (work.order.by + 1) % self.members.len(),
            false => work.order.by,
        };
        let member = &self.members[node];
        let Some(way) = member.way() else { return };
        let open = way.shard.repair_sessions().all().into_iter().filter(|it| !it.is_over());
        for session in open.map(|session| session.id).collect::<Vec<_>>() {
            let force = if by_force { " -f" } else { "" };
            let line = format!("repair_admin cancel -s {session}{force}");
            self.tell(world, || format!("node {} is asked: {line}", node + 1));
            if by_force {
                self.model.count("repair.cancelled_by_force");
            }
            self.others.extend(Asked::new(member, &line).map(|it| ("repair.cancelled", it)));
        }
    }

    /// A node is cut off for a while, so that it misses what is written.
    fn miss(&mut self, world: &World) {
        let node = self.rng.below(self.members.len() as u64) as usize;
        self.tell(world, || format!("node {} misses what is written", node + 1));
        self.machines(world).cut_off(node);
        self.misses_until = Some(world.now() + self.millis((1_500, 7_000)));
        self.model.count("repair.missed");
    }

    /// Ends sessions that are over where they were coordinated, and elsewhere are not: those nodes
    /// would find out by themselves, much later.
    fn end_stale(&mut self, world: &World) {
        let mut lines = Vec::new();
        for member in self.members.iter() {
            let Some(way) = member.way() else { continue };
            for open in way.shard.repair_sessions().all() {
                let its = |node: &usize| address(*node) == open.coordinator.ip;
                let coordinator = (0..self.members.len()).find(its).map(|node| &self.members[node]);
                let Some(coordinator) = coordinator else { continue };
                let of_it =
                    coordinator.way().and_then(|it| it.shard.repair_sessions().get(open.id));
                if !open.is_over() && of_it.is_some_and(|it| it.state.name() == "FAILED") {
                    let line = format!("repair_admin cancel -s {}", open.id);
                    lines.push((Rc::clone(coordinator), line));
                }
            }
        }
        for (member, line) in lines {
            self.tell(world, || format!("node {} is asked: {line}", member.number + 1));
            self.others.extend(Asked::new(&member, &line).map(|it| ("repair.stale_ended", it)));
        }
    }

    /// Has a node write and compact tables, so that deletions are purged.
    fn keep_up(&mut self, world: &World) {
        if self.rng.one_in(2) {
            self.end_stale(world);
        }
        let node = self.rng.below(self.members.len() as u64) as usize;
        let (line, name) = match self.rng.below(5) {
            0 | 1 => ("flush ring", "repair.flushed"),
            2 | 3 => ("compact ring s", "repair.compacted"),
            _ => ("compact ring", "repair.compacted"),
        };
        self.tell(world, || format!("node {} is asked: {line}", node + 1));
        self.others.extend(Asked::new(&self.members[node], line).map(|asked| (name, asked)));
    }
}
