//! Do nodes and racks suit what a keyspace asks for? In plain words, for logs and operators.

use std::collections::BTreeMap;

use schema::Strategy;

use crate::ring::Ring;

/// What does not suit a keyspace's replication; nothing if all does.
pub fn fitness(ring: &Ring, keyspace: &str, strategy: &Strategy) -> Vec<String> {
    let centers = centers(ring);
    match strategy {
        Strategy::Simple(count) => simple(&centers, keyspace, count.all),
        Strategy::NetworkTopology(counts) => {
            let named = counts.iter().filter(|(_, count)| count.all > 0);
            let mut findings: Vec<String> = named
                .flat_map(|(center, count)| {
                    one_center(keyspace, center, centers.get(center.as_str()), count.all)
                })
                .collect();
            let has_none = |center: &&&str| counts.get(**center).is_none_or(|count| count.all == 0);
            findings.extend(centers.keys().filter(has_none).map(|center| {
                format!(
                    "Keyspace {keyspace} has no replica in datacenter {center}, which has nodes: \
                     LOCAL_ONE and LOCAL_QUORUM fail there"
                )
            }));
            findings
        }
        _ => Vec::new(),
    }
}

/// Nodes by rack and data centre.
type Centers<'a> = BTreeMap<&'a str, BTreeMap<&'a str, u32>>;

fn centers(ring: &Ring) -> Centers<'_> {
    let mut centers = Centers::new();
    for node in ring.members().iter().map(|node| ring.node(*node)) {
        *centers.entry(&node.data_center).or_default().entry(&node.rack).or_default() += 1;
    }
    centers
}

fn simple(centers: &Centers<'_>, keyspace: &str, replicas: u32) -> Vec<String> {
    let mut findings = Vec::new();
    let nodes: u32 = centers.values().flat_map(BTreeMap::values).sum();
    if replicas > nodes && nodes > 0 {
        findings.push(format!("{} {nodes}", too_many(keyspace, replicas)));
    }
    if centers.len() > 1 {
        findings.push(format!(
            "Keyspace {keyspace} has SimpleStrategy, which ignores datacenters, and the ring has \
             {}: all replicas of a row may be in one of them; use NetworkTopologyStrategy",
            centers.len()
        ));
    }
    findings
}

/// As Cassandra says it.
fn too_many(keyspace: &str, replicas: u32) -> String {
    format!(
        "Your replication factor {replicas} for keyspace {keyspace} is higher than the number of nodes"
    )
}

fn one_center(
    keyspace: &str,
    center: &str,
    racks: Option<&BTreeMap<&str, u32>>,
    replicas: u32,
) -> Vec<String> {
    let Some(racks) = racks else {
        return vec![format!(
            "Keyspace {keyspace} has replication factor {replicas} in datacenter {center}, which \
             has no nodes: EACH_QUORUM fails, and QUORUM and ALL count replicas that do not exist"
        )];
    };
    let mut findings = Vec::new();
    let nodes: u32 = racks.values().sum();
    if replicas > nodes {
        findings.push(format!("{} {nodes} for datacenter {center}", too_many(keyspace, replicas)));
    }
    let count = racks.len() as u32;
    if count > 1 && count < replicas {
        findings.push(format!(
            "Keyspace {keyspace} has {replicas} replicas in datacenter {center}, which has \
             {count} racks: a rack holds several replicas of a row; use {replicas} racks or one"
        ));
    }
    let fewest = racks.iter().min_by_key(|(_, nodes)| **nodes);
    let most = racks.iter().max_by_key(|(_, nodes)| **nodes);
    if let (Some((small, few)), Some((large, many))) = (fewest, most)
        && replicas > 1
        && few < many
    {
        findings.push(format!(
            "Racks of datacenter {center} differ in size, {small} has {few} and {large} has \
             {many} nodes: nodes of {small} hold more of keyspace {keyspace}, whose replicas are \
             spread over racks"
        ));
    }
    findings
}
