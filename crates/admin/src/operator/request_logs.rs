//! The audit log and the full query log.

use super::Answer;
use audit::Changes;

use crate::model::RequestLog;

/// The audit log and the full query log.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait RequestLogsOperator {
    /// Turns the audit log on, or changes it.
    async fn enable_audit_log(&self, changes: &Changes) -> Answer<()>;
    /// Turns it off.
    async fn disable_audit_log(&self) -> Answer<()>;
    /// Its options.
    async fn audit_log(&self) -> Answer<RequestLog>;
    /// Turns the full query log on.
    async fn enable_full_query_log(&self, changes: &Changes) -> Answer<()>;
    /// Turns it off.
    async fn disable_full_query_log(&self) -> Answer<()>;
    /// Its options.
    async fn full_query_log(&self) -> Answer<RequestLog>;
    /// Turns it off, and removes its files.
    async fn reset_full_query_log(&self) -> Answer<()>;
}
