//! Which nodes are up, and when each was started.

use std::cell::OnceCell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use types::Address;

use crate::membership::Membership;
use crate::shard_context::ShardContext;

/// How often it is looked whether a node still lives.
const LOOK: Duration = Duration::from_secs(1);
/// How often in a row it is to be down: one that is slow for a moment fails no repair.
const LOOKS_DOWN: u32 = 5;

/// Known once this node is in a ring; on the first shard.
pub(super) struct Life {
    shard: Rc<ShardContext>,
    membership: OnceCell<Rc<Membership>>,
}

impl Life {
    pub fn new(shard: &Rc<ShardContext>) -> Rc<Self> {
        Rc::new(Self { shard: Rc::clone(shard), membership: OnceCell::new() })
    }

    pub fn know(&self, membership: &Rc<Membership>) {
        let _ = self.membership.set(Rc::clone(membership));
    }

    /// Is it up?
    pub fn is_up(&self, node: Address) -> bool {
        let nodes = self.membership.get().map(|membership| membership.nodes());
        nodes.is_some_and(|nodes| nodes.get(&node).is_some_and(|node| node.is_up))
    }

    /// When it was started, in seconds since 1970; none of one that is not known.
    pub fn start(&self, node: Address) -> Option<i32> {
        let nodes = self.membership.get()?.nodes();
        nodes.get(&node).map(|node| node.generation)
    }

    /// Waits for what these nodes have to do.
    ///
    /// # Errors
    /// If one of them dies or starts again meanwhile.
    pub async fn while_alive<F: Future + Unpin>(
        &self,
        nodes: &[Address],
        mut done: F,
    ) -> Result<F::Output, String> {
        let starts: Vec<_> = nodes.iter().map(|node| self.start(*node)).collect();
        let mut looks_down = 0;
        loop {
            let by = self.shard.env.now() + LOOK;
            if let Ok(came) = self.shard.env.timeout_at(by, &mut done).await {
                return Ok(came);
            }
            let down = nodes.iter().find(|node| !self.is_up(**node));
            looks_down = if down.is_some() { looks_down + 1 } else { 0 };
            let restarted = nodes.iter().zip(&starts).find(|(node, start)| {
                let now = self.start(**node);
                now.is_some() && start.is_some() && now != **start
            });
            let restarted = restarted.map(|(node, _)| node);
            if let Some(node) = restarted.or(down.filter(|_| looks_down >= LOOKS_DOWN)) {
                return Err(format!("Endpoint /{node} died"));
            }
        }
    }
}
