//! SSTables on their way into a table: all of them become part of it in one step, or none does.
//!
//! A transaction names each before any of its files is created. While it is not committed, a start
//! removes them.

use std::path::Path;

use env::Env;
use sstable::descriptor::Descriptor;

use super::transaction::{Place, Transaction, remove_descriptor};
use crate::error::StorageError;

/// SSTables that are being written or brought.
pub(crate) struct NewSSTables {
    env: Env,
    /// In the name of the transaction.
    operation: &'static str,
    transaction: Option<Transaction>,
    places: Vec<Place>,
}

impl NewSSTables {
    pub fn new(env: &Env, operation: &'static str) -> Self {
        Self { env: env.clone(), operation, transaction: None, places: Vec::new() }
    }

    /// In the name of the transaction.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Where they are, in the order in which they were added.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Adds one, before any of its files is created.
    pub async fn add(&mut self, directory: &Path, added: Descriptor) -> Result<(), StorageError> {
        let place = (directory.to_path_buf(), added);
        assert!(!self.places.contains(&place), "each new SSTable has a name of its own: {added}");
        match &mut self.transaction {
            Some(transaction) => transaction.add(directory, &added).await?,
            none => {
                let begun = Transaction::begin(&self.env, directory, self.operation, &added);
                *none = Some(begun.await?);
            }
        }
        self.places.push(place);
        Ok(())
    }

    /// Takes one out again, of which nothing is wanted: its files go.
    pub async fn remove(&mut self, place: &Place) -> Result<(), StorageError> {
        let before = self.places.len();
        self.places.retain(|other| other != place);
        assert_eq!(
            self.places.len() + 1,
            before,
            "an SSTable is taken out of those it was added to"
        );
        remove_descriptor(&self.env, &place.0, &place.1).await
    }

    /// They are complete and durable, and become part of the table; `removed` goes. The transaction
    /// is to be finished when the files of those are gone.
    pub async fn commit(&mut self, removed: &[Place]) -> Result<(), StorageError> {
        let is_other = |place| !self.places.contains(place);
        assert!(removed.iter().all(is_other), "no SSTable comes and goes in one step");
        match &mut self.transaction {
            Some(transaction) => transaction.commit(removed).await,
            None if removed.is_empty() => Ok(()),
            None => {
                let removal = Transaction::remove(&self.env, self.operation, removed).await?;
                self.transaction = Some(removal);
                Ok(())
            }
        }
    }

    /// The transaction that was committed, if anything was added or removed.
    pub fn into_transaction(self) -> Option<Transaction> {
        self.transaction
    }

    /// Removes them, unless nobody knows whether they were committed.
    pub async fn abandon(self) -> Result<(), StorageError> {
        let is_committed = self.transaction.as_ref().is_some_and(Transaction::is_committed);
        assert!(!is_committed, "SSTables that were committed are not abandoned");
        if self.transaction.as_ref().is_some_and(Transaction::is_in_doubt) {
            return Ok(());
        }
        for (directory, descriptor) in &self.places {
            remove_descriptor(&self.env, directory, descriptor).await?;
        }
        match self.transaction {
            Some(transaction) => transaction.finish().await,
            None => Ok(()),
        }
    }
}
