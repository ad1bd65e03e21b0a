//! Rebuilding this node from others.

use std::net::{IpAddr, SocketAddr};

use admin::{Answer, RebuildOrder, Refusal};
use cluster::topology::{RebuildError, RebuildRequest, parse_ranges};
use types::Address;

use super::{Operations, failed};

impl Operations {
    pub(crate) async fn fetch_from_others(&self, order: &RebuildOrder) -> Answer<()> {
        let bad = |what: String| Refusal::BadUse(what);
        let ranges = order.tokens.as_deref().map(parse_ranges).transpose().map_err(bad)?;
        let sources = match (&order.tokens, &order.sources) {
            (Some(_), Some(sources)) => {
                let port = self.shard.identity().storage_port;
                let each = sources.split(',').map(|text| address(text.trim(), port));
                each.collect::<Answer<_>>()?
            }
            _ => Default::default(),
        };
        let request = RebuildRequest {
            from_center: order.from_center.clone(),
            keyspace: order.keyspace.clone(),
            ranges: ranges.unwrap_or_default(),
            sources,
            excludes_local_center: order.excludes_local_center,
        };
        self.shard.rebuild().run(&request).await.map_err(|error| match error {
            RebuildError::BadUse(what) => bad(what),
            error => failed(error),
        })
    }
}

fn address(text: &str, port: u16) -> Answer<Address> {
    let unknown = || Refusal::BadUse(format!("{text} is not a valid address"));
    match text.parse::<SocketAddr>() {
        Ok(address) => Ok(Address::new(address.ip(), address.port())),
        Err(_) => Ok(Address::new(text.parse::<IpAddr>().map_err(|_| unknown())?, port)),
    }
}
