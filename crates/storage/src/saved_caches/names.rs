//! What a shard has in its caches, by its names; and what it takes into them of which it knows the
//! names.

use std::rc::Rc;
use std::sync::Arc;

use schema::TableId;
use sstable::descriptor::Descriptor;
use types::hash::HashMap;

use super::format::{write_counter, write_place, write_rows};
use crate::caches::{CacheKind, KeptName};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::KeyRef;
use crate::read::take_place;
use crate::sstables::SSTable;
use crate::table_store::TableStore;
use crate::trace::Trace;

/// An entry as it is saved, but for its place.
pub(super) struct KeptEntry {
    pub table: TableId,
    /// The SSTable that it is of, if it is of one.
    pub sstable: Option<(u64, Descriptor)>,
    pub bytes: Vec<u8>,
}

/// A page of a cache, and where the rest begins.
pub(super) struct Kept {
    pub entries: Vec<KeptEntry>,
    pub next: Option<usize>,
}

/// The live SSTables of this shard by their numbers, each with its table.
fn sstables(engine: &Engine) -> HashMap<u64, (TableId, Arc<SSTable>)> {
    let mut found = HashMap::default();
    for (id, store) in engine.stores() {
        let live = store.live();
        found.extend(live.tables().iter().map(|it| (it.number, (id, Arc::clone(it)))));
    }
    found
}

/// The tables of this shard by the numbers under which something is kept of them.
fn tables(engine: &Engine) -> HashMap<u64, (TableId, Rc<TableStore>)> {
    let stores = engine.stores().into_iter();
    stores.map(|(id, store)| (store.rows_reset(), (id, store))).collect()
}

/// The names of what a cache of this shard keeps, of so many entries from a place on, as far as
/// they were asked for of late, or were not.
pub(super) fn kept_names(
    engine: &Engine,
    kind: CacheKind,
    from: usize,
    count: usize,
    is_used: bool,
) -> Kept {
    match kind {
        CacheKind::Chunks => Kept { entries: Vec::new(), next: None },
        CacheKind::Keys => kept_places(engine, from, count, is_used),
        CacheKind::Rows => {
            let tables = tables(engine);
            let (names, next) = engine.caches().rows().page(from, count, is_used);
            let entry = |name: &Rc<[u8]>| {
                let (number, key) = name.split_first_chunk()?;
                let (table, _) = tables.get(&u64::from_be_bytes(*number))?;
                let mut bytes = Vec::new();
                write_rows(key, &mut bytes);
                Some(KeptEntry { table: *table, sstable: None, bytes })
            };
            Kept { entries: names.iter().filter_map(entry).collect(), next }
        }
        CacheKind::Counters => {
            let tables = tables(engine);
            let (names, next) = engine.caches().counters().page(from, count, is_used);
            let entry = |name: &Rc<[u8]>| {
                let kept = KeptName::read(name)?;
                let (table, store) = tables.get(&kept.table)?;
                let (mut bytes, layout) = (Vec::new(), Arc::clone(&store.table().layout));
                let is_written = write_counter(kept.key, kept.counter, &layout, &mut bytes);
                is_written.then_some(KeptEntry { table: *table, sstable: None, bytes })
            };
            Kept { entries: names.iter().filter_map(entry).collect(), next }
        }
    }
}

fn kept_places(engine: &Engine, from: usize, count: usize, is_used: bool) -> Kept {
    let sstables = sstables(engine);
    let (places, next) = engine.files.kept_places(from, count, is_used);
    let mut entries = Vec::with_capacity(places.len());
    for (name, located) in places {
        let Some((number, key)) = name.split_first_chunk() else { continue };
        let number = u64::from_be_bytes(*number);
        let Some((table, sstable)) = sstables.get(&number) else { continue };
        let (of, mut bytes) = (&sstable.table, Vec::new());
        if write_place(key, &located, (&of.layout, of.descriptor.version), &mut bytes) {
            let sstable = Some((number, of.descriptor));
            entries.push(KeptEntry { table: *table, sstable, bytes });
        }
    }
    Kept { entries, next }
}

impl Engine {
    /// Looks a key up in an SSTable and keeps its place, if both are there and the table's keys are
    /// kept.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub async fn take_place(
        &self,
        table: TableId,
        key: KeyRef<'_>,
        sstable: u64,
    ) -> Result<(), StorageError> {
        let Ok(store) = self.store(table) else { return Ok(()) };
        let live = store.live();
        let sstable = live.candidates(key).find(|it| it.number == sstable);
        if let Some(sstable) = sstable.filter(|_| store.table().params.caching.keys) {
            take_place(&self.files, sstable, key).await?;
        }
        Ok(())
    }

    /// Reads the first rows of a partition and keeps them, if rows of its table are kept.
    ///
    /// # Errors
    /// If an SSTable cannot be read.
    pub async fn take_rows(&self, table: TableId, key: KeyRef<'_>) -> Result<(), StorageError> {
        let Ok(store) = self.store(table) else { return Ok(()) };
        let rows = self.caches().rows_of(&store.table());
        if let Some(rows) = rows.filter(|_| self.caches().rows().is_absent(&store, key.bytes)) {
            self.caches().fill_rows(&store, key, rows, &Trace::OFF).await?;
        }
        Ok(())
    }
}
