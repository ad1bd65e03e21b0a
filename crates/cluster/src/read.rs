//! Reads: plans run on the shards that own the partitions, rows projected there, pages put together here.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cql::permission::is_local_system;
use cql::select::{Aggregation, PageRequest, Read, ResultRow, RowFilter, Select, Target};
use cql::select::{NO_LIMIT, RangeBound, row_is_live};
use cql::{Bind, Limits, Value, Values};
use protocol::{Consistency, ErrorResponse, FailureReason, ResultMetadata};
use rows::{Bound, BoundKind, Clustering, ClusteringRef, RowRef, Unfiltered};
use schema::Table;
use storage::{Engine, Measure, PartitionKey, ScanStart, Slices, StorageError, Trace};

use crate::answer::{Answer, Outcome, Page, cql_error, invalid, read_error};
use crate::coordinator::{Coordinator, Request, STATEMENT, check_replicas};
use crate::paging::{paging_state, position};
use crate::request_metrics::RequestMetrics;
use crate::scanned::{Scanned, Scanner, Thresholds, WARNINGS_MAX, warning};
use crate::values::Bound as Bindings;

/// A page ends early at this many bytes of cells, where the client asked for pages.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// What goes to a shard: everything that reading and projecting needs.
#[derive(Clone)]
pub(crate) struct Task {
    pub select: Arc<Select>,
    pub read: Arc<Read>,
    pub version: u8,
    pub now_millis: i64,
    pub bytes_max: usize,
    pub thresholds: Thresholds,
    pub trace: Trace,
}

/// Rows of one partition, projected.
#[derive(Default)]
pub(crate) struct Block {
    pub key: Option<PartitionKey>,
    pub cells: Vec<u8>,
    /// Of each row: where its cells end, where its mark ends, and whether it has one.
    rows: Vec<RowEnd>,
    /// Packed clusterings.
    marks: Vec<u8>,
    /// Did a limit end the block, so that the partition may have more?
    full: bool,
    /// What was read of the partition.
    scanned: Scanned,
}

#[derive(Clone, Copy)]
struct RowEnd {
    cells: usize,
    mark: usize,
    has_mark: bool,
    /// What was read of the partition up to this row.
    scanned: Scanned,
}

/// What a shard found.
#[derive(Default)]
pub(crate) struct Found {
    blocks: Vec<Block>,
    aggregation: Option<Aggregation>,
    /// Did it stop at a limit of the page?
    full: bool,
    /// Where an aggregation read over too many tombstones.
    noticed: Vec<Noticed>,
}

/// Where what was read ended, and how much it was.
type Noticed = (PartitionKey, Scanned);

/// How much more fits the page.
struct Budget {
    rows: u32,
    bytes: usize,
    /// What was read for this page. An aggregation's pages are those in which Cassandra would read the table; with
    /// several shards each counts for itself.
    scanned: Scanned,
    /// Pages of an aggregation with too many tombstones.
    noticed: Vec<Noticed>,
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.rows == 0 || self.bytes == 0
    }

    /// Ends a page of an aggregation at a partition.
    fn end_page(&mut self, key: &PartitionKey, thresholds: Thresholds) {
        let scanned = std::mem::take(&mut self.scanned);
        if scanned.tombstones > thresholds.warn && self.noticed.len() < WARNINGS_MAX {
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
    fn with_bind<T>(&self, engine: &Engine, run: impl FnOnce(&Bind<'_>) -> T) -> T {
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
            random: &random,
            limits: &Limits::default(),
        })
    }

    fn table(&self) -> &Arc<Table> {
        self.select.table()
    }
}

/// An error on the way of a read: the client's, or storage's.
#[derive(Debug)]
pub(crate) enum ReadError {
    Cql(cql::CqlError),
    Storage(StorageError),
    /// More of them than `tombstone_failure_threshold`.
    Tombstones,
}

impl From<StorageError> for ReadError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
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
            let slices: Vec<_> = slices.iter().map(|(a, b)| (a.clone(), b.clone())).collect();
            Slices::new(slices, reversed)
        }
        RowFilter::Names(names) => Slices::new(names.iter().map(one).collect::<Vec<_>>(), reversed),
    }
}

/// Where rows of one partition go: into a block, or into an aggregation.
struct Sink<'a> {
    task: &'a Task,
    engine: &'a Engine,
    budget: &'a mut Budget,
    aggregation: Option<&'a mut Aggregation>,
    block: Block,
    /// Rows that the partition may still give.
    left: u32,
}

impl Sink<'_> {
    fn is_full(&self) -> bool {
        self.left == 0 || self.budget.is_spent()
    }

    /// Notes what was read.
    fn scan(&mut self, scanned: Scanned) -> Result<(), ReadError> {
        self.block.scanned += scanned;
        self.budget.scanned += scanned;
        if self.budget.scanned.tombstones > self.task.thresholds.failure {
            return Err(ReadError::Tombstones);
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

    fn take(&mut self, row: &ResultRow<'_>) -> Result<bool, ReadError> {
        let (task, block) = (self.task, &mut self.block);
        let aggregation = &mut self.aggregation;
        let before = block.cells.len();
        let taken = task.with_bind(self.engine, |bind| {
            if !task.select.passes(&task.read, row, bind)? {
                return Ok(false);
            }
            match aggregation {
                Some(all) => task.select.aggregate(all, &task.read, row, bind)?,
                None => task.select.project(&task.read, row, bind, &mut block.cells)?,
            }
            Ok::<_, cql::CqlError>(true)
        })?;
        if !taken {
            return Ok(false);
        }
        if self.aggregation.is_none() {
            let bytes = block.cells.len() - before;
            let has_mark = row.row.is_some() && !row.clustering.is_empty();
            block.marks.extend_from_slice(row.clustering.as_packed());
            let (cells, mark) = (block.cells.len(), block.marks.len());
            block.rows.push(RowEnd { cells, mark, has_mark, scanned: block.scanned });
            self.budget.bytes = self.budget.bytes.saturating_sub(bytes);
        }
        self.budget.rows -= 1;
        self.left -= 1;
        Ok(true)
    }
}

/// A merged partition, wherever its rows come from.
pub(crate) trait PartitionRows {
    /// The static row, packed.
    fn static_row(&self) -> Option<Vec<u8>>;
    /// The next row or marker.
    async fn next(&mut self) -> Result<Option<Unfiltered<'_>>, StorageError>;
}

impl PartitionRows for storage::PartitionCursor {
    fn static_row(&self) -> Option<Vec<u8>> {
        self.static_row().map(|row| row.as_packed().to_vec())
    }

    async fn next(&mut self) -> Result<Option<Unfiltered<'_>>, StorageError> {
        self.next().await
    }
}

async fn read_rows(
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
    let mut scanner = Scanner::new(task.table(), now_seconds);
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
            sink.take(&no_row(key, statics, now_seconds))?;
            return Ok(());
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
    Ok(())
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
    let opened = engine.traced_partition(task.table(), key.as_ref(), &slices, trace).await?;
    let Some(mut rows) = opened else {
        engine.read_ended(task.table().id, started);
        return Ok(None);
    };
    let block = Block { key: Some(key.clone()), ..Block::default() };
    let mut sink = Sink { task, engine, budget, aggregation, block, left };
    read_rows(&mut sink, key, &mut rows, resumed.is_some()).await?;
    engine.read_ended(task.table().id, started);
    let scanned = sink.block.scanned;
    trace.note(engine.env(), || {
        let (live, tombstones) = (scanned.live, scanned.tombstones);
        format!("Read {live} live rows and {tombstones} tombstone cells")
    });
    sink.block.full = sink.left == 0 || sink.budget.is_spent();
    Ok(Some(sink.block))
}

fn budget(task: &Task) -> Budget {
    let rows = match task.select.is_aggregate() {
        true => u32::MAX,
        false => task.read.page_limit(),
    };
    let (scanned, noticed) = (Scanned::default(), Vec::new());
    Budget { rows, bytes: task.bytes_max, scanned, noticed }
}

/// Reads partitions of this shard; each with its place among all that the read wants.
pub(crate) async fn read_keys(
    engine: Rc<Engine>,
    task: Task,
    keys: Vec<(usize, PartitionKey)>,
) -> Result<Vec<(usize, Block, Option<Aggregation>, Vec<Noticed>)>, ReadError> {
    task.trace.note(engine.env(), || format!("Reading {} partitions", keys.len()));
    let mut budget = budget(&task);
    let mut found = Vec::new();
    for (place, key) in keys {
        // the read of each partition is one of its own
        budget.scanned = Scanned::default();
        let mut aggregation = task.select.is_aggregate().then(Aggregation::default);
        let first = place == 0;
        let block =
            read_partition(&engine, &task, &key, first, &mut budget, aggregation.as_mut()).await?;
        note_scanned(&engine, &task, budget.scanned);
        budget.end_page(&key, task.thresholds);
        let noticed = std::mem::take(&mut budget.noticed);
        found.extend(block.map(|block| (place, block, aggregation, noticed)));
        if budget.is_spent() {
            break;
        }
    }
    Ok(found)
}

/// Counts what one read of this shard went over.
fn note_scanned(engine: &Engine, task: &Task, scanned: Scanned) {
    let values =
        [(Measure::RowsPerRead, scanned.live), (Measure::TombstonesPerRead, scanned.tombstones)];
    engine.measured(task.table().id, &values);
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Reads this shard's part of a range.
pub(crate) async fn read_range(engine: Rc<Engine>, task: Task) -> Result<Found, ReadError> {
    let Target::Range { from, to } = &task.read.target else {
        return Ok(Found::default());
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
            None => return Ok(Found::default()),
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
    let mut aggregation = task.select.is_aggregate().then(Aggregation::default);
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
        let counts = |block: &Block| aggregation.is_none() && block.scanned.tombstones > 0;
        blocks.extend(block.filter(|block| !block.rows.is_empty() || counts(block)));
    }
    if let Some(key) = last.filter(|_| aggregation.is_some()) {
        budget.end_page(&key, task.thresholds);
    }
    let took = micros(engine.env().now().since(started));
    engine.measured(task.table().id, &[(Measure::LocalScan, took)]);
    note_scanned(&engine, &task, scanned);
    let full = budget.is_spent();
    Ok(Found { blocks, aggregation, full, noticed: budget.noticed })
}

/// All rows that the shards found, in the order of the result, cut to the page.
#[derive(Default)]
struct Merged {
    cells: Vec<u8>,
    rows: u32,
    /// Where the last row's cells start.
    last_row: usize,
    last: Option<Last>,
    /// Did a limit of the page end it?
    full: bool,
    /// What was read of each partition of the page, where not all of it is live; of an aggregation, its pages with too
    /// many tombstones.
    scanned: Vec<Noticed>,
}

/// What shards found, put together: blocks in order, and of an aggregation its pages with too many tombstones.
type Gathered = (Vec<(usize, Block)>, Option<Aggregation>, Vec<Noticed>);

/// The last row of a page.
pub(crate) struct Last {
    pub key: PartitionKey,
    pub place: usize,
    pub mark: Option<Clustering>,
    /// Rows of its partition in this page.
    pub in_partition: u32,
}

impl Merged {
    fn scan(&mut self, key: &Option<PartitionKey>, scanned: Scanned) {
        if let (Some(key), true) = (key, scanned != Scanned::default()) {
            self.scanned.push((key.clone(), scanned));
        }
    }

    /// What was read as each command of Cassandra's would count it: a partition's, or a range's up to its last one.
    fn commands(&self, read: &Read, is_aggregate: bool) -> Vec<Noticed> {
        if is_aggregate || matches!(read.target, Target::Keys(_)) {
            return self.scanned.clone();
        }
        let mut all = Scanned::default();
        self.scanned.iter().for_each(|(_, scanned)| all += *scanned);
        self.scanned.last().map(|(key, _)| (key.clone(), all)).into_iter().collect()
    }
}

/// Puts blocks, which are in order, together until the page is full.
fn cut(blocks: Vec<(usize, Block)>, rows_max: u32, bytes_max: usize) -> Merged {
    let mut merged = Merged::default();
    for (place, block) in blocks {
        let mut start = (0, 0);
        let mut scanned = Scanned::default();
        for (n, row) in block.rows.iter().enumerate() {
            if merged.rows >= rows_max || merged.cells.len() >= bytes_max {
                merged.full = true;
                merged.scan(&block.key, scanned);
                return merged;
            }
            scanned = row.scanned;
            merged.last_row = merged.cells.len();
            merged.cells.extend_from_slice(&block.cells[start.0..row.cells]);
            merged.rows += 1;
            let mark = &block.marks[start.1..row.mark];
            start = (row.cells, row.mark);
            let key = block.key.clone();
            let at_end = merged.rows >= rows_max || merged.cells.len() >= bytes_max;
            // only the last row's mark is needed
            if at_end || n + 1 == block.rows.len() {
                let mark = row.has_mark.then(|| clustering_of(mark));
                let in_partition = n as u32 + 1;
                merged.last = key.map(|key| Last { key, place, mark, in_partition });
            }
        }
        let is_cut = merged.rows >= rows_max || merged.cells.len() >= bytes_max;
        merged.scan(&block.key, if is_cut { scanned } else { block.scanned });
        if block.full && (merged.rows >= rows_max || merged.cells.len() >= bytes_max) {
            merged.full = true;
            return merged;
        }
    }
    merged.full = merged.rows >= rows_max || merged.cells.len() >= bytes_max;
    merged
}

fn clustering_of(packed: &[u8]) -> Clustering {
    // a row's own packed clustering, so it can be looked at as one
    ClusteringRef::from_packed(packed).to_owned()
}

impl Coordinator {
    /// SELECT.
    pub(crate) async fn select(
        self: &Rc<Self>,
        select: &Arc<Select>,
        values: &Bindings<'_>,
        metadata: &Arc<ResultMetadata>,
        request: &Request<'_>,
    ) -> Outcome {
        let started = self.env.now();
        let mut kind = &self.requests.read;
        let mut warnings = Vec::new();
        let result =
            self.select_page(select, values, metadata, request, &mut kind, &mut warnings).await;
        let took = self.env.now().since(started);
        kind.ended(took, result.as_ref().err());
        let measure = match std::ptr::eq(kind, &self.requests.range) {
            true => Measure::CoordinatorScan,
            false => Measure::CoordinatorRead,
        };
        self.engine.measured(select.table().id, &[(measure, micros(took))]);
        if let (Ok(_), Some(warning)) = (&result, select.aggregation_warning()) {
            warnings.insert(0, warning.to_owned());
        }
        Outcome::new(result.map(Answer::Rows), warnings)
    }

    /// A page; `kind` becomes the kind of request that it turns out to be.
    async fn select_page<'a>(
        self: &'a Rc<Self>,
        select: &Arc<Select>,
        values: &Bindings<'_>,
        metadata: &Arc<ResultMetadata>,
        request: &Request<'_>,
        kind: &mut &'a RequestMetrics,
        warnings: &mut Vec<String>,
    ) -> Result<Page, ErrorResponse> {
        let table = select.table();
        let consistency = request.options.consistency;
        if consistency == Consistency::Any {
            return Err(invalid("ANY ConsistencyLevel is only supported for writes"));
        }
        let now = self.now(request.options);
        let position = request.options.paging_state.map(|state| position(&state, table));
        // Whether states name the partition must not change from page to page.
        let resumed_by_key =
            request.options.paging_state.is_some_and(|s| s.partition_key.is_some());
        let page = PageRequest {
            size: request.options.rows_per_page().filter(|_| !select.is_aggregate()),
            after: position.transpose()?,
        };
        let read = self.with_bind(values, request, &now, |bind| select.bind(bind, &page));
        let read = Arc::new(read.map_err(cql_error)?);
        self.check_read(&read, table, consistency)?;
        let paged = read.page_size.is_some();
        let task = Task {
            select: Arc::clone(select),
            read: Arc::clone(&read),
            version: request.version.number(),
            now_millis: now.millis,
            bytes_max: if paged { PAGE_BYTES_MAX } else { usize::MAX },
            thresholds: self.thresholds(table),
            trace: request.trace().clone(),
        };
        let timeout = match &read.target {
            Target::Keys(_) => self.timeouts().read,
            Target::Range { .. } => {
                *kind = &self.requests.range;
                self.timeouts().range
            }
        };
        let asked = read.timeout_nanos.map(Duration::from_nanos);
        let timeout = asked.unwrap_or(timeout);
        let deadline = request.deadline.min(self.env.now() + timeout);
        let run = self.run_read(&task);
        let (merged, aggregation) = match self.env.timeout_at(deadline, run).await {
            Ok(Ok(found)) => found,
            Ok(Err(ReadError::Cql(error))) => return Err(cql_error(error)),
            Ok(Err(ReadError::Storage(error))) => return Err(read_error(&error, consistency)),
            Ok(Err(ReadError::Tombstones)) => return Err(self.too_many_tombstones(consistency)),
            Err(_) => return Err(read_error(&StorageError::Deadline, consistency)),
        };
        for (key, scanned) in merged.commands(&read, select.is_aggregate()) {
            if scanned.tombstones > task.thresholds.failure {
                return Err(self.too_many_tombstones(consistency));
            }
            if scanned.tombstones > task.thresholds.warn {
                let token = key.token;
                let key = cql::select::PartitionKey { token, bytes: key.bytes };
                let key = matches!(read.target, Target::Keys(_)).then_some(&key);
                let text = select.command_text(&read, key);
                warnings.push(warning(scanned, &text, token));
            }
        }
        if let Some(aggregation) = aggregation {
            let mut cells = Vec::new();
            let finished = task.with_bind(&self.engine, |bind| {
                select.finish(&aggregation, &read, bind, &mut cells)
            });
            finished.map_err(cql_error)?;
            let metadata = Arc::clone(metadata);
            return Ok(Page { metadata, rows: 1, cells, paging_state: None });
        }
        let paging_state = merged.last.as_ref().filter(|_| paged && merged.full).and_then(|last| {
            let several =
                resumed_by_key || matches!(&read.target, Target::Keys(keys) if keys.len() > 1);
            paging_state(&read, table, last, merged.rows, several, request.version)
        });
        let metadata = Arc::clone(metadata);
        Ok(Page { metadata, rows: merged.rows, cells: merged.cells, paging_state })
    }

    /// How many tombstones reads of a table may go over.
    fn thresholds(&self, table: &Table) -> Thresholds {
        match table.is_virtual() || is_local_system(&table.keyspace) {
            true => Thresholds::NONE,
            false => Thresholds {
                warn: self.config.tombstone_warn,
                failure: self.config.tombstone_failure,
            },
        }
    }

    fn too_many_tombstones(&self, consistency: Consistency) -> ErrorResponse {
        let address = SocketAddr::new(self.identity.broadcast, self.identity.storage_port);
        let failures = [(address, FailureReason::ReadTooManyTombstones)];
        ErrorResponse::read_failure(consistency, 0, 1, false, &failures)
    }

    /// Can a read be served at its consistency level?
    fn check_read(
        &self,
        read: &Read,
        table: &Table,
        consistency: Consistency,
    ) -> Result<(), ErrorResponse> {
        let keys = match &read.target {
            Target::Keys(keys) => Some(keys.len()),
            Target::Range { .. } => None,
        };
        // A serial read of a partition is one at quorum, after a round of Paxos.
        let consistency = match (consistency, keys) {
            (_, Some(0)) => return Ok(()),
            (Consistency::Serial, Some(1)) => Consistency::Quorum,
            (Consistency::LocalSerial, Some(1)) => Consistency::LocalQuorum,
            (Consistency::Serial | Consistency::LocalSerial, Some(_)) => {
                return Err(invalid(
                    "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time",
                ));
            }
            _ => consistency,
        };
        match self.schema().keyspace(&table.keyspace) {
            Some(keyspace) => {
                check_replicas(keyspace, consistency, &self.identity.data_center, true)
            }
            None => Ok(()),
        }
    }

    async fn run_read(
        self: &Rc<Self>,
        task: &Task,
    ) -> Result<(Merged, Option<Aggregation>), ReadError> {
        let table = task.table();
        if table.is_virtual() {
            return self.read_virtual(task).await;
        }
        let (mut blocks, aggregation, noticed) = match &task.read.target {
            Target::Keys(keys) => self.read_all_keys(task, keys).await?,
            Target::Range { .. } => self.read_all_shards(task).await?,
        };
        let mut merged = self.in_order(task, &mut blocks);
        if aggregation.is_some() {
            merged.scanned = noticed;
        }
        Ok((merged, aggregation))
    }

    fn in_order(&self, task: &Task, blocks: &mut Vec<(usize, Block)>) -> Merged {
        let read = &task.read;
        match task.select.post_order() {
            None => {
                let mut merged = cut(std::mem::take(blocks), read.page_limit(), task.bytes_max);
                if merged.full && self.env.planted("paging_drops_row") {
                    merged.cells.truncate(merged.last_row);
                    merged.rows -= 1;
                }
                merged
            }
            Some(order) => {
                let table = task.table();
                let mut rows: Vec<(Clustering, usize, std::ops::Range<usize>)> = Vec::new();
                for (n, (_, block)) in blocks.iter().enumerate() {
                    let mut start = (0, 0);
                    for row in &block.rows {
                        let mark = clustering_of(&block.marks[start.1..row.mark]);
                        rows.push((mark, n, start.0..row.cells));
                        start = (row.cells, row.mark);
                    }
                }
                rows.sort_by(|a, b| order.compare(table, a.0.as_ref(), b.0.as_ref()));
                rows.truncate(read.result_limit as usize);
                let mut cells = Vec::new();
                for (_, block, range) in &rows {
                    cells.extend_from_slice(&blocks[*block].1.cells[range.clone()]);
                }
                let mut merged = Merged { cells, rows: rows.len() as u32, ..Merged::default() };
                blocks.iter().for_each(|(_, block)| merged.scan(&block.key, block.scanned));
                merged
            }
        }
    }

    async fn read_all_keys(
        self: &Rc<Self>,
        task: &Task,
        keys: &[cql::select::PartitionKey],
    ) -> Result<Gathered, ReadError> {
        let shards = self.shards.count();
        let mut by_shard: Vec<Vec<(usize, PartitionKey)>> =
            (0..shards).map(|_| Vec::new()).collect();
        for (place, key) in keys.iter().enumerate() {
            let key = PartitionKey { token: key.token, bytes: key.bytes.clone() };
            let owner = self.engine.owner(key.token);
            self.count_hop(owner);
            by_shard[owner].push((place, key));
        }
        let mut found = Vec::new();
        let mut remote = Vec::new();
        for (shard, keys) in by_shard.into_iter().enumerate() {
            if keys.is_empty() {
                continue;
            }
            let task = task.clone();
            if shard == self.shards.me() {
                found.extend(read_keys(Rc::clone(&self.engine), task, keys).await?);
                continue;
            }
            let engine = Rc::clone(&self.engine);
            task.trace.note(&self.env, || format!("Sending READ_REQ message to shard-{shard}"));
            remote.push(self.env.spawn_task(STATEMENT, async move {
                let read = move |engine: Rc<Engine>| read_keys(engine, task, keys);
                engine.shards().call_async(shard, STATEMENT, read).await
            }));
        }
        for result in remote {
            found.extend(result.await.map_err(StorageError::from)??);
        }
        found.sort_by_key(|(place, ..)| *place);
        let mut aggregation = task.select.is_aggregate().then(Aggregation::default);
        let mut blocks = Vec::with_capacity(found.len());
        let mut noticed = Vec::new();
        for (place, block, part, pages) in found {
            noticed.extend(pages);
            if let (Some(all), Some(part)) = (&mut aggregation, part) {
                all.merge(part);
            }
            blocks.push((place, block));
        }
        Ok((blocks, aggregation, noticed))
    }

    async fn read_all_shards(self: &Rc<Self>, task: &Task) -> Result<Gathered, ReadError> {
        task.trace.note(&self.env, || "Computing ranges to query".to_owned());
        let mut remote = Vec::new();
        for shard in (0..self.shards.count()).filter(|shard| *shard != self.shards.me()) {
            let task = task.clone();
            let engine = Rc::clone(&self.engine);
            task.trace.note(&self.env, || format!("Sending READ_REQ message to shard-{shard}"));
            remote.push(self.env.spawn_task(STATEMENT, async move {
                let read = move |engine: Rc<Engine>| read_range(engine, task);
                engine.shards().call_async(shard, STATEMENT, read).await
            }));
        }
        let mut found = vec![read_range(Rc::clone(&self.engine), task.clone()).await?];
        for result in remote {
            found.push(result.await.map_err(StorageError::from)??);
        }
        let mut aggregation = task.select.is_aggregate().then(Aggregation::default);
        // A shard that stopped at the page's limit may have more partitions: what others found after its last one
        // waits for a later page.
        let bound = found
            .iter()
            .filter(|part| part.full)
            .filter_map(|part| part.blocks.last().and_then(|block| block.key.clone()));
        let bound = bound.min();
        let mut blocks = Vec::new();
        let mut noticed = Vec::new();
        for part in found {
            noticed.extend(part.noticed);
            if let (Some(all), Some(part)) = (&mut aggregation, part.aggregation) {
                all.merge(part);
            }
            blocks.extend(part.blocks);
        }
        blocks.sort_by(|a, b| a.key.cmp(&b.key));
        if let Some(bound) = bound {
            blocks.retain(|block| block.key.as_ref().is_some_and(|key| *key <= bound));
        }
        let blocks = blocks.into_iter().enumerate().collect();
        noticed.sort_by(|a, b| a.0.cmp(&b.0));
        Ok((blocks, aggregation, noticed))
    }

    /// Reads a virtual table: its partitions are made up here.
    async fn read_virtual(
        self: &Rc<Self>,
        task: &Task,
    ) -> Result<(Merged, Option<Aggregation>), ReadError> {
        let partitions = self.virtual_partitions(task.table()).await?;
        let mut aggregation = task.select.is_aggregate().then(Aggregation::default);
        let mut budget = budget(task);
        let mut blocks = Vec::new();
        let wanted = wanted(&task.read.target, partitions);
        for (place, (key, update)) in wanted.into_iter().enumerate() {
            let read = &task.read;
            let first = place == 0 && read.first_rows.is_some();
            let resumed = read.first_rows.as_ref().filter(|_| first);
            let filter = resumed.unwrap_or(&read.rows);
            let left = if first { read.first_limit } else { read.per_partition_limit };
            let block = Block { key: Some(key.clone()), ..Block::default() };
            let aggregation = aggregation.as_mut();
            let (engine, budget) = (&*self.engine, &mut budget);
            let mut sink = Sink { task, engine, budget, aggregation, block, left };
            let mut rows = MadeUp::new(task.table(), &update, filter, read.reversed);
            read_rows(&mut sink, &key, &mut rows, resumed.is_some()).await?;
            sink.block.full = sink.left == 0 || sink.budget.is_spent();
            blocks.push((place, sink.block));
            if budget.is_spent() {
                break;
            }
        }
        Ok((self.in_order(task, &mut blocks), aggregation))
    }
}

/// The made-up partitions that a read wants, in its order.
fn wanted(
    target: &Target,
    mut partitions: Vec<rows::PartitionUpdate>,
) -> Vec<(PartitionKey, rows::PartitionUpdate)> {
    let key_of = |update: &rows::PartitionUpdate| PartitionKey {
        token: update.token,
        bytes: update.key.clone(),
    };
    match target {
        Target::Keys(keys) => {
            let find = |key: &cql::select::PartitionKey| {
                let at = partitions.iter().position(|update| update.key == key.bytes)?;
                Some(partitions.swap_remove(at))
            };
            let found: Vec<_> = keys.iter().filter_map(find).collect();
            found.into_iter().map(|update| (key_of(&update), update)).collect()
        }
        // Ranges of virtual tables go by the order of keys, in which the partitions come.
        Target::Range { from, to } => {
            let mut all: Vec<_> = partitions.into_iter().map(|u| (key_of(&u), u)).collect();
            if let RangeBound::Key { key, inclusive } = from {
                let at = all.iter().position(|(of, _)| of.bytes == key.bytes);
                all.drain(..at.map_or(all.len(), |at| at + usize::from(!inclusive)));
            }
            let token = |bound: &RangeBound, key: &PartitionKey| match bound {
                RangeBound::Token { token, inclusive } => Some((key.token.cmp(token), *inclusive)),
                RangeBound::Unbounded | RangeBound::Key { .. } => None,
            };
            all.retain(|(key, _)| {
                let after = token(from, key).is_none_or(|(o, i)| o.is_gt() || (i && o.is_eq()));
                after && token(to, key).is_none_or(|(o, i)| o.is_lt() || (i && o.is_eq()))
            });
            all
        }
    }
}

/// The rows of a made-up partition that a filter selects.
struct MadeUp {
    rows: std::vec::IntoIter<Vec<u8>>,
    static_row: Option<Vec<u8>>,
    current: Vec<u8>,
}

impl MadeUp {
    fn new(
        table: &Table,
        update: &rows::PartitionUpdate,
        filter: &RowFilter,
        reversed: bool,
    ) -> Self {
        let selected =
            |row: &RowRef<'_>| filter.selects(&table.layout, &row.clustering().to_owned());
        let mut rows: Vec<Vec<u8>> =
            update.rows.iter().filter(selected).map(|row| row.as_packed().to_vec()).collect();
        if reversed {
            rows.reverse();
        }
        let static_row = update.static_row().map(|row| row.as_packed().to_vec());
        Self { rows: rows.into_iter(), static_row, current: Vec::new() }
    }
}

impl PartitionRows for MadeUp {
    fn static_row(&self) -> Option<Vec<u8>> {
        self.static_row.clone()
    }

    async fn next(&mut self) -> Result<Option<Unfiltered<'_>>, StorageError> {
        match self.rows.next() {
            Some(row) => {
                self.current = row;
                Ok(Some(Unfiltered::from_packed(&self.current)))
            }
            None => Ok(None),
        }
    }
}
