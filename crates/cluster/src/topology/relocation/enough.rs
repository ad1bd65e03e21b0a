//! Whether enough nodes are left when one leaves. Pure.

use ring::{NodeIndex, Ring};
use schema::{Keyspace, Strategy};

use super::error::RelocationError;

/// Will there be as many nodes without this one as a keyspace has replicas?
pub(in crate::topology) fn check(
    ring: &Ring,
    keyspace: &Keyspace,
    leaving: NodeIndex,
) -> Result<(), RelocationError> {
    let Some(placement) = ring.placement(&keyspace.replication.strategy) else { return Ok(()) };
    let by_center = matches!(keyspace.replication.strategy, Strategy::NetworkTopology(_));
    let here = ring.center_of(leaving);
    let counts = |node: &&NodeIndex| !by_center || ring.center_of(**node) == here;
    let nodes = ring.members().iter().filter(counts).count();
    let wanted = match by_center {
        true => placement.replication_factor_in(ring.center_name(here)),
        false => placement.replication_factor(),
    };
    match nodes <= wanted as usize {
        true => Err(RelocationError::TooFew { keyspace: keyspace.name.to_string(), wanted, nodes }),
        false => Ok(()),
    }
}
