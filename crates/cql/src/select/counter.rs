//! The value of a counter: the sum over its shards (`db.context.CounterContext`).
//!
//! ```text
//! i16 n, n or -n elements of i16 (which shards are local or global), then shards:
//! 16 bytes id, i64 clock, i64 count
//! ```

/// Bytes of a shard.
const SHARD: usize = 32;

/// The sum of the counts of all shards. A context that ends early counts as far as it goes.
pub(super) fn total(context: &[u8]) -> i64 {
    let Some((header, rest)) = context.split_first_chunk::<2>() else { return 0 };
    let elements = usize::from(i16::from_be_bytes(*header).unsigned_abs());
    let shards = rest.get(elements.saturating_mul(2)..).unwrap_or_default();
    let (shards, _) = shards.as_chunks::<SHARD>();
    let count = |shard: &[u8; SHARD]| shard.last_chunk::<8>().map_or(0, |c| i64::from_be_bytes(*c));
    shards.iter().fold(0, |sum, shard| sum.wrapping_add(count(shard)))
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn shards_add_up() {
        assert_eq!(total(&[]), 0);
        let mut context = vec![0, 1, 0, 0];
        for count in [5_i64, -2] {
            context.extend_from_slice(&[7; 16]);
            context.extend_from_slice(&1_i64.to_be_bytes());
            context.extend_from_slice(&count.to_be_bytes());
        }
        assert_eq!(total(&context), 3);
        context.pop();
        assert_eq!(total(&context), 5);
    }
}
