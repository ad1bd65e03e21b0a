//! How often each fault and each named branch fired over a number of seeds, and which must.

use std::collections::BTreeMap;

use crate::world::Outcome;

/// Faults and branches that a run of many seeds must reach.
pub const REQUIRED: &[&str] = &[
    "kill",
    "power_cut",
    "clock_forward",
    "clock_back",
    "slow_disk",
    "other_shards",
    "crash_while_starting",
    "writes_in_doubt",
    "cut_lost_bytes",
    "cut_changed_size",
    "cut_lost_name",
    "cut_old_name",
    "node.drained",
    "commitlog.rotate",
    "commitlog.discard",
    "memtable.full",
    "sstable.durable",
    "transaction.commit",
    "transaction.redone",
    "transaction.undone",
    "compaction.done",
    "compaction.purged",
    "compaction.unpurged",
    "replay.applied",
    "replay.covered",
    "replay.torn",
    "replay.flush",
];

/// Sums over seeds.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    counts: BTreeMap<&'static str, u64>,
    /// Worlds counted.
    pub worlds: u64,
    /// Operations of clients.
    pub operations: u64,
    /// Steps of worlds.
    pub steps: u64,
}

impl Coverage {
    /// Adds a world.
    pub fn add(&mut self, outcome: &Outcome) {
        for (name, count) in outcome.faults.iter().chain(&outcome.marks) {
            *self.counts.entry(name).or_default() += count;
        }
        self.worlds += 1;
        self.operations += outcome.operations;
        self.steps += outcome.steps;
    }

    /// What must happen and never did.
    pub fn missing(&self) -> Vec<&'static str> {
        REQUIRED.iter().copied().filter(|name| !self.counts.contains_key(name)).collect()
    }
}

impl std::fmt::Display for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{} worlds, {} operations, {} steps",
            self.worlds, self.operations, self.steps
        )?;
        for (name, count) in &self.counts {
            writeln!(f, "  {name:<28}{count:>10}")?;
        }
        for name in self.missing() {
            writeln!(f, "  {name:<28}{:>10}  must happen", 0)?;
        }
        Ok(())
    }
}
