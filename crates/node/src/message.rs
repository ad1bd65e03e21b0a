//! What shards send each other: jobs for one layer of the other shard.

use std::rc::Rc;

use env::StreamHandle;
use storage::Engine;
use storage::shards::{Components, Job};

use crate::node::Node;

/// A message between shards.
pub enum Message {
    /// Work for the storage engine.
    Storage(Job<Rc<Engine>>),
    /// Work for a component of the shard.
    Cluster(Job<Components>),
    /// Work for the shard's part of the node as a whole: what its operator asks for.
    Node(Job<Rc<Node>>),
    /// Work for the shard's connections to other nodes.
    Messaging(messaging::Job),
    /// A client's connection, whose source port chose the receiving shard.
    Connection(StreamHandle),
    /// The first shard opened the node: who it is. Shards begin to serve.
    Opened(std::sync::Arc<cluster::Identity>),
    /// The node drained: shards end.
    Drained,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Storage(_) => "Storage",
            Self::Cluster(_) => "Cluster",
            Self::Node(_) => "Node",
            Self::Messaging(_) => "Messaging",
            Self::Connection(_) => "Connection",
            Self::Opened(_) => "Opened",
            Self::Drained => "Drained",
        })
    }
}
