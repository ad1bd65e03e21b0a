//! Rows of one partition, stretch after stretch.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use internode::Verb;
use internode::payload::read::{RowsOf, Target};
use protocol::ErrorResponse;
use ring::{ReadPlan, Speculation};
use rows::Unfiltered;
use storage::PartitionKey;

use super::asked::Contacts;
use super::{RingRead, rows_after};
use crate::read::shard::{PartitionRows, ReadError};
use crate::reconcile::{End, Partition, Reconciled};

/// The rows of a partition as its replicas agree on them.
pub(crate) struct KeyRows {
    read: Rc<RingRead>,
    key: PartitionKey,
    /// What is left to be asked for; none if all there is has been.
    left: Option<RowsOf>,
    wanted: u32,
    per_partition: u32,
    /// The present stretch.
    partition: Option<Partition>,
    at: usize,
    /// The static row, which the first stretch has.
    statics: Option<Vec<u8>>,
}

impl KeyRows {
    /// Those of a partition of which nothing is known yet. `wanted` rows are enough if all of them
    /// count.
    pub async fn open(
        read: &Rc<RingRead>,
        key: PartitionKey,
        rows: RowsOf,
        wanted: u32,
        per_partition: u32,
    ) -> Result<Self, ErrorResponse> {
        let (read, left) = (Rc::clone(read), Some(rows));
        let (partition, at, statics) = (None, 0, None);
        let mut opened = Self { read, key, left, wanted, per_partition, partition, at, statics };
        opened.go_on().await?;
        opened.statics = opened.partition.as_mut().and_then(|first| first.statics.take());
        Ok(opened)
    }

    /// Those of a partition of which a stretch is known.
    pub fn begun(
        read: &Rc<RingRead>,
        mut partition: Partition,
        left: Option<RowsOf>,
        wanted: u32,
        per_partition: u32,
    ) -> Self {
        let (read, key, at) = (Rc::clone(read), partition.key.clone(), 0);
        let statics = partition.statics.take();
        let partition = Some(partition);
        Self { read, key, left, wanted, per_partition, partition, at, statics }
    }

    async fn go_on(&mut self) -> Result<(), ErrorResponse> {
        let Some(rows) = self.left.take() else { return Ok(()) };
        let Reconciled { partitions, end, .. } = loop {
            let limits = self.read.limits(self.wanted, self.per_partition);
            let key = self.key.bytes.clone().into();
            let command = self.read.command(limits, Target::Partition { key, rows: rows.clone() });
            match self.read.ask_key(&self.key, &command).await {
                Err(_) if self.read.asks_for_fewer() => {}
                answer => break answer?,
            }
        };
        self.left = match end {
            Some(End { row: Some(row), .. }) => rows_after(&self.read.table, &rows, &row),
            _ => None,
        };
        self.partition = partitions.into_iter().next();
        self.at = 0;
        Ok(())
    }
}

impl PartitionRows for KeyRows {
    fn static_row(&self) -> Option<Vec<u8>> {
        self.statics.clone()
    }

    async fn next(&mut self) -> Result<Option<Unfiltered<'_>>, ReadError> {
        while self.partition.as_ref().is_none_or(|partition| self.at >= partition.ends.len()) {
            if self.left.is_none() {
                return Ok(None);
            }
            self.go_on().await?;
        }
        let at = self.at;
        self.at += 1;
        Ok(self.partition.as_ref().and_then(|partition| partition.get(at)))
    }
}

impl RingRead {
    async fn ask_key(
        self: &Rc<Self>,
        key: &PartitionKey,
        command: &Arc<internode::payload::read::ReadCommand>,
    ) -> Result<Reconciled, ErrorResponse> {
        let (ring, placement) = (&self.scope.ring, &self.scope.placement);
        let retry = self.table.params.speculative_retry;
        let order = self.reads.snitch.order(&self.reads.shard.env);
        let replicas = placement.at(key.token);
        let plan = ReadPlan::new(ring, placement, replicas, self.level, retry, order.proximity())?;
        let contacts = Contacts {
            data: plan.data().to_vec(),
            digests: plan.digests().to_vec(),
            acks: plan.acks(ring),
        };
        if plan.speculation == Speculation::Done {
            self.count_speculation();
        }
        let may_ask_more = plan.speculation == Speculation::Later;
        let patience = if may_ask_more { self.patience() } else { None };
        let plan = RefCell::new(plan);
        let more = || plan.borrow_mut().speculate();
        self.ask(command, Verb::ReadReq, contacts, patience, more).await
    }
}
