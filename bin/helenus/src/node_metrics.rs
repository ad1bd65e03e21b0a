//! The node's metrics: each shard shows what its layers count, the first one gathers them all.

use std::rc::Rc;

use cluster::Shard;
use metrics::{Name, Registry, Snapshot, Unit, prometheus};
use storage::commitlog::{CommitLog, LogStats};
use storage::shards::HasShards;
use storage::{CacheKind, CacheStats, Engine, NodeStats, Replay};

use crate::node::Node;

/// Nanoseconds in a microsecond, which is what metrics keep times in.
pub(crate) const NANOS: u64 = 1000;

/// A number of things as a gauge shows it.
pub(crate) fn gauge(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

impl Node {
    /// This shard's metrics as they are now.
    pub fn snapshot(&self) -> Snapshot {
        *self.observed.borrow_mut() = self.env().stats();
        self.show_tables();
        self.registry.snapshot()
    }

    /// The node's metrics as Prometheus text; on the first shard. What a shard that ends no longer
    /// tells is missing.
    pub(crate) async fn metrics_text(self: &Rc<Self>) -> String {
        let mut snapshots = Vec::with_capacity(self.shards().count());
        for shard in 0..self.shards().count() {
            snapshots.extend(self.shards().call(shard, |node| node.snapshot()).await.ok());
        }
        prometheus::write(&[Snapshot::merge(snapshots)])
    }

    /// Shows what the layers of this shard count.
    pub(crate) fn register(&self, shard: &Rc<Shard>) {
        let registry = &self.registry;
        self.register_loop();
        register_clock(self);
        register_prepared(registry, shard);
        register_caches(registry, self.engine());
        register_memtables(registry, self.engine());
        register_log(registry, self.engine());
        if self.env().shard() == 0 {
            register_background(registry, self.engine());
        }
    }

    /// Shows what the start found in the commit log.
    pub(crate) fn replay_metrics(&self, replay: &Replay) {
        let show = |name, value: i64, help| {
            self.registry.gauge(Name::new("CommitLog", name), Unit::Count, help).set(value);
        };
        show("ReplayApplied", gauge(replay.applied), "Commit log records that the start replayed.");
        show(
            "ReplayCovered",
            gauge(replay.covered),
            "Commit log records that were in SSTables already.",
        );
        show(
            "ReplayUnknown",
            gauge(replay.unknown),
            "Commit log records of tables that no longer exist.",
        );
        show("ReplayTorn", gauge(replay.torn.len()), "Commit log segments that a crash cut off.");
    }
}

fn register_clock(node: &Node) {
    if node.env().shard() != 0 {
        return;
    }
    let (env, started) = (node.env().clone(), node.started);
    let (registry, limits) = (&node.registry, node.connections().clone());
    let behind = env.clone();
    let micros = |time: std::time::Duration| gauge(time.as_micros());
    registry.probe(
        Name::new("Clock", "Behind"),
        Unit::Micros,
        "How far the clock is behind the node's last timestamp.",
        move || micros(behind.clock_behind()),
    );
    registry.probe(Name::new("Node", "Uptime"), Unit::Micros, "Time since the start.", move || {
        micros(env.now().since(started))
    });
    registry.probe(
        Name::new("Client", "ConnectionsOfNode"),
        Unit::Count,
        "Connections that count against the node's limit.",
        move || gauge(limits.open()),
    );
}

fn register_prepared(registry: &Registry, shard: &Rc<Shard>) {
    let kept = Rc::clone(shard);
    let evicted = Rc::clone(shard);
    registry.probe(
        Name::new("CQL", "PreparedStatementsCount"),
        Unit::Count,
        "Prepared statements in the cache, on every shard.",
        move || gauge(kept.statements().stats().0),
    );
    registry.count_probe(
        Name::new("CQL", "PreparedStatementsEvicted"),
        Unit::Count,
        "Prepared statements evicted from the cache.",
        move || evicted.statements().stats().1,
    );
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
