//! Percentiles of tables, for `nodetool tablehistograms`.

use std::sync::Arc;

use admin::{PartitionHistograms, Percentiles, Sizes, TableHistograms};
use cluster::Shard;
use metrics::Distribution;
use schema::TableId;
use sstable::histogram::EstimatedHistogram;
use storage::shards::Stopping;
use storage::{Measure, SSTable};

use crate::measures::measured_by_all;

/// The shares whose percentiles are shown.
const SHARES: [f64; 5] = [0.5, 0.75, 0.95, 0.98, 0.99];

/// Those of the tables that are wanted.
///
/// # Errors
/// If a shard ends first.
pub(crate) async fn histograms(
    shard: &Shard,
    wanted: impl Fn(TableId) -> bool,
) -> Result<Vec<TableHistograms>, Stopping> {
    let reads = measured_by_all(shard, Measure::LocalRead).await?;
    let writes = measured_by_all(shard, Measure::LocalWrite).await?;
    let sstables = measured_by_all(shard, Measure::SSTablesPerRead).await?;
    let schema = shard.engine().schema();
    let tables = schema.keyspaces().values().flat_map(|keyspace| keyspace.tables.values());
    let mut all = Vec::new();
    for table in tables.filter(|table| !table.is_virtual() && wanted(table.id)) {
        let Ok(store) = shard.engine().store(table.id) else { continue };
        let live = store.live();
        all.push(TableHistograms {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            read_micros: recent(reads.get(&table.id)),
            write_micros: recent(writes.get(&table.id)),
            // counted with one more
            sstables_per_read: recent(sstables.get(&table.id))
                .values()
                .map(|value| (value - 1.0).max(0.0))
                .into(),
            partitions: partitions(live.tables()),
        });
    }
    Ok(all)
}

pub(crate) fn recent(of: Option<&Distribution>) -> Percentiles {
    let Some(of) = of else { return Percentiles::default() };
    let [a, b, c, d, e] = SHARES.map(|share| of.quantile(share) as f64);
    [a, b, c, d, e, of.recent_min() as f64, of.recent_max() as f64].into()
}

/// Of bytes and of cells.
fn partitions(tables: &[Arc<SSTable>]) -> Option<PartitionHistograms> {
    let stats = |table: &Arc<SSTable>| Arc::clone(&table.table);
    let bytes = sum(tables.iter().map(|t| stats(t).statistics.stats.partition_sizes.clone()))?;
    let cells = sum(tables.iter().map(|t| stats(t).statistics.stats.cell_counts.clone()))?;
    Some(PartitionHistograms { bytes: sizes(&bytes), cells: sizes(&cells) })
}

/// All together, in the buckets of that with the most.
fn sum(all: impl Iterator<Item = EstimatedHistogram>) -> Option<EstimatedHistogram> {
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|histogram| std::cmp::Reverse(histogram.offsets().len()));
    let mut all = all.into_iter();
    let mut sum = all.next()?;
    for more in all {
        if sum.merge(&more).is_some() {
            continue;
        }
        let offsets = more.offsets().iter().chain([&i64::MAX]);
        let counts = more.counts().iter().zip(offsets);
        for (count, offset) in counts.filter(|(count, _)| **count > 0) {
            sum.add_many(*offset, *count);
        }
    }
    Some(sum)
}

fn sizes(of: &EstimatedHistogram) -> Sizes {
    let [a, b, c, d, e] = SHARES.map(|share| of.percentile(share).map_or(f64::NAN, |v| v as f64));
    let limit = || of.offsets().last().copied().unwrap_or(i64::MAX);
    Sizes {
        percentiles: [a, b, c, d, e, of.min() as f64, of.max() as f64].into(),
        beyond: of.is_overflowed().then(limit),
    }
}
