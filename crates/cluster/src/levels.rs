//! What consistency levels ask of a node that has a keyspace for itself.

use std::collections::BTreeMap;

use protocol::{Consistency, ErrorResponse};

use crate::answer::invalid;

/// Can this one node satisfy a consistency level for a keyspace?
///
/// # Errors
/// UNAVAILABLE, if not.
pub(crate) fn check_replicas(
    keyspace: &schema::Keyspace,
    consistency: Consistency,
    data_center: &str,
    is_read: bool,
) -> Result<(), ErrorResponse> {
    use schema::Strategy;
    let here = |replicas: &BTreeMap<String, schema::ReplicaCount>| {
        replicas.get(data_center).map_or(0, |count| count.all)
    };
    let (all, local, centers) = match &keyspace.replication.strategy {
        Strategy::Simple(count) => (count.all, count.all, None),
        Strategy::NetworkTopology(counts) => {
            let sum = counts.values().map(|count| count.all).sum();
            (sum, here(counts), Some(counts))
        }
        _ => (1, 1, None),
    };
    let alive = all.min(1) as i32;
    let local_alive = local.min(1) as i32;
    let unavailable = |required: u32, alive: i32| {
        Err(ErrorResponse::unavailable(consistency, required as i32, alive))
    };
    let quorum = |replicas: u32| replicas / 2 + 1;
    let (required, alive) = match consistency {
        Consistency::Any if is_read => {
            return Err(invalid("ANY ConsistencyLevel is only supported for writes"));
        }
        Consistency::Any => return Ok(()),
        Consistency::One | Consistency::NodeLocal => (1, alive),
        Consistency::LocalOne => (1, local_alive),
        Consistency::Two => (2, alive),
        Consistency::Three => (3, alive),
        Consistency::Quorum | Consistency::Serial => (quorum(all), alive),
        Consistency::LocalQuorum | Consistency::LocalSerial => (quorum(local), local_alive),
        Consistency::All => (all, alive),
        Consistency::EachQuorum => {
            for (center, replicas) in centers.into_iter().flatten() {
                let alive = if center == data_center { replicas.all.min(1) } else { 0 };
                if quorum(replicas.all) > alive {
                    return unavailable(quorum(replicas.all), alive as i32);
                }
            }
            (if centers.is_none_or(BTreeMap::is_empty) { quorum(all) } else { 0 }, alive)
        }
    };
    if required as i32 > alive { unavailable(required, alive) } else { Ok(()) }
}
