//! The sketch of a table's keys in Statistics.db, from which compaction estimates how many
//! keys tables have in common: HyperLogLog++ with p = 13 and sp = 25, in the bytes of
//! stream-lib's `HyperLogLogPlus`.
//!
//! `i32` -2, varint p, varint sp, varint kind. Kind 1 is sparse: varint number of codes, then
//! each code's distance from the one before as a varint (ascending here; stream-lib's may wrap).
//! Kind 0 has registers: varint bytes, then big-endian words of six registers of 5 bits, the first
//! in the lowest.
//! Varints here have the lowest 7 bits first.
//!
//! A code of a hash is its first 25 bits, doubled; if the last 12 of those are zero, it is
//! instead these 25 bits, 6 bits of the inverted length of the run of zeros (from bit 13 on,
//! with the one that ends it), and a one.

use crate::bytes::Reader;
use crate::error::{Result, corrupt};

const SKETCH: &str = "a cardinality sketch";
/// Bits that choose a register.
const P: u32 = 13;
/// Bits that a sparse code tells apart.
const SP: u32 = 25;
/// Registers.
const REGISTERS: usize = 1 << P;
/// Registers in a word.
const PER_WORD: usize = 6;
/// Words of all registers.
const WORDS: usize = REGISTERS.div_ceil(PER_WORD);
/// With more codes than this, registers take less space.
const MAX_SPARSE: usize = REGISTERS / 4 * 3;
/// The longest run of zeros, of a hash that has nothing else behind its first 13 bits.
const LONGEST_RUN: u32 = 64 - P + 1;

/// A sketch of a set of 64-bit hashes: murmur2 of the partition keys
/// (`utils.MurmurHash.hash2_64`, seed 0), which the caller computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Codes, ascending by their first 25 bits, one for each.
    Sparse(std::collections::BTreeMap<u32, u32>),
    /// The longest run of zeros seen by each register, in 5 bits.
    Registers(Vec<u8>),
}

impl Default for Sketch {
    fn default() -> Self {
        Self(Kind::Sparse(Default::default()))
    }
}

impl Sketch {
    /// Adds a key by its hash.
    pub fn add(&mut self, hash: u64) {
        match &mut self.0 {
            Kind::Sparse(codes) => {
                insert(codes, code_of(hash));
                if codes.len() > MAX_SPARSE {
                    self.grow();
                }
            }
            Kind::Registers(registers) => {
                let index = (hash >> (64 - P)) as usize;
                raise(registers, index, run(hash << P, LONGEST_RUN));
            }
        }
    }

    /// From codes to registers.
    fn grow(&mut self) {
        if let Kind::Sparse(codes) = &self.0 {
            let mut registers = vec![0; REGISTERS];
            for code in codes.values() {
                let (index, run) = register_of(*code);
                raise(&mut registers, index, run);
            }
            self.0 = Kind::Registers(registers);
        }
    }

    /// Adds all that another one has seen.
    pub fn merge(&mut self, other: &Self) {
        match (&mut self.0, &other.0) {
            (Kind::Sparse(mine), Kind::Sparse(theirs)) => {
                theirs.values().for_each(|code| insert(mine, *code));
                if mine.len() > MAX_SPARSE {
                    self.grow();
                }
            }
            (_, theirs) => {
                self.grow();
                let Kind::Registers(mine) = &mut self.0 else {
                    unreachable!("a dense cardinality sketch has registers");
                };
                match theirs {
                    Kind::Sparse(codes) => codes.values().for_each(|code| {
                        let (index, run) = register_of(*code);
                        raise(mine, index, run);
                    }),
                    Kind::Registers(theirs) => {
                        for (mine, theirs) in mine.iter_mut().zip(theirs) {
                            *mine = (*mine).max(*theirs);
                        }
                    }
                }
            }
        }
    }

    /// An estimate of how many different keys were added. While sparse it is all but exact;
    /// beyond, within a few hundredths (the plain HyperLogLog, without the ++'s tables).
    pub fn cardinality(&self) -> u64 {
        match &self.0 {
            Kind::Sparse(codes) => {
                let all = f64::from(1u32 << SP);
                linear(all, all - codes.len() as f64)
            }
            Kind::Registers(registers) => {
                let m = REGISTERS as f64;
                let sum: f64 = registers.iter().map(|run| 0.5f64.powi(i32::from(*run))).sum();
                let estimate = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
                let zeros = registers.iter().filter(|run| **run == 0).count();
                match zeros > 0 && estimate <= 2.5 * m {
                    true => linear(m, zeros as f64),
                    false => estimate.round() as u64,
                }
            }
        }
    }

    /// Reads one.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(SKETCH, bytes);
        let version = reader.i32()?;
        let (p, sp, kind) = (varint(&mut reader)?, varint(&mut reader)?, varint(&mut reader)?);
        if (version, p, sp) != (-2, P, SP) {
            return corrupt(
                SKETCH,
                format!(
                    "it has version {version}, p {p}, sp {sp}, which this release does not read"
                ),
            );
        }
        let read = match kind {
            0 => Kind::Registers(read_registers(&mut reader)?),
            1 => Kind::Sparse(read_codes(&mut reader)?),
            _ => return corrupt(SKETCH, format!("kind {kind}")),
        };
        reader.end()?;
        Ok(Self(read))
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = (-2i32).to_be_bytes().to_vec();
        put_varint(&mut out, P);
        put_varint(&mut out, SP);
        match &self.0 {
            Kind::Registers(registers) => {
                put_varint(&mut out, 0);
                put_varint(&mut out, (WORDS * 4) as u32);
                for six in registers.chunks(PER_WORD) {
                    let word = six.iter().rev().fold(0u32, |word, run| word << 5 | u32::from(*run));
                    out.extend(word.to_be_bytes());
                }
            }
            Kind::Sparse(codes) => {
                put_varint(&mut out, 1);
                put_varint(&mut out, codes.len() as u32);
                let mut last = 0;
                for code in sorted(codes) {
                    put_varint(&mut out, code.wrapping_sub(last));
                    last = code;
                }
            }
        }
        out
    }
}

/// In the order in which distances do not go backwards.
fn sorted(codes: &std::collections::BTreeMap<u32, u32>) -> Vec<u32> {
    let mut codes: Vec<u32> = codes.values().copied().collect();
    codes.sort_unstable();
    codes
}

fn read_codes(reader: &mut Reader<'_>) -> Result<std::collections::BTreeMap<u32, u32>> {
    let n = varint(reader)?;
    let mut codes = std::collections::BTreeMap::new();
    let mut code = 0u32;
    // Each takes a byte at least, so what is there bounds the loop.
    for _ in 0..n {
        code = code.wrapping_add(varint(reader)?);
        insert(&mut codes, code);
    }
    Ok(codes)
}

fn read_registers(reader: &mut Reader<'_>) -> Result<Vec<u8>> {
    let size = varint(reader)? as usize;
    if size != WORDS * 4 {
        return corrupt(SKETCH, format!("its registers have the wrong size of {size} bytes"));
    }
    let mut registers = Vec::with_capacity(WORDS * PER_WORD);
    for _ in 0..WORDS {
        let word = reader.u32()?;
        registers.extend((0..PER_WORD).map(|i| (word >> (5 * i) & 31) as u8));
    }
    registers.truncate(REGISTERS);
    Ok(registers)
}

/// Of two codes with the same 25 bits the one with the longer run stays.
fn insert(codes: &mut std::collections::BTreeMap<u32, u32>, code: u32) {
    let index = if code & 1 == 1 { code >> 7 } else { code >> 1 };
    let kept = codes.entry(index).or_insert(code);
    if register_of(code).1 > register_of(*kept).1 {
        *kept = code;
    }
}

/// The length of the run of zeros at the front of `bits`, with the one that ends it.
fn run(bits: u64, longest: u32) -> u32 {
    (bits.leading_zeros() + 1).min(longest)
}

fn code_of(hash: u64) -> u32 {
    let index = (hash >> (64 - SP)) as u32;
    if index << (32 - (SP - P)) != 0 {
        return index << 1;
    }
    index << 7 | (run(hash << P, LONGEST_RUN) ^ 63) << 1 | 1
}

fn register_of(code: u32) -> (usize, u32) {
    let (index, run) = if code & 1 == 1 {
        (code >> 7, (code >> 1 & 63) ^ 63)
    } else {
        let index = code >> 1;
        (index, (index << (32 - (SP - P))).leading_zeros() + 1)
    };
    ((index >> (SP - P)) as usize % REGISTERS, run)
}

fn raise(registers: &mut [u8], index: usize, run: u32) {
    if let Some(register) = registers.get_mut(index) {
        *register = (*register).max((run & 31) as u8);
    }
}

/// How many were thrown into `m` bins if `empty` stayed empty.
fn linear(m: f64, empty: f64) -> u64 {
    (m * (m / empty.max(1.0)).ln()).round() as u64
}

fn varint(reader: &mut Reader<'_>) -> Result<u32> {
    let mut value = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = reader.u8()?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    corrupt(SKETCH, "a number in it has more than 5 bytes")
}

fn put_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What stream-lib made, as told by `key-hashes.txt` and `hll.txt`.
    const GOLDEN: &str = include_str!("../testdata/hll.txt");

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    fn unhex(text: &str) -> Vec<u8> {
        let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }

    /// The hashes that the golden sketches were fed, one after the other.
    fn hashes() -> impl Iterator<Item = u64> {
        let step = |x: &u64| {
            Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
        };
        std::iter::successors(Some(1u64), step).skip(1).map(|x| {
            let h = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            h ^ (h >> 32)
        })
    }

    #[test]
    fn single_hashes_are_stream_libs() {
        for line in GOLDEN.lines().filter_map(|line| line.strip_prefix("one ")) {
            let (hash, bytes) = line.split_once(' ').unwrap();
            let mut sketch = Sketch::default();
            sketch.add(u64::from_str_radix(hash, 16).unwrap());
            assert_eq!(hex(&sketch.encode()), bytes, "{hash}");
        }
        assert_eq!(hex(&Sketch::default().encode()), "fffffffe0d190100");
    }

    #[test]
    fn growing_sketches_are_stream_libs() {
        let mut hashes = hashes();
        let (mut sketch, mut added) = (Sketch::default(), 0);
        for line in GOLDEN.lines().filter(|line| !line.starts_with("one")) {
            let words: Vec<&str> = line.split(' ').collect();
            let until: usize = words[0].parse().unwrap();
            hashes.by_ref().take(until - added).for_each(|hash| sketch.add(hash));
            added = until;
            let bytes = sketch.encode();
            let theirs = words.get(4).map(|text| unhex(text));
            // One code of the thousand has its run, and stream-lib's merging then leaves the
            // codes in no order: what they say is the same.
            if until != 1000 {
                assert_eq!(bytes.len().to_string(), words[2], "{until}");
                assert_eq!(crc32fast::hash(&bytes).to_string(), words[3], "{until}");
            }
            assert!(theirs.is_none_or(|theirs| Sketch::parse(&theirs).unwrap() == sketch));
            assert_eq!(Sketch::parse(&bytes).unwrap(), sketch);
            let theirs: f64 = words[1].parse().unwrap();
            let ours = sketch.cardinality() as f64;
            assert!((ours - theirs).abs() <= theirs * 0.03, "{ours} for {theirs}");
        }
    }

    #[test]
    fn round_trips_the_sketch_of_a_table() {
        let file = include_bytes!("../testdata/lz4/nb-1-big-Statistics.db");
        let mut reader = crate::tombstone_histogram::tests::component(file, 1);
        let bytes = reader.int_bytes().unwrap();
        let sketch = Sketch::parse(bytes).unwrap();
        assert_eq!(sketch.cardinality(), 30);
        assert_eq!(sketch.encode(), bytes);
        let mut ours = Sketch::default();
        for line in include_str!("../testdata/key-hashes.txt").lines().take(30) {
            let hash: i64 = line.split(' ').next_back().unwrap().parse().unwrap();
            ours.add(hash as u64);
        }
        assert_eq!(ours, sketch);
    }

    #[test]
    fn merges_as_if_one_had_seen_all() {
        for (n, split) in [(100, 40), (8000, 100), (8000, 7900), (20_000, 10_000)] {
            let all: Vec<u64> = hashes().take(n).collect();
            let of = |hashes: &[u64]| {
                let mut sketch = Sketch::default();
                hashes.iter().for_each(|hash| sketch.add(*hash));
                sketch
            };
            let mut merged = of(&all[..split]);
            merged.merge(&of(&all[split..]));
            assert_eq!(merged, of(&all));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(mut tail in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut bytes = vec![0xff, 0xff, 0xff, 0xfe, 13, 25];
            bytes.append(&mut tail);
            if let Ok(sketch) = Sketch::parse(&bytes) {
                sketch.cardinality();
                prop_assert_eq!(Sketch::parse(&sketch.encode()).unwrap(), sketch);
            }
        }
    }
}
