//! What befalls a machine of a ring while an operator works: it ends, is cut off, or its disk is
//! full; and comes back.

use std::time::Duration;

use env::sim::{Fault, NodeId, World};
use env::{Instant, Rng};

use super::member::Members;
use super::model::Model;

/// How long a machine is down, in milliseconds.
pub const DOWN_MILLIS: (u64, u64) = (300, 12_000);
/// How long it is cut off, in milliseconds.
const CUT_OFF_MILLIS: (u64, u64) = (500, 30_000);
/// How long its disk is full, in milliseconds.
const FULL_MILLIS: (u64, u64) = (500, 6_000);

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// The process ends.
    Kill,
    /// The machine loses power.
    PowerCut,
    /// It is cut off from all others.
    CutOff,
    /// Its disk is full.
    Full,
}

impl Harm {
    /// All of it.
    pub const ALL: [Self; 4] = [Self::Kill, Self::PowerCut, Self::CutOff, Self::Full];
}

/// A machine with which something is wrong.
pub struct Harmed {
    /// Which.
    pub node: usize,
    /// What it is.
    pub harm: Harm,
    /// When it is over.
    pub until: Instant,
}

/// Did a node end because its disk is full? One that starts again may find it so still.
pub fn is_full(error: &str) -> bool {
    ["No space left", "StorageFull"].iter().any(|text| error.contains(text))
}

/// The machines of a ring, for who harms them.
#[derive(Clone, Copy)]
pub struct Machines<'a> {
    /// The world.
    pub world: &'a World,
    /// The nodes.
    pub members: &'a Members,
    /// Who is told.
    pub model: &'a Model,
    /// The dice.
    pub rng: &'a Rng,
}

impl Machines<'_> {
    fn millis(&self, (least, most): (u64, u64)) -> Duration {
        Duration::from_millis(self.rng.between(least, most))
    }

    /// Ends a machine's process, or cuts its power; it comes back.
    pub fn stop(&self, node: usize, loses_power: bool, down: Duration) {
        let (world, member) = (self.world, &self.members[node]);
        member.close();
        member.back_at.set(Some(world.now() + down));
        match loses_power {
            true => world.power_cut(member.id),
            false => world.kill(member.id),
        }
        self.model.ended(node, world.now());
    }

    /// Cuts a machine off from all others, until somebody heals the network.
    pub fn cut_off(&self, node: usize) {
        let all = self.members.iter().map(|member| member.id);
        let a = self.members[node].id;
        let b: Vec<NodeId> = all.filter(|id| *id != a).collect();
        self.world.set_fault(Fault::Partition { a: vec![a], b });
    }

    /// Something goes wrong with a machine.
    pub fn strike(&self, node: usize, harm: Harm) -> Harmed {
        let (world, member) = (self.world, &self.members[node]);
        let now = world.now();
        let lasts = match harm {
            Harm::Kill | Harm::PowerCut => {
                let down = self.millis(DOWN_MILLIS);
                self.stop(node, harm == Harm::PowerCut, down);
                down
            }
            Harm::CutOff => {
                self.cut_off(node);
                self.millis(CUT_OFF_MILLIS)
            }
            Harm::Full => {
                member.bad_since.set(Some(now));
                self.model.ended(node, now);
                world.set_fault(Fault::NoSpace { node: member.id, on: true });
                self.millis(FULL_MILLIS)
            }
        };
        Harmed { node, harm, until: now + lasts }
    }

    /// What went wrong is over. Who was killed comes back by itself.
    pub fn lift(&self, Harmed { node, harm, .. }: Harmed) {
        let (world, member) = (self.world, &self.members[node]);
        match harm {
            Harm::Kill | Harm::PowerCut => {}
            Harm::CutOff => world.set_fault(Fault::Heal),
            Harm::Full => {
                world.set_fault(Fault::NoSpace { node: member.id, on: false });
                // who does not know better starts it again
                if world.is_up(member.id) && self.rng.one_in(2) {
                    self.stop(node, false, Duration::from_millis(500));
                } else if world.is_up(member.id) {
                    member.bad_since.set(None);
                    member.full_until.set(Some(world.now()));
                }
            }
        }
    }
}
