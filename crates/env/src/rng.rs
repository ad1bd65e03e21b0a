//! The simulator's random numbers: splitmix64 and xoshiro256**, seeded, repeatable.

use std::cell::Cell;

/// A small seeded generator (xoshiro256**). Not for secrets: `real` asks the kernel.
#[derive(Debug, Clone)]
pub struct Rng([Cell<u64>; 4]);

/// One step of splitmix64: spreads a seed over 64 bits.
pub(crate) fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// A generator whose whole output follows from `seed`.
    pub fn new(seed: u64) -> Self {
        let mut s = seed;
        Self([(); 4].map(|()| Cell::new(splitmix(&mut s))))
    }

    /// The next 64 bits.
    pub fn next(&self) -> u64 {
        let [a, b, c, d] = &self.0;
        let out = b.get().wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = b.get() << 17;
        c.set(c.get() ^ a.get());
        d.set(d.get() ^ b.get());
        b.set(b.get() ^ c.get());
        a.set(a.get() ^ d.get());
        c.set(c.get() ^ t);
        d.set(d.get().rotate_left(45));
        out
    }

    /// A number below `bound` (0 when the bound is 0).
    pub fn below(&self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`.
    pub fn between(&self, low: u64, high: u64) -> u64 {
        low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)))
    }

    /// True once in `n` times on average; never for 0.
    pub fn one_in(&self, n: u64) -> bool {
        n != 0 && self.below(n) == 0
    }

    /// Fills `out`.
    pub fn fill(&self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let bytes = self.next().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}
