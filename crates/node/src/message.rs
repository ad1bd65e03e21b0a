//! What shards send each other: jobs for one layer of the other shard.

use std::rc::Rc;
use std::sync::Arc;

use cluster::Identity;
use env::StreamHandle;
use storage::Engine;
use storage::shards::{Components, Job};

use crate::first_certificates::FirstCertificates;

/// A message between shards.
pub enum Message {
    /// Work for the storage engine.
    Storage(Job<Rc<Engine>>),
    /// Work for a component of the shard.
    Component(Job<Components>),
    /// Work for the shard's connections to other nodes.
    Messaging(messaging::Job),
    /// A client's connection, whose source port chose the receiving shard.
    Connection(StreamHandle),
    /// The first shard opened the node. Shards make their components and begin to serve.
    Opened(Arc<Opening>),
    /// The node drained: shards end.
    Drained,
}

/// What the components of all shards are made with, once the first one has read it.
pub struct Opening {
    pub(crate) identity: Arc<Identity>,
    pub(crate) certificates: FirstCertificates,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Storage(_) => "Storage",
            Self::Component(_) => "Component",
            Self::Messaging(_) => "Messaging",
            Self::Connection(_) => "Connection",
            Self::Opened(_) => "Opened",
            Self::Drained => "Drained",
        })
    }
}
