//! `Filter.db`: the Bloom filter over partition keys (`utils.BloomFilter`).
//!
//! Version `na` and later: `i32` number of hashes, `i32` number of 8-byte words, the bytes;
//! bit `i` is bit `i & 7` of byte `i >> 3`. Earlier ones store the words as big-endian longs.
//! A key's bits come from the two halves of its 128-bit murmur3 hash, the one whose first half
//! is the key's token; it is for the caller to compute.

use crate::bytes::Reader;
use crate::descriptor::Version;
use crate::error::{Result, corrupt};

const FILTER: &str = "Filter.db";
/// Bits beyond those that the keys ask for (`utils.FilterFactory`).
const EXCESS: u64 = 20;
/// Most bits a key may have; fewer false positives than this gives cannot be asked for.
const MAX_BITS_PER_KEY: u32 = 20;
/// Most hashes that a filter we read may have. The table below ends at 14.
const MAX_HASHES: i32 = 64;

/// How many bits and hashes a share of false positives takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Hashes of each key.
    pub hashes: u32,
    /// Bits for each key.
    pub bits_per_key: u32,
}

impl Spec {
    /// For the table option `bloom_filter_fp_chance`: `None` where it asks for no filter (1.0)
    /// or for fewer false positives than 6.71e-5, which Cassandra refuses when the table is
    /// made. The choice is that of `utils.BloomCalculations`, so that both sides write filters
    /// of one size: the fewest bits that reach the share, then the fewest hashes.
    pub fn for_chance(chance: f64) -> Option<Self> {
        if chance.is_nan() || chance >= 1.0 {
            return None;
        }
        if chance >= share(2, 1) {
            return Some(Self { hashes: 2, bits_per_key: 1 });
        }
        let bits = (2..=MAX_BITS_PER_KEY).find(|bits| share(*bits, best(*bits)) <= chance)?;
        let hashes = (1..=best(bits)).find(|hashes| share(bits, *hashes) <= chance)?;
        Some(Self { hashes, bits_per_key: bits })
    }
}

/// The share of false positives with so many bits a key and hashes, to three digits as in the
/// table that Cassandra has of it: (1 - e^(-k/b))^k.
fn share(bits: u32, hashes: u32) -> f64 {
    let exact = (1.0 - (-f64::from(hashes) / f64::from(bits)).exp()).powi(hashes as i32);
    format!("{exact:.2e}").parse().unwrap_or(exact)
}

/// The number of hashes with the smallest share; the table of Cassandra has 14 at most.
fn best(bits: u32) -> u32 {
    let mut best = 1;
    for hashes in 2..=14 {
        if share(bits, hashes) < share(bits, best) {
            best = hashes;
        }
    }
    best
}

/// A Bloom filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    hashes: u32,
    bits: Vec<u8>,
}

impl Filter {
    /// An empty filter for about `keys` keys. `None` if it would have more than 2^31 words,
    /// which the file cannot express.
    pub fn new(keys: u64, spec: Spec) -> Option<Self> {
        let bits = keys.checked_mul(spec.bits_per_key.into())?.checked_add(EXCESS)?;
        let words = bits.div_ceil(64);
        i32::try_from(words).ok()?;
        let bytes = usize::try_from(words * 8).ok()?;
        Some(Self { hashes: spec.hashes, bits: vec![0; bytes] })
    }

    /// Reads a Filter.db. The bytes are copied once; their number is checked first.
    pub fn parse(bytes: &[u8], version: Version) -> Result<Self> {
        let mut reader = Reader::new(FILTER, bytes);
        let hashes = reader.i32()?;
        if !(1..=MAX_HASHES).contains(&hashes) {
            return corrupt(FILTER, format!("{hashes} hashes"));
        }
        let words = reader.count(8)?;
        if words == 0 {
            return corrupt(FILTER, "it has no bits");
        }
        let mut bits = reader.take(words * 8)?.to_vec();
        reader.end()?;
        if !version.has_byte_filter() {
            bits.chunks_exact_mut(8).for_each(<[u8]>::reverse);
        }
        Ok(Self { hashes: hashes.unsigned_abs(), bits })
    }

    /// The bytes of a Filter.db, as of version `na`.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.bits.len());
        out.extend(self.hashes.to_be_bytes());
        crate::bytes::put_int(&mut out, self.bits.len() / 8);
        out.extend(&self.bits);
        out
    }

    /// Adds a key by the halves of its hash.
    pub fn add(&mut self, hash: [i64; 2]) {
        for bit in positions(hash, self.hashes, self.bits.len()) {
            let byte = self.bits.get_mut(bit >> 3);
            *byte.expect("the bits of a key lie within the filter") |= 1 << (bit & 7);
        }
    }

    /// Whether a key may be among those added; never false for one that is.
    pub fn may_contain(&self, hash: [i64; 2]) -> bool {
        positions(hash, self.hashes, self.bits.len())
            .all(|bit| self.bits.get(bit >> 3).is_some_and(|byte| byte >> (bit & 7) & 1 == 1))
    }

    /// Memory that the bits take, in bytes.
    pub fn size(&self) -> usize {
        self.bits.len()
    }
}

/// Keys that wait to be added together.
const BATCH_KEYS: usize = 32;

/// A filter in the making. Where it is larger than the CPU's caches each key waits for memory as
/// often as it has bits; keys that are added together wait for it together.
#[derive(Debug)]
pub struct Builder {
    filter: Filter,
    pending: Vec<[i64; 2]>,
}

impl Builder {
    /// Around an empty filter.
    pub fn new(filter: Filter) -> Self {
        Self { filter, pending: Vec::with_capacity(BATCH_KEYS) }
    }

    /// Adds a key by the halves of its hash.
    #[inline]
    pub fn add(&mut self, hash: [i64; 2]) {
        self.pending.push(hash);
        if self.pending.len() >= BATCH_KEYS {
            self.add_pending();
        }
    }

    fn add_pending(&mut self) {
        self.pending.drain(..).for_each(|hash| self.filter.add(hash));
    }

    /// The filter of all keys.
    pub fn filter(&mut self) -> &Filter {
        self.add_pending();
        &self.filter
    }
}

/// The bits of a key: from the second half on, the first half further each time, as signed
/// remainders without their sign.
fn positions([step, start]: [i64; 2], hashes: u32, bytes: usize) -> impl Iterator<Item = usize> {
    let bits = i64::try_from(bytes).unwrap_or(i64::MAX).saturating_mul(8).max(1);
    let sums = std::iter::successors(Some(start), move |at| Some(at.wrapping_add(step)));
    sums.take(hashes as usize).map(move |at| (at % bits).unsigned_abs() as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::descriptor::NB;

    /// `keyN`, both halves of its murmur3 hash, its murmur2 hash, by Cassandra 5.0.9.
    fn hashes() -> Vec<[i64; 2]> {
        include_str!("../testdata/key-hashes.txt")
            .lines()
            .map(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                [words[1].parse().unwrap(), words[2].parse().unwrap()]
            })
            .collect()
    }

    #[test]
    fn specs_are_cassandras() {
        for line in include_str!("../testdata/bloom-specs.txt").lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let spec = Spec::for_chance(words[0].parse().unwrap()).unwrap();
            let (hashes, bits) = (words[1].parse().unwrap(), words[2].parse().unwrap());
            assert_eq!((spec.hashes, spec.bits_per_key), (hashes, bits), "{line}");
        }
        assert_eq!(Spec::for_chance(1.0), None);
        assert_eq!(Spec::for_chance(6.7e-5), None);
        assert_eq!(Spec::for_chance(f64::NAN), None);
    }

    #[test]
    fn filters_are_cassandras_bit_for_bit() {
        for (bytes, keys) in [
            (&include_bytes!("../testdata/lz4/nb-1-big-Filter.db")[..], 30),
            (&include_bytes!("../testdata/plain/nb-1-big-Filter.db")[..], 150),
        ] {
            let spec = Spec::for_chance(0.01).unwrap();
            let mut filter = Filter::new(keys as u64, spec).unwrap();
            hashes().into_iter().take(keys).for_each(|hash| filter.add(hash));
            assert_eq!(filter.encode(), bytes);
            let read = Filter::parse(bytes, NB).unwrap();
            assert_eq!(read, filter);
            assert!(hashes().into_iter().take(keys).all(|hash| read.may_contain(hash)));
        }
    }

    #[test]
    fn earlier_versions_store_longs() {
        let mut filter = Filter::new(30, Spec::for_chance(0.01).unwrap()).unwrap();
        hashes().into_iter().take(30).for_each(|hash| filter.add(hash));
        let mut bytes = filter.encode();
        bytes[8..].chunks_exact_mut(8).for_each(<[u8]>::reverse);
        assert_eq!(Filter::parse(&bytes, Version(*b"mc")).unwrap(), filter);
    }

    #[test]
    fn refuses_sizes_that_are_not_there() {
        for bytes in [
            &[0, 0, 0, 5][..],
            &[0, 0, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0, 5, 0, 0, 0, 0],
            &[0, 0, 0, 5, 0x7f, 0xff, 0xff, 0xff],
            &[0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 9],
        ] {
            assert!(Filter::parse(bytes, NB).is_err());
        }
        assert!(Filter::new(u64::MAX, Spec { hashes: 1, bits_per_key: 20 }).is_none());
    }

    proptest! {
        #[test]
        fn what_was_added_is_found(keys in prop::collection::vec(any::<[i64; 2]>(), 1..200)) {
            let spec = Spec::for_chance(0.1).unwrap();
            let mut filter = Filter::new(keys.len() as u64, spec).unwrap();
            keys.iter().for_each(|hash| filter.add(*hash));
            prop_assert!(keys.iter().all(|hash| filter.may_contain(*hash)));
            prop_assert_eq!(Filter::parse(&filter.encode(), NB).unwrap(), filter);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), hash: [i64; 2]) {
            if let Ok(filter) = Filter::parse(&bytes, NB) {
                filter.may_contain(hash);
            }
        }
    }
}
