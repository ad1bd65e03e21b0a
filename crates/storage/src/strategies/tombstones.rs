//! What every strategy does about tombstones (`AbstractCompactionStrategy`,
//! `CompactionController`): single SSTables worth rewriting for theirs, and SSTables of which
//! nothing is needed any more.

use types::Token;

use super::choice::{Candidate, Given, View};

/// Options that every strategy has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TombstoneOptions {
    /// `tombstone_threshold`: the share of droppable tombstones above which an SSTable is rewritten
    /// for them.
    pub threshold: f32,
    /// `tombstone_compaction_interval`, in seconds since the SSTable was written.
    pub interval_seconds: i64,
    /// `unchecked_tombstone_compaction`: whatever other SSTables may hold.
    pub unchecked: bool,
    /// `only_purge_repaired_tombstones`.
    pub only_repaired: bool,
    /// Never rewrite an SSTable for its tombstones.
    pub disabled: bool,
}

impl TombstoneOptions {
    pub(crate) fn new(given: Given<'_>) -> Self {
        Self {
            threshold: given.number("tombstone_threshold", 0.2),
            interval_seconds: given.number("tombstone_compaction_interval", 86_400),
            unchecked: given.flag("unchecked_tombstone_compaction"),
            only_repaired: given.flag("only_purge_repaired_tombstones"),
            disabled: false,
        }
    }

    /// Is an SSTable worth being rewritten alone, to be rid of tombstones?
    pub(crate) fn is_worth(&self, view: &View<'_>, table: &Candidate) -> bool {
        let due = table.created_millis.saturating_add(self.interval_seconds.saturating_mul(1000));
        let threshold = f64::from(self.threshold);
        if self.disabled || view.now_millis < due || table.droppable_ratio <= threshold {
            return false;
        }
        if self.unchecked {
            return true;
        }
        let overlapping = view.overlapping(&[table]);
        if overlapping.is_empty() || !self.expired(view, &[table], &overlapping).is_empty() {
            return true;
        }
        let ranges: Vec<(Token, Token)> =
            overlapping.iter().map(|other| (other.first.token, other.last.token)).collect();
        let Some(shared) = (view.keys_in)(table.id, &ranges) else { return false };
        let own = table.keys.cast_signed().saturating_sub(shared.cast_signed());
        let (mean, partitions) = table.cells;
        let cells = mean.saturating_mul(own) as f64;
        let share = cells / (partitions as f64 * mean as f64);
        share * table.droppable_ratio > threshold
    }

    /// Those of `tables` of which nothing is needed any more: all in them has expired, and is older
    /// than all that is alive in tables that may hold the same keys, and in memtables.
    pub(crate) fn expired(
        &self,
        view: &View<'_>,
        tables: &[&Candidate],
        overlapping: &[&Candidate],
    ) -> Vec<u64> {
        if self.only_repaired && tables.iter().any(|table| !table.repair.is_repaired()) {
            return Vec::new();
        }
        let is_dead = |table: &&&Candidate| table.max_local_deletion_time < view.gc_before;
        let alive = overlapping.iter().chain(tables).filter(|table| !is_dead(table));
        let oldest = alive
            .map(|table| table.min_timestamp)
            .chain([view.memtable_min_timestamp])
            .min()
            .unwrap_or(i64::MAX);
        let gone = tables.iter().filter(is_dead).filter(|table| table.max_timestamp < oldest);
        gone.map(|table| table.id).collect()
    }
}
