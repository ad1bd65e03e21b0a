//! What of the node's memory goes where: one budget, and the named limits that share it.
//!
//! A sum of limits that is more than the budget is said at the start. Half of the budget is the
//! memtables'. Half of that starts a flush, for one flush runs at a time
//! (`memtable_cleanup_threshold`).
//!
//! `cargo xtask campaign wide` writes, flushes, compacts and reads a partition of 2 GB in a process
//! of at most 512 MiB.

use config::Config;

const MIB: u64 = 1 << 20;
/// `key_cache_size` where the configuration does not say: a 20th of the budget, and no more than
/// this (Cassandra's).
const KEY_CACHE_MAX: u64 = 100 * MIB;
/// `counter_cache_size` where the configuration does not say: a 40th of the budget, and no more
/// than this (Cassandra's).
const COUNTER_CACHE_MAX: u64 = 50 * MIB;
/// The most of the page cache that books are kept on, in budgets: they take a 64th of one then.
const PAGE_CACHE_BUDGETS: u64 = 16;
/// `prepared_statements_cache_size` where the configuration does not say: Cassandra's least.
const PREPARED: u64 = 10 * MIB;

/// The limits of a node, in bytes; each shard has its part of each but that of prepared statements,
/// which all keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// `memory_budget`, where Cassandra has its heap: what the limits below share, and all that is
    /// not named.
    pub budget: u64,
    /// `memtable_heap_space` and `memtable_offheap_space`: past them writes wait for a flush. A
    /// half: what writes do not need of it yet has what was flushed, for reads.
    pub memtables: u64,
    /// `file_cache_size`: chunks of SSTables, decompressed, and pages of their indexes. An eighth.
    pub chunks: u64,
    /// `key_cache_size`: where keys are in SSTables, and the promoted indexes of wide partitions.
    pub keys: u64,
    /// `row_cache_size`: the first rows of partitions, for tables whose `caching` asks for it.
    /// None.
    pub rows: u64,
    /// `counter_cache_size`: this node's parts of counters. A 40th.
    pub counters: u64,
    /// `prepared_statements_cache_size`.
    pub prepared: u64,
    /// `native_transport_max_request_data_in_flight`: past it requests are refused or wait. A
    /// tenth.
    pub in_flight: u64,
    /// `native_transport_max_request_data_in_flight_per_ip`. A 40th.
    pub in_flight_per_ip: u64,
}

impl Memory {
    /// As configured.
    pub fn of(config: &Config) -> Self {
        let budget = config.memory();
        let transport = &config.native_transport;
        Self {
            budget,
            memtables: config.memtable_space.unwrap_or(budget / 2),
            chunks: config.file_cache_size.unwrap_or(budget / 8),
            keys: config.key_cache_size.unwrap_or((budget / 20).clamp(MIB, KEY_CACHE_MAX)),
            rows: config.row_cache_size,
            counters: config
                .counter_cache_size
                .unwrap_or((budget / 40).clamp(MIB, COUNTER_CACHE_MAX)),
            prepared: config.prepared_statements_cache_size.unwrap_or(PREPARED),
            in_flight: transport.max_in_flight.unwrap_or(budget / 10),
            in_flight_per_ip: transport.max_in_flight_per_ip.unwrap_or(budget / 40),
        }
    }

    fn named(&self) -> [(&'static str, u64); 7] {
        [
            ("memtable_heap_space and memtable_offheap_space", self.memtables),
            ("file_cache_size", self.chunks),
            ("key_cache_size", self.keys),
            ("row_cache_size", self.rows),
            ("counter_cache_size", self.counters),
            ("prepared_statements_cache_size", self.prepared),
            ("native_transport_max_request_data_in_flight", self.in_flight),
        ]
    }

    /// What of the kernel's page cache the node keeps books on, which take a thousandth of it: what
    /// is left of so much memory of the machine, at least a quarter, whatever the budget, and at
    /// most so many times the budget. As much as the budget where nobody says how much there is.
    pub fn page_cache(&self, machine: Option<u64>) -> u64 {
        let left = machine.map_or(self.budget, |all| all.saturating_sub(self.budget).max(all / 4));
        left.min(PAGE_CACHE_BUDGETS * self.budget)
    }

    /// What the operator should know of limits that together are more than the budget.
    pub fn note(&self) -> Option<String> {
        let sum = self.named().iter().map(|(_, bytes)| bytes).sum::<u64>();
        (sum > self.budget).then(|| {
            let shown = |(name, bytes): &(&str, u64)| format!("{name} {} MiB", bytes / MIB);
            let all = self.named().iter().map(shown).collect::<Vec<_>>().join(", ");
            let (sum, budget) = (sum.div_ceil(MIB), self.budget / MIB);
            format!(
                "memory limits add up to {sum} MiB, more than the memory_budget of {budget} MiB \
                 that they share; raise it, or lower some of: {all}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(yaml: &str) -> Memory {
        Memory::of(&Config::from_yaml(yaml).unwrap())
    }

    #[test]
    fn each_limit_is_what_was_asked_for_or_a_part_of_the_budget() {
        let of = memory("memory_budget: 512MiB");
        assert_eq!((of.memtables, of.chunks, of.rows), (256 * MIB, 64 * MIB, 0));
        assert_eq!((of.keys, of.prepared), (512 * MIB / 20, PREPARED));
        assert_eq!(of.counters, 512 * MIB / 40);
        let of = memory("memory_budget: 16GiB");
        assert_eq!((of.keys, of.counters), (100 * MIB, 50 * MIB));
        let of = memory(
            "file_cache_size: 7MiB\nkey_cache_size: 0MiB\nrow_cache_size: 9MiB\ncounter_cache_size: 3MiB",
        );
        assert_eq!((of.chunks, of.keys, of.rows, of.counters), (7 * MIB, 0, 9 * MIB, 3 * MIB));
    }

    #[test]
    fn limits_that_are_more_than_the_budget_are_said() {
        assert_eq!(memory("memory_budget: 64MiB").note(), None);
        let note = memory("memory_budget: 64MiB\nrow_cache_size: 64MiB").note();
        assert!(note.is_some_and(|note| note.contains("row_cache_size 64 MiB")));
    }

    #[test]
    fn the_page_cache_has_what_the_budget_leaves() {
        let memory = memory("memory_budget: 512MiB");
        assert_eq!(memory.page_cache(Some(2 << 30)), 1536 * MIB);
        assert_eq!(memory.page_cache(Some(600 * MIB)), 150 * MIB);
        assert_eq!(memory.page_cache(None), 512 * MIB);
        assert_eq!(memory.page_cache(Some(1 << 40)), 8 << 30);
    }
}
