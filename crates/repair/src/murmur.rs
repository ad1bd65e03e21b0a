//! `Hashing.concatenating(murmur3_128(1000), murmur3_128(2000))` of Guava, piece by piece.
//!
//! Both hashes mix a block's two words alike before they take them in, and so share that work.
//! `types::hash128_unsigned` is the same hash of bytes that are all there.

use crate::tree::Hash;

/// The seeds of the two hashes.
const SEEDS: [u64; 2] = [1000, 2000];
const BLOCK_BYTES: usize = 16;
const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Two hashes of 128 bits of the same bytes.
#[derive(Clone, Debug)]
pub(crate) struct Murmur {
    lanes: [Lane; 2],
    /// Bytes that are no whole block yet.
    rest: [u8; BLOCK_BYTES],
    length: u64,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    low: u64,
    high: u64,
}

impl Lane {
    fn new(seed: u64) -> Self {
        Self { low: seed, high: seed }
    }

    #[inline(always)]
    fn block(&mut self, low: u64, high: u64) {
        let next = (self.low ^ low).rotate_left(27).wrapping_add(self.high);
        self.low = next.wrapping_mul(5).wrapping_add(0x52dc_e729);
        let next = (self.high ^ high).rotate_left(31).wrapping_add(self.low);
        self.high = next.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }

    fn finish(mut self, low: u64, high: u64, length: u64) -> [u64; 2] {
        self.low ^= low ^ length;
        self.high ^= high ^ length;
        self.low = self.low.wrapping_add(self.high);
        self.high = self.high.wrapping_add(self.low);
        let (low, high) = (scatter(self.low), scatter(self.high));
        let low = low.wrapping_add(high);
        [low, high.wrapping_add(low)]
    }
}

impl Murmur {
    /// Of no bytes yet.
    pub fn new() -> Self {
        Self { lanes: SEEDS.map(Lane::new), rest: [0; BLOCK_BYTES], length: 0 }
    }

    /// More bytes.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        let held = self.held();
        self.length = self.length.wrapping_add(bytes.len() as u64);
        if let Some(free) = self.rest.get_mut(held..held + bytes.len())
            && held + bytes.len() < BLOCK_BYTES
        {
            free.copy_from_slice(bytes);
            return;
        }
        self.blocks(held, bytes);
    }

    fn blocks(&mut self, held: usize, mut bytes: &[u8]) {
        if held > 0
            && let Some((free, after)) = bytes.split_at_checked(BLOCK_BYTES - held)
            && let Some(rest) = self.rest.get_mut(held..)
        {
            rest.copy_from_slice(free);
            let block = self.rest;
            self.block(&block);
            bytes = after;
        }
        let (blocks, tail) = bytes.as_chunks::<BLOCK_BYTES>();
        blocks.iter().for_each(|block| self.block(block));
        if let Some(rest) = self.rest.get_mut(..tail.len()) {
            rest.copy_from_slice(tail);
        }
    }

    #[inline(always)]
    fn block(&mut self, block: &[u8; BLOCK_BYTES]) {
        let block = u128::from_le_bytes(*block);
        let (low, high) = (mix_low(block as u64), mix_high((block >> 64) as u64));
        self.lanes.iter_mut().for_each(|lane| lane.block(low, high));
    }

    /// Both hashes, one behind the other.
    pub fn finish(&self) -> Hash {
        let mut tail = [0; BLOCK_BYTES];
        let held = self.rest.get(..self.held()).unwrap_or_default();
        tail.iter_mut().zip(held).for_each(|(byte, held)| *byte = *held);
        let tail = u128::from_le_bytes(tail);
        let (low, high) = (mix_low(tail as u64), mix_high((tail >> 64) as u64));
        let hashes = self.lanes.map(|lane| lane.finish(low, high, self.length));
        let mut out = [0; size_of::<Hash>()];
        let (words, _) = out.as_chunks_mut::<8>();
        for (word, hash) in words.iter_mut().zip(hashes.as_flattened()) {
            *word = hash.to_le_bytes();
        }
        out
    }

    /// How many bytes are no whole block.
    fn held(&self) -> usize {
        (self.length % BLOCK_BYTES as u64) as usize
    }
}

fn mix_low(word: u64) -> u64 {
    word.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix_high(word: u64) -> u64 {
    word.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn scatter(word: u64) -> u64 {
    let word = (word ^ word >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let word = (word ^ word >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ word >> 33
}
