//! Samples of partitions.

use crate::model::{SampleOrder, Sampled, SampledTables};

use super::Answer;

/// Samples of partitions.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait SamplesOperator {
    /// Samples for the time that is asked for, and then tells what each sampler found.
    async fn sample(&self, order: SampleOrder) -> Answer<Vec<Sampled>>;
    /// Samples so again and again, each time after so many milliseconds, into the log; false if
    /// something like it runs.
    async fn schedule_sampling(&self, order: SampleOrder, interval_millis: u32) -> Answer<bool>;
    /// Ends that; false if there is nothing to end. For all tables: ends all.
    async fn stop_sampling(&self, of: SampledTables) -> Answer<bool>;
    /// What is sampled so.
    async fn samplings(&self) -> Answer<Vec<SampledTables>>;
    /// The tokens of the keys that the index summaries of SSTables hold, of the ranges whose first
    /// replica this node is.
    async fn sampled_keys(&self) -> Answer<Vec<i64>>;
}
