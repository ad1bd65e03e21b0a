//! Samples of partitions.

use admin::{Answer, SampleOrder, Sampled, SampledTables, SamplesOperator};
use schema::Strategy;
use types::Token;

use super::Operations;

impl SamplesOperator for Operations {
    async fn sample(&self, order: SampleOrder) -> Answer<Vec<Sampled>> {
        self.samplings.sample(&order).await
    }

    async fn schedule_sampling(&self, order: SampleOrder, interval_millis: u32) -> Answer<bool> {
        self.samplings.schedule(order, interval_millis)
    }

    async fn stop_sampling(&self, of: SampledTables) -> Answer<bool> {
        Ok(self.samplings.stop(&of))
    }

    async fn samplings(&self) -> Answer<Vec<SampledTables>> {
        Ok(self.samplings.scheduled())
    }

    async fn sampled_keys(&self) -> Answer<Vec<i64>> {
        let (ring, schema) = (self.known_ring()?, self.engine().schema());
        let local = ring.local();
        let mut tokens = Vec::new();
        for keyspace in schema.keyspaces().values() {
            let strategy = &keyspace.replication.strategy;
            if keyspace.is_virtual || *strategy == Strategy::Local {
                continue;
            }
            let Some(placement) = ring.placement(strategy) else { continue };
            let mut keys: Vec<Token> = Vec::new();
            for table in keyspace.tables.values() {
                let Ok(store) = self.engine().store(table.id) else { continue };
                for sstable in store.live().tables() {
                    // a trie has no samples
                    let Some(summary) = sstable.table.index.summary() else { continue };
                    let entries = (0..summary.len()).filter_map(|at| summary.entry(at));
                    keys.extend(entries.map(|(key, _)| Token::of(key)));
                    self.env.maybe_yield().await;
                }
            }
            keys.sort_unstable();
            for range in placement.primary_ranges(local) {
                tokens.extend(keys.iter().filter(|key| range.contains(**key)).map(|key| key.0));
                self.env.maybe_yield().await;
            }
        }
        Ok(tokens)
    }
}
