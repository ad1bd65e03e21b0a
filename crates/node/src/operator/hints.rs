//! Hints.

use admin::{Answer, Handoff, HandoffChange, HintsOperator, PendingHints};

use super::Operations;

impl HintsOperator for Operations {
    async fn handoff(&self) -> Answer<Handoff> {
        self.handoff_now()
    }

    async fn set_handoff(&self, change: HandoffChange) -> Answer<()> {
        self.change_handoff(change)
    }

    async fn pause_handoff(&self, is_paused: bool) -> Answer<()> {
        self.shard()?.handoff().pause(is_paused);
        Ok(())
    }

    async fn pending_hints(&self) -> Answer<Vec<PendingHints>> {
        self.hints_that_wait()
    }

    async fn truncate_hints(&self, address: Option<&str>) -> Answer<()> {
        self.throw_hints_away(address).await
    }
}
