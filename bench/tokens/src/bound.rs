//! How even a ring can be at best that grows node by node and in which no token moves.

use crate::REPLICAS;

/// What the largest node has in the long run at least, over the mean.
///
/// A token takes from as many nodes as there are replicas in its circle, the first ones after it:
/// no other has less than before. So a newcomer cuts at most `cuts` nodes. While the ring grows by
/// a part, each node's share of the mean grows by that part, but for its cuts. The time between two
/// cuts of a node, in logarithms of the ring's size, is `1 / (cuts + 1)` on average, for a node's
/// birth begins such a time too. If the largest is to stay below M, what a node has is at most
/// `M * exp(-time)` that time before its next cut. The mean of that over all times is
/// `M * (1 - exp(-period)) / period` at most, for equal periods; the mean is 1.
pub fn least_largest(tokens: u32, racks: usize) -> f64 {
    let is_circle_of_rack = racks == REPLICAS as usize;
    let replicas = if is_circle_of_rack { 1 } else { REPLICAS };
    let period = 1.0 / f64::from(tokens * replicas + 1);
    period / -(-period).exp_m1()
}
