//! Tokens of the first nodes (`TokenAllocatorBase.generateSplits`): the largest range is split,
//! again and again, not quite in the middle. Cassandra seeds its generator with the number of
//! tokens, so that only the very first token of a ring is left to chance.

use std::collections::BTreeMap;

use super::java::JavaRandom;
use super::wheel::{size, split};

/// The ratio between the golden one's neighbours that keeps ranges of different sizes: it is at
/// least `1 - 1/sqrt(5)`, and at most so much more.
const RATIO_GROWTH: f64 = 0.075;

/// So many tokens for a node of this number. `first` is the first one of an empty ring.
pub fn generate(
    ring: &mut BTreeMap<i64, usize>,
    node: usize,
    count: usize,
    first: impl FnOnce() -> i64,
) -> Vec<i64> {
    let least = 1.0 - 1.0 / 5_f64.sqrt();
    // not the constant itself: Cassandra computes it from the largest ratio
    let growth = (least + RATIO_GROWTH) - least;
    let mut random = JavaRandom::new(ring.len() as u64);
    let mut tokens = Vec::with_capacity(count);
    if ring.is_empty() && count > 0 {
        let token = first();
        tokens.push(token);
        ring.insert(token, node);
    }
    while tokens.len() < count {
        let (left, right) = widest(ring);
        let token = split(left, right, least + growth * random.next_double());
        tokens.push(token);
        ring.insert(token, node);
    }
    tokens
}

/// The widest range; of equal ones the first.
fn widest(ring: &BTreeMap<i64, usize>) -> (i64, i64) {
    let mut before = ring.last_key_value().map_or(0, |(token, _)| *token);
    let (mut most, mut found) = (0.0, (before, before));
    for token in ring.keys() {
        let part = size(before, *token);
        if part > most {
            (most, found) = (part, (before, *token));
        }
        before = *token;
    }
    found
}
