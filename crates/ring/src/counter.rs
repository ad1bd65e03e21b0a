//! Who counts (`StorageProxy.findSuitableReplica`).

use protocol::Consistency;

use crate::node::NodeIndex;
use crate::placement::{Placement, Replicas};
use crate::proximity::Proximity;
use crate::ring::Ring;
use crate::short::Short;
use crate::unavailable::Unavailable;

/// The replica that applies an update of a counter before it goes to the others: by chance one of
/// this data centre that is up and takes statements; of another one, the nearest, if the level lets
/// it. `random` gives a number below its argument.
///
/// # Errors
/// If there is none.
pub fn counter_leader(
    ring: &Ring,
    placement: &Placement,
    replicas: Replicas<'_>,
    level: Consistency,
    proximity: Proximity<'_>,
    random: &mut dyn FnMut(usize) -> usize,
) -> Result<NodeIndex, Unavailable> {
    let natural = replicas.natural.iter().copied();
    let can = |node: &NodeIndex| ring.is_up(*node) && ring.node(*node).accepts_clients;
    let mut able: Short<NodeIndex> = natural.filter(can).collect();
    let near: Short<NodeIndex> = able.iter().copied().filter(|node| ring.is_near(*node)).collect();
    if let Some(last) = near.len().checked_sub(1) {
        return Ok(near[random(near.len()).min(last)]);
    }
    proximity.sort(ring, &mut able);
    match able.first() {
        Some(nearest) if !level.is_local() => Ok(*nearest),
        _ => Err(Unavailable::new(level, placement.block_for(level), 0)),
    }
}
