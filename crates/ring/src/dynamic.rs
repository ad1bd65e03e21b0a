//! The dynamic snitch: how fast nodes were of late (`DynamicEndpointSnitch`).
//!
//! Cassandra keeps a random sample of 100 latencies a node, the newer the likelier (a
//! forward-decaying reservoir), and takes its median. Here all latencies are counted in buckets
//! whose weights decay at the same rate: the median that the sample estimates, from all of them,
//! without chance, in memory that does not depend on load.

use types::Address;
use types::hash::HashMap;

/// By how much the weight of a latency decays in a second: as `e` to the minus of it.
const DECAY_PER_SECOND: f64 = 0.75;
/// A node's latencies decay no further than to this: who is not asked any more keeps its score
/// until all is forgotten.
const LEAST_TOTAL: f32 = 1e-3;
/// Weights below this are none.
const LEAST_WEIGHT: f32 = 1e-9;
/// Milliseconds up to which each has its own bucket.
const EXACT_MILLIS: u64 = 64;
/// Buckets of each further doubling.
const PER_DOUBLING: u64 = 8;
/// Doublings beyond [`EXACT_MILLIS`]: up to two minutes.
const DOUBLINGS: u64 = 11;
const BUCKETS: usize = (EXACT_MILLIS + PER_DOUBLING * DOUBLINGS) as usize;
/// Nodes whose latencies are kept at most: no ring has more.
const MAX_NODES: usize = u16::MAX as usize;

/// `dynamic_snitch_*` of the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DynamicSettings {
    /// Nanoseconds between scores (`dynamic_snitch_update_interval`).
    pub update_nanos: u64,
    /// Nanoseconds after which all is forgotten, so that who was slow is tried again
    /// (`dynamic_snitch_reset_interval`).
    pub reset_nanos: u64,
    /// By what part a node has to be worse for scores to count
    /// (`dynamic_snitch_badness_threshold`).
    pub badness_threshold: f64,
}

impl Default for DynamicSettings {
    fn default() -> Self {
        Self { update_nanos: 100_000_000, reset_nanos: 600_000_000_000, badness_threshold: 1.0 }
    }
}

/// Scores of nodes at one time: the less, the better.
#[derive(Clone, Debug, Default)]
pub struct Scores {
    pub(crate) badness_threshold: f64,
    scores: HashMap<Address, f64>,
    severities: HashMap<Address, f64>,
}

impl Scores {
    /// Of a node that was asked.
    pub(crate) fn known(&self, address: Address) -> Option<f64> {
        self.scores.get(&address).copied()
    }

    /// Of any node: who was not asked has what it says of itself.
    pub fn of(&self, address: Address) -> f64 {
        let own = || self.severities.get(&address).copied();
        self.known(address).or_else(own).unwrap_or(0.0)
    }
}

/// A node, for the operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRow {
    /// The node.
    pub address: Address,
    /// Its score.
    pub score: f64,
    /// The median of its latencies, in milliseconds.
    pub median_millis: f64,
    /// What it says of its own load.
    pub severity: f64,
}

/// Latencies of a node.
#[derive(Clone, Debug)]
struct Latencies {
    weights: Box<[f32; BUCKETS]>,
}

/// Latencies of all nodes.
#[derive(Clone, Debug)]
pub struct Dynamic {
    settings: DynamicSettings,
    nodes: HashMap<Address, Latencies>,
    severities: HashMap<Address, f64>,
    scored_at: u64,
    forgotten_at: u64,
}

impl Dynamic {
    /// Nothing is known yet. Times are nanoseconds from any point, and do not go back.
    pub fn new(now: u64, settings: DynamicSettings) -> Self {
        Self {
            settings,
            nodes: HashMap::default(),
            severities: HashMap::default(),
            scored_at: now,
            forgotten_at: now,
        }
    }

    /// The operator changes settings.
    pub fn set(&mut self, settings: DynamicSettings) {
        self.settings = settings;
    }

    /// A node has answered a read. Cassandra counts whole milliseconds, so that no node is better
    /// by less.
    pub fn received(&mut self, node: Address, latency_nanos: u64) {
        if !self.nodes.contains_key(&node) && self.nodes.len() >= MAX_NODES {
            return;
        }
        let latencies = self.nodes.entry(node).or_default();
        latencies.weights[bucket(latency_nanos / 1_000_000)] += 1.0;
    }

    /// What a node says of its own load (SEVERITY), which adds to its score.
    pub fn set_severity(&mut self, node: Address, severity: f64) {
        if severity.is_finite() && severity != 0.0 {
            self.severities.insert(node, severity);
        } else {
            self.severities.remove(&node);
        }
    }

    /// A node has left the ring.
    pub fn forget(&mut self, node: Address) {
        self.nodes.remove(&node);
        self.severities.remove(&node);
    }

    /// When [`Self::step`] has something to do.
    pub fn due(&self) -> u64 {
        let scores = self.scored_at.saturating_add(self.settings.update_nanos);
        scores.min(self.forgotten_at.saturating_add(self.settings.reset_nanos))
    }

    /// New scores, if it is time for them.
    pub fn step(&mut self, now: u64) -> Option<Scores> {
        if now.saturating_sub(self.forgotten_at) >= self.settings.reset_nanos {
            self.nodes.clear();
            self.forgotten_at = now;
        }
        let passed = now.saturating_sub(self.scored_at);
        if passed < self.settings.update_nanos {
            return None;
        }
        let scores = self.scores();
        let factor = (-DECAY_PER_SECOND * passed as f64 / 1e9).exp() as f32;
        self.nodes.values_mut().for_each(|latencies| latencies.decay(factor));
        self.scored_at = now;
        Some(scores)
    }

    /// Scores as they are now: each node's median as a part of the slowest one's, and what it says
    /// of itself.
    pub fn scores(&self) -> Scores {
        let medians = || self.nodes.iter().map(|(node, latencies)| (*node, latencies.median()));
        let slowest = medians().map(|(_, median)| median).fold(1.0, f64::max);
        let severity = |node: &Address| self.severities.get(node).copied().unwrap_or(0.0);
        Scores {
            badness_threshold: self.settings.badness_threshold,
            scores: medians().map(|(n, median)| (n, median / slowest + severity(&n))).collect(),
            severities: self.severities.clone(),
        }
    }

    /// All that is known, by address.
    pub fn rows(&self) -> Vec<ScoreRow> {
        let scores = self.scores();
        let mut known: Vec<Address> =
            self.nodes.keys().chain(self.severities.keys()).copied().collect();
        known.sort_unstable();
        known.dedup();
        let row = |address: Address| ScoreRow {
            address,
            score: scores.of(address),
            median_millis: self.nodes.get(&address).map_or(0.0, Latencies::median),
            severity: self.severities.get(&address).copied().unwrap_or(0.0),
        };
        known.into_iter().map(row).collect()
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self { weights: Box::new([0.0; BUCKETS]) }
    }
}

impl Latencies {
    fn decay(&mut self, factor: f32) {
        if self.weights.iter().sum::<f32>() * factor < LEAST_TOTAL {
            return;
        }
        for weight in self.weights.iter_mut().filter(|weight| **weight > 0.0) {
            *weight = if *weight * factor < LEAST_WEIGHT { 0.0 } else { *weight * factor };
        }
    }

    /// Milliseconds that half of the weight lies at or below.
    fn median(&self) -> f64 {
        let half = self.weights.iter().map(|weight| f64::from(*weight)).sum::<f64>() / 2.0;
        let mut below = 0.0;
        for (bucket, weight) in self.weights.iter().enumerate() {
            below += f64::from(*weight);
            if below > 0.0 && below >= half {
                return millis(bucket as u64);
            }
        }
        0.0
    }
}

fn bucket(millis: u64) -> usize {
    if millis < EXACT_MILLIS {
        return millis as usize;
    }
    let doubling = u64::from((millis / EXACT_MILLIS).ilog2());
    let part = (millis >> doubling) - EXACT_MILLIS;
    let bucket = EXACT_MILLIS + doubling * PER_DOUBLING + part * PER_DOUBLING / EXACT_MILLIS;
    (bucket as usize).min(BUCKETS - 1)
}

/// The least that a bucket counts.
fn millis(bucket: u64) -> f64 {
    let Some(beyond) = bucket.checked_sub(EXACT_MILLIS) else { return bucket as f64 };
    let (doubling, part) = (beyond / PER_DOUBLING, beyond % PER_DOUBLING);
    ((EXACT_MILLIS + part * EXACT_MILLIS / PER_DOUBLING) << doubling) as f64
}
