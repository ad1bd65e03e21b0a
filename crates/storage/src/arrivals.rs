//! SSTables of a table that come from another node: they become part of the table all at once, or
//! none of them does.
//!
//! Each is written under its final name, and the table's transaction log names it first. So whoever
//! starts on the directory after a crash removes what was not adopted. What is adopted was read
//! before: its header, its keys and their ranges.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use env::sync::Semaphore;
use schema::{Table, TableId};
use sstable::descriptor::{Descriptor, Format, Version};
use types::TokenRange;

use crate::captured::{is_captured, write_through};
use crate::compaction::Compactions;
use crate::engine::Engine;
use crate::error::StorageError;
use crate::flush::Flushes;
use crate::incoming::Place;
use crate::maintenance::{Depth, Verifier};
use crate::node_tables::NodeTables;
use crate::sstables::{NewSSTables, SSTable, Stamp};

/// The operation in the name of the transaction log (`OperationType.STREAM`).
const STREAM: &str = "stream";

/// SSTables of a table that are under way.
pub struct Arrivals {
    /// None once they were adopted or abandoned, and while one is being added.
    new: RefCell<Option<NewSSTables>>,
    complete: RefCell<Vec<SSTable>>,
    /// Whoever changes `new` holds it.
    changing: Semaphore,
}

impl std::fmt::Debug for Arrivals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arrivals({} SSTables are complete)", self.complete.borrow().len())
    }
}

/// Takes in what comes from other nodes.
pub struct Arriver {
    tables: Rc<NodeTables>,
    verifier: Rc<Verifier>,
    compactions: Rc<Compactions>,
    flushes: Rc<Flushes>,
}

impl Arriver {
    pub(crate) fn new(
        tables: &Rc<NodeTables>,
        verifier: &Rc<Verifier>,
        compactions: &Rc<Compactions>,
        flushes: &Rc<Flushes>,
    ) -> Self {
        Self {
            tables: Rc::clone(tables),
            verifier: Rc::clone(verifier),
            compactions: Rc::clone(compactions),
            flushes: Rc::clone(flushes),
        }
    }

    /// None has come yet.
    pub fn begin(&self) -> Arrivals {
        let new = NewSSTables::new(self.tables.env(), STREAM);
        Arrivals {
            new: RefCell::new(Some(new)),
            complete: RefCell::default(),
            changing: Semaphore::new(1),
        }
    }

    /// Where another SSTable of a table is to be: before any of its files is created.
    ///
    /// # Errors
    /// If the table is unknown, the place cannot be logged, or nothing is taken in any more.
    pub async fn place(
        &self,
        table: TableId,
        arrivals: &Arrivals,
        version: Version,
        format: Format,
    ) -> Result<Place, StorageError> {
        let engine = self.tables.engine()?;
        let table = engine.store(table)?.table();
        let _changing = arrivals.changing.acquire(1).await;
        let directory = self.tables.directory_of(&engine, &table).await?;
        let next = self.tables.next_descriptor(&engine, &self.tables.table(table.id));
        let descriptor = Descriptor { version, format, ..next };
        let mut new = arrivals.new.take().ok_or(StorageError::Interrupted)?;
        let added = new.add(&directory, descriptor).await;
        *arrivals.new.borrow_mut() = Some(new);
        added?;
        Ok(Place { table, directory, descriptor })
    }

    /// All files of an SSTable are there and durable: it is read, and kept until all others are.
    ///
    /// # Errors
    /// If it is damaged, is of another table, or has keys outside of the ranges.
    pub async fn arrived(
        &self,
        arrivals: &Arrivals,
        place: &Place,
        stamp: Stamp,
        owned: &[TokenRange],
    ) -> Result<(), StorageError> {
        let engine = self.tables.engine()?;
        let env = engine.env();
        let owned: Vec<_> = owned.iter().map(|range| (range.left, range.right)).collect();
        let Place { table, directory, descriptor } = place;
        let looked = (Depth::Index, owned.as_slice());
        self.verifier.inspect(&engine, table, directory, descriptor, looked).await?;
        let number = self.tables.next_number();
        let sstable = SSTable::open(env, directory, descriptor, number, table.is_counter()).await?;
        sstable.stamp(env, stamp).await?;
        arrivals.complete.borrow_mut().push(sstable);
        Ok(())
    }

    /// All of a file came, and there was no partition in it.
    ///
    /// # Errors
    /// If what was begun of it cannot be removed.
    pub async fn nothing_arrived(
        &self,
        arrivals: &Arrivals,
        place: &Place,
    ) -> Result<(), StorageError> {
        let _changing = arrivals.changing.acquire(1).await;
        let mut new = arrivals.new.take().ok_or(StorageError::Interrupted)?;
        let removed = new.remove(&(place.directory.clone(), place.descriptor)).await;
        *arrivals.new.borrow_mut() = Some(new);
        removed
    }

    /// Makes all SSTables that came part of their table. None may be under way any more.
    ///
    /// # Errors
    /// If that cannot be made durable, or they were abandoned: then none of them is part of it; of
    /// a table with change data capture parts of them may be.
    pub async fn adopt(&self, id: TableId, arrivals: &Arrivals) -> Result<(), StorageError> {
        let engine = self.tables.engine()?;
        let table = engine.store(id)?.table();
        if is_captured(&engine, &table) {
            return self.write_all(&engine, &table, arrivals).await;
        }
        let node_table = self.tables.table(id);
        let change = node_table.change().await;
        let _changing = arrivals.changing.acquire(1).await;
        // the session may be over meanwhile
        let new = arrivals.new.take().ok_or(StorageError::Interrupted)?;
        let mut complete = arrivals.complete.take();
        assert_eq!(
            complete.len(),
            new.places().len(),
            "all SSTables that were begun have come by the time that they are adopted"
        );
        let place_of =
            |sstable: &SSTable| new.places().iter().position(|it| *it == sstable.place());
        complete.sort_by_key(place_of);
        let epoch = node_table.epoch() + 1;
        let opened = complete.into_iter().map(|sstable| sstable.of_epoch(epoch)).collect();
        self.tables.adopt(&table, &change, new, opened).await?;
        self.compactions.want(id);
        Ok(())
    }

    /// Writes what came through the commit log, and removes the SSTables once all of it is durable.
    async fn write_all(
        &self,
        engine: &Rc<Engine>,
        table: &Arc<Table>,
        arrivals: &Arrivals,
    ) -> Result<(), StorageError> {
        let changing = arrivals.changing.acquire(1).await;
        for sstable in arrivals.complete.take() {
            let number = sstable.number;
            let written = write_through(engine, table, &Arc::new(sstable)).await;
            engine.files.forget(number);
            written?;
        }
        self.flushes.flush(table.id).await?;
        drop(changing);
        self.abandon(arrivals).await
    }

    /// Removes what came and was not adopted. Nothing may be under way any more.
    ///
    /// # Errors
    /// If a file cannot be removed: the next start does it.
    pub async fn abandon(&self, arrivals: &Arrivals) -> Result<(), StorageError> {
        let _changing = arrivals.changing.acquire(1).await;
        arrivals.complete.take();
        match arrivals.new.take() {
            Some(new) if !self.tables.env().planted("stream_leftovers_stay") => new.abandon().await,
            _ => Ok(()),
        }
    }
}
