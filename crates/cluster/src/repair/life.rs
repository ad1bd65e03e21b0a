//! Which nodes are up, and when each was started.

use std::cell::OnceCell;
use std::rc::Rc;

use types::Address;

use crate::membership::Membership;

/// Known once this node is in a ring; on the first shard.
#[derive(Default)]
pub(super) struct Life(OnceCell<Rc<Membership>>);

impl Life {
    pub fn know(&self, membership: &Rc<Membership>) {
        let _ = self.0.set(Rc::clone(membership));
    }

    /// Is it up?
    pub fn is_up(&self, node: Address) -> bool {
        let nodes = self.0.get().map(|membership| membership.nodes());
        nodes.is_some_and(|nodes| nodes.get(&node).is_some_and(|node| node.is_up))
    }

    /// When it was started, in seconds since 1970; none of one that is not known.
    pub fn start(&self, node: Address) -> Option<i32> {
        let nodes = self.0.get()?.nodes();
        nodes.get(&node).map(|node| node.generation)
    }
}
