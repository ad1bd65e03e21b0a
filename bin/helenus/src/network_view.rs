//! What the operator sees of messages between nodes, of work under way and of requests of clients.

use admin::{
    Answer, DroppedMessages, Messages, NetStats, Percentiles, Pool, PoolStats, ProxyHistograms,
    ReadRepairs, Refusal,
};
use internode::{Connection, Verb};
use messaging::Came;
use metrics::{Name, Reading, Snapshot};
use storage::shards::Stopping;

use crate::histograms::recent;
use crate::node::Node;
use crate::operator::{Operations, failed};

/// Messages of each verb, that came.
type ByVerb = Vec<(Verb, Came)>;

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

impl Node {
    /// Messages that came, of all shards.
    pub(crate) async fn came(&self) -> Result<ByVerb, Stopping> {
        let look = |node: &std::rc::Rc<Self>| -> ByVerb {
            let shard = node.shard();
            let messenger = shard.and_then(|shard| shard.peers().messenger());
            let came = |verb: &Verb| Some((*verb, messenger?.came(*verb)));
            Verb::ALL.iter().filter_map(came).collect()
        };
        let mut all: ByVerb = Verb::ALL.iter().map(|verb| (*verb, Came::default())).collect();
        for shard in self.on_all(look).await? {
            for ((_, sum), (_, more)) in all.iter_mut().zip(shard) {
                sum.received += more.received;
                sum.dropped += more.dropped;
            }
        }
        Ok(all)
    }

    /// Messages to other nodes, of all shards.
    async fn sent(&self, connection: Connection) -> Result<Messages, Stopping> {
        let look = move |node: &std::rc::Rc<Self>| {
            let messenger = node.shard().and_then(|it| it.peers().messenger().cloned());
            messenger.map(|messenger| messenger.sent(connection)).unwrap_or_default()
        };
        let mut all = Messages::default();
        for sent in self.on_all(look).await? {
            all.pending += sent.pending;
            all.completed += sent.completed;
            all.dropped += sent.dropped;
        }
        Ok(all)
    }
}

impl Operations {
    /// For `tpstats`.
    pub(crate) async fn pools_now(&self) -> Answer<PoolStats> {
        let count = |n: i64| u64::try_from(n).unwrap_or_default();
        let pools = self.0.pools().await.map_err(failed)?.into_iter().map(|pool| Pool {
            name: pool.name,
            active: count(pool.active.into()),
            pending: count(pool.pending.into()),
            completed: count(pool.completed),
            blocked: count(pool.blocked),
            all_time_blocked: count(pool.all_time_blocked),
        });
        let pools = pools.collect();
        let came = self.0.came().await.map_err(failed)?;
        let dropped = came.iter().map(|(verb, came)| DroppedMessages {
            verb: verb.name().to_owned(),
            count: came.dropped,
        });
        let dropped = dropped.collect();
        Ok(PoolStats { pools, dropped })
    }

    /// For `netstats`.
    pub(crate) async fn messages_now(&self) -> Answer<NetStats> {
        let metrics = self.0.all_metrics().await.map_err(failed)?;
        let repairs = |name| match reading(&metrics, &Name::new("ReadRepair", name)) {
            Some(Reading::Counter(count)) => *count,
            _ => 0,
        };
        let sent = async |connection| -> Result<Messages, Refusal> {
            self.0.sent(connection).await.map_err(failed)
        };
        Ok(NetStats {
            streams: self.streams_now(),
            mode: self.0.mode().to_owned(),
            // nothing of 5.0.9 counts the others, either
            read_repair: ReadRepairs {
                blocking: repairs("RepairedBlocking"),
                ..ReadRepairs::default()
            },
            large: sent(Connection::Large).await?,
            small: sent(Connection::Small).await?,
            gossip: sent(Connection::Urgent).await?,
        })
    }

    /// For `proxyhistograms`.
    pub(crate) async fn latencies_now(&self) -> Answer<ProxyHistograms> {
        let metrics = self.0.all_metrics().await.map_err(failed)?;
        let of = |scope| -> Percentiles {
            match reading(&metrics, &Name::of_request(scope, "Latency")) {
                Some(Reading::Histogram(latencies)) => recent(Some(latencies)),
                _ => Percentiles::default(),
            }
        };
        Ok(ProxyHistograms {
            read_micros: of("Read"),
            write_micros: of("Write"),
            range_micros: of("RangeSlice"),
            cas_read_micros: of("CASRead"),
            cas_write_micros: of("CASWrite"),
            view_write_micros: of("ViewWrite"),
        })
    }
}

fn reading<'a>(metrics: &'a Snapshot, name: &Name) -> Option<&'a Reading> {
    metrics.samples.get(name).map(|sample| &sample.reading)
}
