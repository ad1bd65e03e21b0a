//! The task that gives requests that wait their turn.

use std::rc::Rc;

use crate::coordinator::Coordinator;
use crate::request;
use crate::settings::WAIT_CHECKED;
use crate::shard::Shard;

/// Starts requests that wait, and answers those that have waited for too long.
pub(crate) async fn serve<C: Coordinator>(shard: Rc<Shard>, coordinator: Rc<C>) {
    let queue = &shard.queue;
    loop {
        if queue.is_empty() {
            queue.changed().await;
            continue;
        }
        for late in queue.late(&shard) {
            request::too_late(&late);
            shard.env.maybe_yield().await;
        }
        let again = shard.env.now() + WAIT_CHECKED;
        while !shard.is_full()
            && shard.env.now() < again
            && let Some(next) = queue.next()
        {
            request::begin(&coordinator, next);
            shard.env.maybe_yield().await;
        }
        if !queue.is_empty() {
            let _ = shard.env.timeout_at(again, queue.changed()).await;
        }
    }
}
