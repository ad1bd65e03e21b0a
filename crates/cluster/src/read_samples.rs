//! What a read of this node gives to the samples of a table (`nodetool profileload`), where
//! Cassandra takes them: `SinglePartitionReadCommand`, `ReadCommand`, `ReadExecutionController`.

use env::Instant;
use schema::TableId;
use storage::{Engine, Sampler};

use crate::request_metrics::micros;
use crate::scanned::Scanned;

/// A read of a partition.
pub(crate) struct PartitionRead<'a> {
    pub table: TableId,
    pub key: &'a [u8],
    /// Was it asked for by its key, and not by a range? Then how many SSTables had a part of it.
    pub sstables: Option<usize>,
    pub scanned: Scanned,
}

impl PartitionRead<'_> {
    /// Gives it to the samples, if anything of its table is sampled.
    pub fn sample(&self, engine: &Engine) {
        let Some(store) = engine.sampled(self.table) else { return };
        let now = engine.env().now();
        let take = |sampler, count| store.samples.take(sampler, now, count, self.key);
        if let Some(sstables) = self.sstables {
            take(Sampler::Reads, 1);
            take(Sampler::ReadSSTableCount, sstables as u64);
        }
        take(Sampler::ReadRowCount, self.scanned.live);
        take(Sampler::ReadTombstoneCount, self.scanned.tombstones);
    }
}

/// A read that began so has ended. Its text is made only where it is sampled.
pub(crate) fn sample_time(
    engine: &Engine,
    table: TableId,
    started: Instant,
    text: impl FnOnce() -> String,
) {
    let store = engine.sampled(table);
    let Some(store) = store.filter(|store| store.samples.has(Sampler::LocalReadTime)) else {
        return;
    };
    let now = engine.env().now();
    store.samples.take(Sampler::LocalReadTime, now, micros(now.since(started)), text());
}
