//! Tokens where each node stands for itself alone (`NoReplicationTokenAllocator`): with one
//! replica, or as many racks as replicas. The newcomer takes from the largest nodes, and of them
//! from their largest ranges.

use std::collections::BTreeMap;

use super::java::{Queue, hash_map_order};
use super::wheel::{size, split};
use super::{Exhausted, Members, splits};

/// The largest and the least part of a range that a newcomer takes.
const MOST_TAKEN: f64 = 0.90;
const LEAST_TAKEN: f64 = 1.0 - MOST_TAKEN;

/// A range of the ring, as it is before the newcomer comes.
struct Range {
    left: i64,
    right: i64,
}

struct Owners {
    ranges: Vec<Range>,
    /// Ranges of each node, the widest first.
    ranges_of: Vec<Queue>,
    /// What each node owns, the largest first.
    largest: Queue,
}

/// Tokens of a node that is not among the members yet.
pub fn allocate(
    members: &Members,
    count: usize,
    first: impl FnOnce() -> i64,
) -> Result<Vec<i64>, Exhausted> {
    let mut ring = members.ring.clone();
    if ring.is_empty() || count > ring.len() {
        return Ok(splits::generate(&mut ring, members.newcomer(), count, first));
    }
    let mut owners = own(members);
    let (chosen, average) = choose(&mut owners.largest, count);
    // sizes are to differ a little, so that not all nodes are due for a split at once
    let correction = ((count as f64 + 1.0) / (members.nodes_with_tokens() as f64 + 1.0)).min(1.0);
    let spread = average * correction * 2.0 / (2 * count + 1) as f64;
    let step = spread / chosen.len() as f64;
    let mut target = average + spread / 2.0;
    let mut tokens = Vec::with_capacity(count);
    for (number, (owned, node)) in chosen.iter().enumerate() {
        let share = count / chosen.len() + usize::from(number < count % chosen.len());
        take(&owners.ranges, &mut owners.ranges_of[*node], share, owned - target, &mut tokens)?;
        target -= step;
    }
    Ok(tokens)
}

fn own(members: &Members) -> Owners {
    let tokens: Vec<(i64, usize)> = members.ring.iter().map(|(t, node)| (*t, *node)).collect();
    let mut left = tokens.last().map_or(0, |last| last.0);
    let mut ranges = Vec::with_capacity(tokens.len());
    let mut ranges_of: Vec<Queue> = members.nodes.iter().map(|_| Queue::default()).collect();
    let mut owned = BTreeMap::new();
    let mut met = Vec::new();
    for (right, node) in tokens {
        let part = size(left, right);
        ranges_of[node].push(part, ranges.len());
        ranges.push(Range { left, right });
        *owned.entry(node).or_insert_with(|| {
            met.push(node);
            0.0
        }) += part;
        left = right;
    }
    let keys: Vec<_> = met.iter().map(|node| members.nodes[*node].address).collect();
    let mut largest = Queue::default();
    for place in hash_map_order(&keys) {
        largest.push(owned[&met[place]], met[place]);
    }
    Owners { ranges, ranges_of, largest }
}

/// The nodes that give something, the largest first, and what each is to own then.
fn choose(largest: &mut Queue, count: usize) -> (Vec<(f64, usize)>, f64) {
    let (mut chosen, mut sum, mut target) = (Vec::new(), 0.0, 0.0);
    while chosen.len() < count {
        let Some((owned, _)) = largest.peek() else { break };
        sum += owned;
        let average = sum / (chosen.len() + 2) as f64;
        if owned <= average {
            break;
        }
        chosen.extend(largest.pop());
        target = average;
    }
    (chosen, target)
}

/// Splits so many of a node's widest ranges, in the same proportion, so that it loses `wanted`.
fn take(
    ranges: &[Range],
    widest: &mut Queue,
    count: usize,
    wanted: f64,
    tokens: &mut Vec<i64>,
) -> Result<(), Exhausted> {
    let mut taken = Vec::with_capacity(count);
    let mut whole = 0.0;
    for _ in 0..count {
        let (part, range) = widest.pop().ok_or(Exhausted)?;
        whole += part;
        taken.push(range);
    }
    let ratio = match wanted < whole {
        true => (wanted / whole).clamp(LEAST_TAKEN, MOST_TAKEN),
        false => MOST_TAKEN,
    };
    let splits = taken.iter().map(|range| {
        let Range { left, right } = ranges[*range];
        split(left, right, ratio)
    });
    tokens.extend(splits);
    Ok(())
}
