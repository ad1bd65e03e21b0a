//! Messages between nodes, counted over all shards.

use std::rc::Rc;

use admin::Messages;
use cluster::Shard;
use internode::{Connection, Verb};
use messaging::Came;
use storage::shards::Stopping;

use crate::all_shards::ask_all;

/// Messages of each verb, that came.
pub(crate) type ByVerb = Vec<(Verb, Came)>;

/// Is a message one of gossip?
pub(crate) fn is_gossip(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::GossipDigestSyn
            | Verb::GossipDigestAck
            | Verb::GossipDigestAck2
            | Verb::GossipShutdown
            | Verb::EchoReq
    )
}

/// Is a message one of schemas?
pub(crate) fn is_schema(verb: Verb) -> bool {
    matches!(verb, Verb::SchemaPushReq | Verb::SchemaPullReq | Verb::SchemaVersionReq)
}

/// Messages that came.
///
/// # Errors
/// If a shard ends first.
pub(crate) async fn came(shard: &Shard) -> Result<ByVerb, Stopping> {
    let look = |there: &Rc<Shard>| -> ByVerb {
        let messenger = there.peers().messenger();
        let came = |verb: &Verb| Some((*verb, messenger?.came(*verb)));
        Verb::ALL.iter().filter_map(came).collect()
    };
    let mut all: ByVerb = Verb::ALL.iter().map(|verb| (*verb, Came::default())).collect();
    for of_shard in ask_all(shard.others(), look).await? {
        for ((_, sum), (_, more)) in all.iter_mut().zip(of_shard) {
            sum.received += more.received;
            sum.dropped += more.dropped;
        }
    }
    Ok(all)
}

/// Messages to other nodes.
///
/// # Errors
/// If a shard ends first.
pub(crate) async fn sent(shard: &Shard, connection: Connection) -> Result<Messages, Stopping> {
    let look = move |there: &Rc<Shard>| {
        let messenger = there.peers().messenger();
        messenger.map(|messenger| messenger.sent(connection)).unwrap_or_default()
    };
    let mut all = Messages::default();
    for sent in ask_all(shard.others(), look).await? {
        all.pending += sent.pending;
        all.completed += sent.completed;
        all.dropped += sent.dropped;
    }
    Ok(all)
}
