//! What goes wrong with the nodes of a ring that is repaired: at a step of a repair, or just after.

use std::time::Duration;

use env::Instant;
use env::sim::{Fault, World};

use super::{LOOK_MILLIS, Operator};
use crate::ring::harm::{DOWN_MILLIS, Harm, Machines, is_full};
use crate::ring::repair::names::{Kind, Step};

/// A step that a repair does not reach within this time it never does.
const REACHED_BY: Duration = Duration::from_secs(20);
/// How long after a step at most, in milliseconds.
const AFTER_MILLIS: u64 = 40;

/// What is to go wrong at a step of a repair.
#[derive(Clone, Copy, Debug)]
pub struct Armed {
    harm: Harm,
    step: Step,
    /// How often that step was passed before; how often it is to be passed from then on.
    before: u64,
    gives_up_at: Instant,
    /// When, once the step is reached.
    at: Option<Instant>,
}

impl Operator {
    pub(super) fn machines<'a>(&'a self, world: &'a World) -> Machines<'a> {
        Machines { world, members: &self.members, model: &self.model, rng: &self.rng }
    }

    /// What is to go wrong in a repair that begins.
    pub(super) fn armed(&self, world: &World, kind: Kind) -> Option<Armed> {
        if !self.plan.is_harmed || self.harmed.is_some() || self.rng.one_in(4) {
            return None;
        }
        let steps = kind.steps();
        let step = steps[self.rng.below(steps.len() as u64) as usize];
        Some(Armed {
            harm: Harm::ALL[self.rng.below(4) as usize],
            step,
            // the first node that gets there, or a later one
            before: world.marked(step.mark) + self.rng.below(self.members.len() as u64),
            gives_up_at: world.now() + REACHED_BY,
            at: None,
        })
    }

    /// Lets time go by: until something is to go wrong, or for a moment.
    pub(super) fn wait(&mut self, world: &World) -> Result<(), String> {
        let now = world.now();
        let end = now + self.millis(LOOK_MILLIS);
        let armed = self.works.iter_mut().find_map(|work| work.armed.as_mut());
        let Some(armed) = armed else {
            return world.run_for(end.since(now)).map_err(|failure| failure.what.to_string());
        };
        let Armed { step, before, at, .. } = *armed;
        let ran = match at {
            Some(at) => world.run_for(at.min(end).since(now)),
            None => world.run_until(
                || world.marked(step.mark) > before || world.now() >= end,
                end.since(now) + Duration::from_secs(10),
            ),
        };
        if at.is_none() && world.marked(step.mark) > before {
            let later = if self.rng.one_in(2) { 0 } else { self.rng.below(AFTER_MILLIS) };
            armed.at = Some(world.now() + Duration::from_millis(later));
        }
        ran.map_err(|failure| failure.what.to_string())
    }

    /// Ends what has gone wrong for long enough.
    pub(super) fn lift(&mut self, world: &World) {
        let now = world.now();
        if self.misses_until.is_some_and(|at| at <= now) {
            self.misses_until = None;
            self.tell(world, || "it misses no more".to_owned());
            world.set_fault(Fault::Heal);
        }
        if self.harmed.as_ref().is_some_and(|harmed| harmed.until <= now)
            && let Some(harmed) = self.harmed.take()
        {
            self.tell(world, || format!("{:?} of {} is over", harmed.harm, harmed.node + 1));
            self.machines(world).lift(harmed);
        }
        for (node, member) in self.members.iter().enumerate() {
            if member.back_at.get().is_some_and(|at| at <= now) && !world.is_up(member.id) {
                self.tell(world, || format!("node {} starts", node + 1));
                member.restart(world, self.plan.nodes[node].shards);
            }
        }
    }

    /// Does what is due to a node that has part in a repair.
    pub(super) fn hurt(&mut self, world: &World) {
        let now = world.now();
        let is_alone = self.works.len() == 1;
        let nodes = self.members.len();
        let Some(work) = self.works.iter_mut().find(|work| work.armed.is_some()) else { return };
        let Some(armed) = work.armed else { return };
        let is_over = armed.at.is_none() && armed.gives_up_at <= now;
        if is_over || self.harmed.is_some() || self.misses_until.is_some() {
            work.armed = None;
            return;
        }
        if armed.at.is_none_or(|at| at > now) {
            return;
        }
        work.armed = None;
        let by = work.order.by;
        let other = (by + 1 + self.rng.below(nodes as u64 - 1) as usize) % nodes;
        let node = if self.rng.one_in(2) { by } else { other };
        if !world.is_up(self.members[node].id) {
            return;
        }
        if let Some(name) = armed.step.harmed(armed.harm).filter(|_| is_alone) {
            self.model.count(name);
        }
        self.tell(world, || format!("{:?} of {} at {}", armed.harm, node + 1, armed.step.mark));
        self.harmed = Some(self.machines(world).strike(node, armed.harm));
    }

    /// Sees who ended by itself.
    pub(super) fn look(&mut self, world: &World) -> Result<(), String> {
        for (node, member) in self.members.iter().enumerate() {
            if world.is_up(member.id) || member.back_at.get().is_some() {
                continue;
            }
            member.close();
            let exits = world.exits(member.id);
            self.tell(world, || format!("node {} ended: {exits:?}", node + 1));
            self.model.ended(node, world.now());
            let error = exits.into_iter().find_map(Result::err).unwrap_or_default();
            // without a word on some shards
            let is_expected =
                member.may_end(world.now()) || error.contains("NoPeers") || is_full(&error);
            if !is_expected {
                return Err(format!("node {} ended: {error}", node + 1));
            }
            member.back_at.set(Some(world.now() + self.millis(DOWN_MILLIS)));
            self.model.count("repair.ended");
        }
        Ok(())
    }
}
