//! Verbs of requests and messages.

use crate::model::Shown;
use crate::nodetool::NetworkVerb;
use crate::operator::{Answer, NetworkOperator};

pub(super) async fn ask(
    operator: &impl NetworkOperator,
    verb: NetworkVerb,
) -> Answer<Option<Shown>> {
    Ok(Some(match verb {
        NetworkVerb::PoolStats => Shown::Pools(operator.pool_stats().await?),
        NetworkVerb::NetStats => Shown::Network(operator.net_stats().await?),
        NetworkVerb::ProxyHistograms => {
            Shown::ProxyHistograms(Box::new(operator.proxy_histograms().await?))
        }
    }))
}
