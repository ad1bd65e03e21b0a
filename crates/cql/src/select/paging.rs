//! One page of a read: which partitions and rows are left, and how many.

use rows::Clustering;
use schema::Table;
use types::Few;

use crate::error::CqlError;
use crate::select::filter::BoundFilter;
use crate::select::keys::{PartitionKey, RangeBound, Target};
use crate::select::slices::RowFilter;

/// Which page is wanted.
#[derive(Clone, Debug, Default)]
pub struct PageRequest<'a> {
    /// Rows of a page; none: all rows in one answer.
    pub size: Option<u32>,
    /// Where the page before ended.
    pub after: Option<Position<'a>>,
}

/// Where a page ended: what a paging state says.
#[derive(Clone, Debug)]
pub struct Position<'a> {
    /// The partition; none in a read of one partition.
    pub key: Option<&'a [u8]>,
    /// The last row. None where the page ended with the partition, the rows of which are then not
    /// read again if nothing remains in it; in a read of several partitions by key it may also be
    /// the one to begin with, of which all remains.
    pub row: Option<Clustering>,
    /// Rows that LIMIT leaves.
    pub remaining: u32,
    /// Rows that PER PARTITION LIMIT leaves of the partition.
    pub remaining_in_partition: u32,
}

/// What is to be read for one page of a SELECT.
#[derive(Clone, Debug)]
pub struct Read {
    /// The partitions. [`Target::is_nothing`]: the result is empty (an aggregation still gives its
    /// row).
    pub target: Target,
    /// The rows of each partition.
    pub rows: RowFilter,
    /// The rows of the first partition of the target, where the page before ended in it.
    pub first_rows: Option<RowFilter>,
    /// Rows that PER PARTITION LIMIT leaves of the first partition, where the page before ended in
    /// it; else the limit itself.
    pub first_limit: u32,
    /// From the end of each partition to its start?
    pub reversed: bool,
    /// The most rows of each partition; 1 for DISTINCT.
    pub per_partition_limit: u32,
    /// The most rows in this page and those after it, [`NO_LIMIT`](super::NO_LIMIT) for all.
    pub limit: u32,
    /// The most rows in this page.
    pub page_size: Option<u32>,
    /// Rows of a page as they were asked for, also where the result has no pages: an aggregation's.
    pub asked_page: Option<u32>,
    /// The most rows of the result after [`PostOrder`](super::PostOrder) sorted it.
    pub result_limit: u32,
    /// What rows must pass before they count; see [`Select::passes`](super::Select::passes).
    pub filter: Option<BoundFilter>,
    /// The deadline that the statement sets, in nanoseconds from its arrival.
    pub timeout_nanos: Option<u64>,
    /// "Now" of the request, in seconds since the epoch.
    pub now_seconds: i64,
    /// Values of the terms of the selection.
    pub(super) terms: Vec<Option<Box<[u8]>>>,
}

impl Read {
    /// Rows to read for this page at the most.
    pub fn page_limit(&self) -> u32 {
        self.page_size.map_or(self.limit, |size| size.min(self.limit))
    }

    /// Makes it empty.
    pub(super) fn nothing(mut self) -> Self {
        self.target = Target::nothing();
        self
    }

    /// Goes on after a page. A position that fits no partition of the target leaves nothing, as in
    /// Cassandra. Positions are the client's word: they never widen the read.
    pub fn resume(mut self, after: &Position<'_>, table: &Table) -> Result<Self, CqlError> {
        let columns = table.clustering.len();
        if after.row.as_ref().is_some_and(|row| row.as_ref().len() != columns) {
            return Err(CqlError::invalid("Invalid value for the paging state"));
        }
        self.limit = self.limit.min(after.remaining);
        let left = after.remaining_in_partition.min(self.per_partition_limit);
        let target = std::mem::replace(&mut self.target, Target::nothing());
        let in_partition = after.row.is_some();
        self.target = match target {
            Target::Keys(keys) => {
                let done = !in_partition && after.remaining_in_partition == 0;
                resume_keys(keys, after.key, done)
            }
            Target::Range { from, to } => {
                let key = after
                    .key
                    .ok_or_else(|| CqlError::invalid("Invalid value for the paging state"))?;
                let key = PartitionKey::new(key);
                resume_range(from, to, key, in_partition && left > 0, table)
            }
        };
        let Some(row) = &after.row else { return Ok(self) };
        self.first_limit = left;
        let rest = self.rows.clone().after(&table.layout, row, self.reversed);
        let finished = rest.is_empty() || left == 0;
        match &mut self.target {
            Target::Keys(keys) if finished => {
                *keys = std::mem::take(keys).into_iter().skip(1).collect();
                self.first_limit = self.per_partition_limit;
            }
            Target::Range { from, .. } if finished => {
                if let RangeBound::Key { inclusive, .. } = from {
                    *inclusive = false;
                }
                self.first_limit = self.per_partition_limit;
            }
            _ => self.first_rows = Some(rest),
        }
        if self.limit == 0 {
            return Ok(self.nothing());
        }
        Ok(self)
    }
}

/// The keys from one on; that one too unless it is `done` with.
fn resume_keys(keys: Few<PartitionKey>, after: Option<&[u8]>, done: bool) -> Target {
    let from = match after {
        None if keys.len() == 1 => Some(0),
        None => None,
        Some(after) => keys.iter().position(|key| *key.bytes == *after),
    };
    let Some(from) = from else { return Target::nothing() };
    Target::Keys(keys.into_iter().skip(from + usize::from(done)).collect())
}

/// The range from a key on, that key included or not.
fn resume_range(
    from: RangeBound,
    to: RangeBound,
    key: PartitionKey,
    inclusive: bool,
    table: &Table,
) -> Target {
    let compare = |to: &PartitionKey| match table.is_ordered_by_key() {
        true => table.compare_keys(&key.bytes, &to.bytes),
        false => (key.token, &key.bytes).cmp(&(to.token, &to.bytes)),
    };
    let before = match &from {
        RangeBound::Unbounded => false,
        RangeBound::Token { token, inclusive } => {
            key.token < *token || (key.token == *token && !inclusive)
        }
        RangeBound::Key { key: from, inclusive } => {
            let order = compare(from);
            order.is_lt() || (order.is_eq() && !inclusive)
        }
    };
    let from = if before { from } else { RangeBound::Key { key, inclusive } };
    Target::Range { from, to }
}
