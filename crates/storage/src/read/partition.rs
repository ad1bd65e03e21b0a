//! One partition, merged from all that holds a part of it.

use std::rc::Rc;
use std::sync::Arc;

use env::Env;
use rows::{
    Deletion, Heads, RowBuilder, RowRef, Step, Unfiltered, UnfilteredMerger, filter_row,
    merge_versions,
};
use schema::Table;
use types::Few;

use crate::caches::CachedRows;
use crate::error::StorageError;
use crate::memtable::{KeyRef, MemtableCursor, PartitionKey};
use crate::read::{SSTableCursor, Slices};
use crate::sstables::Files;
use crate::table_store::TableStore;
use crate::trace::Trace;

/// Something that holds a part of a partition.
pub(crate) enum Source {
    Memtable(Box<MemtableCursor>),
    SSTable(Box<SSTableCursor>),
}

impl Source {
    fn head(&self) -> Option<Unfiltered<'_>> {
        match self {
            Self::Memtable(cursor) => cursor.head(),
            Self::SSTable(cursor) => cursor.head(),
        }
    }

    fn deletion(&self) -> Deletion {
        match self {
            Self::Memtable(cursor) => cursor.deletion(),
            Self::SSTable(cursor) => cursor.deletion(),
        }
    }

    fn static_row(&self) -> Option<RowRef<'_>> {
        match self {
            Self::Memtable(cursor) => cursor.static_row(),
            Self::SSTable(cursor) => cursor.static_row(),
        }
    }

    async fn advance(&mut self, files: &Files) -> Result<(), StorageError> {
        match self {
            Self::Memtable(cursor) => {
                cursor.advance();
                Ok(())
            }
            Self::SSTable(cursor) => cursor.advance(files).await,
        }
    }
}

/// Where a partition is read from.
struct Origin<'a> {
    files: &'a Files,
    env: &'a Env,
    store: &'a TableStore,
    key: KeyRef<'a>,
    /// What is read comes in this layout.
    table: &'a Arc<Table>,
}

impl Origin<'_> {
    /// All that holds a part of it.
    async fn sources(&self, slices: &Slices, trace: &Trace) -> Result<Few<Source>, StorageError> {
        let Self { files, env, store, key, table } = *self;
        let mut sources = Few::new();
        store.for_each_read(key.token, |slot| {
            let cursor = MemtableCursor::open(slot, key, table, slices.clone());
            sources.extend(cursor.map(|cursor| Source::Memtable(Box::new(cursor))));
        });
        if !sources.is_empty() {
            trace.note(env, || "Merging memtable contents".to_owned());
        }
        let live = store.live();
        for sstable in live.tables() {
            let id = sstable.table.descriptor.id;
            if store.is_kept(sstable.number, key.token) {
                trace.note(env, || format!("A memtable stands for sstable {id}"));
                continue;
            }
            store.stats.filter_checks.set(store.stats.filter_checks.get() + 1);
            if !sstable.table.may_contain(key.token, key.bytes) {
                trace.note(env, || format!("Bloom filter allows skipping sstable {id}"));
                continue;
            }
            let cursor = SSTableCursor::open(files, sstable, key, table, slices.clone()).await?;
            trace.note(env, || {
                let found = if cursor.is_some() { "entry found" } else { "lookup allows skipping" };
                format!("Partition index {found} for sstable {id}")
            });
            if cursor.is_none() {
                store.stats.filter_misses.set(store.stats.filter_misses.get() + 1);
            }
            sources.extend(cursor.map(|cursor| Source::SSTable(Box::new(cursor))));
        }
        trace.note(env, || {
            let of = sources.iter().filter(|source| matches!(source, Source::SSTable(_))).count();
            format!("Merged data from memtables and {of} sstables")
        });
        Ok(sources)
    }
}

struct Sources(Few<Source>);

/// What of a partition comes after the rows that a cache had.
struct Rest {
    env: Env,
    store: Rc<TableStore>,
    key: PartitionKey,
    slices: Slices,
}

/// Where a row or marker is that a step of the merge gave.
enum Found {
    /// It is the head of this source.
    Head(usize),
    /// It was put together of several, or something was taken out of it.
    Merged,
    /// It was made of the sources' markers.
    Marker,
}

impl Sources {
    /// Is a row the very one that a source has next?
    fn holds(&self, source: usize, row: RowRef<'_>) -> bool {
        let head = self.head(source);
        matches!(head, Some(Unfiltered::Row(head)) if std::ptr::eq(head.as_packed(), row.as_packed()))
    }
}

impl Heads for Sources {
    fn sources(&self) -> usize {
        self.0.len()
    }

    fn head(&self, source: usize) -> Option<Unfiltered<'_>> {
        self.0.get(source)?.head()
    }
}

/// A partition's rows and range tombstones in the order asked for, each merged from all sources.
pub struct PartitionCursor {
    files: Rc<Files>,
    table: Arc<Table>,
    deletion: Deletion,
    static_row: Option<Box<[u8]>>,
    sources: Sources,
    merger: UnfilteredMerger,
    builder: RowBuilder,
    /// The marker that `next` returned, packed.
    marker: Vec<u8>,
    rest: Option<Box<Rest>>,
}

impl PartitionCursor {
    /// Opens a partition of a shard's table; `None` if nothing holds a part of it.
    ///
    /// # Errors
    /// If an SSTable cannot be read.
    pub(crate) async fn open(
        files: &Rc<Files>,
        store: &Rc<TableStore>,
        key: KeyRef<'_>,
        slices: &Slices,
        trace: &Trace,
    ) -> Result<Option<Self>, StorageError> {
        let table = store.table();
        let origin = Origin { files, env: files.env(), store, key, table: &table };
        let sources = origin.sources(slices, trace).await?;
        Ok((!sources.is_empty()).then(|| Self::of(files, table, sources, slices.reversed())))
    }

    /// Opens a partition of which the first rows are kept, if they are of use for these slices.
    pub(crate) fn open_kept(
        files: &Rc<Files>,
        store: &Rc<TableStore>,
        key: KeyRef<'_>,
        slices: &Slices,
        rows: &CachedRows,
    ) -> Option<Option<Self>> {
        let table = store.table();
        let (kept, rest) = rows.split(&table.layout, slices)?;
        let reversed = slices.reversed();
        let kept = rows.read(key, &table, kept).map(|cursor| {
            let source = Source::Memtable(Box::new(cursor));
            let mut cursor = Self::of(files, table, Few::one(source), reversed);
            cursor.rest = rest.map(|slices| {
                let (env, store) = (files.env().clone(), Rc::clone(store));
                Box::new(Rest { env, store, key: key.to_owned(), slices })
            });
            cursor
        });
        Some(kept)
    }

    /// Goes on after the rows that a cache had.
    async fn go_on(&mut self, rest: &Rest) -> Result<(), StorageError> {
        let Rest { env, store, key, slices } = rest;
        env.mark("rows.rest");
        let (files, table) = (Rc::clone(&self.files), Arc::clone(&self.table));
        let origin = Origin { files: &files, env, store, key: key.as_ref(), table: &table };
        let sources = origin.sources(slices, &Trace::OFF).await?;
        let deletion = sources.iter().map(Source::deletion).fold(self.deletion, Deletion::max);
        self.merger = UnfilteredMerger::new(sources.len(), deletion, false);
        self.sources = Sources(sources);
        Ok(())
    }

    pub(crate) fn merge(
        files: &Rc<Files>,
        table: Arc<Table>,
        sources: Vec<Source>,
        reversed: bool,
    ) -> Self {
        Self::of(files, table, sources.into(), reversed)
    }

    fn of(files: &Rc<Files>, table: Arc<Table>, sources: Few<Source>, reversed: bool) -> Self {
        let deletion = sources.iter().map(Source::deletion).fold(Deletion::LIVE, Deletion::max);
        let mut builder = RowBuilder::new();
        let layout = &table.layout;
        let static_row = match &sources[..] {
            [only] => {
                only.static_row().and_then(|row| filter_row(layout, row, deletion, &mut builder))
            }
            many => {
                let statics = many.iter().filter_map(Source::static_row);
                merge_versions(layout, statics, deletion, &mut builder)
            }
        };
        let static_row = static_row.map(|row| row.as_packed().into());
        let merger = UnfilteredMerger::new(sources.len(), deletion, reversed);
        Self {
            files: Rc::clone(files),
            table,
            deletion,
            static_row,
            sources: Sources(sources),
            merger,
            builder,
            marker: Vec::new(),
            rest: None,
        }
    }

    /// The table as it was when the cursor was opened.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// How many SSTables hold a part of it.
    pub fn sstables(&self) -> usize {
        self.sources.0.iter().filter(|source| matches!(source, Source::SSTable(_))).count()
    }

    /// The deletion of the whole partition.
    pub fn deletion(&self) -> Deletion {
        self.deletion
    }

    /// The static row.
    pub fn static_row(&self) -> Option<RowRef<'_>> {
        self.static_row.as_deref().map(RowRef::from_packed)
    }

    /// The next row or marker.
    ///
    /// # Errors
    /// If an SSTable cannot be read.
    pub async fn next(&mut self) -> Result<Option<Unfiltered<'_>>, StorageError> {
        let found = loop {
            for at in 0..self.merger.consumed().len() {
                let source = self.merger.consumed()[at];
                let source = self.sources.0.get_mut(source);
                let source = source.expect("a merge reads only from its sources");
                source.advance(&self.files).await?;
            }
            match self.merger.step(&self.table.layout, &self.sources, &mut self.builder) {
                Step::End => match self.rest.take() {
                    None => return Ok(None),
                    Some(rest) => self.go_on(&rest).await?,
                },
                Step::Nothing => {}
                // A row stays where it is until the next call moves its source on.
                Step::Next(Unfiltered::Row(row)) => {
                    let mut consumed = self.merger.consumed().iter().copied();
                    let source = consumed.find(|source| self.sources.holds(*source, row));
                    break source.map_or(Found::Merged, Found::Head);
                }
                Step::Next(marker) => {
                    self.marker.clear();
                    marker.pack(&mut self.marker);
                    break Found::Marker;
                }
            }
        };
        Ok(match found {
            Found::Head(source) => self.sources.head(source),
            Found::Merged => Some(Unfiltered::Row(self.builder.finished())),
            Found::Marker => Some(Unfiltered::from_packed(&self.marker)),
        })
    }
}
