//! Whom a write goes to, and how many have to have it (`ReplicaPlans.forWrite`).

use protocol::Consistency;

use crate::acks::Acks;
use crate::layout::CenterIndex;
use crate::node::NodeIndex;
use crate::placement::{Placement, Replicas, quorum};
use crate::ring::Ring;
use crate::short::Short;
use crate::unavailable::{Needs, Unavailable};

/// A write: it goes to all replicas that are up, those that are about to be ones among them; the
/// others get hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritePlan {
    level: Consistency,
    /// Natural ones, then pending ones.
    replicas: Short<NodeIndex>,
    natural: usize,
    required: u32,
    /// Of each data centre, where each counts.
    each: Option<Short<(CenterIndex, u32)>>,
}

/// A message: to whom, and to whom that one passes it on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Who is sent it.
    pub to: NodeIndex,
    /// Others of its data centre, who answer for themselves.
    pub forward: Short<NodeIndex>,
}

impl WritePlan {
    /// A write to the replicas of a token, [`Placement::at`].
    ///
    /// # Errors
    /// If too few are up.
    pub fn new(
        ring: &Ring,
        placement: &Placement,
        replicas: Replicas<'_>,
        level: Consistency,
    ) -> Result<Self, Unavailable> {
        let local = [ring.local()];
        let Replicas { natural, pending, .. } = match level {
            // whoever is asked does it, a replica or not
            Consistency::NodeLocal => Replicas { natural: &local, pending: &[], former: &[] },
            _ => replicas,
        };
        let block_for = placement.block_for_write(level, pending);
        let all: Short<NodeIndex> = natural.iter().chain(pending).copied().collect();
        let alive: Short<NodeIndex> =
            all.iter().copied().filter(|node| ring.is_up(*node)).collect();
        Needs { ring, placement, level, block_for, full: 0 }.check(&alive)?;
        let each = match (level, &placement.centers) {
            (Consistency::EachQuorum, Some(centers)) => {
                let known = centers.iter().filter_map(|c| Some((c.index?, quorum(c.replicas))));
                let mut each: Short<_> = known.collect();
                for node in pending {
                    let center = ring.center_of(*node);
                    each.iter_mut().filter(|(c, _)| *c == center).for_each(|(_, n)| *n += 1);
                }
                Some(each)
            }
            _ => None,
        };
        Ok(Self { level, replicas: all, natural: natural.len(), required: block_for, each })
    }

    /// All whom it concerns, up or not: natural replicas first.
    pub fn replicas(&self) -> &[NodeIndex] {
        &self.replicas
    }

    /// Those among them that are about to be replicas.
    pub fn pending(&self) -> &[NodeIndex] {
        &self.replicas[self.natural..]
    }

    /// Acknowledgements that are needed.
    pub fn required(&self) -> u32 {
        self.required
    }

    /// The level.
    pub fn level(&self) -> Consistency {
        self.level
    }

    /// To count acknowledgements with.
    pub fn acks<R>(&self, ring: &Ring) -> Acks<R> {
        let acks = Acks::new(ring, &self.replicas, self.required, self.level.is_local());
        match &self.each {
            Some(each) => acks.of_each(each.clone()),
            None => acks,
        }
    }

    /// How it goes to those that are up: to each of this data centre itself, and to one of each
    /// other, by chance, which passes it on (`StorageProxy.sendToHintedReplicas`). `random` gives a
    /// number below its argument.
    pub fn routes(&self, ring: &Ring, random: &mut dyn FnMut(usize) -> usize) -> Vec<Route> {
        let alive = || self.replicas.iter().copied().filter(|node| ring.is_up(*node));
        let near = alive().filter(|node| ring.is_near(*node));
        let mut routes: Vec<Route> =
            near.map(|to| Route { to, forward: Short::default() }).collect();
        let mut done: Short<CenterIndex> = Short::default();
        for node in alive().filter(|node| !ring.is_near(*node)) {
            let center = ring.center_of(node);
            if done.contains(&center) {
                continue;
            }
            done.push(center);
            let there: Short<NodeIndex> =
                alive().filter(|node| ring.center_of(*node) == center).collect();
            let to = there[random(there.len()).min(there.len() - 1)];
            let forward = there.iter().copied().filter(|node| *node != to).collect();
            routes.push(Route { to, forward });
        }
        routes
    }

    /// Whom what a read found missing is written to (`ReplicaPlans.writeReadRepair`): those of the
    /// read that are up, and as many more, in this order, as the level needs.
    pub fn repair_contacts(&self, ring: &Ring, read: &[NodeIndex]) -> Short<NodeIndex> {
        let alive = || self.replicas.iter().copied().filter(|node| ring.is_up(*node));
        let mut contacts: Short<NodeIndex> = alive().filter(|node| read.contains(node)).collect();
        let others = alive().filter(|node| !read.contains(node));
        if let Some(each) = &self.each {
            let mut left = each.clone();
            let mut wants = |node: NodeIndex| {
                let center = ring.center_of(node);
                let found = left.iter_mut().find(|(c, n)| *c == center && *n > 0);
                found.map(|(_, n)| *n -= 1).is_some()
            };
            contacts.iter().for_each(|node| {
                wants(*node);
            });
            others.filter(|node| wants(*node)).for_each(|node| contacts.push(node));
            return contacts;
        }
        let missing = (self.required as usize).saturating_sub(contacts.len());
        let others = others.filter(|node| !self.level.is_local() || ring.is_near(*node));
        others.take(missing).for_each(|node| contacts.push(node));
        contacts
    }
}
