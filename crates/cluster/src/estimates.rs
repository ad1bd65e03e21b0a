//! `system.size_estimates` and `system.table_estimates`: how many partitions of a table are in each range of the ring,
//! and how large they are. Connectors that read a table by ranges cut their work by it
//! (`db.SizeEstimatesRecorder`). Counted from SSTables and memtables alike.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use rows::{Deletion, Mutation, PartitionUpdate, RowBuilder, UpdateBuilder};
use schema::{Keyspace, Schema, Strategy, Table, TableId};
use storage::{SSTable, StorageError};
use types::Token;

use crate::coordinator::Coordinator;
use crate::internal::{self, Internal, Times};

/// SSTables with fewer samples of their keys are taken to spread them evenly.
const SAMPLES_MIN: usize = 256;
/// The kinds of range of `table_estimates`; on one node they are the same.
const KINDS: [&[u8]; 2] = [b"primary", b"local_primary"];

/// A range of the ring, from after its first token up to its second.
type Range = (Token, Token);

/// What a table has in one range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Estimate {
    partitions: u64,
    mean_size: u64,
}

/// What was last written of each keyspace: by table, of each range.
pub(crate) type Written = BTreeMap<String, BTreeMap<String, Vec<Estimate>>>;

/// What a shard's memtables have of a table: partitions and bytes.
type InMemory = BTreeMap<TableId, (u64, u64)>;

/// The ranges that end at the tokens, the one over the end of the ring in two.
fn ranges(tokens: &BTreeSet<Token>) -> Vec<Range> {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return Vec::new() };
    let mut ranges = vec![(Token(i64::MIN), *first)];
    ranges.extend(tokens.iter().copied().zip(tokens.iter().skip(1).copied()));
    ranges.push((*last, Token(i64::MIN)));
    ranges
}

/// First and last place on the ring of a range.
fn span((from, to): Range) -> (i128, i128) {
    let end = if to.0 == i64::MIN { i64::MAX } else { to.0 };
    (i128::from(from.0) + 1, i128::from(end))
}

/// The share of what lies evenly between two places that is in a range.
fn share(range: Range, first: i128, last: i128) -> f64 {
    let (from, to) = span(range);
    let common = to.min(last) - from.max(first) + 1;
    if common <= 0 { 0.0 } else { common as f64 / (last - first + 1) as f64 }
}

/// Of each range, the share of an SSTable's partitions that is in it.
fn shares(sstable: &SSTable, ranges: &[Range]) -> Vec<f64> {
    let summary = sstable.table.index.summary().filter(|summary| summary.len() >= SAMPLES_MIN);
    let (first, last) = sstable.table.tokens();
    let Some(summary) = summary else {
        let (first, last) = (i128::from(first.0), i128::from(last.0));
        return ranges.iter().map(|range| share(*range, first, last)).collect();
    };
    let mut counts = vec![0u32; ranges.len()];
    for (key, _) in (0..summary.len()).filter_map(|index| summary.entry(index)) {
        let token = Token::of(key);
        // ranges are in order, and each begins where the one before ends
        let at = ranges.partition_point(|(from, _)| *from < token).saturating_sub(1);
        if let Some(count) = counts.get_mut(at) {
            *count += 1;
        }
    }
    counts.iter().map(|count| f64::from(*count) / summary.len() as f64).collect()
}

/// What a table has in each range.
fn estimate(sstables: &[Arc<SSTable>], memory: (u64, u64), ranges: &[Range]) -> Vec<Estimate> {
    let mut sums = vec![(0.0, 0.0); ranges.len()];
    let mut add = |shares: &[f64], partitions: f64, bytes: f64| {
        for (sum, share) in sums.iter_mut().zip(shares) {
            sum.0 += partitions * share;
            sum.1 += bytes * share;
        }
    };
    for sstable in sstables {
        let sizes = &sstable.table.statistics.stats.partition_sizes;
        let partitions = sizes.count() as f64;
        let bytes = partitions * sizes.mean().unwrap_or_default() as f64;
        add(&shares(sstable, ranges), partitions, bytes);
    }
    let even: Vec<f64> = ranges
        .iter()
        .map(|range| share(*range, i128::from(i64::MIN) + 1, i128::from(i64::MAX)))
        .collect();
    add(&even, memory.0 as f64, memory.1 as f64);
    let whole = |(partitions, bytes): (f64, f64)| Estimate {
        partitions: partitions.round() as u64,
        mean_size: if partitions > 0.0 { (bytes / partitions).round() as u64 } else { 0 },
    };
    sums.into_iter().map(whole).collect()
}

impl Coordinator {
    /// Estimates all tables that a client may read by ranges, and writes down what has changed; on the first shard.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn refresh_estimates(self: &Rc<Self>) -> Result<(), StorageError> {
        let schema = self.schema();
        let memory = self.in_memory().await?;
        let ranges = ranges(&self.identity.tokens);
        let is_spread = |keyspace: &&Arc<Keyspace>| {
            !keyspace.is_virtual && keyspace.replication.strategy != Strategy::Local
        };
        let mut found = Written::new();
        for keyspace in schema.keyspaces().values().filter(is_spread) {
            let mut tables = BTreeMap::new();
            for table in keyspace.tables.values() {
                let Ok(store) = self.engine.store(table.id) else { continue };
                let memory = memory.get(&table.id).copied().unwrap_or_default();
                let estimates = estimate(store.live().tables(), memory, &ranges);
                tables.insert(table.name.clone(), estimates);
                self.env.maybe_yield().await;
            }
            found.insert(keyspace.name.clone(), tables);
        }
        let before = self.estimates.borrow().clone();
        let keyspaces: BTreeSet<&String> = before.keys().chain(found.keys()).collect();
        for keyspace in keyspaces.into_iter().filter(|of| before.get(*of) != found.get(*of)) {
            let tables = found.get(keyspace).cloned().unwrap_or_default();
            if let Some(mutation) = self.estimates_of(&schema, keyspace, &tables, &ranges) {
                internal::apply(&self.engine, mutation).await?;
            }
        }
        *self.estimates.borrow_mut() = found;
        Ok(())
    }

    async fn in_memory(&self) -> Result<InMemory, StorageError> {
        let mut all = InMemory::new();
        for shard in 0..self.shards.count() {
            let look = |engine: &Rc<storage::Engine>| {
                let counts = |store: &storage::TableStore| {
                    let mut counts = (0, 0);
                    store.for_each_memtable(|slot| {
                        let memtable = slot.read();
                        counts.0 += memtable.len() as u64;
                        counts.1 += memtable.bytes() as u64;
                    });
                    counts
                };
                let stores = engine.stores();
                stores.iter().map(|(id, store)| (*id, counts(store))).collect::<InMemory>()
            };
            for (id, (partitions, bytes)) in self.engine.shards().call(shard, look).await? {
                let sum = all.entry(id).or_default();
                *sum = (sum.0 + partitions, sum.1 + bytes);
            }
        }
        Ok(all)
    }

    /// A keyspace's rows of both tables, in place of those that were there.
    fn estimates_of(
        &self,
        schema: &Schema,
        keyspace: &str,
        tables: &BTreeMap<String, Vec<Estimate>>,
        ranges: &[Range],
    ) -> Option<Mutation> {
        let times = Times::new(self.env.unique_micros());
        let of = |name| schema.table("system", name);
        let sizes = rows_of(of("size_estimates")?, keyspace, tables, ranges, &[None], &times);
        let kinds = KINDS.map(Some);
        let both = rows_of(of("table_estimates")?, keyspace, tables, ranges, &kinds, &times);
        let mut mutation = Mutation::new(sizes);
        // of the same key, and of another table
        drop(mutation.push(both));
        Some(mutation)
    }
}

fn rows_of(
    table: &Arc<Table>,
    keyspace: &str,
    tables: &BTreeMap<String, Vec<Estimate>>,
    ranges: &[Range],
    kinds: &[Option<&[u8]>],
    times: &Times,
) -> PartitionUpdate {
    let (mut row, mut scratch) = (RowBuilder::new(), RowBuilder::new());
    let key = keyspace.as_bytes();
    let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), key);
    update.delete_partition(Deletion::new(times.timestamp - 1, times.now_seconds));
    let long = |value: u64| Internal::Value((value as i64).to_be_bytes().to_vec());
    for (name, estimates) in tables {
        for ((from, to), estimate) in ranges.iter().zip(estimates) {
            let (from, to) = (from.to_string(), to.to_string());
            let columns = [
                ("mean_partition_size", long(estimate.mean_size)),
                ("partitions_count", long(estimate.partitions)),
            ];
            for kind in kinds {
                let clustering: Vec<&[u8]> = std::iter::once(name.as_bytes())
                    .chain(*kind)
                    .chain([from.as_bytes(), to.as_bytes()])
                    .collect();
                internal::build_row(table, &clustering, &columns, times, &mut row);
                update.add(row.finish_row(&table.layout), &mut scratch);
            }
        }
    }
    update.finish(&mut scratch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_the_ring_once() {
        let tokens = [-100, 0, 7_000_000_000].map(Token).into();
        let all = ranges(&tokens);
        assert_eq!(all.len(), 4);
        assert_eq!((all[0].0, all[3].1), (Token(i64::MIN), Token(i64::MIN)));
        assert!(all.windows(2).all(|pair| pair[0].1 == pair[1].0));
        let (least, most) = (i128::from(i64::MIN) + 1, i128::from(i64::MAX));
        let whole: f64 = all.iter().map(|range| share(*range, least, most)).sum();
        assert!((whole - 1.0).abs() < 1e-9, "{whole}");
        assert_eq!(share((Token(0), Token(10)), 6, 25), 0.25);
    }

    #[test]
    fn what_is_in_memory_is_spread_evenly() {
        let all = ranges(&[Token(-1 << 62), Token(1 << 62)].into());
        let estimates = estimate(&[], (1_000, 100_000), &all);
        let partitions: Vec<u64> = estimates.iter().map(|e| e.partitions).collect();
        assert_eq!(partitions, [250, 500, 250]);
        assert!(estimates.iter().all(|e| e.mean_size == 100));
        assert_eq!(estimate(&[], (0, 0), &all), vec![Estimate::default(); 3]);
    }
}
