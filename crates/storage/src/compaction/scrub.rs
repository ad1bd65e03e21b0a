//! Rewriting an SSTable without what cannot be read of it (`nodetool scrub`).
//!
//! The data is read from front to back; its chunks have checksums, and what fails one is not taken.
//! The index, which has none, is only asked where the data does not lead on: for the next partition
//! behind the damage, which must have the key there that the index says.
//!
//! What can be read is published as a compaction's output is.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use rows::{Deletion, INVALID_DELETION_TIME, RowRef, Unfiltered, compare};
use schema::Table;
use sstable::data::PartitionStart;
use sstable::descriptor::Component;
use sstable::table::Index;
use types::CqlType;

use super::merge::{Pace, Purging, write_partition};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::{KeyRef, PartitionKey};
use crate::node_tables::Outputs;
use crate::read::{
    DataWalk, Keeping, KeyWalk, Located, PartitionCursor, RowsIndex, SSTableCursor, Slices, Source,
};
use crate::sstables::{Files, SSTable};

/// Bytes of a partition that are held until all of it is known to be readable; a larger one is read
/// again.
const HELD_BYTES_MAX: usize = 1 << 20;
/// What the system says of a sector that it cannot read (`EIO`).
const UNREADABLE: i32 = 5;

/// How to scrub.
#[derive(Clone, Copy, Debug)]
pub struct Scrub {
    /// Counters too are rewritten without what cannot be read.
    pub skip_corrupted: bool,
    /// Values must be some of their types.
    pub validate: bool,
}

/// What became of an SSTable.
#[derive(Clone, Debug, Default)]
pub struct Scrubbed {
    /// Its data.
    pub path: PathBuf,
    /// Partitions that were taken.
    pub good: u64,
    /// Partitions with nothing in them.
    pub empty: u64,
    /// Partitions that could not be read, as far as it is known that they were there.
    pub bad: u64,
    /// Partitions that went into an SSTable of their own, because they were not where their keys
    /// belong.
    pub out_of_order: u64,
    /// What was wrong first.
    pub why: Option<StorageError>,
}

/// Rewrites an SSTable.
pub(crate) async fn scrub_one(
    engine: &Engine,
    table: &Arc<Table>,
    sstable: &Arc<SSTable>,
    how: Scrub,
    outputs: &mut Outputs<'_>,
    pace: &mut Pace<'_>,
) -> Result<Scrubbed, StorageError> {
    let files = &engine.files;
    let mut scrubber = Scrubber {
        files,
        table,
        sstable,
        how,
        walk: DataWalk::new(sstable, table),
        index: Ahead::start(files, sstable).await,
        resumed: None,
        found: Scrubbed { path: sstable.path(&Component::Data), ..Scrubbed::default() },
    };
    let share =
        sstable.table.data_length as f64 / sstable.table.uncompressed_length().max(1) as f64;
    let mut last: Option<PartitionKey> = None;
    let mut displaced: BTreeMap<PartitionKey, Vec<u64>> = BTreeMap::new();
    while let Some(partition) = scrubber.next().await? {
        let key = PartitionKey::new(partition.start.key.as_slice());
        if last.as_ref().is_some_and(|last| key <= *last) {
            displaced.entry(key).or_default().push(partition.at);
        } else {
            write(engine, table, sstable, (key.as_ref(), &partition), outputs, pace).await?;
            last = Some(key);
        }
        pace.at((scrubber.walk.position() as f64 * share) as u64, outputs.written()).await?;
        engine.env().maybe_yield().await;
    }
    let mut found = scrubber.found;
    if found.bad > 0 {
        outputs.unrepaired();
    }
    found.out_of_order = displaced.values().map(|places| places.len() as u64).sum();
    if !displaced.is_empty() {
        outputs.cut().await?;
    }
    for (key, places) in &displaced {
        copy(engine, table, sstable, (key.as_ref(), places), outputs, pace).await?;
        engine.env().maybe_yield().await;
    }
    Ok(found)
}

/// A partition all of which can be read.
struct Partition {
    at: u64,
    start: PartitionStart,
    /// Rows and markers, packed, and where each ends; none, if they are too many to be held.
    held: Option<(Vec<u8>, Vec<usize>)>,
    is_empty: bool,
}

/// The way through an SSTable.
struct Scrubber<'a> {
    files: &'a Files,
    table: &'a Arc<Table>,
    sstable: &'a Arc<SSTable>,
    how: Scrub,
    walk: DataWalk,
    index: Ahead,
    /// The key that the partition where the walk stands must have, where the index led to it.
    resumed: Option<PartitionKey>,
    found: Scrubbed,
}

impl Scrubber<'_> {
    /// The next partition that is readable and not empty.
    async fn next(&mut self) -> Result<Option<Partition>, StorageError> {
        while !self.walk.is_at_end() {
            let at = self.walk.position();
            match self.read().await {
                Ok(partition) if partition.is_empty => self.found.empty += 1,
                Ok(partition) => {
                    self.found.good += 1;
                    return Ok(Some(partition));
                }
                Err(error) => self.skip(at, error).await?,
            }
        }
        Ok(None)
    }

    /// Leaves out a partition, and goes on where the index says that the next one is.
    async fn skip(&mut self, at: u64, error: StorageError) -> Result<(), StorageError> {
        if !is_damage(&error) || (self.table.is_counter() && !self.how.skip_corrupted) {
            return Err(error);
        }
        self.found.bad += 1;
        self.found.why.get_or_insert(error);
        let end = self.sstable.table.uncompressed_length();
        let next = self.index.after(self.files, at).await;
        let (key, position) = next.filter(|(_, position)| *position < end).unzip();
        self.walk.seek(position.unwrap_or(end));
        self.resumed = key;
        Ok(())
    }

    /// Reads the partition where the walk stands.
    async fn read(&mut self) -> Result<Partition, StorageError> {
        let at = self.walk.position();
        let corrupt =
            |what: String| StorageError::corrupt(self.sstable.path(&Component::Data), what);
        let start = self.walk.start(self.files).await?;
        if let Some(key) = self.resumed.take()
            && *key.bytes != *start.key
        {
            return Err(corrupt(format!("the key at byte {at} is not the one in the index")));
        }
        let check_key = check_key(self.table, &start.key);
        check_key.map_err(|what| corrupt(format!("at {at}: {what}")))?;
        let layout = &self.table.layout;
        let checks = |packed: &[u8]| match Unfiltered::from_packed(packed) {
            Unfiltered::Row(row) if self.how.validate => check_row(self.table, row),
            _ => Ok(()),
        };
        if let Some(row) = &start.static_row {
            checks(row).map_err(|what| corrupt(format!("at {at}: {what}")))?;
        }
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let (mut packed, mut before) = (Vec::new(), Vec::new());
        let mut holds = true;
        while self.walk.next(self.files, &mut packed).await? {
            checks(&packed).map_err(|what| corrupt(format!("at {at}: {what}")))?;
            let place = Unfiltered::from_packed(&packed).position();
            let follows = |before: &[u8]| {
                compare(layout, Unfiltered::from_packed(before).position(), place).is_lt()
            };
            if !before.is_empty() && !follows(&before) {
                return Err(corrupt(format!("the rows of the partition at {at} are out of order")));
            }
            holds &= bytes.len() + packed.len() <= HELD_BYTES_MAX;
            if holds {
                bytes.extend_from_slice(&packed);
                ends.push(bytes.len());
            }
            std::mem::swap(&mut packed, &mut before);
        }
        let is_empty = before.is_empty() && start.static_row.is_none();
        let is_empty = is_empty && start.deletion == Deletion::LIVE;
        Ok(Partition { at, start, held: holds.then_some((bytes, ends)), is_empty })
    }
}

/// Is something wrong with what was read, rather than with what reads it?
fn is_damage(error: &StorageError) -> bool {
    match error {
        StorageError::Corrupt { .. } => true,
        StorageError::Io { source, .. } => {
            source.kind() == std::io::ErrorKind::UnexpectedEof
                || source.raw_os_error() == Some(UNREADABLE)
        }
        _ => false,
    }
}

/// The index, asked for ever later partitions. Where it too is damaged, it says nothing more.
struct Ahead {
    walk: Option<KeyWalk>,
    /// How many entries of a trie that cannot be read may be passed over.
    patience: u64,
}

impl Ahead {
    async fn start(files: &Files, sstable: &Arc<SSTable>) -> Self {
        let patience = match &sstable.table.index {
            // An entry that cannot be read hides all behind it.
            Index::Big { .. } => 0,
            Index::Bti { partitions, .. } => partitions.count,
        };
        Self { walk: KeyWalk::before(files, sstable, None, false).await.ok(), patience }
    }

    /// The first partition behind a position.
    async fn after(&mut self, files: &Files, position: u64) -> Option<(PartitionKey, u64)> {
        loop {
            let walk = self.walk.as_mut()?;
            match walk.head() {
                Some(head) if head.located.position > position => {
                    return Some((head.key.clone(), head.located.position));
                }
                _ => {}
            }
            match walk.step(files).await {
                Ok(()) if walk.head().is_none() => self.walk = None,
                Ok(()) => {}
                Err(_) if self.patience > 0 => self.patience -= 1,
                Err(_) => self.walk = None,
            }
        }
    }
}

/// Writes a partition that was read; one that is not held is read again.
async fn write(
    engine: &Engine,
    table: &Arc<Table>,
    sstable: &Arc<SSTable>,
    (key, partition): (KeyRef<'_>, &Partition),
    outputs: &mut Outputs<'_>,
    pace: &mut Pace<'_>,
) -> Result<(), StorageError> {
    let Some((bytes, ends)) = &partition.held else {
        return copy(engine, table, sstable, (key, &[partition.at]), outputs, pace).await;
    };
    let static_row = partition.start.static_row.as_deref().map(RowRef::from_packed);
    outputs.start_partition(key, partition.start.deletion, static_row).await?;
    let mut start = 0;
    for end in ends {
        let packed = bytes.get(start..*end);
        let packed = packed.expect("the rows in memory are stored without gaps");
        outputs.append(Unfiltered::from_packed(packed)).await?;
        start = *end;
    }
    outputs.end_partition().await
}

/// Writes what stands at places of an SSTable, all of one key, merged.
async fn copy(
    engine: &Engine,
    table: &Arc<Table>,
    sstable: &Arc<SSTable>,
    (key, places): (KeyRef<'_>, &[u64]),
    outputs: &mut Outputs<'_>,
    pace: &mut Pace<'_>,
) -> Result<(), StorageError> {
    let files = &engine.files;
    let mut sources = Vec::with_capacity(places.len());
    for position in places {
        let located = Located { position: *position, end: None, rows: RowsIndex::None };
        let all = Slices::all(false);
        let cursor =
            SSTableCursor::open_at(files, sstable, key, located, table, all, Keeping::nowhere());
        sources.push(Source::SSTable(Box::new(cursor.await?)));
    }
    let mut partition = PartitionCursor::merge(files, Arc::clone(table), sources, false);
    write_partition(engine.env(), key, (&mut partition, None), &Purging::none(), outputs, pace)
        .await
}

fn check_key(table: &Table, key: &[u8]) -> Result<(), String> {
    let values = table.partition_key_values(key).map_err(|e| e.to_string())?;
    for (column, value) in table.partition_key.iter().zip(values) {
        column.ty.validate(value).map_err(|e| format!("{}: {e}", column.name))?;
    }
    Ok(())
}

/// Are its values some of their types, and its times some that can be?
fn check_row(table: &Table, row: RowRef<'_>) -> Result<(), String> {
    let invalid = |what: &str| Err(format!("{what} has an invalid local deletion time"));
    let layout = &table.layout;
    let is_invalid = |time: i64| time == INVALID_DELETION_TIME;
    if is_invalid(row.deletion().local_deletion_time)
        || row.liveness().is_some_and(|liveness| is_invalid(liveness.expires_at))
    {
        return invalid("a row");
    }
    let columns = if row.is_static() { &layout.statics } else { &layout.regulars };
    for cell in row.cells() {
        let column = columns.get(usize::from(cell.column));
        let column = column.expect("a cell names a column of the layout that it was decoded for");
        if is_invalid(cell.local_deletion_time) {
            return invalid(&column.name);
        }
        // Values of counters are contexts, which nothing but counters reads.
        if cell.is_complex_deletion() || cell.is_tombstone() || layout.counter {
            continue;
        }
        let ty = match &column.ty {
            CqlType::List { element, frozen: false } => element,
            CqlType::Map { value, frozen: false, .. } => value,
            ty if ty.is_multicell() => continue,
            ty => {
                ty.validate(cell.value).map_err(|e| format!("{}: {e}", column.name))?;
                continue;
            }
        };
        ty.validate(cell.value).map_err(|e| format!("{}: {e}", column.name))?;
    }
    Ok(())
}
