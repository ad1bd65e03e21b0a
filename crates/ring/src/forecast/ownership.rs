//! What part of the ring each node replicates.

use crate::placement::Placement;

/// Tokens of the ring.
const TOKENS: f64 = (1u128 << 64) as f64;

impl Placement {
    /// What part of the ring each node replicates, by the place of the node; all together have as
    /// many as there are replicas. `effective_ownership` is the same with Cassandra's rounding.
    pub fn replicated_shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.layout.places.len()];
        for row in self.ranges() {
            let share = width(row.range);
            row.replicas.iter().for_each(|node| shares[node.at()] += share);
        }
        shares
    }
}

/// What part of the ring a range is.
fn width(range: types::TokenRange) -> f64 {
    match range.right.0.wrapping_sub(range.left.0).cast_unsigned() {
        0 => 1.0,
        tokens => tokens as f64 / TOKENS,
    }
}
