//! Counts answers until they are enough, or can no longer be (`AbstractWriteResponseHandler`,
//! `ReadCallback`).

use crate::layout::CenterIndex;
use crate::node::NodeIndex;
use crate::ring::Ring;
use crate::short::Short;

/// What answers amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// More are needed, and may come.
    Pending,
    /// That is enough.
    Enough,
    /// Too many failed.
    CannotBeReached,
}

/// A node that was asked.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    node: NodeIndex,
    center: CenterIndex,
    /// Does what it answers count?
    counts: bool,
    /// Has it answered or failed?
    is_heard: bool,
}

/// Answers of those that count. One of a node that was not asked, and a second one of a node, is
/// nothing.
///
/// A quorum in each data centre fails as in Cassandra: once too many failed over all. Where too
/// many failed in one of them alone, the request's time runs out.
#[derive(Clone, Debug)]
pub struct Acks<R> {
    asked: Short<Slot>,
    /// Answers that are needed of data centres, where each has to give some.
    each: Option<Short<(CenterIndex, u32)>>,
    required: u32,
    received: u32,
    failed: u32,
    waits_for_data: bool,
    failures: Vec<(NodeIndex, R)>,
}

impl<R> Acks<R> {
    /// So many answers of these nodes; of those alone that are near, if only these count.
    pub(crate) fn new(ring: &Ring, asked: &[NodeIndex], required: u32, only_near: bool) -> Self {
        let slot = |node: &NodeIndex| slot(ring, *node, !only_near || ring.is_near(*node));
        Self {
            asked: asked.iter().map(slot).collect(),
            each: None,
            required,
            received: 0,
            failed: 0,
            waits_for_data: false,
            failures: Vec::new(),
        }
    }

    /// So many answers of these nodes, wherever they are.
    pub fn of(ring: &Ring, asked: &[NodeIndex], required: u32) -> Self {
        Self::new(ring, asked, required, false)
    }

    /// So many of each data centre.
    pub(crate) fn of_each(mut self, each: Short<(CenterIndex, u32)>) -> Self {
        self.each = Some(each);
        self
    }

    /// Data has to be among the answers.
    pub(crate) fn with_data(mut self) -> Self {
        self.waits_for_data = true;
        self
    }

    /// A further node was asked.
    pub fn asked(&mut self, ring: &Ring, node: NodeIndex) {
        if !self.asked.iter().any(|slot| slot.node == node) {
            self.asked.push(slot(ring, node, true));
        }
    }

    /// A node has done it, or has given a digest.
    pub fn answered(&mut self, node: NodeIndex) -> Verdict {
        let each = &mut self.each;
        if let Some(slot) = hear(&mut self.asked, node)
            && slot.counts
        {
            self.received += 1;
            let left = each.iter_mut().flat_map(|each| each.iter_mut());
            for (_, left) in left.filter(|(center, _)| *center == slot.center) {
                *left = left.saturating_sub(1);
            }
        }
        self.verdict()
    }

    /// A node has given data.
    pub fn gave_data(&mut self, node: NodeIndex) -> Verdict {
        if self.asked.iter().any(|slot| slot.node == node && !slot.is_heard) {
            self.waits_for_data = false;
        }
        self.answered(node)
    }

    /// A node has failed, or was not heard of in time.
    pub fn failed(&mut self, node: NodeIndex, reason: R) -> Verdict {
        if let Some(slot) = hear(&mut self.asked, node) {
            self.failed += u32::from(slot.counts);
            self.failures.push((node, reason));
        }
        self.verdict()
    }

    /// What the answers amount to. Enough stays enough.
    pub fn verdict(&self) -> Verdict {
        let is_enough = match &self.each {
            Some(each) => each.iter().all(|(_, left)| *left == 0),
            None => self.received >= self.required,
        };
        let candidates = self.asked.iter().filter(|slot| slot.counts).count() as u32;
        if is_enough && !self.waits_for_data {
            Verdict::Enough
        } else if self.required + self.failed > candidates {
            Verdict::CannotBeReached
        } else {
            Verdict::Pending
        }
    }

    /// Answers that are needed.
    pub fn required(&self) -> u32 {
        self.required
    }

    /// Answers that counted.
    pub fn received(&self) -> u32 {
        self.received
    }

    /// Has data come, or is none waited for?
    pub fn has_data(&self) -> bool {
        !self.waits_for_data
    }

    /// What a write that runs out of time says it has received: always less than it needs.
    pub fn received_too_few(&self) -> u32 {
        self.received.min(self.required.saturating_sub(1))
    }

    /// Nodes that failed, and why.
    pub fn failures(&self) -> &[(NodeIndex, R)] {
        &self.failures
    }

    /// Why those failed that count: where it is time alone, the request ran out of it rather than
    /// failed.
    pub fn reasons_that_count(&self) -> impl Iterator<Item = &R> {
        let counts = |node| self.asked.iter().any(|slot| slot.node == node && slot.counts);
        self.failures.iter().filter(move |(node, _)| counts(*node)).map(|(_, reason)| reason)
    }

    /// Nodes that have not been heard of.
    pub fn silent(&self) -> impl Iterator<Item = NodeIndex> {
        self.asked.iter().filter(|slot| !slot.is_heard).map(|slot| slot.node)
    }
}

fn slot(ring: &Ring, node: NodeIndex, counts: bool) -> Slot {
    Slot { node, center: ring.center_of(node), counts, is_heard: false }
}

/// A node that is heard of for the first time.
fn hear(asked: &mut Short<Slot>, node: NodeIndex) -> Option<Slot> {
    let slot = asked.iter_mut().find(|slot| slot.node == node && !slot.is_heard)?;
    slot.is_heard = true;
    Some(*slot)
}
