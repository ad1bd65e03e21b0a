//! Metrics of tables: a bounded number of them, users' before the system's.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use metrics::{Histogram, Name, Registry, Unit};
use schema::{Schema, TableId};
use storage::{CasStep, Engine, LiveSet, Measure, TableStats, TableStore};

use crate::figures::{NANOS, gauge};
use crate::own_keyspaces::is_system;
use crate::table_stats::percent_repaired;

/// Tables with series of their own; those beyond are only counted.
const SHOWN_TABLES: usize = 256;
/// Millionths in a percent, in which a gauge of a share is kept.
const PERCENT_MILLIONTHS: f64 = 10_000.0;

/// What is shown of a table only where `metrics_per_table` is `all`: no dashboard needs it. Of the
/// others k8ssandra's dashboards, Reaper and those in `packaging/grafana` ask for some.
const FURTHER: &[&str] = &[
    "BloomFilterFalsePositives",
    "CasCommits",
    "CasCommitTotalLatency",
    "CasPrepares",
    "CasPrepareTotalLatency",
    "CasProposes",
    "CasProposeTotalLatency",
    "LiveScannedHistogram",
    "SpeculativeRetries",
];

/// Numbers of a table that only grow, which all shards count.
const COUNTS: &[(&str, Unit, &str, fn(&TableStats) -> u64)] = &[
    ("Reads", Unit::Count, "Reads of partitions.", |s| s.reads.get()),
    ("ReadTotalLatency", Unit::Micros, "Time of reads of partitions.", |s| s.read_ns.get() / NANOS),
    ("RangeReads", Unit::Count, "Reads of ranges.", |s| s.range_reads.get()),
    ("Writes", Unit::Count, "Writes.", |s| s.writes.get()),
    ("WriteTotalLatency", Unit::Micros, "Time of writes in memtables.", |s| {
        s.write_ns.get() / NANOS
    }),
    ("CasPrepares", Unit::Count, "Ballots of conditional requests answered.", |s| {
        s.cas(CasStep::Prepare).count.get()
    }),
    ("CasPrepareTotalLatency", Unit::Micros, "Time of ballots.", |s| {
        s.cas(CasStep::Prepare).ns.get() / NANOS
    }),
    ("CasProposes", Unit::Count, "Proposals of conditional requests answered.", |s| {
        s.cas(CasStep::Propose).count.get()
    }),
    ("CasProposeTotalLatency", Unit::Micros, "Time of proposals.", |s| {
        s.cas(CasStep::Propose).ns.get() / NANOS
    }),
    ("CasCommits", Unit::Count, "Conditional writes committed.", |s| {
        s.cas(CasStep::Commit).count.get()
    }),
    ("CasCommitTotalLatency", Unit::Micros, "Time of commits.", |s| {
        s.cas(CasStep::Commit).ns.get() / NANOS
    }),
    (
        "DroppedMutations",
        Unit::Count,
        "Mutations of other nodes that came too late and were dropped.",
        |s| s.dropped_mutations.get(),
    ),
    ("MemtableSwitchCount", Unit::Count, "Flushes that wrote SSTables.", |s| s.flushes.get()),
    ("CompactionBytesWritten", Unit::Bytes, "Bytes that compactions wrote.", |s| {
        s.compacted_to.get()
    }),
    (
        "BloomFilterFalsePositives",
        Unit::Count,
        "SSTables read because of a bloom filter false positive.",
        |s| s.filter_misses.get(),
    ),
    ("SpeculativeRetries", Unit::Count, "Speculative retries.", |s| s.speculative_retries.get()),
];

/// Distributions that all shards keep of a table.
const MEASURES: &[(&str, Unit, &str, Measure)] = &[
    ("ReadLatency", Unit::Micros, "Time of reads of partitions.", Measure::LocalRead),
    ("RangeLatency", Unit::Micros, "Time of reads of ranges.", Measure::LocalScan),
    ("WriteLatency", Unit::Micros, "Time of writes in memtables.", Measure::LocalWrite),
    (
        "CoordinatorReadLatency",
        Unit::Micros,
        "Time of reads of partitions that clients of this node asked for.",
        Measure::CoordinatorRead,
    ),
    (
        "CoordinatorScanLatency",
        Unit::Micros,
        "Time of reads of ranges that clients of this node asked for.",
        Measure::CoordinatorScan,
    ),
    (
        "CoordinatorWriteLatency",
        Unit::Micros,
        "Time of writes that clients of this node asked for.",
        Measure::CoordinatorWrite,
    ),
    (
        "TombstoneScannedHistogram",
        Unit::Count,
        "Tombstones that a read met.",
        Measure::TombstonesPerRead,
    ),
    ("LiveScannedHistogram", Unit::Count, "Live rows that a read met.", Measure::RowsPerRead),
    (
        "SSTablesPerReadHistogram",
        Unit::OneMore,
        "SSTables that a read of a partition took something from.",
        Measure::SSTablesPerRead,
    ),
];

/// The tables to show: all shards come to the same answer, as the schema is the same.
fn shown(schema: &Schema) -> (BTreeSet<TableId>, usize) {
    let tables = schema.keyspaces().values().flat_map(|keyspace| keyspace.tables.values());
    let mut tables: Vec<_> = tables.filter(|table| !table.is_virtual()).collect();
    tables.sort_by_key(|table| (is_system(&table.keyspace), &table.keyspace, &table.name));
    let hidden = tables.len().saturating_sub(SHOWN_TABLES);
    (tables.iter().take(SHOWN_TABLES).map(|table| table.id).collect(), hidden)
}

/// The tables that a shard's metrics show.
pub(crate) struct ShownTables {
    all_metrics: bool,
    tables: RefCell<BTreeSet<TableId>>,
}

impl ShownTables {
    /// None yet; with every metric of each, or with those that are asked for.
    pub fn new(all_metrics: bool) -> Self {
        Self { all_metrics, tables: RefCell::default() }
    }

    /// Which they are.
    pub fn ids(&self) -> BTreeSet<TableId> {
        self.tables.borrow().clone()
    }

    /// Lets the metrics show the schema's tables of now.
    pub fn show(&self, registry: &Registry, engine: &Engine) {
        let (wanted, hidden) = shown(&engine.schema());
        let mut known = self.tables.borrow_mut();
        if *known == wanted {
            return;
        }
        let is_first = engine.env().shard() == 0;
        registry.remove(|name| name.kind == "Table");
        for id in &wanted {
            if let Ok(store) = engine.store(*id) {
                self.show_table(registry, &store, is_first);
            }
        }
        if is_first {
            let set = |name, help, value: usize| {
                let name = Name::new("Storage", name);
                registry.gauge(name, Unit::Count, help).set(gauge(value));
            };
            set("TablesNotShown", "Tables without series of their own.", hidden);
            let further = if self.all_metrics { 0 } else { FURTHER.len() };
            set("TableMetricsNotShown", "Metrics that metrics_per_table leaves out.", further);
        }
        *known = wanted;
    }

    fn show_table(&self, registry: &Registry, store: &Rc<TableStore>, is_first: bool) {
        let table = store.table();
        let name = |of| Name::of_table(&table.keyspace, &table.name, of);
        let is_wanted = |of: &&str| self.all_metrics || !FURTHER.contains(of);
        for (of, unit, help, value) in COUNTS.iter().filter(|(of, ..)| is_wanted(of)) {
            let (store, value) = (Rc::clone(store), *value);
            registry.count_probe(name(of), *unit, help, move || value(&store.stats));
        }
        for (of, unit, help, measure) in MEASURES.iter().filter(|(of, ..)| is_wanted(of)) {
            let (store, measure) = (Rc::clone(store), *measure);
            registry.histogram_probe(name(of), *unit, help, move || {
                store.stats.measure(measure).map(Histogram::distribution)
            });
        }
        show_memory(registry, store, name);
        if is_first {
            // SSTables are the node's: the first shard shows them.
            show_sstables(registry, store, name);
        }
    }
}

fn show_memory(registry: &Registry, store: &Rc<TableStore>, name: impl Fn(&'static str) -> Name) {
    let show = |of, help, value: fn(&TableStore) -> usize| {
        let store = Rc::clone(store);
        registry.probe(name(of), Unit::Bytes, help, move || gauge(value(&store)));
    };
    show("MemtableLiveDataSize", "Bytes in the memtable.", |store| store.memtable_bytes().0);
    show("MemtableFrozenSize", "Bytes in memtables being flushed.", |store| {
        store.memtable_bytes().1
    });
    show(
        "MemtableOffHeapSize",
        "Bytes in the memtable, all of them outside of a Java heap.",
        |s| s.memtable_bytes().0,
    );
    show("MemtableOnHeapSize", "Always 0: this node has no Java heap.", |_| 0);
}

fn show_sstables(registry: &Registry, store: &Rc<TableStore>, name: impl Fn(&'static str) -> Name) {
    let show = |of, unit, help, value: fn(&LiveSet) -> i64| {
        let store = Rc::clone(store);
        registry.probe(name(of), unit, help, move || value(&store.live()));
    };
    let bytes =
        |live: &LiveSet| gauge(live.tables().iter().map(|of| of.bytes_on_disk).sum::<u64>());
    show("LiveSSTableCount", Unit::Count, "SSTables.", |live| gauge(live.tables().len()));
    show("LiveDiskSpaceUsed", Unit::Bytes, "Bytes of SSTables.", bytes);
    show(
        "TotalDiskSpaceUsed",
        Unit::Bytes,
        "The same: SSTables that are replaced go at once.",
        bytes,
    );
    show("PercentRepaired", Unit::Percent, "Share of the data that is repaired.", |live| {
        gauge((percent_repaired(live.tables()) * PERCENT_MILLIONTHS) as i64)
    });
}
