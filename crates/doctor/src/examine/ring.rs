//! The ring, where a node of it tells.

use std::collections::{BTreeMap, BTreeSet};

use crate::checks as c;
use crate::facts::{Copies, Facts, RingFacts, RingKeyspace, RingNode};
use crate::report::Report;

/// A node may have so much more than the mean of its data center, in percent.
const UNEVEN_PERCENT: f64 = 30.0;
/// A rack may have so many times the nodes of another.
const RACKS_TIMES: usize = 2;
/// Names that a finding lists.
const LISTED_MAX: usize = 5;

/// Nodes by data center.
type Centers<'f> = BTreeMap<&'f str, Vec<&'f RingNode>>;

pub fn ring(facts: &Facts, report: &mut Report) {
    let Some(ring) = &facts.ring else { return };
    let mut centers = Centers::new();
    for node in &ring.nodes {
        centers.entry(&node.data_center).or_default().push(node);
    }
    nodes(ring, report);
    for (name, nodes) in &centers {
        tokens(name, nodes, report);
    }
    let keyspaces = || ring.keyspaces.iter();
    for keyspace in keyspaces() {
        replicas(ring, keyspace, &centers, report);
    }
    for (name, nodes) in &centers {
        let most = keyspaces().map(|keyspace| copies(keyspace, name)).max();
        racks(name, nodes, most.unwrap_or_default(), report);
    }
    // keyspaces that are stored alike are as even as each other
    let mut seen: Vec<&Copies> = Vec::new();
    for keyspace in keyspaces() {
        if !seen.contains(&&keyspace.copies) {
            seen.push(&keyspace.copies);
            balance(ring, keyspace, &centers, report);
        }
    }
}

/// Some of these names, and how many more there are.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.collect();
    let shown = all.iter().take(LISTED_MAX).copied().collect::<Vec<_>>().join(", ");
    match all.len().checked_sub(LISTED_MAX) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

fn nodes(ring: &RingFacts, report: &mut Report) {
    for node in &ring.nodes {
        report.look(&c::NODE_DOWN, &node.address, Some(node), |node| {
            (!node.is_up).then(|| "it does not answer".to_owned())
        });
    }
    let up = || ring.nodes.iter().filter(|node| node.is_up);
    let schemas: BTreeSet<&str> = up().filter_map(|node| node.schema.as_deref()).collect();
    report.look(&c::SCHEMA_DISAGREEMENT, "schema", Some(schemas), |schemas| {
        (schemas.len() > 1).then(|| {
            let of = |schema: &&str| {
                let has = up().filter(|node| node.schema.as_deref() == Some(*schema));
                format!("{} at {}", schema, list(has.map(|node| node.address.as_str())))
            };
            schemas.iter().map(of).collect::<Vec<_>>().join("; ")
        })
    });
    let releases: BTreeSet<&str> = up().map(|node| node.release.as_str()).collect();
    report.look(&c::RELEASES_DIFFER, "release", Some(releases), |releases| {
        (releases.len() > 1).then(|| releases.into_iter().collect::<Vec<_>>().join(", "))
    });
}

fn tokens(center: &str, nodes: &[&RingNode], report: &mut Report) {
    let counts: BTreeSet<u64> = nodes.iter().map(|node| node.tokens).collect();
    report.look(&c::TOKENS_DIFFER, center, Some(counts), |counts| {
        let (least, most) = (counts.first()?, counts.last()?);
        (least != most).then(|| format!("its nodes have from {least} to {most} tokens"))
    });
}

/// How often a keyspace is stored in a data center.
fn copies(keyspace: &RingKeyspace, center: &str) -> u64 {
    match &keyspace.copies {
        Copies::Anywhere(_) => 0,
        Copies::ByCenter(all) => {
            all.iter().find(|(name, _)| name == center).map_or(0, |(_, copies)| *copies)
        }
    }
}

fn replicas(ring: &RingFacts, keyspace: &RingKeyspace, centers: &Centers<'_>, report: &mut Report) {
    let (name, nodes) = (&keyspace.name, ring.nodes.len() as u64);
    let wanted: Vec<(&str, u64, u64)> = match &keyspace.copies {
        Copies::Anywhere(copies) => vec![("the ring", *copies, nodes)],
        Copies::ByCenter(all) => {
            let has = |center: &str| centers.get(center).map_or(0, |nodes| nodes.len() as u64);
            all.iter().map(|(center, copies)| (center.as_str(), *copies, has(center))).collect()
        }
    };
    report.look(&c::REPLICAS_NOWHERE, name, Some(&wanted), |wanted| {
        let none = wanted.iter().filter(|(_, copies, nodes)| *copies > 0 && *nodes == 0);
        let none: Vec<&str> = none.map(|(center, ..)| *center).collect();
        (!none.is_empty()).then(|| format!("no node is in {}", list(none.into_iter())))
    });
    report.look(&c::REPLICAS_EXCEED, name, Some(&wanted), |wanted| {
        let (center, copies, nodes) =
            wanted.iter().find(|(_, copies, nodes)| *nodes > 0 && copies > nodes)?;
        let plural = if *nodes == 1 { "" } else { "s" };
        Some(format!("{copies} replicas on {nodes} node{plural} in {center}"))
    });
    let all: u64 = wanted.iter().map(|(_, copies, _)| copies).sum();
    report.look(&c::REPLICA_SINGLE, name, Some(all), |all| {
        (all == 1 && nodes > 1).then(|| format!("1 replica, on {nodes} nodes"))
    });
    report.look(&c::REPLICATION_SIMPLE, name, Some(&keyspace.copies), |copies| {
        let is_simple = matches!(copies, Copies::Anywhere(_)) && centers.len() > 1;
        is_simple.then(|| format!("SimpleStrategy, with {} data centers", centers.len()))
    });
}

/// Racks matter where a data center has several.
fn racks(center: &str, nodes: &[&RingNode], copies: u64, report: &mut Report) {
    let mut racks: BTreeMap<&str, usize> = BTreeMap::new();
    nodes.iter().for_each(|node| *racks.entry(&node.rack).or_default() += 1);
    let has = || {
        let each = racks.iter().map(|(rack, nodes)| format!("{rack} has {nodes}"));
        each.collect::<Vec<_>>().join(", ")
    };
    let count = racks.len();
    report.look(&c::RACKS_FEWER, center, Some(count), |count| {
        let is_fewer = count > 1 && (count as u64) < copies;
        is_fewer.then(|| format!("{count} racks for {copies} replicas"))
    });
    report.look(&c::RACKS_UNEVEN, center, Some(count), |count| {
        let (least, most) = (racks.values().min()?, racks.values().max()?);
        (count > 1 && *most >= least.saturating_mul(RACKS_TIMES)).then(has)
    });
}

/// Within each data center.
fn balance(ring: &RingFacts, keyspace: &RingKeyspace, centers: &Centers<'_>, report: &mut Report) {
    for center in centers.keys() {
        let of = ring.nodes.iter().zip(&keyspace.shares);
        let here: Vec<_> = of.filter(|(node, _)| node.data_center == *center).collect();
        let mean = here.iter().map(|(_, share)| **share).sum::<f64>() / here.len() as f64;
        let most = here.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
        report.look(&c::OWNERSHIP_UNEVEN, center, most, |(node, share)| {
            let over = (*share / mean - 1.0) * 100.0;
            (mean > 0.0 && over > UNEVEN_PERCENT).then(|| {
                format!(
                    "{} stores {:.1} % of {}, a node {:.1} % in the mean",
                    node.address,
                    *share * 100.0,
                    keyspace.name,
                    mean * 100.0
                )
            })
        });
    }
}
