//! What a gossiper is told once.

use std::collections::BTreeSet;

use types::Address;

/// Default of `ring_delay`, in milliseconds: how long news take to be known everywhere.
const RING_DELAY: u64 = 30_000;
/// Default of `phi_convict_threshold`.
const PHI_THRESHOLD: f64 = 8.0;

/// What a gossiper is told once.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its own address.
    pub local: Address,
    /// The cluster's name.
    pub cluster: String,
    /// Class name of the partitioner.
    pub partitioner: String,
    /// The seeds but itself.
    pub seeds: BTreeSet<Address>,
    /// Is it a seed itself?
    pub is_seed: bool,
    /// How long news take to be known everywhere, in milliseconds.
    pub ring_delay: u64,
    /// `phi_convict_threshold`.
    pub phi_threshold: f64,
    /// A bug for worlds that look for it: what is said anew has the version of what was said
    /// before.
    pub reuses_versions: bool,
}

impl Config {
    /// With Cassandra's defaults. The seeds may name itself.
    pub fn new(
        local: Address,
        cluster: impl Into<String>,
        seeds: impl IntoIterator<Item = Address>,
    ) -> Self {
        let mut seeds: BTreeSet<_> = seeds.into_iter().collect();
        Self {
            is_seed: seeds.remove(&local),
            local,
            cluster: cluster.into(),
            partitioner: "org.apache.cassandra.dht.Murmur3Partitioner".to_owned(),
            seeds,
            ring_delay: RING_DELAY,
            phi_threshold: PHI_THRESHOLD,
            reuses_versions: false,
        }
    }

    /// Milliseconds for which what was removed is not heard of again.
    pub(crate) fn quarantine(&self) -> u64 {
        2 * self.ring_delay
    }
}
