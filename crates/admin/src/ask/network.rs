//! Verbs of requests and messages.

use crate::model::{Shown, StreamLimits};
use crate::nodetool::{NetworkVerb, StreamLimit};
use crate::operator::{Answer, NetworkOperator};

pub(super) async fn ask(
    operator: &impl NetworkOperator,
    verb: NetworkVerb,
) -> Answer<Option<Shown>> {
    Ok(Some(match verb {
        NetworkVerb::PoolStats { .. } => Shown::Pools(operator.pool_stats().await?),
        NetworkVerb::GetStreamLimit { .. } => Shown::StreamLimits(operator.stream_limits().await?),
        NetworkVerb::SetStreamLimit { of, bytes_per_second } => {
            let limits = with(operator.stream_limits().await?, of, bytes_per_second);
            operator.set_stream_limits(limits).await?;
            return Ok(None);
        }
        NetworkVerb::NetStats { .. } => Shown::Network(operator.net_stats().await?),
        NetworkVerb::ProxyHistograms => {
            Shown::ProxyHistograms(Box::new(operator.proxy_histograms().await?))
        }
    }))
}

fn with(mut limits: StreamLimits, of: StreamLimit, bytes_per_second: u64) -> StreamLimits {
    let limit = match (of.is_whole, of.is_far) {
        (false, false) => &mut limits.parts,
        (false, true) => &mut limits.far_parts,
        (true, false) => &mut limits.whole,
        (true, true) => &mut limits.far_whole,
    };
    *limit = bytes_per_second;
    limits
}
