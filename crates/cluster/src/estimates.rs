//! `system.size_estimates` and `system.table_estimates`: how many partitions of a table are in each
//! range of the ring, and how large they are. Connectors that read a table by ranges cut their work
//! by it (`db.SizeEstimatesRecorder`). Counted from SSTables and memtables alike.
//!
//! The first shard makes them every minute and writes those that have changed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use ring::{NodeIndex, Ring, TokenRange};
use rows::{Deletion, Mutation, PartitionUpdate, RowBuilder, UpdateBuilder};
use schema::{Keyspace, Schema, Strategy, Table, TableId};
use storage::{SSTable, StorageError};
use types::Token;

use crate::internal::{self, Internal, Times};
use crate::peers::Peers;
use crate::shard_context::ShardContext;

/// SSTables with fewer samples of their keys are taken to spread them evenly.
const SAMPLES_MIN: usize = 256;
/// The kinds of range of `table_estimates`: of which this node is the first replica, and those that
/// end at its tokens if only its data center counts.
const KINDS: [&[u8]; 2] = [b"primary", b"local_primary"];

/// A range of the ring, from after its first token up to its second.
type Range = (Token, Token);

/// What a table has in one range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Estimate {
    partitions: u64,
    mean_size: u64,
}

/// What was last written, by keyspace.
pub(crate) type Written = BTreeMap<String, Estimates>;

/// Estimates of a keyspace, by kind of range.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Estimates {
    ranges: [Vec<Range>; 2],
    /// By table, of each range.
    tables: BTreeMap<String, [Vec<Estimate>; 2]>,
}

/// What a shard's memtables have of a table: partitions and bytes.
type InMemory = BTreeMap<TableId, (u64, u64)>;

/// Ranges in order, the one over the end of the ring in two.
fn unwrapped(ranges: impl Iterator<Item = TokenRange>) -> Vec<Range> {
    let halves = |range: TokenRange| match range.left < range.right || range.right == Token::MIN {
        true => [Some((range.left, range.right)), None],
        false => [Some((range.left, Token::MIN)), Some((Token::MIN, range.right))],
    };
    let mut all: Vec<Range> = ranges.flat_map(halves).flatten().collect();
    all.sort_unstable();
    all
}

/// The ranges that end at the tokens of a node, if there are none but those of its data center.
fn local_primary(ring: &Ring) -> Vec<Range> {
    let near: Vec<(Token, NodeIndex)> =
        ring.tokens().iter().copied().filter(|(_, node)| ring.is_near(*node)).collect();
    let last = near.last().map(|(token, _)| *token);
    let lefts = last.into_iter().chain(near.iter().map(|(token, _)| *token));
    let ranges = lefts.zip(&near).filter(|(_, (_, node))| *node == ring.local());
    unwrapped(ranges.map(|(left, (right, _))| TokenRange { left, right: *right }))
}

fn place(token: Token) -> i128 {
    i128::from(token.0)
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

/// The share of the ring that is in a range.
fn of_ring(range: Range) -> f64 {
    share(range, i128::from(i64::MIN) + 1, i128::from(i64::MAX))
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
        // ranges are in order, and none is in another
        let at = ranges.partition_point(|(from, _)| *from < token).saturating_sub(1);
        let range = ranges.get(at).filter(|range| share(**range, place(token), place(token)) > 0.0);
        if let Some(count) = counts.get_mut(at).filter(|_| range.is_some()) {
            *count += 1;
        }
    }
    counts.iter().map(|count| f64::from(*count) / summary.len() as f64).collect()
}

/// What a table has in each range; `owned` is the share of the ring that this node has a replica
/// of.
fn estimate(
    sstables: &[Arc<SSTable>],
    memory: (u64, u64),
    ranges: &[Range],
    owned: f64,
) -> Vec<Estimate> {
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
    let even: Vec<f64> = ranges.iter().map(|range| of_ring(*range) / owned).collect();
    add(&even, memory.0 as f64, memory.1 as f64);
    let whole = |(partitions, bytes): (f64, f64)| Estimate {
        partitions: partitions.round() as u64,
        mean_size: if partitions > 0.0 { (bytes / partitions).round() as u64 } else { 0 },
    };
    sums.into_iter().map(whole).collect()
}

/// Estimates how large tables are, range by range; on the first shard.
pub struct SizeEstimates {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    /// The estimates that were last written.
    written: RefCell<Written>,
}

impl SizeEstimates {
    pub(crate) fn new(shard: &Rc<ShardContext>, peers: &Rc<Peers>) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            written: RefCell::default(),
        })
    }

    /// Estimates all tables that a client may read by ranges, and writes down what has changed; on
    /// the first shard.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn refresh(&self) -> Result<(), StorageError> {
        let schema = self.shard.schema();
        let memory = self.in_memory().await?;
        // a node that is not a part of the ring yet has nothing to estimate
        let Some(ring) = self.peers.ring() else { return Ok(()) };
        let is_spread = |keyspace: &&Arc<Keyspace>| {
            !keyspace.is_virtual && keyspace.replication.strategy != Strategy::Local
        };
        let near = local_primary(&ring);
        let mut found = Written::new();
        for keyspace in schema.keyspaces().values().filter(is_spread) {
            let Some(placement) = ring.placement(&keyspace.replication.strategy) else { continue };
            let primary = unwrapped(placement.primary_ranges(ring.local()));
            let owned: f64 =
                unwrapped(placement.ranges_of(ring.local())).into_iter().map(of_ring).sum();
            let mut of = Estimates { ranges: [primary, near.clone()], ..Estimates::default() };
            for table in keyspace.tables.values() {
                let Ok(store) = self.shard.engine.store(table.id) else { continue };
                let memory = memory.get(&table.id).copied().unwrap_or_default();
                let [primary, local] = of.ranges.each_ref();
                let first = estimate(store.live().tables(), memory, primary, owned);
                let second = match primary == local {
                    true => first.clone(),
                    false => estimate(store.live().tables(), memory, local, owned),
                };
                of.tables.insert(table.name.clone(), [first, second]);
                self.shard.env.maybe_yield().await;
            }
            found.insert(keyspace.name.clone(), of);
        }
        let before = self.written.borrow().clone();
        let keyspaces: BTreeSet<&String> = before.keys().chain(found.keys()).collect();
        for keyspace in keyspaces.into_iter().filter(|of| before.get(*of) != found.get(*of)) {
            let of = found.get(keyspace).cloned().unwrap_or_default();
            if let Some(mutation) = self.estimates_of(&schema, keyspace, &of) {
                internal::apply(&self.shard.engine, mutation).await?;
            }
        }
        *self.written.borrow_mut() = found;
        Ok(())
    }

    async fn in_memory(&self) -> Result<InMemory, StorageError> {
        let mut all = InMemory::new();
        for shard in 0..self.shard.env.shards() {
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
            for (id, (partitions, bytes)) in self.shard.engine.shards().call(shard, look).await? {
                let sum = all.entry(id).or_default();
                *sum = (sum.0 + partitions, sum.1 + bytes);
            }
        }
        Ok(all)
    }

    /// A keyspace's rows of both tables, in place of those that were there.
    fn estimates_of(&self, schema: &Schema, keyspace: &str, of: &Estimates) -> Option<Mutation> {
        let times = Times::new(self.shard.env.unique_micros());
        let table = |name| schema.table("system", name);
        let sizes = rows_of(table("size_estimates")?, keyspace, of, &[(0, None)], &times);
        let [first, second] = KINDS;
        let kinds = [(0, Some(first)), (1, Some(second))];
        let both = rows_of(table("table_estimates")?, keyspace, of, &kinds, &times);
        let mut mutation = Mutation::new(sizes);
        // of the same key, and of another table
        drop(mutation.push(both));
        Some(mutation)
    }
}

/// Rows of kinds of ranges, each with what it is called, if it is.
fn rows_of(
    table: &Arc<Table>,
    keyspace: &str,
    of: &Estimates,
    kinds: &[(usize, Option<&[u8]>)],
    times: &Times,
) -> PartitionUpdate {
    let (mut row, mut scratch) = (RowBuilder::new(), RowBuilder::new());
    let key = keyspace.as_bytes();
    let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), key);
    update.delete_partition(Deletion::new(times.timestamp - 1, times.now_seconds));
    let long = |value: u64| Internal::Value((value as i64).to_be_bytes().to_vec());
    for (name, estimates) in &of.tables {
        for (at, kind) in kinds {
            let (Some(ranges), Some(estimates)) = (of.ranges.get(*at), estimates.get(*at)) else {
                continue;
            };
            for ((from, to), estimate) in ranges.iter().zip(estimates) {
                let (from, to) = (from.to_string(), to.to_string());
                let columns = [
                    ("mean_partition_size", long(estimate.mean_size)),
                    ("partitions_count", long(estimate.partitions)),
                ];
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

    /// The ranges that end at tokens.
    fn all(tokens: &[i64]) -> Vec<Range> {
        let last = tokens.last().copied();
        let lefts = last.into_iter().chain(tokens.iter().copied());
        let ranges = lefts.zip(tokens);
        unwrapped(
            ranges.map(|(left, right)| TokenRange { left: Token(left), right: Token(*right) }),
        )
    }

    #[test]
    fn ranges_cover_the_ring_once() {
        let all = all(&[-100, 0, 7_000_000_000]);
        assert_eq!(all.len(), 4);
        assert_eq!((all[0].0, all[3].1), (Token::MIN, Token::MIN));
        assert!(all.windows(2).all(|pair| pair[0].1 == pair[1].0));
        let whole: f64 = all.iter().copied().map(of_ring).sum();
        assert!((whole - 1.0).abs() < 1e-9, "{whole}");
        assert_eq!(share((Token(0), Token(10)), 6, 25), 0.25);
        let one = unwrapped(std::iter::once(TokenRange { left: Token(5), right: Token(5) }));
        assert_eq!(one, [(Token::MIN, Token(5)), (Token(5), Token::MIN)]);
        assert_eq!(unwrapped(std::iter::once(TokenRange::ALL)), [(Token::MIN, Token::MIN)]);
    }

    #[test]
    fn what_is_in_memory_is_spread_evenly_over_what_the_node_has() {
        let all = all(&[-1 << 62, 1 << 62]);
        let estimates = estimate(&[], (1_000, 100_000), &all, 1.0);
        let partitions: Vec<u64> = estimates.iter().map(|e| e.partitions).collect();
        assert_eq!(partitions, [250, 500, 250]);
        assert!(estimates.iter().all(|e| e.mean_size == 100));
        assert_eq!(estimate(&[], (0, 0), &all, 1.0), vec![Estimate::default(); 3]);
        let half = estimate(&[], (1_000, 100_000), &all[1..2], 0.5);
        assert_eq!(half[0], Estimate { partitions: 1_000, mean_size: 100 });
    }
}
