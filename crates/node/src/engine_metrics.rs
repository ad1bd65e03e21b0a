//! What the storage engine counts, shown.

use std::rc::Rc;

use metrics::{Name, Registry, Unit};
use storage::commitlog::{CommitLog, LogStats};
use storage::{CacheKind, CacheStats, Engine, NodeStats};

use crate::figures::gauge;

/// Shows what the engine of this shard counts.
pub(crate) fn register_engine(registry: &Registry, engine: &Rc<Engine>) {
    register_caches(registry, engine);
    register_memtables(registry, engine);
    register_log(registry, engine);
    if engine.env().shard() == 0 {
        register_background(registry, engine);
    }
}

fn register_caches(registry: &Registry, engine: &Rc<Engine>) {
    for kind in CacheKind::ALL {
        let scope = match kind {
            CacheKind::Chunks => "ChunkCache",
            CacheKind::Keys => "KeyCache",
            CacheKind::Rows => "RowCache",
            CacheKind::Counters => "CounterCache",
        };
        let name = |name| Name::new("Cache", name).scope(scope);
        let count = |of, help, value: fn(CacheStats) -> u64| {
            let engine = Rc::clone(engine);
            let probe = move || value(engine.caches().stats(kind));
            registry.count_probe(name(of), Unit::Count, help, probe);
        };
        count("Hits", "Lookups that found an entry.", |stats| stats.hits);
        count("Misses", "Lookups that found no entry.", |stats| stats.misses);
        count("Requests", "Lookups.", |stats| stats.requests());
        count("Evictions", "Entries evicted.", |stats| stats.evictions);
        let show = |of, unit, help, value: fn(CacheStats) -> u64| {
            let engine = Rc::clone(engine);
            let probe = move || gauge(value(engine.caches().stats(kind)));
            registry.probe(name(of), unit, help, probe);
        };
        show("Entries", Unit::Count, "Entries.", |stats| stats.entries);
        show("Size", Unit::Bytes, "Bytes of the entries.", |stats| stats.bytes);
        show("Capacity", Unit::Bytes, "Limit of the entries' bytes.", |stats| stats.capacity);
    }
    let open = Rc::clone(engine);
    registry.probe(
        Name::new("Storage", "OpenSSTables"),
        Unit::Count,
        "SSTables that shards have open.",
        move || gauge(open.open_sstables()),
    );
}

fn register_memtables(registry: &Registry, engine: &Rc<Engine>) {
    let waits = Rc::clone(engine);
    registry.count_probe(
        Name::new("MemtablePool", "BlockedOnAllocation"),
        Unit::Count,
        "Writes that waited for memtable memory.",
        move || waits.stats.waits_for_memory.get(),
    );
    let mutations = Rc::clone(engine);
    registry.count_probe(
        Name::new("MemtablePool", "Mutations"),
        Unit::Count,
        "Mutations merged into memtables.",
        move || mutations.stats.mutations.get(),
    );
    let reads = Rc::clone(engine);
    registry.count_probe(
        Name::new("Storage", "Reads"),
        Unit::Count,
        "Reads of partitions and ranges from memtables and SSTables.",
        move || reads.reads(),
    );
    let size = Rc::clone(engine);
    registry.probe(
        Name::new("MemtablePool", "Size"),
        Unit::Bytes,
        "Bytes in memtables, frozen ones included.",
        move || gauge(size.memtable_bytes()),
    );
    let kept = Rc::clone(engine);
    registry.probe(
        Name::new("MemtablePool", "Kept"),
        Unit::Bytes,
        "Bytes in retained memtables.",
        move || gauge(kept.kept_bytes()),
    );
    let capacity = Rc::clone(engine);
    registry.probe(
        Name::new("MemtablePool", "Capacity"),
        Unit::Bytes,
        "Bytes in memtables above which writes wait.",
        move || gauge(capacity.memory_lease()),
    );
}

fn register_log(registry: &Registry, engine: &Rc<Engine>) {
    let count = |name, unit, help, value: fn(&LogStats) -> u64| {
        let engine = Rc::clone(engine);
        registry.count_probe(Name::new("CommitLog", name), unit, help, move || {
            engine.log().map_or(0, |log| value(&log.stats))
        });
    };
    count("CompletedTasks", Unit::Count, "Records appended.", |stats| stats.records.get());
    count("Written", Unit::Bytes, "Bytes appended.", |stats| stats.bytes.get());
    count("Syncs", Unit::Count, "Syncs completed.", |stats| stats.syncs.get());
    count(
        "WaitingOnSegmentAllocation",
        Unit::Count,
        "Writes that found no free segment and waited.",
        |stats| stats.waits_for_segment.get(),
    );
    count(
        "WaitingOnWriting",
        Unit::Count,
        "Writes that waited because writing to the files lagged.",
        |stats| stats.waits_for_writing.get(),
    );
    count("WaitingOnCommit", Unit::Count, "Writes that waited for a sync.", |stats| {
        stats.waits_for_sync.get()
    });
    let show = |name, unit, help, value: fn(&CommitLog) -> i64| {
        let engine = Rc::clone(engine);
        registry.probe(Name::new("CommitLog", name), unit, help, move || {
            engine.log().map_or(0, |log| value(log))
        });
    };
    show("PendingTasks", Unit::Count, "Writes that wait for a sync now.", |log| {
        gauge(log.pending().waiters)
    });
    show("PendingSections", Unit::Count, "Sections that wait to be written.", |log| {
        gauge(log.pending().sections)
    });
    show("Pending", Unit::Bytes, "Bytes appended and not synced.", |log| {
        gauge(log.pending().bytes)
    });
    show("Unwritten", Unit::Bytes, "Bytes appended and not written to a file.", |log| {
        gauge(log.pending().unwritten)
    });
    show("TotalCommitLogSize", Unit::Bytes, "Bytes of all segments.", |log| gauge(log.size().0));
    show("Segments", Unit::Count, "Segments.", |log| gauge(log.size().1));
    show("Failed", Unit::Count, "Commit logs that failed and accept no more writes.", |log| {
        i64::from(log.failure().is_some())
    });
}

/// What the node does once for all shards.
fn register_background(registry: &Registry, engine: &Rc<Engine>) {
    let count = |kind, name, unit, help, value: fn(&NodeStats) -> u64| {
        let engine = Rc::clone(engine);
        registry.count_probe(Name::new(kind, name), unit, help, move || {
            engine.node().map_or(0, |node| value(&node.stats))
        });
    };
    count("Compaction", "TotalCompactionsCompleted", Unit::Count, "Compactions completed.", |s| {
        s.compactions.get()
    });
    count("Compaction", "CompletedTasks", Unit::Count, "Compactions completed.", |s| {
        s.compactions.get()
    });
    count("Compaction", "BytesCompacted", Unit::Bytes, "Bytes that compactions read.", |s| {
        s.compacted_bytes.get()
    });
    count("Flush", "Completed", Unit::Count, "Flushes that wrote an SSTable.", |s| s.flushes.get());
    count("Flush", "Written", Unit::Bytes, "Bytes that flushes wrote.", |s| s.flushed_bytes.get());
    count("Storage", "Exceptions", Unit::Count, "Flushes and compactions that failed.", |s| {
        s.failures.get()
    });
    let show = |kind, name, unit, help, value: fn(&Engine) -> i64| {
        let engine = Rc::clone(engine);
        registry.probe(Name::new(kind, name), unit, help, move || value(&engine));
    };
    show("Compaction", "Running", Unit::Count, "Compactions under way.", |engine| {
        engine.node().map_or(0, |node| gauge(node.compactions().running().len()))
    });
    show("Flush", "Pending", Unit::Count, "Tables that wait to be flushed.", |engine| {
        engine.node().map_or(0, |node| gauge(node.flushes().wanted()))
    });
    show("Storage", "Failed", Unit::Count, "1 if background work failed since the start.", |e| {
        e.node().map_or(0, |node| i64::from(node.failure().is_some()))
    });
    count("Storage", "DiskFailures", Unit::Count, "Failed disk operations.", |s| {
        s.disk_failures.get()
    });
    show("Flush", "Failing", Unit::Count, "Tables whose last flush failed.", |engine| {
        engine.node().map_or(0, |node| gauge(node.flushes().unflushed()))
    });
    show(
        "Storage",
        "Aside",
        Unit::Count,
        "SSTables and directories put aside as unreadable.",
        |engine| engine.node().map_or(0, |node| gauge(node.failures().aside_count())),
    );
    show(
        "Storage",
        "Disallowed",
        Unit::Count,
        "Table directories no longer used after a disk failure.",
        |engine| engine.node().map_or(0, |node| gauge(node.failures().disallowed_count())),
    );
    show("Storage", "Load", Unit::Bytes, "Bytes of live SSTables.", |engine| {
        gauge(engine.disk_bytes())
    });
}
