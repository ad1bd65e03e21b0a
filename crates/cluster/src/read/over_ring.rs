//! Pages of what replicas agree on: partitions of a ring, where `shard` takes those of this node.
//!
//! They come as `PartitionRows` and go to the same sinks as rows of this node.

use std::rc::Rc;

use cql::select::{RangeBound, Target};
use storage::PartitionKey;
use types::Few;

use super::shard::{Block, Budget, ReadError, Sink, Task, budget, read_rows};
use super::{Gathered, Reads};
use crate::ring_read::{KeyRows, RingRead, Scan, rows_of};
use crate::shard_context::STATEMENT;

/// Partitions of one read that are asked for at once.
const KEYS_AT_ONCE: usize = 16;

impl Reads {
    /// Reads partitions over the ring, some at a time, until the page is full.
    pub(super) async fn read_ring_keys(
        self: &Rc<Self>,
        task: &Task,
        ring: &Rc<RingRead>,
        keys: &[cql::select::PartitionKey],
    ) -> Result<Gathered, ReadError> {
        let mut blocks = Few::with_capacity(keys.len());
        let (mut rows, mut bytes) = (0, 0);
        let places: Vec<usize> = (0..keys.len()).collect();
        for places in places.chunks(KEYS_AT_ONCE) {
            let mut asked = Vec::with_capacity(places.len());
            for place in places.iter().copied() {
                let key = keys.get(place).expect("each place to read has a key");
                let key = PartitionKey { token: key.token, bytes: key.bytes.clone() };
                let (this, task, ring) = (Rc::clone(self), task.clone(), Rc::clone(ring));
                asked.push(self.shard.env.spawn_task(STATEMENT, async move {
                    let block = this.read_ring_key(&task, &ring, key, place == 0).await?;
                    Ok::<_, ReadError>((place, block))
                }));
            }
            for block in asked {
                let (place, block) = block.await?;
                rows += block.rows.len();
                bytes += block.cells.len();
                blocks.push((place, block));
            }
            if rows >= task.read.page_limit() as usize || bytes >= task.bytes_max {
                break;
            }
        }
        Ok((blocks, None, Vec::new()))
    }

    async fn read_ring_key(
        self: &Rc<Self>,
        task: &Task,
        ring: &Rc<RingRead>,
        key: PartitionKey,
        is_first: bool,
    ) -> Result<Block, ReadError> {
        let read = &task.read;
        let resumed = read.first_rows.as_ref().filter(|_| is_first);
        let rows = rows_of(resumed.unwrap_or(&read.rows), read.reversed);
        let left = if is_first { read.first_limit } else { read.per_partition_limit };
        let mut budget = budget(task);
        let wanted = left.min(read.page_limit());
        let rows = KeyRows::open(ring, key.clone(), rows, wanted, left).await?;
        self.take_rows(task, &key, rows, left, resumed.is_some(), &mut budget).await
    }

    /// Rows of a partition as a block.
    async fn take_rows(
        &self,
        task: &Task,
        key: &PartitionKey,
        mut rows: KeyRows,
        left: u32,
        is_resumed: bool,
        budget: &mut Budget,
    ) -> Result<Block, ReadError> {
        let block = Block::of(key, left);
        let (engine, aggregation, group) = (&*self.shard.engine, None, None);
        let mut sink = Sink { task, engine, budget, aggregation, block, left, group };
        read_rows(&mut sink, key, &mut rows, is_resumed).await?;
        sink.block.full = sink.left == 0 || sink.budget.is_spent();
        Ok(sink.block)
    }

    /// Reads partitions in a range of the ring until the page is full.
    pub(super) async fn read_ring_range(
        self: &Rc<Self>,
        task: &Task,
        ring: &Rc<RingRead>,
    ) -> Result<Gathered, ReadError> {
        task.trace.note(&self.shard.env, || "Computing ranges to query".to_owned());
        let read = &task.read;
        let mut budget = budget(task);
        let mut blocks: Few<(usize, Block)> = Few::new();
        let resumed = match (&read.target, &read.first_rows) {
            (Target::Range { from: RangeBound::Key { key, inclusive: true }, .. }, Some(_)) => {
                Some(PartitionKey { token: key.token, bytes: key.bytes.clone() })
            }
            _ => None,
        };
        if let Some(key) = &resumed {
            let rows = rows_of(read.first_rows.as_ref().unwrap_or(&read.rows), read.reversed);
            let (left, wanted) = (read.first_limit, read.first_limit.min(read.page_limit()));
            let rows = KeyRows::open(ring, key.clone(), rows, wanted, left).await?;
            let block = self.take_rows(task, key, rows, left, true, &mut budget).await?;
            blocks.push((0, block));
        }
        if !budget.is_spent() {
            let mut scan = Scan::new(ring, task, resumed, read.page_limit());
            while !budget.is_spent()
                && let Some((key, rows)) = scan.next().await?
            {
                let left = read.per_partition_limit;
                let block = self.take_rows(task, &key, rows, left, false, &mut budget).await?;
                if !block.rows.is_empty() {
                    blocks.push((blocks.len(), block));
                }
                self.shard.env.maybe_yield().await;
            }
        }
        Ok((blocks, None, Vec::new()))
    }
}
