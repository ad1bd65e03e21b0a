//! Settings that hold until the next start.

use crate::model::{LoggerLevel, Setting, Timeout};

use super::Answer;

/// Settings that hold until the next start.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait SettingsOperator {
    /// A timeout, in milliseconds.
    async fn timeout(&self, timeout: Timeout) -> Answer<u64>;
    /// Sets a timeout.
    async fn set_timeout(&self, timeout: Timeout, millis: u64) -> Answer<()>;
    /// Every key of the configuration with its value as it stands.
    async fn settings(&self) -> Answer<Vec<Setting>>;
    /// Sets guardrails, each as `key=value`: all of them or, where that makes no sense
    /// ([`BadUse`](crate::Refusal::BadUse) with Cassandra's text), none.
    async fn set_guardrails(&self, settings: &[String]) -> Answer<()>;
    /// Each logger that has a level, with it.
    async fn logging_levels(&self) -> Answer<Vec<LoggerLevel>>;
    /// Sets a logger's level, or that of a component's loggers; each may be empty. Says so of names
    /// under which the node logs nothing.
    async fn set_logging_level(&self, target: &str, level: &str) -> Answer<Vec<String>>;
    /// Bytes between entries of the index of rows within a partition, if they are set.
    async fn column_index_bytes(&self) -> Answer<Option<u64>>;
    /// How many replicas a keyspace has by default.
    async fn default_replication(&self) -> Answer<u64>;
    /// Sets that.
    async fn set_default_replication(&self, factor: i32) -> Answer<()>;
    /// Writes the batches that are kept for too long now.
    async fn replay_batches(&self) -> Answer<()>;
    /// Which share of requests is traced though nobody asked for it.
    async fn trace_probability(&self) -> Answer<f64>;
    /// Sets that share.
    async fn set_trace_probability(&self, share: f64) -> Answer<()>;
}
