//! Metrics of tables: a bounded number of them, users' before the system's.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use metrics::{Name, Registry, Unit};
use schema::{Schema, TableId};
use storage::{CasStep, Engine, TableStats, TableStore};

use crate::figures::{NANOS, gauge};
use crate::own_keyspaces::is_system;

/// Tables with series of their own; those beyond are only counted.
const SHOWN_TABLES: usize = 256;

/// Numbers of a table that only grow.
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
    ("MemtableSwitchCount", Unit::Count, "Memtables flushed.", |s| s.flushes.get()),
    (
        "BloomFilterFalsePositives",
        Unit::Count,
        "SSTables read because of a bloom filter false positive.",
        |s| s.filter_misses.get(),
    ),
    ("SpeculativeRetries", Unit::Count, "Speculative retries.", |s| s.speculative_retries.get()),
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
#[derive(Default)]
pub(crate) struct ShownTables(RefCell<BTreeSet<TableId>>);

impl ShownTables {
    /// Lets the metrics show the schema's tables of now.
    pub fn show(&self, registry: &Registry, engine: &Engine) {
        let (wanted, hidden) = shown(&engine.schema());
        let mut known = self.0.borrow_mut();
        if *known == wanted {
            return;
        }
        let is_first = engine.env().shard() == 0;
        registry.remove(|name| name.kind == "Table");
        for id in &wanted {
            if let Ok(store) = engine.store(*id) {
                show_table(registry, &store, is_first);
            }
        }
        if is_first {
            let name = Name::new("Storage", "TablesNotShown");
            let help = "Tables without series of their own.";
            registry.gauge(name, Unit::Count, help).set(gauge(hidden));
        }
        *known = wanted;
    }
}

fn show_table(registry: &Registry, store: &Rc<TableStore>, is_first: bool) {
    let table = store.table();
    let name = |of| Name::of_table(&table.keyspace, &table.name, of);
    for (of, unit, help, value) in COUNTS {
        let (store, value) = (Rc::clone(store), *value);
        registry.count_probe(name(of), *unit, help, move || value(&store.stats));
    }
    let show = |of, unit, help, value: fn(&TableStore) -> i64| {
        let store = Rc::clone(store);
        registry.probe(name(of), unit, help, move || value(&store));
    };
    show("MemtableLiveDataSize", Unit::Bytes, "Bytes in the memtable.", |store| {
        gauge(store.memtable_bytes().0)
    });
    show("MemtableFrozenSize", Unit::Bytes, "Bytes in memtables being flushed.", |store| {
        gauge(store.memtable_bytes().1)
    });
    if !is_first {
        // SSTables are the node's: the first shard shows them.
        return;
    }
    show("LiveSSTableCount", Unit::Count, "SSTables.", |store| gauge(store.live().tables().len()));
    show("LiveDiskSpaceUsed", Unit::Bytes, "Bytes of SSTables.", |store| {
        gauge(store.live().tables().iter().map(|table| table.bytes_on_disk).sum::<u64>())
    });
}
