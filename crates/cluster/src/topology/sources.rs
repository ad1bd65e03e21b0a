//! From whom ranges are fetched (`RangeStreamer`).

use std::collections::BTreeMap;

use ring::{NodeIndex, Placement, Proximity, Ring};
use types::TokenRange;

/// Picks a source for each range, of those that `is_source` allows: the nearest, and of those that
/// are equally near the one with the least to send so far. Ranges are pieces of the ring with one
/// set of replicas each.
///
/// # Errors
/// The first range that nobody has.
pub(super) fn pick(
    ring: &Ring,
    placement: &Placement,
    ranges: &[TokenRange],
    is_source: impl Fn(NodeIndex) -> bool,
) -> Result<BTreeMap<NodeIndex, Vec<TokenRange>>, TokenRange> {
    let mut picked: BTreeMap<NodeIndex, Vec<TokenRange>> = BTreeMap::new();
    let proximity = Proximity { by_place: true, scores: None };
    for range in ranges {
        let natural = placement.at(range.right).natural;
        let mut sources: Vec<_> = natural
            .iter()
            .copied()
            .filter(|node| *node != ring.local() && is_source(*node))
            .collect();
        proximity.sort(ring, &mut sources);
        let load = |node: &NodeIndex| picked.get(node).map_or(0, Vec::len);
        let nearest = sources.first().map(|node| ring.distance(*node));
        let near = sources.iter().filter(|node| Some(ring.distance(**node)) == nearest);
        let source = near.min_by_key(|node| load(node)).copied().ok_or(*range)?;
        picked.entry(source).or_default().push(*range);
    }
    Ok(picked)
}
