//! Whom a read asks (`ReplicaPlans.forRead`, `AbstractReadExecutor`).

use protocol::Consistency;
use schema::SpeculativeRetry;

use crate::acks::Acks;
use crate::layout::CenterIndex;
use crate::node::NodeIndex;
use crate::placement::{Placement, Replicas, quorum};
use crate::proximity::Proximity;
use crate::ring::Ring;
use crate::short::Short;
use crate::unavailable::{Needs, Unavailable};

/// Whether a read asks one more than it has to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speculation {
    /// No. If it should have and nobody is there for it, that is counted.
    Never {
        /// Is it counted?
        is_missed: bool,
    },
    /// Once it takes too long.
    Later,
    /// It has from the start.
    Done,
}

/// A read of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPlan {
    level: Consistency,
    required: u32,
    /// Who could be asked, the nearest first.
    candidates: Short<NodeIndex>,
    /// Who is.
    contacts: Short<NodeIndex>,
    /// How many of them, from the first on, give data; the others give digests.
    data: usize,
    /// Whether another one is asked.
    pub speculation: Speculation,
}

impl ReadPlan {
    /// A read of the replicas of a token, [`Placement::at`].
    ///
    /// # Errors
    /// If too few are up.
    pub fn new(
        ring: &Ring,
        placement: &Placement,
        replicas: Replicas<'_>,
        level: Consistency,
        retry: SpeculativeRetry,
        proximity: Proximity<'_>,
    ) -> Result<Self, Unavailable> {
        let required = placement.block_for(level);
        if level == Consistency::NodeLocal {
            let local: Short<NodeIndex> = [ring.local()].into_iter().collect();
            return Ok(Self {
                level,
                required,
                candidates: local.clone(),
                contacts: local,
                data: 1,
                speculation: Speculation::Never { is_missed: false },
            });
        }
        let candidates = candidates(ring, replicas.natural, level, proximity);
        let is_always = retry == SpeculativeRetry::Always;
        let contacts = contacts(ring, placement, level, is_always, &candidates);
        Needs { ring, placement, level, block_for: required, full: 1 }.check(&contacts)?;
        let speculation = if retry == SpeculativeRetry::Never || level == Consistency::EachQuorum {
            Speculation::Never { is_missed: false }
        } else if contacts.len() == candidates.len() {
            Speculation::Never { is_missed: level != Consistency::All }
        } else if is_always {
            Speculation::Done
        } else {
            Speculation::Later
        };
        let data = if speculation == Speculation::Done { contacts.len().min(2) } else { 1 };
        Ok(Self { level, required, candidates, contacts, data, speculation })
    }

    /// Answers that are needed, data among them.
    pub fn required(&self) -> u32 {
        self.required
    }

    /// The level.
    pub fn level(&self) -> Consistency {
        self.level
    }

    /// All that could be asked, the nearest first.
    pub fn candidates(&self) -> &[NodeIndex] {
        &self.candidates
    }

    /// All that are asked.
    pub fn contacts(&self) -> &[NodeIndex] {
        &self.contacts
    }

    /// Those that are asked for data at first.
    pub fn data(&self) -> &[NodeIndex] {
        &self.contacts[..self.data]
    }

    /// Those that are asked for digests at first.
    pub fn digests(&self) -> &[NodeIndex] {
        &self.contacts[self.data..]
    }

    /// Asks the next one that could be, if there is one: for data if none has come, else for a
    /// digest.
    pub fn speculate(&mut self) -> Option<NodeIndex> {
        let next = self.candidates.iter().find(|node| !self.contacts.contains(node)).copied()?;
        self.contacts.push(next);
        Some(next)
    }

    /// To count answers with.
    pub fn acks<R>(&self, ring: &Ring) -> Acks<R> {
        Acks::new(ring, &self.contacts, self.required, false).with_data()
    }
}

/// Replicas that are up and that the level lets be asked, the nearest first.
pub(crate) fn candidates(
    ring: &Ring,
    natural: &[NodeIndex],
    level: Consistency,
    proximity: Proximity<'_>,
) -> Short<NodeIndex> {
    let mut nodes: Short<NodeIndex> = natural.iter().copied().collect();
    // who is down has a score too, by which all are put in order
    proximity.sort(ring, &mut nodes);
    let may = |node: &NodeIndex| ring.is_up(*node) && (!level.is_local() || ring.is_near(*node));
    nodes.iter().copied().filter(may).collect()
}

/// Those of the candidates that are asked at first.
pub(crate) fn contacts(
    ring: &Ring,
    placement: &Placement,
    level: Consistency,
    is_always: bool,
    candidates: &[NodeIndex],
) -> Short<NodeIndex> {
    if let (Consistency::EachQuorum, Some(centers)) = (level, &placement.centers) {
        let left = centers.iter().filter_map(|c| Some((c.index?, quorum(c.replicas))));
        let mut left: Short<(CenterIndex, u32)> = left.collect();
        let mut wants = |node: &NodeIndex| {
            let center = ring.center_of(*node);
            let found = left.iter_mut().find(|(c, n)| *c == center && *n > 0);
            found.map(|(_, n)| *n -= 1).is_some()
        };
        return candidates.iter().copied().filter(|node| wants(node)).collect();
    }
    let count = placement.block_for(level) as usize + usize::from(is_always);
    candidates.iter().copied().take(count).collect()
}
