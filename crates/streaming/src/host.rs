//! What streams must know of the node.

use std::panic::Location;
use std::rc::Rc;

use messaging::Messenger;
use metrics::Level;
use types::{Address, TokenRange, Uuid};

/// The node, as streams see it; on each shard.
pub trait Host {
    /// The way to other nodes, once there is one.
    fn messenger(&self) -> Option<Rc<Messenger>>;

    /// Ranges of a keyspace that this node has: normalized. None if there is no such keyspace.
    fn owned(&self, keyspace: &str) -> Option<Vec<TokenRange>>;

    /// The same with those that it is about to have.
    fn owned_soon(&self, keyspace: &str) -> Option<Vec<TokenRange>>;

    /// Is a node in another data centre?
    fn is_far(&self, node: Address) -> bool;

    /// Has this node part in an incremental repair that is under way? Asked on the first shard.
    fn is_repairing(&self, repair: Uuid) -> bool;

    /// Something that the operator should know, said at a place in the sources.
    fn note_at(&self, at: &'static Location<'static>, level: Level, text: String);
}

impl dyn Host + '_ {
    /// Something that the operator should know, said where this is called.
    #[track_caller]
    pub(crate) fn note(&self, level: Level, text: String) {
        self.note_at(Location::caller(), level, text);
    }
}
