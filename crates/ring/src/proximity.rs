//! Which of several nodes to ask first.

use crate::dynamic::Scores;
use crate::node::NodeIndex;
use crate::ring::Ring;
use crate::short::Short;

/// Scans of two ranges are one, if the slowest node of that is no slower than the slowest ones of
/// both times this.
const MERGING_PREFERENCE: f64 = 1.5;

/// What puts nodes in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Proximity<'a> {
    /// Does the snitch know of racks and data centres? If not, replicas stay in the strategy's
    /// order.
    pub by_place: bool,
    /// How fast nodes were of late, where the dynamic snitch is on.
    pub scores: Option<&'a Scores>,
}

impl Proximity<'_> {
    /// Puts nodes in order, the nearest first; those that are equally near stay as they are.
    pub fn sort(&self, ring: &Ring, nodes: &mut [NodeIndex]) {
        if nodes.len() < 2 {
            return;
        }
        if self.by_place {
            nodes.sort_by_key(|node| ring.distance(*node));
        }
        let Some(scores) = self.scores else { return };
        let score = |node: NodeIndex| scores.of(ring.node(node).address);
        if self.is_bad(scores, nodes, score) {
            nodes.sort_by(|a, b| score(*a).total_cmp(&score(*b)));
        }
    }

    /// Is a node in its place worse than the one that would be there by score, and by so much that
    /// scores count?
    fn is_bad(
        &self,
        scores: &Scores,
        nodes: &[NodeIndex],
        score: impl Fn(NodeIndex) -> f64,
    ) -> bool {
        if scores.badness_threshold == 0.0 {
            return true;
        }
        let placed: Short<f64> = nodes.iter().map(|node| score(*node)).collect();
        let mut sorted = placed.clone();
        sorted.sort_by(f64::total_cmp);
        let limit = 1.0 + scores.badness_threshold;
        placed.iter().zip(sorted.iter()).any(|(placed, best)| *placed > best * limit)
    }

    /// Is one scan of these nodes no slower than two of those?
    pub fn is_worth_merging(
        &self,
        ring: &Ring,
        merged: &[NodeIndex],
        left: &[NodeIndex],
        right: &[NodeIndex],
    ) -> bool {
        let goes_far = |nodes: &[NodeIndex]| nodes.iter().any(|node| !ring.is_near(*node));
        if goes_far(merged) && !goes_far(left) && !goes_far(right) {
            return false;
        }
        let Some(scores) = self.scores else { return true };
        if left.len() == 1 && left == right {
            return true;
        }
        let worst = |nodes: &[NodeIndex]| {
            let known = nodes.iter().filter_map(|node| scores.known(ring.node(*node).address));
            known.max_by(f64::total_cmp)
        };
        match (worst(merged), worst(left), worst(right)) {
            (Some(merged), Some(left), Some(right)) => {
                merged <= (left + right) * MERGING_PREFERENCE
            }
            _ => true,
        }
    }
}
