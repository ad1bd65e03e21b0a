//! A shard's part of a read for another node: partitions merged, less what is not fetched, what may
//! be forgotten and what does not pass the conditions (`ReadCommand.executeLocally`), packed for
//! the shard that answers.

use std::rc::Rc;
use std::sync::Arc;

use env::Instant;
use internode::FailureReason;
use internode::payload::read::{ReadCommand, Target};
use rows::{Deletion, Purger, RowBuilder, RowRef, Unfiltered, purge_marker, purge_row};
use schema::Table;
use storage::{Engine, Measure, PartitionKey, ScanStart, Slices, StorageError, Trace};

use crate::read_samples::{PartitionRead, sample_time};
use crate::replica_read::conditions::Conditions;
use crate::replica_read::fetched::Fetched;
use crate::replica_read::limit::Counter;
use crate::replica_read::slices::{Stretch, after, takes_all};
use crate::replica_read::text::text;
use crate::request_metrics::micros;
use crate::scanned::{Scanned, Scanner, Thresholds};

/// From so many bytes on a shard ends what it gives at once of a range.
const CHUNK_BYTES: usize = 1 << 20;

/// A read as shards need it.
pub(super) struct Wanted {
    pub command: Arc<ReadCommand>,
    pub table: Arc<Table>,
    pub conditions: Conditions,
    /// Of each partition.
    pub slices: Slices,
    /// For reads of a range.
    pub stretch: Option<Stretch>,
    pub thresholds: Thresholds,
    pub deadline: Instant,
    /// Most bytes of a partition, packed.
    pub bytes_max: usize,
    /// Where what happens is noted.
    pub trace: Trace,
}

/// Why a shard gives nothing.
#[derive(Clone, Debug)]
pub(super) enum Failed {
    Storage(StorageError),
    Reason(FailureReason),
}

impl From<StorageError> for Failed {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

/// A row or marker of a part.
#[derive(Clone, Copy)]
pub(super) struct Item {
    /// Where its packed form ends.
    pub end: usize,
    /// What was read since the one before it.
    pub scanned: Scanned,
}

/// What there is of a partition.
pub(super) struct Part {
    pub key: PartitionKey,
    pub deletion: Deletion,
    /// The static row, packed.
    pub statics: Option<Vec<u8>>,
    /// Rows and markers, packed, one after another.
    pub packed: Vec<u8>,
    pub items: Vec<Item>,
    /// What was read before its rows.
    pub before: Scanned,
    /// What was read after its last item.
    pub after: Scanned,
}

impl Part {
    /// Its rows and markers.
    pub fn unfiltereds(&self) -> impl Iterator<Item = (Unfiltered<'_>, Scanned)> {
        let mut at = 0;
        self.items.iter().filter_map(move |item| {
            let packed = self.packed.get(std::mem::replace(&mut at, item.end)..item.end)?;
            Some((Unfiltered::from_packed(packed), item.scanned))
        })
    }

    /// What it holds in memory.
    fn bytes(&self) -> usize {
        let statics = self.statics.as_ref().map_or(0, Vec::len);
        let items = self.items.len() * size_of::<Item>();
        size_of::<Self>() + self.key.bytes.len() + statics + self.packed.len() + items
    }
}

/// What a shard gives at once.
#[derive(Default)]
pub(super) struct Chunk {
    pub parts: Vec<Part>,
    /// What was read after the last part.
    pub after: Scanned,
    /// The last key that was looked at, if there may be more after it.
    pub last: Option<PartitionKey>,
}

impl Wanted {
    pub fn now(&self) -> i64 {
        self.command.now.into()
    }

    /// Does a partition count that has static data alone (`selectsFullPartition`)?
    pub fn counts_static_alone(&self) -> bool {
        let (Target::Partition { rows, .. } | Target::Range { rows, .. }) = &self.command.target;
        self.table.is_static_compact() || (takes_all(rows) && !self.conditions.has_of_row())
    }

    pub fn is_reversed(&self) -> bool {
        self.slices.reversed()
    }

    pub fn counter(&self) -> Counter<'_> {
        let counts = self.counts_static_alone();
        Counter::new(&self.command.limits, &self.table, self.now(), counts)
    }

    /// The wanted rows of a partition.
    fn slices_of(&self, key: &PartitionKey) -> Slices {
        use internode::payload::read::Position;
        if let Target::Range { keys, after: Some(last), .. } = &self.command.target
            && matches!(&keys.from, Position::Key(first) if *first == key.bytes)
        {
            return after(&self.table.layout, &self.slices, last);
        }
        self.slices.clone()
    }

    fn purger(&self) -> Purger<'static> {
        // what was not repaired stays, and nothing is known to have been
        let keeps = self.table.params.compaction.options.get("only_purge_repaired_tombstones");
        let keeps = keeps.is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let gc_before = match keeps {
            true => i64::MIN,
            false => self.now().saturating_sub(self.table.params.gc_grace_seconds.into()),
        };
        Purger { now: self.now(), gc_before, strict_liveness: false, purgeable: &|_| true }
    }
}

/// Reads partitions of one shard.
struct Scan<'w> {
    engine: Rc<Engine>,
    wanted: &'w Wanted,
    fetched: Fetched<'w>,
    purger: Purger<'static>,
    counter: Counter<'w>,
    scanner: Scanner<'w>,
    /// All that was read.
    total: Scanned,
    /// What was read since the last part.
    unclaimed: Scanned,
    bytes: usize,
    chunk: Chunk,
}

impl<'w> Scan<'w> {
    fn new(engine: Rc<Engine>, wanted: &'w Wanted) -> Self {
        Self {
            engine,
            wanted,
            fetched: Fetched::new(&wanted.table, &wanted.command.columns),
            purger: wanted.purger(),
            counter: wanted.counter(),
            scanner: Scanner::new(&wanted.table, wanted.now(), &wanted.thresholds),
            total: Scanned::default(),
            unclaimed: Scanned::default(),
            bytes: 0,
            chunk: Chunk::default(),
        }
    }

    fn note(&mut self, scanned: Scanned) {
        self.total += scanned;
        self.unclaimed += scanned;
    }

    /// Is nothing more wanted of this shard? More than a read may go over is seen by who puts parts
    /// together.
    fn is_done(&self) -> bool {
        self.counter.stops() || self.is_excessive()
    }

    fn is_excessive(&self) -> bool {
        self.wanted.thresholds.excess(self.total).is_some()
    }

    async fn partition(&mut self, key: &PartitionKey) -> Result<(), Failed> {
        let wanted = self.wanted;
        let (slices, table) = (wanted.slices_of(key), &wanted.table);
        let started = self.engine.env().now();
        wanted.trace.note(self.engine.env(), || {
            format!("Executing single-partition query on {}", table.name)
        });
        let (key_ref, trace) = (key.as_ref(), &wanted.trace);
        let opened = match &wanted.command.target {
            Target::Partition { .. } => {
                self.engine.traced_partition(table, key_ref, &slices, trace).await?
            }
            Target::Range { .. } => {
                self.engine.scanned_partition(table, key_ref, &slices, trace).await?
            }
        };
        let Some(mut cursor) = opened else {
            self.engine.read_ended(table.id, started, 0);
            return Ok(());
        };
        if cursor.table().layout != table.layout {
            // it was altered on the way here
            return Err(Failed::Reason(FailureReason::IncompatibleSchema));
        }
        let before = self.total;
        let part = self.part(key, &mut cursor).await?;
        self.engine.read_ended(table.id, started, cursor.sstables());
        let is_by_key = matches!(wanted.command.target, Target::Partition { .. });
        let of = PartitionRead {
            table: table.id,
            key: &key.bytes,
            sstables: is_by_key.then(|| cursor.sstables()),
            scanned: self.total - before,
        };
        of.sample(&self.engine);
        self.chunk.parts.extend(part);
        Ok(())
    }

    /// What there is of a partition, unless that is nothing.
    async fn part(
        &mut self,
        key: &PartitionKey,
        cursor: &mut storage::PartitionCursor,
    ) -> Result<Option<Part>, Failed> {
        let wanted = self.wanted;
        let Some(mut part) = self.before_rows(key, cursor) else { return Ok(None) };
        let static_row = part.statics.as_deref().map(RowRef::from_packed);
        // what has neither a deletion nor static data is there only if something in it is
        let mut is_there =
            !wanted.conditions.has_of_row() && (static_row.is_some() || !part.deletion.is_live());
        if is_there {
            part.before = std::mem::take(&mut self.unclaimed);
            self.counter.start(&key.bytes, static_row);
        }
        let [mut selected, mut purged, mut seen] = [const { RowBuilder::new() }; 3];
        while !(is_there && self.counter.stops_in_partition()) {
            self.engine.env().maybe_yield().await;
            if self.engine.env().now() >= wanted.deadline {
                return Err(StorageError::Deadline.into());
            }
            let Some(unfiltered) = cursor.next().await? else { break };
            let found = self.found(unfiltered, &mut selected, &mut purged);
            let Some(found) = found else { continue };
            if let Unfiltered::Row(row) = found
                && !wanted.conditions.row_passes(
                    &wanted.table,
                    &key.bytes,
                    row,
                    wanted.now(),
                    &mut seen,
                )
            {
                if self.is_excessive() {
                    break;
                }
                continue;
            }
            if !is_there {
                is_there = true;
                self.counter.start(&key.bytes, static_row);
            }
            if let Unfiltered::Row(row) = found
                && !self.counter.row(&key.bytes, row)
            {
                break;
            }
            found.pack(&mut part.packed);
            let scanned = std::mem::take(&mut self.unclaimed);
            part.items.push(Item { end: part.packed.len(), scanned });
            if part.packed.len() > wanted.bytes_max {
                return Err(Failed::Reason(FailureReason::ReadSize));
            }
            if self.is_excessive() {
                break;
            }
        }
        if !is_there {
            return Ok(None);
        }
        self.counter.end();
        part.after = std::mem::take(&mut self.unclaimed);
        self.bytes += part.bytes();
        Ok(Some(part))
    }

    /// The deletion and the static row of a partition, unless these say that it is not wanted.
    fn before_rows(
        &mut self,
        key: &PartitionKey,
        cursor: &storage::PartitionCursor,
    ) -> Option<Part> {
        let (table, now) = (&self.wanted.table, self.wanted.now());
        let [mut selected, mut purged] = [const { RowBuilder::new() }; 2];
        let statics = cursor.static_row().filter(|_| self.fetched.has_statics());
        let statics = statics.and_then(|row| self.fetched.row(row, &mut selected));
        let statics =
            statics.and_then(|row| purge_row(&table.layout, row, &self.purger, &mut purged));
        if let Some(row) = statics {
            let scanned = self.scanner.row(row, row.has_live_data(now, false));
            self.note(scanned);
        }
        let passes = self.wanted.conditions.partition_passes(table, &key.bytes, statics, now);
        passes.then(|| Part {
            key: key.clone(),
            deletion: self.purger.deletion(cursor.deletion()),
            statics: statics.map(|row| row.as_packed().to_vec()),
            packed: Vec::new(),
            items: Vec::new(),
            before: Scanned::default(),
            after: Scanned::default(),
        })
    }

    /// What is left of a row or marker that was read, less what is not fetched and what may be
    /// forgotten.
    fn found<'r>(
        &mut self,
        unfiltered: Unfiltered<'r>,
        selected: &'r mut RowBuilder,
        purged: &'r mut RowBuilder,
    ) -> Option<Unfiltered<'r>> {
        let (found, scanned) = match unfiltered {
            Unfiltered::Row(row) => {
                let row = self.fetched.row(row, selected)?;
                let row = purge_row(&self.wanted.table.layout, row, &self.purger, purged)?;
                let is_live = row.has_live_data(self.wanted.now(), false);
                (Unfiltered::Row(row), self.scanner.row(row, is_live))
            }
            Unfiltered::Marker(marker) => {
                let marker = purge_marker(marker, &self.purger)?;
                (Unfiltered::Marker(marker), self.scanner.marker(marker))
            }
        };
        self.note(scanned);
        Some(found)
    }

    fn end(mut self, measure: Option<Measure>, started: Instant) -> Chunk {
        let id = self.wanted.table.id;
        let total = self.total;
        let mut measured = vec![
            (Measure::RowsPerRead, total.live),
            (Measure::TombstonesPerRead, total.tombstones),
        ];
        let took = micros(self.engine.env().now().since(started));
        measured.extend(measure.map(|measure| (measure, took)));
        self.engine.measured(id, &measured);
        sample_time(&self.engine, id, started, || text(&self.wanted.table, &self.wanted.command));
        self.wanted.trace.note(self.engine.env(), || {
            format!("Read {} live rows and {} tombstone cells", total.live, total.tombstones)
        });
        self.chunk.after = self.unclaimed;
        self.chunk
    }
}

/// Reads one partition of this shard.
pub(super) async fn read_partition(
    engine: Rc<Engine>,
    wanted: Arc<Wanted>,
    key: PartitionKey,
) -> Result<Chunk, Failed> {
    let started = engine.env().now();
    let mut scan = Scan::new(engine, &wanted);
    if !scan.is_done() {
        scan.partition(&key).await?;
    }
    Ok(scan.end(None, started))
}

/// Reads this shard's partitions in a range from its start, or from after a key.
pub(super) async fn read_range(
    engine: Rc<Engine>,
    wanted: Arc<Wanted>,
    after: Option<PartitionKey>,
) -> Result<Chunk, Failed> {
    let started = engine.env().now();
    let mut scan = Scan::new(Rc::clone(&engine), &wanted);
    let Some(stretch) = &wanted.stretch else { return Ok(Chunk::default()) };
    let start = after.map(ScanStart::After).or_else(|| stretch.start.clone());
    let Some(start) = start.filter(|_| !scan.is_done()) else { return Ok(Chunk::default()) };
    wanted.trace.note(engine.env(), || {
        let live = engine.store(wanted.table.id).map(|store| store.live().tables().len());
        format!("Executing seq scan across {} sstables", live.unwrap_or_default())
    });
    let mut keys = engine.scan(&wanted.table, start).await?;
    while let Some(key) = keys.next().await?.filter(|key| stretch.reaches(key)) {
        scan.partition(&key).await?;
        if scan.is_done() {
            break;
        }
        if scan.bytes >= CHUNK_BYTES {
            scan.chunk.last = Some(key);
            break;
        }
    }
    Ok(scan.end(Some(Measure::LocalScan), started))
}
