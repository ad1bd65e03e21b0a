//! How often each fault and each named branch fired over a number of seeds, and which must.

use std::collections::BTreeMap;

use crate::world::Outcome;

/// Faults, operations and branches that a run of many seeds must reach. `cargo xtask tidy` holds
/// this list to the branches that the code names.
pub const REQUIRED: &[&str] = &[
    // what ends lives
    "kill",
    "power_cut",
    "crash_while_starting",
    "node.drained",
    "other_shards",
    "writes_in_doubt",
    // clocks and disks
    "clock_forward",
    "clock_back",
    "slow_disk",
    "short_read",
    "short_write",
    "bad_syncs",
    "sync_error",
    "disk.lost_write",
    "disk.torn_write",
    "cut_lost_bytes",
    "cut_changed_size",
    "cut_lost_name",
    "cut_old_name",
    // what clients do
    "read.pages",
    "read.reversed",
    "write.two_tables",
    "two_connections.two_shards",
    "ask.compact",
    "ask.flush",
    "ask.truncate",
    // branches of the code
    "commitlog.rotate",
    "commitlog.discard",
    "commitlog.failed",
    "commitlog.given_up",
    "memtable.full",
    "flush.done",
    "sstable.durable",
    "transaction.commit",
    "transaction.redone",
    "transaction.undone",
    "compaction.done",
    "compaction.purged",
    "compaction.unpurged",
    "compaction.void",
    "rows.kept",
    "rows.overtaken",
    "rows.rest",
    "replay.applied",
    "replay.covered",
    "replay.torn",
    "replay.flush",
    "truncate.recorded",
];

/// Those that a whole node must reach too: the engine alone has no batches and counts nothing.
pub const REQUIRED_OF_NODES: &[&str] = &[
    "write.logged_batch",
    "write.unlogged_batch",
    "batch.replayed",
    "counter.add",
    "counter.batch",
    "counter.batch_of_keys",
    "counter.contended",
    "counter.delete",
    "counter.read",
    "counter.truncate",
    "counters.kept",
];

/// Those of worlds of conditional statements, which do less else.
pub const REQUIRED_OF_CONDITIONS: &[&str] = &[
    "kill",
    "power_cut",
    "crash_while_starting",
    "node.drained",
    "other_shards",
    "writes_in_doubt",
    "clock_forward",
    "clock_back",
    "slow_disk",
    "bad_syncs",
    "sync_error",
    "cut_lost_bytes",
    "commitlog.failed",
    "flush.done",
    "compaction.done",
    "replay.applied",
    "cas.applied",
    "cas.refused",
    "cas.unknown",
    "paxos.unfinished",
];

/// Those of rings of several nodes.
pub const REQUIRED_OF_RINGS: &[&str] = &[
    // what goes wrong
    "kill",
    "power_cut",
    "ring.ordered",
    "ring.disk_ended",
    "ring.cut_off",
    "ring.parted",
    "ring.centers_parted",
    "ring.far",
    "loss",
    "reset",
    "tcp_timeout",
    "clock_forward",
    "clock_back",
    "slow_disk",
    "bad_syncs",
    "sync_error",
    "disk.lost_write",
    // what clients do
    "ring.write",
    "ring.read",
    "ring.scan",
    "ring.page",
    "ring.count",
    "ring.condition",
    "ring.batch",
    "ring.defined",
    // branches of the code
    "batch.written_late",
    "cas.applied",
    "cas.refused",
    "paxos.unfinished",
    "commitlog.failed",
    "gossip.down",
    "gossip.shadow_round",
    "hint.delivered",
    "hint.kept",
    "read.mismatch",
    "read.repaired",
    "read.speculated",
    "replay.applied",
    "schema.pulled",
    "schema.pushed",
];

/// Those of rings that nodes join and leave.
pub const REQUIRED_OF_ELASTIC: &[&str] = &[
    // operations
    "elastic.join",
    "elastic.survey",
    "elastic.decommission",
    "elastic.remove",
    "elastic.replace",
    "elastic.replace_in_place",
    "elastic.move",
    "elastic.cleanup",
    "elastic.rebuild",
    "elastic.assassinate",
    "elastic.resume",
    "elastic.abandoned",
    "elastic.assassinated_newcomer",
    "elastic.two_at_once",
    "elastic.refused",
    // of the nodes: data on its way
    "ranges.moving",
    "ranges.moved",
];

/// Those of rings that are repaired, beside what befalls nodes at each step
/// (`ring::repair::names`).
pub const REQUIRED_OF_REPAIR: &[&str] = &[
    // repairs
    "repair.full",
    "repair.incremental",
    "repair.preview",
    "repair.primary",
    "repair.subrange",
    "repair.sequential",
    "repair.optimised",
    "repair.of_hosts",
    "repair.forced",
    "repair.failed",
    "repair.two_at_once",
    "repair.cancelled",
    "repair.cancelled_by_force",
    // what clients do
    "repair.missed",
    "repair.expires",
    "repair.delete_cell",
    "repair.delete_row",
    "repair.delete_range",
    "repair.delete_partition",
    // branches of the code
    "compaction.purged",
    "repair.purged_in_time",
    "repair.purged_too_early",
    "repair.stamped",
    "repair.compaction_stopped",
    "repair.prepare",
    "repair.set_apart",
    "repair.validate",
    "repair.stream",
    "repair.promise",
    "repair.commit",
    "repair.clean_up",
];

/// Branches that a test of their own reaches: worlds do not alter tables or archive, and only those
/// of the engine alone capture.
pub const REACHED_BY_TESTS: &[&str] = &[
    "cas.outdated",
    "cdc.forbidden",
    "cdc.oldest_deleted",
    "cdc.replayed",
    "commitlog.archived",
    "commitlog.not_archived",
    "commitlog.restored",
    "counters.overtaken",
    "compaction.garbage",
    "compaction.reduced",
    "disk.failed",
    "disk.put_aside",
    "flush.failed",
    "memtable.refused",
    "replay.too_late",
];

/// Sums over seeds.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// By name: how often it fired, and in how many worlds.
    counts: BTreeMap<&'static str, (u64, u64)>,
    /// Worlds counted.
    pub worlds: u64,
    /// Operations of clients.
    pub operations: u64,
    /// The fewest operations of a world.
    pub fewest_operations: Option<u64>,
    /// Steps of worlds.
    pub steps: u64,
    /// Stands for all that happened, in whatever order the worlds ran.
    pub trace: u64,
}

impl Coverage {
    /// Of runs that must reach these names.
    pub fn of(required: impl IntoIterator<Item = &'static str>) -> Self {
        let counts = required.into_iter().map(|name| (name, (0, 0))).collect();
        Self { counts, ..Self::default() }
    }

    /// Adds a world.
    pub fn add(&mut self, outcome: &Outcome) {
        for (name, count) in outcome.faults.iter().chain(&outcome.marks) {
            let sum = self.counts.entry(name).or_default();
            sum.0 += count;
            sum.1 += u64::from(*count > 0);
        }
        self.worlds += 1;
        self.operations += outcome.operations;
        let fewest = self.fewest_operations.unwrap_or(u64::MAX);
        self.fewest_operations = Some(fewest.min(outcome.operations));
        self.steps += outcome.steps;
        self.trace = self.trace.wrapping_add(outcome.trace);
    }

    /// What must happen and never did.
    pub fn missing(&self) -> Vec<&'static str> {
        self.counts.iter().filter(|(_, count)| count.0 == 0).map(|(name, _)| *name).collect()
    }
}

impl std::fmt::Display for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{} worlds, {} operations (at least {} each), {} steps, trace {:016x}",
            self.worlds,
            self.operations,
            self.fewest_operations.unwrap_or(0),
            self.steps,
            self.trace
        )?;
        for (name, (count, worlds)) in &self.counts {
            writeln!(f, "  {name:<28}{count:>10} in {worlds:>6} worlds")?;
        }
        Ok(())
    }
}
