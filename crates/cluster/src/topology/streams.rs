//! What streams see of this node.

use std::panic::Location;
use std::rc::Rc;

use messaging::Messenger;
use metrics::Level;
use schema::Strategy;
use streaming::{Host, Limits, Remembered};
use types::{Address, TokenRange, Uuid};

use crate::peers::Peers;
use crate::repair::Ongoing;
use crate::shard_context::ShardContext;

/// What the configuration says of streams.
pub(crate) fn settings(of: &config::Streams) -> streaming::Settings {
    let config::StreamLimits { parts, far_parts, whole, far_whole } = of.limits;
    streaming::Settings {
        whole_files: of.whole_files,
        limits: Limits { parts, far_parts, whole, far_whole },
        keep_alive: of.keep_alive,
        checks_space: !of.skips_space_check,
        remembered: Remembered {
            is_enabled: of.remembers,
            expires: of.remembered_for,
            bytes: of.remembered_bytes,
        },
        transfer_timeout: of.transfer_timeout,
        connections: of.connections,
        slow_event: of.slow_event,
    }
}

/// This shard, as streams see it.
pub(crate) struct StreamHost {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    ongoing: Rc<Ongoing>,
}

impl StreamHost {
    pub fn new(shard: &Rc<ShardContext>, peers: &Rc<Peers>, ongoing: &Rc<Ongoing>) -> Rc<Self> {
        let (shard, peers) = (Rc::clone(shard), Rc::clone(peers));
        Rc::new(Self { shard, peers, ongoing: Rc::clone(ongoing) })
    }

    fn ranges(&self, keyspace: &str, with_pending: bool) -> Option<Vec<TokenRange>> {
        let schema = self.shard.schema();
        let keyspace = schema.keyspace(keyspace)?;
        if keyspace.replication.strategy == Strategy::Local {
            return None;
        }
        // who is alone has everything
        let Some(scope) = self.peers.scope(keyspace).ok()? else {
            return Some(vec![TokenRange::ALL]);
        };
        let (placement, local) = (&scope.placement, scope.ring.local());
        let pending = placement.pending_ranges_of(local).filter(|_| with_pending);
        Some(TokenRange::normalize(placement.ranges_of(local).chain(pending)))
    }
}

impl Host for StreamHost {
    fn messenger(&self) -> Option<Rc<Messenger>> {
        self.peers.messenger().cloned()
    }

    fn owned(&self, keyspace: &str) -> Option<Vec<TokenRange>> {
        self.ranges(keyspace, false)
    }

    fn owned_soon(&self, keyspace: &str) -> Option<Vec<TokenRange>> {
        self.ranges(keyspace, true)
    }

    fn is_far(&self, node: Address) -> bool {
        let ring = self.peers.ring();
        let place = ring.as_ref().and_then(|ring| Some((ring, ring.find(node)?)));
        place.is_some_and(|(ring, node)| !ring.is_near(node))
    }

    fn is_repairing(&self, repair: Uuid) -> bool {
        self.ongoing.has(repair)
    }

    fn note_at(&self, at: &'static Location<'static>, level: Level, text: String) {
        self.peers.note_at(at, level, text);
    }
}
