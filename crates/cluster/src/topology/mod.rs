//! Operations that bring data to the nodes that are to have it: this node's streams, and what it
//! asks for and gives in them.

mod available;
mod course;
mod fetch;
mod join;
mod plan;
mod rebuild;
mod relocation;
mod removal;
mod sources;
mod streams;

use std::rc::Rc;

use metrics::Registry;
use storage::shards::Components;
use streaming::Streaming;

use crate::hints::Handoff;
use crate::membership::Membership;
use crate::peers::Peers;
use crate::repair::Ongoing;
use crate::ring_batch::RingBatches;
use crate::saved_place::SavedPlace;
use crate::shard_context::ShardContext;
pub use fetch::NoSource;
pub use join::{Join, JoinError, Joined, Standing};
pub use plan::{
    Failing, FailurePlan, KeyspaceOdds, Missing, MovePlan, NewNodes, NodeShare, OddsRow, PlanError,
    PlanRequest, PlannedShares, PlannedStream, PlannedTokens, Planner, Rate,
};
pub use rebuild::{Rebuild, RebuildError, RebuildRequest, parse_ranges};
pub use relocation::{Relocation, RelocationError};
pub use removal::{Removal, RemovalStatus};

/// A shard's streams, and the operations that use them.
pub(crate) struct Topology {
    streaming: Rc<Streaming>,
    rebuild: Rc<Rebuild>,
}

/// How this node comes into the ring, to another place, and out of it, how it removes others, and
/// what any of it would move; on the first shard.
pub(crate) struct Movements {
    pub join: Rc<Join>,
    pub relocation: Rc<Relocation>,
    pub removal: Rc<Removal>,
    pub planner: Rc<Planner>,
}

impl Movements {
    pub fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        membership: &Rc<Membership>,
        topology: &Topology,
        (handoff, batches): (&Rc<Handoff>, &Rc<RingBatches>),
        saved: SavedPlace,
    ) -> Self {
        let (of, streaming) = ((shard, peers), topology.streaming());
        let join = Join::new(of, membership, streaming, saved);
        let relocation = Relocation::new(of, (membership, &join), streaming, handoff, batches);
        let removal = Removal::new(of, membership, streaming);
        let planner = Planner::new(shard, membership, (&relocation, &removal), streaming);
        Self { join, relocation, removal, planner }
    }
}

impl Topology {
    pub fn new(
        shard: &Rc<ShardContext>,
        components: &Components,
        peers: &Rc<Peers>,
        ongoing: &Rc<Ongoing>,
        registry: &Rc<Registry>,
    ) -> Self {
        let host = streams::StreamHost::new(shard, peers, ongoing);
        let settings = streams::settings(&shard.config.streams);
        let streaming = Streaming::new(&shard.engine, components, host, settings, registry);
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
