//! Operations that bring data to the nodes that are to have it: this node's streams, and what it
//! asks for and gives in them.

mod available;
mod fetch;
mod join;
mod rebuild;
mod sources;
mod streams;

use std::rc::Rc;

use storage::shards::Components;
use streaming::Streaming;

use crate::peers::Peers;
use crate::shard_context::ShardContext;
pub use fetch::NoSource;
pub use join::{Join, JoinError, Joined, Standing};
pub use rebuild::{Rebuild, RebuildError, RebuildRequest, parse_ranges};

/// A shard's streams, and the operations that use them.
pub(crate) struct Topology {
    streaming: Rc<Streaming>,
    rebuild: Rc<Rebuild>,
}

impl Topology {
    pub fn new(shard: &Rc<ShardContext>, components: &Components, peers: &Rc<Peers>) -> Self {
        let host = streams::StreamHost::new(shard, peers);
        let settings = streams::settings(&shard.config.streams);
        let streaming = Streaming::new(&shard.engine, components, host, settings);
        let rebuild = Rebuild::new(shard, peers, &streaming);
        Self { streaming, rebuild }
    }

    pub fn streaming(&self) -> &Rc<Streaming> {
        &self.streaming
    }

    /// On the first shard.
    pub fn rebuild(&self) -> &Rc<Rebuild> {
        &self.rebuild
    }
}
