//! The incremental repairs that are under way on this node: streams ask for them.

use std::cell::RefCell;
use std::collections::BTreeSet;

use types::Uuid;

/// Those of the node; on the first shard.
#[derive(Debug, Default)]
pub(crate) struct Ongoing(RefCell<BTreeSet<Uuid>>);

impl Ongoing {
    pub fn has(&self, repair: Uuid) -> bool {
        self.0.borrow().contains(&repair)
    }

    pub fn begin(&self, repair: Uuid) {
        self.0.borrow_mut().insert(repair);
    }

    pub fn end(&self, repair: Uuid) {
        self.0.borrow_mut().remove(&repair);
    }
}
