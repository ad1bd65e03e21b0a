//! What a shard does of a read: rows of its partitions merged, and projected, grouped or
//! aggregated.

use std::rc::Rc;
use std::sync::Arc;

use cql::select::{Aggregation, Group, RangeBound, Read, ResultRow, RowFilter, Select, Target};
use cql::select::{NO_LIMIT, row_is_live};
use cql::{Bind, Limits, Value, Values};
use protocol::ErrorResponse;
use rows::{Bound, BoundKind, Clustering, ClusteringRef, RowRef, Unfiltered};
use schema::Table;
use storage::{Engine, Measure, PartitionKey, ScanStart, Slices, StorageError, Trace};
use types::Few;

use crate::read_samples::{PartitionRead, sample_time};
use crate::request_metrics::micros;
use crate::scanned::{Excess, Scanned, Scanner, Thresholds, WARNINGS_MAX};

/// From this many bytes of cells on, a block grows by no more than the page may still take.
const LARGE_BLOCK_BYTES: usize = 1 << 20;

/// What goes to a shard: everything that reading and projecting needs.
#[derive(Clone)]
pub(crate) struct Task {
    pub select: Arc<Select>,
    pub read: Arc<Read>,
    pub version: u8,
    pub now_millis: i64,
    pub bytes_max: usize,
    pub thresholds: Thresholds,
    /// Where what happens is noted.
    pub trace: Trace,
    /// What becomes of the rows of an aggregation.
    pub aggregate: Aggregate,
}

/// Where rows of an aggregation are taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregate {
    /// On the shard, all of its rows: it is the only one that has any.
    Whole,
    /// On the shards, for their results to be merged.
    Parts,
    /// Where the request came in: shards give what is taken of each row.
    InOrder,
}

/// Rows of one partition, projected.
#[derive(Default)]
pub(crate) struct Block {
    pub key: Option<PartitionKey>,
    /// The most rows that the partition may still give, with these.
    pub limit: u32,
    pub cells: Vec<u8>,
    /// Of each row: where its cells end, where its mark ends, and whether it has one.
    pub rows: Few<RowEnd>,
    /// Packed clusterings.
    pub marks: Vec<u8>,
    /// Did a limit end the block, so that the partition may have more?
    pub full: bool,
    /// What was read of the partition.
    pub scanned: Scanned,
}

impl Block {
    /// One of a partition that may still give so many rows.
    pub fn of(key: &PartitionKey, limit: u32) -> Self {
        Self { key: Some(key.clone()), limit, ..Self::default() }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct RowEnd {
    pub cells: usize,
    pub mark: usize,
    pub has_mark: bool,
    /// What was read of the partition up to this row.
    pub scanned: Scanned,
}

/// What a shard found.
#[derive(Default)]
pub(crate) struct Found {
    pub blocks: Vec<Block>,
    pub aggregation: Option<Aggregation>,
    /// Did it stop at a limit of the page?
    pub full: bool,
    /// Where an aggregation read over too many tombstones.
    pub noticed: Vec<Noticed>,
}

/// What a shard found of the partitions that it was given.
pub(crate) struct FoundKeys {
    /// Each with its place among all that the read wants.
    pub blocks: Few<(usize, Block)>,
    pub aggregation: Option<Aggregation>,
    /// Where an aggregation read over too many tombstones.
    pub noticed: Vec<Noticed>,
}

/// Where what was read ended, and how much it was.
pub(crate) type Noticed = (PartitionKey, Scanned);

/// How much more fits the page.
pub(super) struct Budget {
    rows: u32,
    bytes: usize,
    /// What was read for this page. An aggregation's pages are those in which Cassandra would read
    /// the table; with several shards each counts for itself.
    scanned: Scanned,
    /// Pages of an aggregation with too many tombstones.
    noticed: Vec<Noticed>,
}

impl Budget {
    pub fn is_spent(&self) -> bool {
        self.rows == 0 || self.bytes == 0
    }

    /// Ends a page of an aggregation at a partition.
    fn end_page(&mut self, key: &PartitionKey, thresholds: Thresholds) {
        let scanned = std::mem::take(&mut self.scanned);
        if thresholds.warns(scanned) && self.noticed.len() < WARNINGS_MAX {
            self.noticed.push((key.clone(), scanned));
        }
    }
}

/// No values: projecting asks for none.
struct NoValues;

impl Values for NoValues {
    fn len(&self) -> usize {
        0
    }

    fn get(&self, _: usize) -> Value<'_> {
        Value::Unset
    }
}

impl Task {
    pub fn with_bind<T>(&self, engine: &Engine, run: impl FnOnce(&Bind<'_>) -> T) -> T {
        let env = engine.env();
        let time_uuid = || {
            let clock_and_node = env.random_u64();
            types::Uuid::from_unix_micros(env.unique_micros(), clock_and_node).0.to_be_bytes()
        };
        let random = || {
            let mut bytes = [0; 16];
            env.fill_random(&mut bytes);
            types::Uuid::from_random(bytes).0.to_be_bytes()
        };
        run(&Bind {
            values: &NoValues,
            timestamp: 0,
            now_seconds: self.read.now_seconds,
            now_millis: self.now_millis,
            protocol_version: self.version,
            time_uuid: &time_uuid,
            list_path: &time_uuid,
            random: &random,
            limits: &Limits::default(),
            guard: None,
            once: Default::default(),
        })
    }

    pub fn table(&self) -> &Arc<Table> {
        self.select.table()
    }

    /// What the shard takes rows into, if it does.
    pub fn aggregation(&self) -> Option<Aggregation> {
        let here = self.select.is_aggregate() && self.aggregate != Aggregate::InOrder;
        here.then(|| self.select.begin())
    }
}

/// An error on the way of a read: the client's, or storage's.
#[derive(Debug)]
pub(crate) enum ReadError {
    Cql(cql::CqlError),
    Storage(StorageError),
    /// More than a read may go over.
    Over(Box<Over>),
    /// Other nodes did not give what was asked of them.
    Ring(ErrorResponse),
}

/// A read that went over too much.
#[derive(Debug)]
pub(crate) struct Over {
    pub excess: Excess,
    /// The partition that it was in, and its place among all that are wanted.
    pub key: Option<PartitionKey>,
    pub place: usize,
    pub scanned: Scanned,
    /// Partitions that were read before it.
    pub before: Vec<Noticed>,
}

impl Over {
    /// Adds partitions that come before it and were read.
    pub fn after(mut self: Box<Self>, blocks: &[(usize, Block)]) -> Box<Self> {
        let place = self.place;
        let before = blocks.iter().filter(|(at, _)| *at < place);
        let keyed = |(_, block): &(usize, Block)| Some((block.key.clone()?, block.scanned));
        self.before.extend(before.filter_map(keyed));
        self
    }
}

impl From<StorageError> for ReadError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<ErrorResponse> for ReadError {
    fn from(error: ErrorResponse) -> Self {
        Self::Ring(error)
    }
}

impl From<cql::CqlError> for ReadError {
    fn from(error: cql::CqlError) -> Self {
        Self::Cql(error)
    }
}

/// The rows of a filter as slices.
fn slices(filter: &RowFilter, reversed: bool) -> Slices {
    let one = |clustering: &Clustering| {
        let bound = |kind| Bound::new(kind, clustering.clone());
        (bound(BoundKind::InclStart), bound(BoundKind::InclEnd))
    };
    match filter {
        RowFilter::Slices(slices) => {
            Slices::new(slices.iter().cloned().collect::<Arc<[_]>>(), reversed)
        }
        RowFilter::Names(names) => {
            Slices::new(names.iter().map(one).collect::<Arc<[_]>>(), reversed)
        }
    }
}

/// Where rows of one partition go: into a block, each by itself or a group at once, or into an
/// aggregation.
pub(super) struct Sink<'a> {
    pub task: &'a Task,
    pub engine: &'a Engine,
    pub budget: &'a mut Budget,
    pub aggregation: Option<&'a mut Aggregation>,
    pub block: Block,
    /// Rows that the partition may still give.
    pub left: u32,
    /// The group of GROUP BY that the last row is in.
    pub group: Option<Group>,
}

impl Sink<'_> {
    fn is_full(&self) -> bool {
        self.left == 0 || self.budget.is_spent()
    }

    /// Notes what was read.
    fn scan(&mut self, scanned: Scanned) -> Result<(), ReadError> {
        self.block.scanned += scanned;
        self.budget.scanned += scanned;
        let scanned = self.budget.scanned;
        if let Some(excess) = self.task.thresholds.excess(scanned) {
            let (key, before) = (self.block.key.clone(), Vec::new());
            return Err(ReadError::Over(Box::new(Over { excess, key, place: 0, scanned, before })));
        }
        let page = self.task.read.page_size.unwrap_or(NO_LIMIT);
        if self.aggregation.is_some()
            && self.budget.scanned.live >= page.into()
            && let Some(key) = &self.block.key
        {
            self.budget.end_page(key, self.task.thresholds);
        }
        Ok(())
    }

    fn take(&mut self, row: &ResultRow<'_>) -> Result<(), ReadError> {
        let (task, block) = (self.task, &mut self.block);
        if task.select.is_grouped() {
            return self.take_into_group(row);
        }
        let aggregation = &mut self.aggregation;
        let before = block.cells.len();
        if !task.select.passes(&task.read, row) {
            return Ok(());
        }
        task.with_bind(self.engine, |bind| match aggregation {
            Some(all) => task.select.aggregate(all, &task.read, row, bind),
            None if task.aggregate == Aggregate::InOrder && task.select.is_aggregate() => {
                task.select.inputs(&task.read, row, bind, &mut block.cells)
            }
            None => task.select.project(&task.read, row, bind, &mut block.cells),
        })?;
        if self.aggregation.is_none() {
            self.end_row(before, row.clustering, !row.clustering.is_empty());
        }
        self.budget.rows -= 1;
        self.left -= 1;
        Ok(())
    }

    fn end_row(&mut self, before: usize, mark: ClusteringRef<'_>, has_mark: bool) {
        let block = &mut self.block;
        let bytes = block.cells.len() - before;
        block.marks.extend_from_slice(mark.as_packed());
        let (cells, mark) = (block.cells.len(), block.marks.len());
        block.rows.push(RowEnd { cells, mark, has_mark, scanned: block.scanned });
        self.budget.bytes = self.budget.bytes.saturating_sub(bytes);
        if cells >= LARGE_BLOCK_BYTES && block.cells.capacity() - cells < bytes {
            // doubled by itself it could be twice what a result may have
            block.cells.reserve_exact(cells.min(self.budget.bytes).max(bytes));
        }
    }

    /// Adds a row to the group that it belongs to. One that begins another group ends the last one:
    /// where that was the last that fits, the row is left for the next page.
    fn take_into_group(&mut self, row: &ResultRow<'_>) -> Result<(), ReadError> {
        let task = self.task;
        if !task.select.passes(&task.read, row) {
            return Ok(());
        }
        let mut group = self.group.take();
        let joined = task.with_bind(self.engine, |bind| match &mut group {
            Some(group) => task.select.join_group(group, &task.read, row, bind),
            None => Ok(false),
        })?;
        self.group = group;
        if joined {
            return Ok(());
        }
        self.end_group()?;
        if self.is_full() {
            return Ok(());
        }
        let opened =
            task.with_bind(self.engine, |bind| task.select.open_group(&task.read, row, bind))?;
        self.group = Some(opened);
        Ok(())
    }

    /// Gives the row of a group of which there are no more rows.
    fn end_group(&mut self) -> Result<(), ReadError> {
        let (task, Some(group)) = (self.task, self.group.take()) else { return Ok(()) };
        let before = self.block.cells.len();
        let cells = &mut self.block.cells;
        task.with_bind(self.engine, |bind| {
            task.select.finish(&group.aggregation, &task.read, bind, cells)
        })?;
        // a result that is sorted goes by the first row of each group, a page goes on after the
        // last one
        let is_sorted = task.select.post_order().is_some();
        let mark = if is_sorted { group.first.as_ref() } else { group.last() };
        self.end_row(before, mark, group.has_row && !mark.is_empty());
        self.budget.rows -= 1;
        self.left -= 1;
        Ok(())
    }
}

/// A merged partition, wherever its rows come from.
pub(crate) trait PartitionRows {
    /// The static row, packed.
    fn static_row(&self) -> Option<Vec<u8>>;
    /// The next row or marker.
    async fn next(&mut self) -> Result<Option<Unfiltered<'_>>, ReadError>;
}

impl PartitionRows for storage::PartitionCursor {
    fn static_row(&self) -> Option<Vec<u8>> {
        self.static_row().map(|row| row.as_packed().to_vec())
    }

    async fn next(&mut self) -> Result<Option<Unfiltered<'_>>, ReadError> {
        Ok(self.next().await?)
    }
}

pub(super) async fn read_rows(
    sink: &mut Sink<'_>,
    key: &PartitionKey,
    rows: &mut impl PartitionRows,
    is_resumed: bool,
) -> Result<(), ReadError> {
    let (task, engine) = (sink.task, sink.engine);
    let now_seconds = task.read.now_seconds;
    let (select, strict) = (&task.select, task.select.is_strict());
    let statics = rows.static_row();
    let statics = statics.as_deref().map(RowRef::from_packed);
    let mut scanner = Scanner::new(task.table(), now_seconds, &task.thresholds);
    let static_is_live = statics.is_some_and(|row| row_is_live(row, now_seconds, false));
    if let Some(row) = statics.filter(|_| !select.fetched().statics.is_empty()) {
        sink.scan(scanner.row(row, static_is_live))?;
    }
    let statics = statics.filter(|_| static_is_live);
    let mut any = is_resumed;
    while !sink.is_full() {
        let Some(unfiltered) = rows.next().await? else { break };
        let row = match unfiltered {
            Unfiltered::Row(row) => row,
            Unfiltered::Marker(marker) => {
                sink.scan(scanner.marker(marker))?;
                continue;
            }
        };
        let is_live = row_is_live(row, now_seconds, strict);
        sink.scan(scanner.row(row, is_live))?;
        if !is_live {
            engine.env().maybe_yield().await;
            continue;
        }
        any = true;
        if select.is_distinct() {
            // the row itself is not of the result, but the page may end after it
            let clustering = row.clustering();
            sink.take(&ResultRow { clustering, ..no_row(key, statics, now_seconds) })?;
            return sink.end_group();
        }
        sink.take(&ResultRow {
            clustering: row.clustering(),
            row: Some(row),
            ..no_row(key, statics, now_seconds)
        })?;
        engine.env().maybe_yield().await;
    }
    let wants = select.wants_static_only_row() || select.is_distinct();
    if !any && statics.is_some() && wants && !sink.is_full() {
        sink.take(&no_row(key, statics, now_seconds))?;
    }
    sink.end_group()
}

/// A partition's static values alone.
fn no_row<'a>(
    key: &'a PartitionKey,
    statics: Option<RowRef<'a>>,
    now_seconds: i64,
) -> ResultRow<'a> {
    let clustering = ClusteringRef::EMPTY;
    ResultRow { key: &key.bytes, clustering, statics, row: None, now_seconds }
}

/// Reads one partition of this shard into a block.
async fn read_partition(
    engine: &Rc<Engine>,
    task: &Task,
    key: &PartitionKey,
    first: bool,
    budget: &mut Budget,
    aggregation: Option<&mut Aggregation>,
) -> Result<Option<Block>, ReadError> {
    let read = &task.read;
    let resumed = read.first_rows.as_ref().filter(|_| first);
    let filter = resumed.unwrap_or(&read.rows);
    let left = if first { read.first_limit } else { read.per_partition_limit };
    let slices = slices(filter, read.reversed);
    let (started, trace) = (engine.env().now(), &task.trace);
    trace.note(engine.env(), || {
        format!("Executing single-partition query on {}", task.table().name)
    });
    let (table, wanted) = (task.table(), key.as_ref());
    let opened = match read.target {
        Target::Keys(_) => engine.traced_partition(table, wanted, &slices, trace).await?,
        Target::Range { .. } => engine.scanned_partition(table, wanted, &slices, trace).await?,
    };
    let Some(mut rows) = opened else {
        engine.read_ended(task.table().id, started, 0);
        return Ok(None);
    };
    let block = Block::of(key, left);
    let mut sink = Sink { task, engine, budget, aggregation, block, left, group: None };
    read_rows(&mut sink, key, &mut rows, resumed.is_some()).await?;
    engine.read_ended(task.table().id, started, rows.sstables());
    let scanned = sink.block.scanned;
    let is_by_key = matches!(read.target, Target::Keys(_));
    let sstables = is_by_key.then(|| rows.sstables());
    let of = PartitionRead { table: task.table().id, key: &key.bytes, sstables, scanned };
    of.sample(engine);
    if is_by_key {
        sample_time(engine, task.table().id, started, || text(task, Some(key)));
    }
    trace.note(engine.env(), || {
        let (live, tombstones) = (scanned.live, scanned.tombstones);
        format!("Read {live} live rows and {tombstones} tombstone cells")
    });
    sink.block.full = sink.left == 0 || sink.budget.is_spent();
    Ok(Some(sink.block))
}

pub(super) fn budget(task: &Task) -> Budget {
    let rows = match task.aggregation() {
        Some(_) => u32::MAX,
        None => task.read.page_limit(),
    };
    let (scanned, noticed) = (Scanned::default(), Vec::new());
    Budget { rows, bytes: task.bytes_max, scanned, noticed }
}

/// Reads partitions of this shard.
pub(crate) async fn read_keys(
    engine: &Rc<Engine>,
    task: &Task,
    keys: Few<(usize, PartitionKey)>,
) -> Result<FoundKeys, ReadError> {
    task.trace.note(engine.env(), || format!("Reading {} partitions", keys.len()));
    let mut budget = budget(task);
    let mut blocks = Few::new();
    let mut aggregation = task.aggregation();
    for (place, key) in keys {
        // the read of each partition is one of its own
        budget.scanned = Scanned::default();
        let first = place == 0;
        let read =
            read_partition(engine, task, &key, first, &mut budget, aggregation.as_mut()).await;
        let block = match read {
            Err(ReadError::Over(over)) => {
                let over = Box::new(Over { place, ..*over });
                return Err(ReadError::Over(over.after(&blocks)));
            }
            read => read?,
        };
        let scanned = block.as_ref().map(|block| block.scanned).unwrap_or_default();
        note_scanned(engine, task, scanned);
        budget.end_page(&key, task.thresholds);
        blocks.extend(block.map(|block| (place, block)));
        if budget.is_spent() {
            break;
        }
    }
    Ok(FoundKeys { blocks, aggregation, noticed: budget.noticed })
}

/// The read of a partition, or of a range, as CQL.
fn text(task: &Task, key: Option<&PartitionKey>) -> String {
    let key = key.map(|key| cql::select::PartitionKey::new(key.bytes.clone()));
    task.select.command_text(&task.read, key.as_ref())
}

/// Counts what one read of this shard went over.
fn note_scanned(engine: &Engine, task: &Task, scanned: Scanned) {
    let values =
        [(Measure::RowsPerRead, scanned.live), (Measure::TombstonesPerRead, scanned.tombstones)];
    engine.measured(task.table().id, &values);
}

fn nothing_found(task: &Task) -> Found {
    Found { aggregation: task.aggregation(), ..Found::default() }
}

/// Puts what shards aggregated together.
pub(super) fn merge(
    all: &mut Option<Aggregation>,
    part: Option<Aggregation>,
) -> Result<(), ReadError> {
    match (all.as_mut(), part) {
        (Some(all), Some(part)) => all.merge(part)?,
        (None, part) => *all = part,
        (Some(_), None) => {}
    }
    Ok(())
}

/// Reads this shard's part of a range.
pub(crate) async fn read_range(engine: Rc<Engine>, task: Task) -> Result<Found, ReadError> {
    let Target::Range { from, to } = &task.read.target else {
        return Ok(nothing_found(&task));
    };
    let own = |key: &cql::select::PartitionKey| PartitionKey {
        token: key.token,
        bytes: key.bytes.clone(),
    };
    let start = match from {
        RangeBound::Unbounded => ScanStart::Beginning,
        RangeBound::Token { token, inclusive: true } => ScanStart::Token(*token),
        RangeBound::Token { token, inclusive: false } => match token.0.checked_add(1) {
            Some(next) => ScanStart::Token(types::Token(next)),
            None => return Ok(nothing_found(&task)),
        },
        RangeBound::Key { key, inclusive: true } => ScanStart::Key(own(key)),
        RangeBound::Key { key, inclusive: false } => ScanStart::After(own(key)),
    };
    let resumed_at = match from {
        RangeBound::Key { key, inclusive: true } => Some(own(key)),
        _ => None,
    };
    let inside = |key: &PartitionKey| match to {
        RangeBound::Unbounded => true,
        RangeBound::Token { token, inclusive } => {
            key.token < *token || (*inclusive && key.token == *token)
        }
        RangeBound::Key { key: end, inclusive } => {
            let order = (key.token, &key.bytes).cmp(&(end.token, &end.bytes));
            order.is_lt() || (*inclusive && order.is_eq())
        }
    };
    let mut aggregation = task.aggregation();
    let mut budget = budget(&task);
    let mut blocks = Vec::new();
    let mut last = None;
    let (started, mut scanned) = (engine.env().now(), Scanned::default());
    task.trace.note(engine.env(), || {
        let live = engine.store(task.table().id).map(|store| store.live().tables().len());
        format!("Executing seq scan across {} sstables", live.unwrap_or_default())
    });
    let mut scan = engine.scan(task.table(), start).await?;
    while !budget.is_spent() {
        let Some(key) = scan.next().await?.filter(inside) else { break };
        let first = resumed_at.as_ref() == Some(&key);
        let block =
            read_partition(&engine, &task, &key, first, &mut budget, aggregation.as_mut()).await?;
        last = Some(key);
        scanned += block.as_ref().map(|block| block.scanned).unwrap_or_default();
        // what holds tombstones alone is there to be counted
        let counts = |block: &Block| aggregation.is_none() && block.scanned.counts();
        blocks.extend(block.filter(|block| !block.rows.is_empty() || counts(block)));
    }
    if let Some(key) = last.filter(|_| aggregation.is_some()) {
        budget.end_page(&key, task.thresholds);
    }
    let took = micros(engine.env().now().since(started));
    engine.measured(task.table().id, &[(Measure::LocalScan, took)]);
    sample_time(&engine, task.table().id, started, || text(&task, None));
    note_scanned(&engine, &task, scanned);
    let full = budget.is_spent();
    Ok(Found { blocks, aggregation, full, noticed: budget.noticed })
}
