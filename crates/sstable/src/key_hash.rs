//! The hash by which the sketch of keys counts: MurmurHash 2, 64 bits, seed 0
//! (`utils.MurmurHash.hash2_64`), with Java's signed bytes in the last, incomplete block.

const M: u64 = 0xc6a4_a793_5bd1_e995;
const R: u32 = 47;

/// The hash of a partition key.
pub fn key_hash(key: &[u8]) -> u64 {
    let (blocks, tail) = key.as_chunks::<8>();
    let mut hash = M.wrapping_mul(key.len() as u64);
    for block in blocks {
        let mut word = u64::from_le_bytes(*block).wrapping_mul(M);
        word ^= word >> R;
        hash = (hash ^ word.wrapping_mul(M)).wrapping_mul(M);
    }
    for (at, byte) in tail.iter().enumerate() {
        hash ^= (i64::from(byte.cast_signed()) << (8 * at)).cast_unsigned();
    }
    if !tail.is_empty() {
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> R
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_cassandra_computes_it() {
        for line in include_str!("../testdata/key-hashes.txt").lines() {
            let mut words = line.split(' ');
            let key = words.next().expect("a key");
            let hash: i64 = words.next_back().expect("a hash").parse().expect("a number");
            assert_eq!(key_hash(key.as_bytes()).cast_signed(), hash, "{key}");
        }
        assert_ne!(key_hash(&[0x80]), key_hash(&[0x00]));
    }
}
