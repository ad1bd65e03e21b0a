//! Tokens: the place of a partition on the ring (`dht.Murmur3Partitioner`), and the 128-bit hash
//! under them, shared with the Bloom filters.

use crate::vint::{ReadError, Reader, WriteBytes};

/// A Murmur3 token. `i64::MIN` is the ring's lower end and belongs to the empty key alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub i64);

/// The most significant bits of a token that have no say in which shard owns it: neighbouring
/// ranges of `2^52` tokens are dealt out alike, so that any large range spreads over all shards.
pub const SHARDING_IGNORED_BITS: u32 = 12;

impl Token {
    /// The lower end of the ring, the token of the empty key.
    pub const MIN: Self = Self(i64::MIN);
    /// The largest token.
    pub const MAX: Self = Self(i64::MAX);

    /// The token of a serialized partition key.
    #[inline]
    pub fn of(key: &[u8]) -> Self {
        if key.is_empty() { Self::MIN } else { Self::from_hash(hash128(key)) }
    }

    /// The token of a key with this [`hash128`]; not for the empty key.
    #[inline]
    pub fn from_hash(hash: [u64; 2]) -> Self {
        match hash[0].cast_signed() {
            i64::MIN => Self::MAX,
            token => Self(token),
        }
    }

    /// Which of `shards` owns this token, as shard-aware drivers compute it
    /// (`biased-token-round-robin`). No shards counts as one.
    #[inline]
    pub fn shard(self, shards: u32) -> u32 {
        let biased = self.0.wrapping_sub(i64::MIN).cast_unsigned() << SHARDING_IGNORED_BITS;
        ((u128::from(biased) * u128::from(shards.max(1))) >> 64) as u32
    }

    /// Reads what [`Self::write`] wrote.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        match reader.i32()? {
            8 => Ok(Self(reader.i64()?)),
            length => Err(ReadError::Length(length.into())),
        }
    }

    /// Writes the token as peers do: an `i32` size of 8, then the token.
    pub fn write(self, out: &mut Vec<u8>) {
        out.put_i32(8);
        out.put_i64(self.0);
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Which of `shards` owns `token`; see [`Token::shard`].
#[inline]
pub fn shard_of(token: Token, shards: u32) -> u32 {
    token.shard(shards)
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Murmur3 x64 128 with seed 0 as `utils.MurmurHash.hash3_x64_128` computes it, which takes the
/// bytes of the last, incomplete block as signed: a byte of 0x80 or more flips every bit above it.
#[inline]
pub fn hash128(data: &[u8]) -> [u64; 2] {
    murmur3(data, 0, |byte| i64::from(byte.cast_signed()).cast_unsigned())
}

/// Murmur3 x64 128 as everybody else computes it (Guava; Cassandra's Merkle trees).
#[inline]
pub fn hash128_unsigned(data: &[u8], seed: u64) -> [u64; 2] {
    murmur3(data, seed, u64::from)
}

#[inline(always)]
fn murmur3(data: &[u8], seed: u64, widen: impl Fn(u8) -> u64) -> [u64; 2] {
    let (mut h1, mut h2) = (seed, seed);
    let (blocks, tail) = data.as_chunks::<16>();
    for block in blocks {
        // One little-endian read of sixteen bytes: the low half is the first word.
        let block = u128::from_le_bytes(*block);
        h1 ^= mix1(block as u64);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix2((block >> 64) as u64);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (low, high) = tail.split_at(tail.len().min(8));
    let word = |bytes: &[u8]| {
        bytes.iter().zip(0..).fold(0, |word, (&byte, place)| word ^ widen(byte) << (8 * place))
    };
    h1 ^= mix1(word(low));
    h2 ^= mix2(word(high));
    let length = data.len() as u64;
    h1 ^= length;
    h2 ^= length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    [h1, h2.wrapping_add(h1)]
}

#[inline]
fn mix1(word: u64) -> u64 {
    word.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

#[inline]
fn mix2(word: u64) -> u64 {
    word.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

#[inline]
fn finish(word: u64) -> u64 {
    let word = (word ^ word >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let word = (word ^ word >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ word >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_the_ring() {
        assert_eq!(Token::of(&[]), Token::MIN);
        assert_eq!(Token::from_hash([1 << 63, 0]), Token::MAX);
    }

    #[test]
    fn shards_as_drivers_compute_them() {
        // Every shard of a count gets its share of each block of 2^52 tokens.
        assert_eq!(Token(i64::MIN).shard(8), 0);
        assert_eq!(Token(0).shard(8), 0);
        assert_eq!(Token((1 << 52) - 1).shard(8), 7);
        assert_eq!(Token(1 << 51).shard(8), 4);
        assert_eq!(Token(i64::MAX).shard(3), 2);
        assert_eq!(Token(-1).shard(1), 0);
        assert_eq!(Token(-1).shard(0), 0);
    }
}
