//! Hash maps that iterate in the same order for the same history: the hasher's seed is fixed, so a
//! simulated world repeats. Maps keyed by what a client sends hash with [`SeededState`].

use foldhash::fast::{FixedState, SeedableRandomState};

/// Hasher state with a fixed seed: for keys that clients cannot choose freely.
#[derive(Clone, Debug)]
pub struct State(FixedState);

impl Default for State {
    fn default() -> Self {
        Self(FixedState::with_seed(0x48_65_6c_65_6e_75_73))
    }
}

impl std::hash::BuildHasher for State {
    type Hasher = <FixedState as std::hash::BuildHasher>::Hasher;

    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }
}

/// A map whose iteration order depends on its history alone.
pub type HashMap<K, V> = hashbrown::HashMap<K, V, State>;
/// A set whose iteration order depends on its history alone.
pub type HashSet<K> = hashbrown::HashSet<K, State>;

/// Hasher state seeded from the node's own randomness, for keys that a client chooses.
pub type SeededState = SeedableRandomState;
