//! SSTables of a table that come from another node: they become part of the table all at once, or
//! none of them does.
//!
//! Each is written under its final name, and the table's transaction log names it first. So whoever
//! starts on the directory after a crash removes what was not adopted. What is adopted was read
//! before: its header, its keys and their ranges.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use env::sync::Semaphore;
use schema::TableId;
use sstable::descriptor::{Descriptor, Format, Version};
use types::{TokenRange, Uuid};

use crate::engine::Engine;
use crate::error::StorageError;
use crate::incoming::Place;
use crate::node::Node;
use crate::sstables::SSTable;
use crate::transaction::{self, Transaction, remove_descriptor};
use crate::verify::Depth;

/// The operation in the name of the transaction log (`OperationType.STREAM`).
const STREAM: &str = "stream";

/// What an SSTable that came says of itself from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its level.
    pub level: i32,
    /// When it was repaired, in milliseconds since 1970; 0 for never.
    pub repaired_at: i64,
    /// The incremental repair that it waits for.
    pub pending_repair: Option<Uuid>,
}

/// SSTables of a table that are under way.
#[derive(Default)]
pub struct Arrivals {
    transaction: RefCell<Option<Transaction>>,
    places: RefCell<Vec<transaction::Place>>,
    complete: RefCell<Vec<SSTable>>,
    is_over: Cell<bool>,
    /// Whoever writes the transaction log holds it.
    changing: OneAtATime,
}

struct OneAtATime(Semaphore);

impl Default for OneAtATime {
    fn default() -> Self {
        Self(Semaphore::new(1))
    }
}

impl std::fmt::Debug for Arrivals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arrivals({} SSTables)", self.places.borrow().len())
    }
}

impl Node {
    /// Where another SSTable of a table is to be: before any of its files is created.
    ///
    /// # Errors
    /// If the table is unknown, or the place cannot be logged.
    pub async fn place_arrival(
        &self,
        table: TableId,
        arrivals: &Arrivals,
        version: Version,
        format: Format,
    ) -> Result<Place, StorageError> {
        let engine = self.engine()?;
        let table = engine.store(table)?.table();
        let _changing = arrivals.changing.0.acquire(1).await;
        if arrivals.is_over.get() {
            return Err(StorageError::Interrupted);
        }
        let directory = self.directory_of(&engine, &table).await?;
        let next = self.next_descriptor(&engine, &self.table(table.id));
        let descriptor = Descriptor { version, format, ..next };
        let begun = arrivals.transaction.take();
        let transaction = match begun {
            Some(mut transaction) => {
                let added = transaction.add(&directory, &descriptor).await;
                *arrivals.transaction.borrow_mut() = Some(transaction);
                added?;
                None
            }
            None => Some(Transaction::begin(engine.env(), &directory, STREAM, &descriptor).await?),
        };
        if transaction.is_some() {
            *arrivals.transaction.borrow_mut() = transaction;
        }
        arrivals.places.borrow_mut().push((directory.clone(), descriptor));
        Ok(Place { table, directory, descriptor })
    }

    /// All files of an SSTable are there and durable: it is read and kept until all others are.
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
        let engine = self.engine()?;
        let env = engine.env();
        let owned: Vec<_> = owned.iter().map(|range| (range.left, range.right)).collect();
        let Place { table, directory, descriptor } = place;
        self.inspect(&engine, table, directory, descriptor, (Depth::Index, &owned)).await?;
        let number = self.numbers.next();
        let sstable = SSTable::open(env, directory, descriptor, number, table.is_counter()).await?;
        sstable.stamp(env, stamp).await?;
        arrivals.complete.borrow_mut().push(sstable);
        Ok(())
    }

    /// Makes all SSTables that came part of their table. None may be under way any more.
    ///
    /// # Errors
    /// If that cannot be made durable: then none of them is part of it.
    pub async fn adopt(&self, id: TableId, arrivals: &Arrivals) -> Result<(), StorageError> {
        let engine = self.engine()?;
        engine.store(id)?;
        let node_table = self.table(id);
        let _changing = node_table.changing.acquire(1).await;
        let _logging = arrivals.changing.0.acquire(1).await;
        assert!(!arrivals.is_over.replace(true), "SSTables that came are adopted once");
        let Some(mut transaction) = arrivals.transaction.take() else { return Ok(()) };
        if let Err(error) = transaction.commit(&[]).await {
            *arrivals.transaction.borrow_mut() = Some(transaction);
            arrivals.is_over.set(false);
            return Err(error);
        }
        let epoch = node_table.epoch.get() + 1;
        let new = arrivals.complete.take().into_iter().map(|mut sstable| {
            sstable.epoch = epoch;
            Arc::new(sstable)
        });
        let live = node_table.live.borrow().with(&[], new);
        *node_table.live.borrow_mut() = Arc::clone(&live);
        node_table.epoch.set(epoch);
        for shard in 0..engine.shards().count() {
            let live = Arc::clone(&live);
            let publish = move |engine: &Rc<Engine>| {
                engine.forget_rows(id);
                engine.swap_live(id, live, i64::MIN)
            };
            engine.shards().call(shard, publish).await?;
        }
        // a log that stays says that they were adopted
        if let Err(error) = transaction.finish().await {
            self.failed(error);
        }
        self.want_compaction(id);
        Ok(())
    }

    /// All of a file came, and there was no partition in it.
    ///
    /// # Errors
    /// If what was begun of it cannot be removed.
    pub async fn nothing_arrived(&self, place: &Place) -> Result<(), StorageError> {
        remove_descriptor(self.engine()?.env(), &place.directory, &place.descriptor).await
    }

    /// Removes what came and was not adopted. Nothing may be under way any more.
    ///
    /// # Errors
    /// If a file cannot be removed: the next start does it.
    pub async fn abandon(&self, arrivals: &Arrivals) -> Result<(), StorageError> {
        let engine = self.engine()?;
        let _changing = arrivals.changing.0.acquire(1).await;
        arrivals.is_over.set(true);
        let Some(transaction) = arrivals.transaction.take() else { return Ok(()) };
        let is_planted = engine.env().planted("stream_leftovers_stay");
        if transaction.is_in_doubt() || is_planted {
            return Ok(());
        }
        let places = arrivals.places.take();
        arrivals.complete.take();
        for (directory, descriptor) in &places {
            remove_descriptor(engine.env(), directory, descriptor).await?;
        }
        transaction.finish().await
    }
}
