//! Repair, which this node does not do yet.

use admin::{
    Answer, PendingStats, Refusal, RepairCleanup, RepairEvents, RepairOperator, RepairOrder,
    RepairScope, RepairSession, RepairStarted, RepairStats,
};

use super::Operations;

fn not_built<T>() -> Answer<T> {
    Err(Refusal::Failed("repair is not built yet".to_owned()))
}

impl RepairOperator for Operations {
    async fn start_repair(&self, _: &RepairOrder) -> Answer<RepairStarted> {
        not_built()
    }

    async fn repair_events(&self, _: i32, _: u64) -> Answer<RepairEvents> {
        not_built()
    }

    async fn repair_sessions(&self, _: bool, _: Option<&str>) -> Answer<Vec<RepairSession>> {
        Ok(Vec::new())
    }

    async fn cancel_repair_session(&self, _: &str, _: bool) -> Answer<()> {
        not_built()
    }

    async fn pending_repairs(&self, _: &RepairScope) -> Answer<Vec<PendingStats>> {
        Ok(Vec::new())
    }

    async fn repair_stats(&self, _: &RepairScope) -> Answer<Vec<RepairStats>> {
        Ok(Vec::new())
    }

    async fn clean_up_repairs(&self, _: &RepairScope, _: bool) -> Answer<Vec<RepairCleanup>> {
        Ok(Vec::new())
    }
}
