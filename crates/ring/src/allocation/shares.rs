//! What each node of a data centre would replicate if all was even: the mean, as far as racks let
//! it be. A rack has no more of the ring than its replicas, and a node no more than all of it.

/// Halvings after which a share is as exact as a double.
const HALVINGS: u32 = 80;

/// A node by its rack and its weight: its number of tokens.
#[derive(Clone, Copy, Debug)]
pub struct Weighed {
    /// Its rack.
    pub rack: u16,
    /// Its weight.
    pub weight: u32,
}

/// Parts of the ring that each node is to replicate, by weight; 1 is all of it.
pub fn fair_shares(nodes: &[Weighed], replicas: u32) -> Vec<f64> {
    let racks: std::collections::BTreeSet<u16> = nodes.iter().map(|node| node.rack).collect();
    let wanted = (replicas as usize).min(nodes.len()) as f64;
    // each rack has one replica of each key if there are enough, and those that are left over
    let least = if racks.len() <= replicas as usize { 1.0 } else { 0.0 };
    let most = 1.0 + (wanted - racks.len() as f64).max(0.0);
    let of_rack = |rack: u16, level: f64| -> f64 {
        let here = nodes.iter().filter(|node| node.rack == rack);
        here.map(|node| (f64::from(node.weight) * level).min(1.0)).sum()
    };
    let total = |level: f64| -> f64 {
        racks.iter().map(|rack| of_rack(*rack, level).clamp(least, most)).sum()
    };
    let level = lowest(|level| total(level) >= wanted);
    let levels: std::collections::BTreeMap<u16, f64> = racks
        .iter()
        .map(|rack| {
            let share = of_rack(*rack, level).clamp(least, most);
            (*rack, lowest(|level| of_rack(*rack, level) >= share))
        })
        .collect();
    nodes.iter().map(|node| (f64::from(node.weight) * levels[&node.rack]).min(1.0)).collect()
}

/// The lowest level up to 1 that is enough.
fn lowest(is_enough: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if is_enough(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(nodes: &[(u16, u32)], replicas: u32) -> Vec<f64> {
        let nodes: Vec<Weighed> =
            nodes.iter().map(|(rack, weight)| Weighed { rack: *rack, weight: *weight }).collect();
        fair_shares(&nodes, replicas)
    }

    fn assert_near(ours: &[f64], expected: &[f64]) {
        let is_near = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-9;
        assert!(ours.iter().zip(expected).all(is_near), "{ours:?} {expected:?}");
    }

    #[test]
    fn even_where_racks_do_not_matter() {
        assert_near(&shares(&[(0, 4); 6], 3), &[0.5; 6]);
        assert_near(&shares(&[(0, 4), (0, 4)], 3), &[1.0; 2]);
        assert_near(&shares(&[(0, 1), (0, 1), (0, 2)], 1), &[0.25, 0.25, 0.5]);
        assert_near(&shares(&[(0, 1), (0, 1), (0, 4)], 2), &[0.5, 0.5, 1.0]);
    }

    #[test]
    fn racks_bound_shares() {
        assert_near(&shares(&[(0, 1), (0, 1), (1, 1), (2, 1)], 3), &[0.5, 0.5, 1.0, 1.0]);
        let many = [(0, 1), (0, 1), (0, 1), (0, 1), (1, 1), (2, 1), (3, 1)];
        assert_near(&shares(&many, 3)[3..], &[0.25, 2.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0]);
        // two racks of three replicas: one has two of them, as far as it can
        assert_near(
            &shares(&[(0, 1), (0, 1), (0, 1), (1, 1)], 3),
            &[2.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0, 1.0],
        );
    }
}
