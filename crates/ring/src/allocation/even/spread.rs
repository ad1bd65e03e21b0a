//! Tokens of a node that replicates everything wherever they are: later nodes will split what it
//! leaves.

use std::collections::BTreeSet;

use types::Token;

/// Where a range is split, at least and at most: ranges of several sizes leave later nodes a
/// choice.
const LEAST: f64 = 0.5;
const MOST: f64 = 0.6;

/// Splits the widest ranges of a circle.
pub fn spread(
    tokens: &[(i64, u16)],
    count: u32,
    taken: &BTreeSet<Token>,
    random: &mut dyn FnMut() -> u64,
) -> Vec<i64> {
    let mut circle: BTreeSet<i64> = tokens.iter().map(|token| token.0).collect();
    let mut tokens = Vec::with_capacity(count as usize);
    while tokens.len() < count as usize {
        let token = free(target(&circle, random), taken, &circle);
        circle.insert(token);
        tokens.push(token);
    }
    tokens
}

fn target(circle: &BTreeSet<i64>, random: &mut dyn FnMut() -> u64) -> i64 {
    let drawn = random();
    let Some(last) = circle.last() else { return drawn.cast_signed() };
    let (mut start, mut widest) = (*last, (0, *last));
    for end in circle {
        let size = end.wrapping_sub(start).cast_unsigned().wrapping_sub(1);
        if size > widest.0 {
            widest = (size, start);
        }
        start = *end;
    }
    let ratio = LEAST + (MOST - LEAST) * (drawn as f64 / u64::MAX as f64);
    widest.1.wrapping_add_unsigned((widest.0 as f64 * ratio) as u64 + 1)
}

fn free(token: i64, taken: &BTreeSet<Token>, circle: &BTreeSet<i64>) -> i64 {
    let mut token = token;
    while taken.contains(&Token(token)) || circle.contains(&token) {
        token = token.wrapping_add(1);
    }
    token
}
