//! What the operator has a shard sample; see [`crate::samples`].

use std::rc::Rc;
use std::time::Duration;

use schema::TableId;

use super::Engine;
use crate::samples::{Sampled, Sampler};
use crate::table_store::TableStore;

/// What was found of a table.
pub type Found = Vec<(TableId, Sampler, Vec<Sampled>)>;

impl Engine {
    /// Begins to sample tables for a time, each with at most so many counters a sampler.
    pub fn begin_sampling(
        &self,
        tables: &[TableId],
        samplers: &[Sampler],
        capacity: usize,
        duration: Duration,
    ) {
        let until = self.env.now() + duration;
        for store in tables.iter().filter_map(|id| self.store(*id).ok()) {
            samplers.iter().for_each(|sampler| store.samples.begin(*sampler, capacity, until));
            self.is_sampling.set(true);
        }
    }

    /// Ends to sample tables, and gives the most frequent or largest of each.
    pub fn end_sampling(&self, tables: &[TableId], samplers: &[Sampler], most: usize) -> Found {
        let mut found = Vec::new();
        for id in tables {
            let Ok(store) = self.store(*id) else { continue };
            for sampler in samplers {
                found.push((*id, *sampler, store.samples.end(*sampler, most)));
            }
        }
        self.is_sampling.set(self.stores().iter().any(|(_, store)| store.samples.is_on()));
        found
    }

    /// This shard's data of a table, if anything of it is sampled.
    pub fn sampled(&self, table: TableId) -> Option<Rc<TableStore>> {
        if !self.is_sampling.get() {
            return None;
        }
        self.store(table).ok().filter(|store| store.samples.is_on())
    }

    /// Takes an item, if that is sampled of the table.
    pub fn sample(&self, table: TableId, sampler: Sampler, count: u64, item: &[u8]) {
        if let Some(store) = self.sampled(table) {
            store.samples.take(sampler, self.env.now(), count, item);
        }
    }
}
