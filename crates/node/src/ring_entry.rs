//! How this node becomes a part of the ring, and by whose help.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use cluster::{Joined, SavedPlace, Shard};
use config::Config;
use env::Env;
use types::Address;

use crate::context::Context;
use crate::error::NodeError;
use crate::race::first;

/// No `cassandra.yaml` is larger.
const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// The seeds; the node itself, where none are configured.
fn seeds(config: &Config, local: Address) -> Result<BTreeSet<Address>, NodeError> {
    let seed = |text: &String| -> Result<Address, NodeError> {
        let bad = || NodeError::Address { key: "seeds", value: text.clone() };
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Address::new(address.ip(), address.port()));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => (host, port.parse().map_err(|_| bad())?),
            _ => (text.as_str(), local.port),
        };
        let ip = match host {
            "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
            host => host.trim_matches(['[', ']']).parse(),
        };
        Ok(Address::new(ip.map_err(|_| bad())?, port))
    };
    if config.seeds.is_empty() {
        return Ok([local].into());
    }
    config.seeds.iter().map(seed).collect()
}

/// Its part in the ring begins here; on the first shard.
pub(crate) struct RingEntry {
    env: Env,
    config: Arc<Config>,
    shard: Rc<Shard>,
}

impl RingEntry {
    pub fn new(context: &Context, shard: &Rc<Shard>) -> Rc<Self> {
        let (env, config) = (context.env.clone(), Arc::clone(&context.config));
        Rc::new(Self { env, config, shard: Rc::clone(shard) })
    }

    /// Becomes a part of the ring; nothing, if the node is told to end before it is one.
    ///
    /// # Errors
    /// If a seed is no address, or the node cannot join.
    pub async fn join(
        &self,
        snitch: ring::Snitch,
        saved: SavedPlace,
    ) -> Result<Option<Joined>, NodeError> {
        let identity = self.shard.identity();
        let local = Address::new(identity.broadcast, identity.storage_port);
        let seeds = seeds(&self.config, local)?;
        let mut gossip = gossip::Config::new(local, identity.cluster_name.clone(), seeds);
        gossip.phi_threshold = self.config.phi_convict_threshold;
        gossip.ring_delay = u64::try_from(self.config.ring_delay.as_millis()).unwrap_or(u64::MAX);
        let joining = self.shard.join_ring(gossip, snitch, saved);
        let joined = first(joining, self.env.terminated()).await;
        Ok(joined.transpose()?)
    }

    /// Reads the seeds from the configuration's file again, with what was set over it; those that
    /// are not this node.
    ///
    /// # Errors
    /// If the file cannot be read or used.
    pub async fn reload_seeds(&self) -> Result<Option<Vec<Address>>, String> {
        let Some(membership) = self.shard.membership().cloned() else { return Ok(None) };
        let local = membership.local();
        let mut read = match &self.config.given.file {
            None => Config::default(),
            Some(path) => {
                let bytes = self.env.read_file(path, CONFIG_BYTES_MAX).await;
                let bytes = bytes.map_err(|error| error.to_string())?;
                let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
                Config::from_yaml(&text).map_err(|error| error.to_string())?
            }
        };
        let overrides = self.config.given.overrides.iter().map(String::as_str);
        read.set_all(overrides).map_err(|error| error.to_string())?;
        let seeds = seeds(&read, local).map_err(|error| error.to_string())?;
        Ok(Some(membership.set_seeds(seeds).into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_addresses() {
        let local = Address::new([127, 0, 0, 5], 7000);
        let of = |text: &str| -> Option<Vec<String>> {
            let seeds_of = text.split(',').map(|seed| seed.trim().to_owned());
            let seeds_of = seeds_of.filter(|seed| !seed.is_empty()).collect();
            let mut config = Config::default();
            config.seeds = seeds_of;
            let all = seeds(&config, local).ok()?;
            let mut all: Vec<_> = all.into_iter().map(|address| address.to_string()).collect();
            all.sort();
            Some(all)
        };
        let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(of(""), texts(&["127.0.0.5:7000"]));
        assert_eq!(
            of("127.0.0.1, 127.0.0.2:7001, localhost:7002, [::1]:9, fe80::1"),
            texts(&[
                "127.0.0.1:7000",
                "127.0.0.1:7002",
                "127.0.0.2:7001",
                "[::1]:9",
                "[fe80::1]:7000"
            ])
        );
        assert_eq!(of("node-one"), None);
        assert_eq!(of("127.0.0.1:port"), None);
    }
}
