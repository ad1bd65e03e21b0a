//! What nodes replicate while a ring grows, from replicas as `ring::Placement` has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ring::{Node, Placement, Ring, Weighed, fair_shares};
use schema::{Replication, Strategy};

use crate::REPLICAS;

/// The smallest ring that is looked at: before that, chance alone decides.
pub const SMALLEST: usize = 6;
const WHOLE: f64 = 18_446_744_073_709_551_616.0;

/// Of one ring at all its sizes from [`SMALLEST`] nodes on. A node's part is over its fair share:
/// the mean, where racks have as many nodes as each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// The largest part at any size, and the mean of the largest over all sizes.
    pub largest: f64,
    /// The mean over all sizes of the largest part.
    pub mean_largest: f64,
    /// The smallest part at any size.
    pub smallest: f64,
    /// The largest and the smallest part at the end.
    pub last: (f64, f64),
    /// What moved at most when a node came, over its fair share.
    pub moved: f64,
    /// Nodes that a node shares ranges with, at the end: the mean.
    pub neighbours: f64,
}

/// Of nodes in the order in which they came.
pub fn measure(nodes: &[Node]) -> Figures {
    let strategy = strategy();
    let mut figures = Figures { smallest: f64::MAX, ..Figures::default() };
    let (mut before, mut sizes): (Option<Arc<Placement>>, usize) = (None, 0);
    for size in SMALLEST - 1..=nodes.len() {
        let Ok(ring) = Ring::new(nodes[..size].to_vec(), [&strategy]) else { panic!("no ring") };
        let Some(placement) = ring.placement(&strategy).cloned() else { panic!("no placement") };
        let shares = shares(ring.nodes());
        if let Some(before) = before.replace(Arc::clone(&placement)) {
            let parts = parts(&placement, &shares);
            let largest = parts.iter().copied().fold(0.0, f64::max);
            let smallest = parts.iter().copied().fold(f64::MAX, f64::min);
            let moved = moved(&before, &placement) / shares[size - 1];
            figures.largest = figures.largest.max(largest);
            figures.smallest = figures.smallest.min(smallest);
            figures.mean_largest += largest;
            figures.moved = figures.moved.max(moved);
            figures.last = (largest, smallest);
            sizes += 1;
            if size == nodes.len() {
                figures.neighbours = neighbours(&placement, size);
            }
        }
    }
    figures.mean_largest /= sizes as f64;
    figures
}

fn strategy() -> Strategy {
    let options = BTreeMap::from([("dc1".to_owned(), REPLICAS.to_string())]);
    Replication::new("org.apache.cassandra.locator.NetworkTopologyStrategy", options).strategy
}

fn shares(nodes: &[Node]) -> Vec<f64> {
    let racks: BTreeSet<&str> = nodes.iter().map(|node| &*node.rack).collect();
    let weighed = nodes.iter().map(|node| Weighed {
        rack: racks.iter().position(|rack| **rack == *node.rack).unwrap_or_default() as u16,
        weight: node.tokens.len() as u32,
    });
    fair_shares(&weighed.collect::<Vec<_>>(), REPLICAS)
}

fn size(range: types::TokenRange) -> f64 {
    range.right.0.wrapping_sub(range.left.0).cast_unsigned() as f64 / WHOLE
}

fn parts(placement: &Placement, shares: &[f64]) -> Vec<f64> {
    let mut owned = vec![0.0; shares.len()];
    for row in placement.ranges() {
        row.replicas.iter().for_each(|node| owned[node.at()] += size(row.range));
    }
    owned.iter().zip(shares).map(|(owned, share)| owned / share).collect()
}

/// What nodes have now and had not before. Places of nodes are those of their addresses, and
/// whoever comes has the last one.
fn moved(before: &Placement, now: &Placement) -> f64 {
    let gained = now.ranges().map(|row| {
        let old = before.at(row.range.right).natural;
        let new = row.replicas.iter().filter(|node| !old.contains(node)).count();
        new as f64 * size(row.range)
    });
    gained.sum()
}

fn neighbours(placement: &Placement, nodes: usize) -> f64 {
    let mut near: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); nodes];
    for row in placement.ranges() {
        for node in row.replicas {
            let others = row.replicas.iter().filter(|other| *other != node);
            near[node.at()].extend(others.map(|other| other.at()));
        }
    }
    near.iter().map(|near| near.len() as f64).sum::<f64>() / nodes as f64
}
