//! How much of what it has a replica gives (`DataLimits` and its counters): live rows are counted,
//! what is dead between them goes with them. Pure. What is given is always a beginning of what
//! there is.

use internode::payload::read::{Grouping, Limits};
use rows::{Clustering, ClusteringRef, RowRef};
use schema::Table;

/// Counts what a read gives.
#[derive(Clone, Debug)]
pub(crate) struct Counter<'l> {
    limits: &'l Limits,
    table: &'l Table,
    now: i64,
    /// Does a partition count that has static data alone?
    counts_static_alone: bool,
    rows: i32,
    in_partition: i32,
    has_live_static: bool,
    stops: Stops,
    groups: Option<Groups<'l>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stops {
    partition: bool,
    all: bool,
}

/// What is counted where rows form groups.
#[derive(Clone, Debug)]
struct Groups<'l> {
    grouping: &'l Grouping,
    most: i32,
    counted: i32,
    in_partition: i32,
    is_unfinished: bool,
    has_given_rows: bool,
    last: Option<(Box<[u8]>, Option<Clustering>)>,
}

impl<'l> Counter<'l> {
    pub fn new(limits: &'l Limits, table: &'l Table, now: i64, counts_static_alone: bool) -> Self {
        let groups = limits.groups.as_ref().map(|(most, grouping)| Groups {
            grouping,
            most: *most,
            counted: 0,
            in_partition: 0,
            is_unfinished: grouping.last.as_ref().is_some_and(|(_, row)| row.is_some()),
            has_given_rows: false,
            last: grouping.last.clone(),
        });
        let mut counter = Self {
            limits,
            table,
            now,
            counts_static_alone,
            rows: 0,
            in_partition: 0,
            has_live_static: false,
            stops: Stops::default(),
            groups,
        };
        counter.stops.all = counter.is_done();
        counter
    }

    /// Is no further partition wanted?
    pub fn stops(&self) -> bool {
        self.stops.all
    }

    /// Is nothing more of this partition wanted?
    pub fn stops_in_partition(&self) -> bool {
        self.stops.partition || self.stops.all
    }

    /// May the replica whose answer this counts have stopped? A group is whole only once another
    /// begins, and what begins it is not given where that is one too many.
    pub fn may_stop(&self) -> bool {
        let is_last = |groups: &Groups<'_>| groups.counted.saturating_add(1) >= groups.most;
        self.stops.all || self.open_group().is_some_and(is_last)
    }

    /// May it have stopped in this partition, for the limit of partitions?
    pub fn may_stop_in_partition(&self) -> bool {
        let most = self.limits.per_partition;
        let is_last = |groups: &Groups<'_>| groups.in_partition.saturating_add(1) >= most;
        self.stops.partition || self.open_group().is_some_and(is_last)
    }

    /// The groups, if the last of them may be whole or not.
    fn open_group(&self) -> Option<&Groups<'l>> {
        let groups = self.groups.as_ref().filter(|groups| groups.is_unfinished)?;
        groups.grouping.clustering_columns.map(|_| groups)
    }

    fn is_done(&self) -> bool {
        match &self.groups {
            Some(groups) => groups.counted >= groups.most,
            None => self.rows >= self.limits.rows,
        }
    }

    fn is_done_for_partition(&self) -> bool {
        let here = self.groups.as_ref().map_or(self.in_partition, |groups| groups.in_partition);
        self.is_done() || here >= self.limits.per_partition
    }

    /// A partition begins. Does its static row go with it?
    pub fn start(&mut self, key: &[u8], statics: Option<RowRef<'_>>) -> bool {
        self.stops.partition = false;
        let is_live = statics.is_some_and(|row| row.has_live_data(self.now, false));
        let paged = self.limits.paging.as_ref().filter(|paging| *paging.last_key == *key);
        match (&mut self.groups, paged) {
            (None, None) => {
                self.in_partition = 0;
                self.has_live_static = is_live;
            }
            (None, Some(paging)) => {
                self.in_partition = self.limits.per_partition.saturating_sub(paging.remaining);
                self.has_live_static = false;
            }
            (Some(groups), Some(paging)) => {
                groups.in_partition = self.limits.per_partition.saturating_sub(paging.remaining);
                groups.has_given_rows = true;
                groups.is_unfinished =
                    groups.grouping.last.as_ref().is_some_and(|(_, row)| row.is_some());
                self.has_live_static = false;
            }
            (Some(_), None) => self.start_group_partition(key, is_live),
        }
        self.stops.partition |= self.is_done_for_partition();
        let hides_static = self.groups.is_some() && self.is_done();
        if hides_static {
            self.has_live_static = false;
        }
        !hides_static
    }

    fn start_group_partition(&mut self, key: &[u8], static_is_live: bool) {
        let Some(groups) = &mut self.groups else { return };
        let goes_on = groups.grouping.last.as_ref().is_some_and(|(last, _)| **last == *key);
        if goes_on {
            self.has_live_static = false;
            groups.has_given_rows = true;
            groups.is_unfinished = true;
        } else {
            if groups.is_unfinished && groups.is_new(self.table, key, None) {
                self.end_group(false);
                if self.is_done() {
                    self.end_group_in_partition();
                }
            }
            let Some(groups) = &mut self.groups else { return };
            groups.has_given_rows = false;
            self.has_live_static = static_is_live;
        }
        if !self.is_done() {
            self.in_partition = 0;
            if let Some(groups) = &mut self.groups {
                groups.in_partition = 0;
            }
        }
    }

    /// A group is whole.
    fn end_group(&mut self, in_partition: bool) {
        if let Some(groups) = &mut self.groups {
            groups.is_unfinished = false;
            groups.counted = groups.counted.saturating_add(1);
            self.stops.all |= groups.counted >= groups.most;
        }
        if in_partition {
            self.end_group_in_partition();
        }
    }

    fn end_group_in_partition(&mut self) {
        if let Some(groups) = &mut self.groups {
            groups.in_partition = groups.in_partition.saturating_add(1);
            self.stops.partition |= groups.in_partition >= self.limits.per_partition;
        }
    }

    /// A row comes. Does it go with the answer?
    pub fn row(&mut self, key: &[u8], row: RowRef<'_>) -> bool {
        let is_live = row.has_live_data(self.now, false);
        if let Some(groups) = &mut self.groups {
            if groups.is_new(self.table, key, Some(row.clustering())) {
                if groups.is_unfinished {
                    self.end_group(true);
                }
                if let Some(groups) = &mut self.groups {
                    groups.is_unfinished = false;
                }
            }
            if self.is_done_for_partition() {
                if let Some(groups) = &mut self.groups {
                    groups.is_unfinished = false;
                }
                self.stops.partition = true;
                return false;
            }
            if let Some(groups) = self.groups.as_mut().filter(|_| is_live) {
                groups.is_unfinished = true;
                groups.has_given_rows = true;
            }
        }
        if is_live {
            self.count_row();
        }
        true
    }

    fn count_row(&mut self) {
        self.rows = self.rows.saturating_add(1);
        self.in_partition = self.in_partition.saturating_add(1);
        self.stops.all |= self.rows >= self.limits.rows;
        let is_of_rows = self.groups.is_none();
        self.stops.partition |= is_of_rows && self.in_partition >= self.limits.per_partition;
    }

    /// A partition ends.
    pub fn end(&mut self) {
        if !self.counts_static_alone || !self.has_live_static {
            return;
        }
        match &self.groups {
            None if self.in_partition == 0 => self.count_row(),
            Some(groups) if !groups.has_given_rows => {
                self.count_row();
                self.end_group(true);
            }
            _ => {}
        }
    }
}

impl Groups<'_> {
    /// Does a row, or the partition itself, begin another group than what came last?
    fn is_new(&mut self, table: &Table, key: &[u8], row: Option<ClusteringRef<'_>>) -> bool {
        let Some(columns) = self.grouping.clustering_columns else { return false };
        let columns = usize::try_from(columns).unwrap_or(0);
        let is_same = match (&self.last, row) {
            (Some((last_key, Some(last))), Some(row)) if **last_key == *key => {
                let of = table.layout.clustering.iter().take(columns);
                let pairs = of.zip(last.as_ref().iter().zip(row.iter()));
                pairs.into_iter().all(|(column, (a, b))| match (a, b) {
                    (Some(a), Some(b)) => column.ty.compare(a, b).is_eq(),
                    (a, b) => a == b,
                })
            }
            _ => false,
        };
        self.last = Some((key.into(), row.map(|row| row.to_owned())));
        !is_same
    }
}
