//! A shard's tables: the schema of the present epoch, and the shard's data of each table in it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use metrics::Weight;
use schema::{Schema, TableId};
use types::hash::HashMap;

use crate::commitlog::Position;
use crate::error::StorageError;
use crate::memtable::Slot;
use crate::table_store::TableStore;

/// The tables of one shard.
pub(super) struct Tables {
    stores: RefCell<HashMap<TableId, Rc<TableStore>>>,
    schema: RefCell<Arc<Schema>>,
    /// Of the distributions that tables keep.
    weight: Weight,
    /// Numbers the tables of which caches keep something, and each reset of one.
    resets: Rc<Cell<u64>>,
    /// Reads of tables that are gone.
    past_reads: Cell<u64>,
}

/// What another schema left over.
#[derive(Default)]
pub(super) struct Left {
    /// Tables that are gone.
    pub dropped: Vec<TableId>,
    /// Memtables that nobody reads any more.
    pub slots: Vec<Rc<Slot>>,
}

impl Tables {
    pub fn new(schema: Arc<Schema>) -> Rc<Self> {
        Rc::new(Self {
            stores: RefCell::default(),
            schema: RefCell::new(schema),
            weight: Weight::default(),
            resets: Rc::default(),
            past_reads: Cell::default(),
        })
    }

    pub fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema.borrow())
    }

    pub fn weight(&self) -> &Weight {
        &self.weight
    }

    pub fn store(&self, id: TableId) -> Result<Rc<TableStore>, StorageError> {
        self.stores.borrow().get(&id).cloned().ok_or(StorageError::UnknownTable(id))
    }

    /// Calls `each` with all of them, in no order.
    pub fn for_each(&self, mut each: impl FnMut(TableId, &Rc<TableStore>)) {
        self.stores.borrow().iter().for_each(|(id, store)| each(*id, store));
    }

    /// All of them, by their ids.
    pub fn all(&self) -> Vec<(TableId, Rc<TableStore>)> {
        let tables = self.stores.borrow();
        let mut stores: Vec<_> = tables.iter().map(|(id, store)| (*id, Rc::clone(store))).collect();
        stores.sort_by_key(|(id, _)| *id);
        stores
    }

    /// Reads of partitions and ranges, also of tables that are gone: a number that only grows.
    pub fn reads(&self) -> u64 {
        let reads: u64 = self.stores.borrow().values().map(|store| store.stats.all_reads()).sum();
        self.past_reads.get() + reads
    }

    /// Takes the schema of another epoch while the log stands at `position`: new tables appear,
    /// dropped ones vanish, altered ones go on with their new columns.
    #[must_use = "the memtables that are left may be large"]
    pub fn set_schema(&self, schema: &Arc<Schema>, position: Position) -> Left {
        let mut tables = self.stores.borrow_mut();
        let gone = tables.keys().filter(|id| schema.table_by_id(id).is_none());
        let mut left = Left { dropped: gone.copied().collect(), slots: Vec::new() };
        for store in left.dropped.iter().filter_map(|id| tables.remove(id)) {
            left.slots.extend(store.clear(position));
            self.past_reads.set(self.past_reads.get() + store.stats.all_reads());
        }
        let keyspaces = schema.keyspaces().values();
        let defined = keyspaces.flat_map(|keyspace| keyspace.tables.values());
        for table in defined.filter(|table| !table.is_virtual()) {
            match tables.get(&table.id) {
                Some(store) => left.slots.extend(store.set_table(table, position)),
                None => {
                    let (weight, resets) = (self.weight.clone(), Rc::clone(&self.resets));
                    let store = TableStore::new(Arc::clone(table), position, weight, resets);
                    tables.insert(table.id, store);
                }
            }
        }
        drop(tables);
        *self.schema.borrow_mut() = Arc::clone(schema);
        left
    }
}
