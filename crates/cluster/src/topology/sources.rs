//! From whom ranges are fetched (`RangeStreamer`).

use std::collections::BTreeMap;

use ring::{NodeIndex, Placement, Proximity, Ring};
use types::TokenRange;

/// Who is asked for what.
#[derive(Debug, Default)]
pub(super) struct Picked {
    /// Ranges by who sends them.
    pub of: BTreeMap<NodeIndex, Vec<TokenRange>>,
    /// Those that nobody has.
    pub nowhere: Vec<TokenRange>,
}

/// The replicas of a range that are left for `taker` when a node is gone: those of its data centre,
/// if there are any. A write that was acknowledged by a quorum with the node that is
/// gone may be on any one of them alone, so that whoever takes its place must have what each of
/// them has. Cassandra asks one, and leaves the rest to a repair.
pub(super) fn survivors(
    ring: &Ring,
    placement: &Placement,
    range: TokenRange,
    (taker, gone): (NodeIndex, Option<NodeIndex>),
) -> Vec<NodeIndex> {
    let natural = placement.at(range.right).natural.iter().copied();
    let left: Vec<_> = natural.filter(|node| *node != taker && Some(*node) != gone).collect();
    let is_near = |node: &NodeIndex| ring.center_of(*node) == ring.center_of(taker);
    let near: Vec<_> = left.iter().copied().filter(is_near).collect();
    if near.is_empty() { left } else { near }
}

/// What a node takes over of one that is removed, by who is asked for it: `asks_all` that are left.
///
/// # Errors
/// A range that only nodes have that are down.
pub(super) fn restored(
    ring: &Ring,
    placement: &Placement,
    (taker, gone): (NodeIndex, Option<NodeIndex>),
    asks_all: bool,
) -> Result<BTreeMap<NodeIndex, Vec<TokenRange>>, TokenRange> {
    let was_its = |range: &TokenRange| {
        gone.is_some_and(|gone| placement.at(range.right).natural.contains(&gone))
    };
    let mut asked: BTreeMap<NodeIndex, Vec<TokenRange>> = BTreeMap::new();
    for range in placement.pending_ranges_of(taker).filter(was_its) {
        let all = survivors(ring, placement, range, (taker, gone));
        let mut up: Vec<_> = all.into_iter().filter(|node| ring.is_up(*node)).collect();
        if up.is_empty() && placement.replication_factor() > 1 {
            return Err(range);
        }
        up.truncate(if asks_all { up.len() } else { 1 });
        up.into_iter().for_each(|node| asked.entry(node).or_default().push(range));
    }
    Ok(asked)
}

/// Picks a source for each range, of those that `is_source` allows: the nearest, and of those that
/// are equally near the one with the least to send so far. Ranges are pieces of the ring with one
/// set of replicas each.
pub(super) fn pick(
    ring: &Ring,
    placement: &Placement,
    ranges: &[TokenRange],
    is_source: impl Fn(NodeIndex) -> bool,
) -> Picked {
    let mut picked = Picked::default();
    let proximity = Proximity { by_place: true, scores: None };
    for range in ranges {
        let natural = placement.at(range.right).natural;
        let mut sources: Vec<_> = natural
            .iter()
            .copied()
            .filter(|node| *node != ring.local() && is_source(*node))
            .collect();
        proximity.sort(ring, &mut sources);
        let load = |node: &NodeIndex| picked.of.get(node).map_or(0, Vec::len);
        let nearest = sources.first().map(|node| ring.distance(*node));
        let near = sources.iter().filter(|node| Some(ring.distance(**node)) == nearest);
        match near.min_by_key(|node| load(node)).copied() {
            Some(source) => picked.of.entry(source).or_default().push(*range),
            None => picked.nowhere.push(*range),
        }
    }
    picked
}
