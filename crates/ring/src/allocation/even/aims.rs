//! What each node is to have once the newcomer is there, and the figures that were found by trying
//! (`cargo xtask bench tokens`).
//!
//! If all had the same, the next newcomer could take from a few only, and the others would stand
//! out. So sizes are staggered as they will be in a ring that has grown for long. A token takes
//! from as many nodes as there are replicas, so each newcomer takes from `cuts` nodes, and whoever
//! it took from waits until all others had their turn. Between two turns the mean falls to
//! `cuts / (cuts + 1)`. Those who are largest are cut now, keep their order, and become the
//! smallest; the newcomer is smaller still.

use super::circle::WHOLE;
use super::parabola::Parabola;

/// Figures that differ where racks are circles of their own, of one replica: there a token can take
/// any part of any range from its node. Elsewhere it takes whole ranges from others, so that ranges
/// have to stay alike.
pub struct Figures {
    /// How far sizes are staggered, in parts of what is needed if each newcomer takes from `cuts`
    /// nodes as it likes.
    pub spread: f64,
    /// The part of a range that a new token leaves on either side at least.
    pub margin: f64,
    /// Curve of the cost of a range that is split.
    curve: f64,
}

impl Figures {
    /// What a range costs, in squares of the mean range, for a node of one token.
    const RANGE_COST: f64 = 0.15;

    pub fn new(replicas: usize, ranges: usize, count: usize) -> Self {
        let mean = WHOLE as f64 / (ranges + count) as f64;
        let each = 1.0 / (mean * count as f64);
        match replicas {
            1 => Self { spread: 0.95, margin: 1.0 / 64.0, curve: 0.0 },
            _ => Self { spread: 0.5, margin: 0.25, curve: 2.0 * Self::RANGE_COST * each * each },
        }
    }

    /// What splitting a range of this size spares.
    pub fn of_range(&self, size: f64) -> Parabola {
        Parabola::of_split(size, self.curve)
    }
}

/// Parts of the ring that nodes with these parts are to have; the last one is the newcomer. Their
/// sum is that of the fair shares.
pub fn aims(owned: &[u128], shares: &[f64], cuts: usize, spread: f64) -> Vec<f64> {
    let newcomer = shares.len() - 1;
    let excess = |node: usize| owned[node] as f64 / shares[node];
    let mut order: Vec<usize> = (0..newcomer).collect();
    order.sort_by(|one, other| excess(*other).total_cmp(&excess(*one)).then(one.cmp(other)));
    order.rotate_left(cuts.min(newcomer));
    order.push(newcomer);
    let depth = spread * (1.0 / cuts as f64).ln_1p() / order.len() as f64;
    let mut aims = vec![0.0; shares.len()];
    for (place, node) in order.into_iter().enumerate() {
        aims[node] = shares[node] * (-depth * place as f64).exp();
    }
    let whole = shares.iter().sum::<f64>() * WHOLE as f64;
    let scale = whole / aims.iter().sum::<f64>();
    aims.iter().map(|aim| aim * scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_most_is_cut() {
        let owned = [10, 40, 30, 20, 0];
        let aims = aims(&owned, &[0.2; 5], 2, 1.0);
        // 20 and 10 wait, 40 and 30 are cut, the newcomer is the smallest
        for (larger, smaller) in [(3, 0), (0, 1), (1, 2), (2, 4)] {
            assert!(aims[larger] > aims[smaller], "{aims:?}");
        }
        assert!((aims.iter().sum::<f64>() / WHOLE as f64 - 1.0).abs() < 1e-12);
        assert!(aims[3] / aims[4] < 1.5, "{aims:?}");
    }
}
