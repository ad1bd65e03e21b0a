//! What goes wrong with the machines of a ring that changes, one at a time; and how it ends.

use std::time::Duration;

use env::sim::World;

use super::Operator;
use super::parties::Part;
use crate::ring::elastic::kind::Kind;
use crate::ring::elastic::work::{Phase, Work};
use crate::ring::harm::{DOWN_MILLIS, Machines, is_full};

impl Operator {
    fn machines<'a>(&'a self, world: &'a World) -> Machines<'a> {
        Machines { world, members: &self.members, model: &self.model, rng: &self.rng }
    }

    /// Ends what has gone wrong for long enough.
    pub(super) fn lift(&mut self, world: &World) {
        let now = world.now();
        if self.harmed.as_ref().is_some_and(|harmed| harmed.until <= now)
            && let Some(harmed) = self.harmed.take()
        {
            self.tell(world, || format!("{:?} of {} is over", harmed.harm, harmed.node + 1));
            self.machines(world).lift(harmed);
        }
        for node in 0..self.members.len() {
            let member = &self.members[node];
            if member.back_at.get().is_some_and(|at| at <= now) && !world.is_up(member.id) {
                self.restart(world, node);
            }
        }
    }

    pub(super) fn restart(&self, world: &World, node: usize) {
        self.tell(world, || format!("node {} starts", node + 1));
        self.members[node].restart(world, self.plan.nodes[node].shards);
    }

    /// Ends a machine's process, or cuts its power; it comes back.
    pub(super) fn stop(&self, world: &World, node: usize, loses_power: bool, down: Duration) {
        self.machines(world).stop(node, loses_power, down);
    }

    /// A machine does not come back, and its disk is lost.
    pub(super) fn kill_for_good(&mut self, world: &World, node: usize) {
        let member = &self.members[node];
        self.tell(world, || format!("node {} dies for good", node + 1));
        member.close();
        member.back_at.set(None);
        if world.is_up(member.id) {
            match self.rng.one_in(2) {
                true => world.power_cut(member.id),
                false => world.kill(member.id),
            }
        }
        self.model.ended(node, world.now());
        self.parts[node] = Part::Dead;
        self.lost_any = true;
    }

    /// Does what is due to a party of an operation.
    pub(super) fn hurt(&mut self, world: &World) {
        let now = world.now();
        let is_due = |work: &Work| work.harm.is_some_and(|(_, at)| at <= now);
        let Some(at) = self.works.iter().position(is_due) else { return };
        if self.harmed.is_some() {
            return;
        }
        let Some((harm, _)) = self.works[at].harm.take() else { return };
        let (kind, own) = (self.works[at].kind, self.works[at].node);
        let is_up = |node: &usize| {
            let has_part = matches!(self.parts[*node], Part::Member | Part::Entering);
            has_part && world.is_up(self.members[*node].id)
        };
        let up: Vec<usize> = (0..self.members.len()).filter(is_up).collect();
        let any = up.get(self.rng.below(up.len().max(1) as u64) as usize).copied();
        let node = if self.rng.one_in(2) && is_up(&own) { Some(own) } else { any };
        let Some(node) = node else { return };
        // see `mod.rs`: what a dead node and this one had alone
        let loses = |work: &&Work| {
            let takes_place = matches!(work.kind, Kind::Replace | Kind::ReplaceInPlace);
            (takes_place && node != work.node) || work.phase == Phase::TakeOut
        };
        let losing: Vec<Kind> = self.works.iter().filter(loses).map(|work| work.kind).collect();
        losing.into_iter().for_each(|kind| self.be_lax(kind));
        self.model.count(kind.harmed(harm));
        self.tell(world, || format!("{harm:?} of {}", node + 1));
        self.harmed = Some(self.machines(world).strike(node, harm));
    }

    /// From now on reads at QUORUM may show less, until the replicas are mended.
    pub(super) fn be_lax(&self, kind: Kind) {
        self.model.is_lax.set(true);
        self.model.count("elastic.lax");
        if kind == Kind::ReplaceInPlace {
            self.model.forgive_counts();
        }
    }

    /// Sees who ended by itself.
    pub(super) fn look(&mut self, world: &World) -> Result<(), String> {
        for node in 0..self.members.len() {
            let member = &self.members[node];
            let ends = self.parts[node] == Part::Member;
            if !ends || world.is_up(member.id) || member.back_at.get().is_some() {
                continue;
            }
            member.close();
            let exits = world.exits(member.id);
            self.tell(world, || format!("node {} ended: {exits:?}", node + 1));
            self.model.ended(node, world.now());
            let error = exits.into_iter().find_map(Result::err).unwrap_or_default();
            let leaves = |work: &&mut Work| work.kind == Kind::Decommission && work.node == node;
            if error.contains("Decommissioned")
                && let Some(work) = self.works.iter_mut().find(leaves)
            {
                // it gave all it had, and died before all had heard
                work.phase = Phase::TakeOut;
                work.gone = Some(node);
                work.asked = None;
                self.parts[node] = Part::Dead;
                self.model.count("elastic.left_unheard");
            } else if member.may_end(world.now()) || error.contains("NoPeers") || is_full(&error) {
                member.back_at.set(Some(world.now() + self.millis(DOWN_MILLIS)));
                self.model.count("elastic.ended");
            } else {
                return Err(format!("node {} ended: {error}", node + 1));
            }
        }
        Ok(())
    }
}
