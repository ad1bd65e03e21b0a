//! Repair.

use std::time::Duration;

use crate::model::{
    PendingStats, RepairCleanup, RepairEvents, RepairOrder, RepairScope, RepairSession,
    RepairStarted, RepairStats,
};

use super::Answer;

/// How long [`RepairOperator::repair_events`] waits for an event. It bounds how long the node takes
/// to notice that nobody watches any more.
pub const REPAIR_EVENTS_WAIT: Duration = Duration::from_secs(5);

/// Repair. It runs in the node; who asks only watches.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait RepairOperator {
    /// Starts a repair of a keyspace that exists, and does not wait for it. Options that cannot be
    /// are refused at once, with the texts of `RepairOption.parse` and
    /// `StorageService.createRepairTask`: too many threads, tokens that are none, data centers
    /// without this one. What is found later is an event, a table that is none too. The command
    /// is 0 if the keyspace has one replica or no range here.
    async fn start_repair(&self, order: &RepairOrder) -> Answer<RepairStarted>;
    /// What a repair said after the event of a number: 0 is before the first. If it has said
    /// nothing since and is not over, it waits for an event, [`REPAIR_EVENTS_WAIT`] at most, and
    /// may answer with none. Events stay for some time after the end, for those who watch again;
    /// a command that is unknown or forgotten is [`BadUse`](crate::Refusal::BadUse).
    async fn repair_events(&self, command: i32, after: u64) -> Answer<RepairEvents>;
    /// Sessions that are not over, or `all`; those that have part in a range, `start:end`, if there
    /// is one.
    async fn repair_sessions(&self, all: bool, range: Option<&str>) -> Answer<Vec<RepairSession>>;
    /// Ends a session as failed: one that this node leads, or any with `force`. Cassandra's
    /// refusals (`Session {} does not exist [x]`) are [`BadUse`](crate::Refusal::BadUse).
    async fn cancel_repair_session(&self, session: &str, force: bool) -> Answer<()>;
    /// What waits for the end of repairs; each table of the scope, in any order.
    async fn pending_repairs(&self, scope: &RepairScope) -> Answer<Vec<PendingStats>>;
    /// When data was last repaired incrementally; each table of the scope, in any order.
    async fn repair_stats(&self, scope: &RepairScope) -> Answer<Vec<RepairStats>>;
    /// Gives the data of sessions that are over to where it belongs; with `force` it ends
    /// compactions that are in the way. Each table of the scope, in any order.
    async fn clean_up_repairs(
        &self,
        scope: &RepairScope,
        force: bool,
    ) -> Answer<Vec<RepairCleanup>>;
}
