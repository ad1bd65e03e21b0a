//! Hints for a node that is gone, or that is no replica of theirs any more: they go to all replicas
//! that there are now (`HintsService.writeForAllReplicas`).

use std::io;
use std::rc::Rc;

use hints::record;
use types::Uuid;

use super::service::Service;

impl Service {
    /// Gives all that is kept for a node to the replicas that there are. False if it stopped
    /// before.
    pub(super) async fn readdress(self: &Rc<Self>, host: Uuid) -> io::Result<bool> {
        while let Some(file) = self.store.first(host) {
            let mut reader = self.store.read(&file).await?;
            loop {
                let page = reader.page().await?;
                for hint in &page.hints {
                    let Some(handoff) = self.handoff.upgrade() else { return Ok(false) };
                    let read = hint.hint();
                    let now = self.env.unix_micros() / 1000;
                    if !record::is_expired(read.created, read.gc_grace, now) {
                        let (created, gc_grace) = (read.created, read.gc_grace);
                        let given = handoff.give_to_replicas(created, gc_grace, read.mutation);
                        if given.await.is_err() {
                            return Ok(false);
                        }
                    }
                    file.set_sent(hint.end);
                    if self.targets.has_stopped() {
                        self.store.save_progress(&file).await?;
                        return Ok(false);
                    }
                }
                self.store.save_progress(&file).await?;
                if page.hints.is_empty() {
                    file.set_sent(page.next);
                    break;
                }
            }
            if !self.store.finish(&file).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
