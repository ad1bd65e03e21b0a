//! Shares of the ring of tokens: how much of it an SSTable spans, and where equal parts of it end.
//!
//! The node owns all of it, so that shares of what it owns are shares of the ring.

use types::Token;

use super::choice::Candidate;

/// Spans below this share are of single partitions, and say nothing about density.
const SPAN_MIN: f64 = 1.0 / (1u64 << 48) as f64;

/// The share of the ring from `left` to `right`.
fn share(left: i64, right: i64) -> f64 {
    let share = right.wrapping_sub(left) as f64 / 2f64.powi(64);
    if share > 0.0 { share } else { share + 1.0 }
}

/// The share of the ring that keys from one token to another span.
fn span(first: Token, last: Token) -> f64 {
    // The end is past the last token, and the ring's end is its start.
    match last.0.checked_add(1) {
        Some(end) => share(first.0, end),
        None => share(first.0, i64::MIN),
    }
}

/// Bytes by the share of the ring that they span.
pub(crate) fn density(table: &Candidate) -> f64 {
    let span = span(table.first.token, table.last.token);
    table.data_bytes as f64 / if span >= SPAN_MIN { span } else { 1.0 }
}

/// The density of several tables together.
pub(crate) fn combined_density(tables: &[&Candidate]) -> f64 {
    let bytes: u64 = tables.iter().map(|table| table.data_bytes).sum();
    let first = tables.iter().map(|table| table.first.token).min();
    let last = tables.iter().map(|table| table.last.token).max();
    let Some((first, last)) = first.zip(last) else { return 0.0 };
    let span = span(first, last);
    if span >= SPAN_MIN { bytes as f64 / span } else { bytes as f64 }
}

/// The part of the ring, of so many equal ones, that a token is in: each ends with its boundary.
pub fn shard_of(token: Token, shards: u32) -> u32 {
    let width = u128::from(u64::MAX);
    let from_start = u128::from(token.0.cast_unsigned() ^ (1 << 63));
    if shards <= 1 || from_start == 0 {
        return 0;
    }
    let guess = ((from_start - 1) * u128::from(shards) / width).min(u128::from(shards) - 1) as u32;
    // boundaries are rounded: look on both sides
    let mut shard = guess.saturating_sub(1);
    while shard + 1 < shards && boundary(shard + 1, shards) < token {
        shard += 1;
    }
    shard
}

/// Where part number `index` begins, which is not in it.
pub fn boundary(index: u32, shards: u32) -> Token {
    // As Cassandra computes it: a double times the width of the ring, which ends one short of 2^64,
    // in exact arithmetic from the double's decimal form, cut towards zero.
    let ratio = (1.0 / f64::from(shards)) * f64::from(index);
    let (digits, scale) = decimal(ratio);
    let power = 10i128.pow(scale);
    let scaled = i128::from(u64::MAX) * digits;
    let token = i128::from(i64::MIN) + scaled / power;
    let token = if token < 0 && scaled % power != 0 { token + 1 } else { token };
    Token(i64::try_from(token).unwrap_or(i64::MAX))
}

/// A share below or equal one as an integer and the number of decimal places, as `Double.toString`
/// shows it.
fn decimal(share: f64) -> (i128, u32) {
    let text = format!("{share}");
    let (whole, places) = text.split_once('.').unwrap_or((&text, ""));
    let digits = format!("{whole}{places}").parse().unwrap_or_default();
    (digits, places.len() as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn boundaries_are_cassandras() {
        // Murmur3Partitioner.split of the whole ring
        assert_eq!(boundary(1, 4), Token(-4_611_686_018_427_387_904));
        assert_eq!(boundary(2, 4), Token(0));
        assert_eq!(boundary(3, 4), Token(4_611_686_018_427_387_903));
    }

    proptest! {
        #[test]
        fn each_token_is_in_one_shard(token: i64, shards in 1u32..1 << 22) {
            let shard = shard_of(Token(token), shards);
            prop_assert!(shard < shards);
            prop_assert!(shard == 0 || boundary(shard, shards) < Token(token));
            prop_assert!(shard + 1 == shards || Token(token) <= boundary(shard + 1, shards));
        }
    }
}
