//! What streams see of this node.

use std::rc::Rc;

use messaging::Messenger;
use schema::Strategy;
use streaming::Host;
use types::TokenRange;

use crate::peers::Peers;
use crate::shard_context::ShardContext;

/// This shard, as streams see it.
pub(crate) struct StreamHost {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
}

impl StreamHost {
    pub fn new(shard: &Rc<ShardContext>, peers: &Rc<Peers>) -> Rc<Self> {
        Rc::new(Self { shard: Rc::clone(shard), peers: Rc::clone(peers) })
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

    fn note(&self, text: String) {
        self.peers.note(text);
    }
}
