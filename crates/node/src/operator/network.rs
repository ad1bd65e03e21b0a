//! Requests under way and messages to other nodes.

use admin::{
    Answer, DroppedMessages, Messages, NetStats, NetworkOperator, Percentiles, Pool, PoolStats,
    ProxyHistograms, ReadRepairs, Refusal, StreamLimits,
};
use internode::Connection;
use metrics::{Name, Reading, Snapshot};

use super::{Operations, failed};
use crate::histograms::recent;
use crate::messages::{came, sent};

impl NetworkOperator for Operations {
    async fn pool_stats(&self) -> Answer<PoolStats> {
        let count = |n: i64| u64::try_from(n).unwrap_or_default();
        let pools = self.pools.all().await.map_err(failed)?.into_iter().map(|pool| Pool {
            name: pool.name,
            active: count(pool.active.into()),
            pending: count(pool.pending.into()),
            completed: count(pool.completed),
            blocked: count(pool.blocked),
            all_time_blocked: count(pool.all_time_blocked),
        });
        let pools = pools.collect();
        let came = came(&self.shard).await.map_err(failed)?;
        let dropped = came.iter().map(|(verb, came)| DroppedMessages {
            verb: verb.name().to_owned(),
            count: came.dropped,
        });
        let dropped = dropped.collect();
        Ok(PoolStats { pools, dropped })
    }

    async fn net_stats(&self) -> Answer<NetStats> {
        let metrics = self.metrics.all().await.map_err(failed)?;
        let repairs = |name| match reading(&metrics, &Name::new("ReadRepair", name)) {
            Some(Reading::Counter(count)) => *count,
            _ => 0,
        };
        let messages = async |connection| -> Result<Messages, Refusal> {
            sent(&self.shard, connection).await.map_err(failed)
        };
        Ok(NetStats {
            mode: self.mode_name().to_owned(),
            streams: self.streams_now(),
            // nothing of 5.0.9 counts the others, either
            read_repair: ReadRepairs {
                blocking: repairs("RepairedBlocking"),
                ..ReadRepairs::default()
            },
            large: messages(Connection::Large).await?,
            small: messages(Connection::Small).await?,
            gossip: messages(Connection::Urgent).await?,
        })
    }

    async fn stream_limits(&self) -> Answer<StreamLimits> {
        self.limits_of_streams()
    }

    async fn set_stream_limits(&self, limits: StreamLimits) -> Answer<()> {
        self.limit_streams(limits)
    }

    async fn proxy_histograms(&self) -> Answer<ProxyHistograms> {
        let metrics = self.metrics.all().await.map_err(failed)?;
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
