//! Whom a scan asks, range after range (`ReplicaPlans.forRangeRead` and `maybeMerge`,
//! `ReplicaPlanMerger`).

use protocol::Consistency;
use types::Token;

use crate::acks::Acks;
use crate::node::NodeIndex;
use crate::placement::Placement;
use crate::proximity::Proximity;
use crate::read::{candidates, contacts};
use crate::ring::Ring;
use crate::short::Short;
use crate::unavailable::{Needs, Unavailable};

/// A scan of neighbouring ranges, all of the same replicas. Nobody but these is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangePlan {
    /// The token that the last range ends with; none at the ring's end.
    pub end: Option<Token>,
    /// How many ranges of the ring these are.
    pub ranges: u32,
    required: u32,
    candidates: Short<NodeIndex>,
    contacts: Short<NodeIndex>,
}

impl RangePlan {
    /// Those that are asked, all of them for data.
    pub fn contacts(&self) -> &[NodeIndex] {
        &self.contacts
    }

    /// Those that could be.
    pub fn candidates(&self) -> &[NodeIndex] {
        &self.candidates
    }

    /// Answers that are needed.
    pub fn required(&self) -> u32 {
        self.required
    }

    /// To count answers with.
    pub fn acks<R>(&self, ring: &Ring) -> Acks<R> {
        Acks::new(ring, &self.contacts, self.required, false).with_data()
    }
}

/// The plans of a scan, one after the other: neighbouring ranges are one where enough replicas have
/// both and that is not slower.
pub struct RangePlans<'a, I> {
    ring: &'a Ring,
    placement: &'a Placement,
    level: Consistency,
    proximity: Proximity<'a>,
    ends: I,
    next: Option<Result<RangePlan, Unavailable>>,
}

impl<'a, I: Iterator<Item = Option<Token>>> RangePlans<'a, I> {
    /// Of ranges by the tokens that they end with, in order; none at the ring's end.
    pub fn new(
        ring: &'a Ring,
        placement: &'a Placement,
        level: Consistency,
        proximity: Proximity<'a>,
        ends: I,
    ) -> Self {
        Self { ring, placement, level, proximity, ends, next: None }
    }

    fn needs(&self) -> Needs<'a> {
        let block_for = self.placement.block_for(self.level);
        Needs { ring: self.ring, placement: self.placement, level: self.level, block_for, full: 1 }
    }

    fn contacts(&self, candidates: &[NodeIndex]) -> Short<NodeIndex> {
        contacts(self.ring, self.placement, self.level, false, candidates)
    }

    /// Of one range of the ring.
    fn single(&self, end: Option<Token>) -> Result<RangePlan, Unavailable> {
        let natural = self.placement.at(end.unwrap_or(Token::MIN)).natural;
        let candidates = candidates(self.ring, natural, self.level, self.proximity);
        let contacts = self.contacts(&candidates);
        let needs = self.needs();
        needs.check(&contacts)?;
        Ok(RangePlan { end, ranges: 1, required: needs.block_for, candidates, contacts })
    }

    fn merged(&self, left: &RangePlan, right: &RangePlan) -> Option<RangePlan> {
        let both = left.candidates.iter().copied();
        let both: Short<NodeIndex> = both.filter(|node| right.candidates.contains(node)).collect();
        self.needs().check(&both).ok()?;
        let contacts = self.contacts(&both);
        let is_worth =
            self.proximity.is_worth_merging(self.ring, &contacts, &left.contacts, &right.contacts);
        is_worth.then(|| RangePlan {
            end: right.end,
            ranges: left.ranges + right.ranges,
            required: left.required,
            candidates: both,
            contacts,
        })
    }
}

impl<I: Iterator<Item = Option<Token>>> Iterator for RangePlans<'_, I> {
    type Item = Result<RangePlan, Unavailable>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.next.take().or_else(|| self.ends.next().map(|end| self.single(end)))?;
        let Ok(mut plan) = first else { return Some(first) };
        while plan.end.is_some()
            && let Some(end) = self.ends.next()
        {
            let right = match self.single(end) {
                Ok(right) => right,
                Err(lack) => return Some(Err(lack)),
            };
            match self.merged(&plan, &right) {
                Some(merged) => plan = merged,
                None => {
                    self.next = Some(Ok(right));
                    break;
                }
            }
        }
        Some(Ok(plan))
    }
}
