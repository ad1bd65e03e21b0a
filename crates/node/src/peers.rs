//! This node among others: its connections to them, and its place in their ring.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::task::Poll;

use cluster::{Identity, Joined, Shard};
use config::{Config, InternodeCapacity, InternodeEncryption};
use messaging::{Capacity, Encryption, Settings};
use tls::Tls;
use types::Address;

use crate::error::NodeError;
use crate::message::Message;
use crate::node::Node;
use crate::tls::{Of, encrypts_by_place};

/// No `cassandra.yaml` is larger.
const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// Settings of connections between nodes.
fn messaging_settings(config: &Config, identity: &Identity, tls: Option<&Tls>) -> Settings {
    let internode = &config.internode;
    let capacity = |of: InternodeCapacity| Capacity {
        connection: of.connection,
        endpoint: of.endpoint,
        global: of.global,
    };
    let local = Address::new(identity.broadcast, identity.storage_port);
    let listen = SocketAddr::new(identity.listen, identity.storage_port);
    Settings {
        max_message: internode.max_message,
        send: capacity(internode.send),
        receive: capacity(internode.receive),
        believes_clocks: internode.believes_clocks,
        encryption: tls.zip(config.server_tls.as_ref()).map(|(tls, wanted)| Encryption {
            tls: tls.clone(),
            is_optional: wanted.is_optional,
            is_offered: wanted.is_optional || wanted.encrypts != InternodeEncryption::None,
            // who shows no certificate cannot show one of its address
            verifies_address: wanted.verifies_address && wanted.stores.requires_client_auth,
            checks_plain_address: wanted.checks_plain_address && encrypts_by_place(wanted),
            listen: wanted.tls_port.map(|port| SocketAddr::new(identity.listen, port)),
        }),
        ..Settings::new(local, listen)
    }
}

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

impl Node {
    /// Reads the seeds from the configuration's file again, with what was set over it; those that
    /// are not this node.
    pub(crate) async fn reload_seeds(&self) -> Result<Option<Vec<Address>>, String> {
        let membership = self.shard().and_then(|it| it.membership().cloned());
        let Some(membership) = membership else { return Ok(None) };
        let config = self.config();
        let local = membership.local();
        let mut read = match &config.file {
            None => Config::default(),
            Some(path) => {
                let bytes = self.env().read_file(path, CONFIG_BYTES_MAX).await;
                let bytes = bytes.map_err(|error| error.to_string())?;
                let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
                Config::from_yaml(&text).map_err(|error| error.to_string())?
            }
        };
        let overrides = config.overrides.iter().map(String::as_str);
        read.set_all(overrides).map_err(|error| error.to_string())?;
        let seeds = seeds(&read, local).map_err(|error| error.to_string())?;
        Ok(Some(membership.set_seeds(seeds).into_iter().collect()))
    }

    /// Gives a shard its way to other nodes.
    pub(crate) fn reach_peers(self: &Rc<Self>, shard: &Shard, identity: &Identity) {
        let mesh = self.mesh().clone();
        let node = Rc::downgrade(self);
        shard.peers().reach(
            messaging_settings(self.config(), identity, self.tls(Of::Nodes)),
            self.registry(),
            move |shard, job| mesh.send(shard, Message::Messaging(job)),
            move |message| {
                if let Some(node) = node.upgrade() {
                    node.send_to_first(move |first| first.say_seldom("INFO", message));
                }
            },
        );
    }

    /// Listens for other nodes on this shard.
    pub(crate) fn listen_to_peers(&self) -> Result<(), NodeError> {
        let Some(shard) = self.shard() else { return Ok(()) };
        let identity = shard.identity();
        let address = SocketAddr::new(identity.listen, identity.storage_port);
        let tasks = shard.listen_to_peers();
        let tasks = tasks.map_err(|source| NodeError::Listen { address, source })?;
        *self.peers_tasks.borrow_mut() = tasks;
        Ok(())
    }

    /// Becomes a part of the ring; on the first shard. Nothing, if the node is told to end before
    /// it is one.
    pub(crate) async fn join_ring(
        &self,
        snitch: ring::Snitch,
        is_known: bool,
    ) -> Result<Option<Joined>, NodeError> {
        let Some(shard) = self.shard() else { return Ok(None) };
        let identity = shard.identity();
        let local = Address::new(identity.broadcast, identity.storage_port);
        let seeds = seeds(self.config(), local)?;
        let mut gossip = gossip::Config::new(local, identity.cluster_name.clone(), seeds);
        gossip.phi_threshold = self.config().phi_convict_threshold;
        gossip.ring_delay = u64::try_from(self.config().ring_delay.as_millis()).unwrap_or(u64::MAX);
        let joining = shard.join_ring(gossip, snitch, is_known);
        let joined = first(joining, self.env().terminated()).await;
        Ok(joined.transpose()?)
    }

    /// Opens the hints of earlier runs; on the first shard.
    pub(crate) async fn open_hints(&self) -> Result<(), NodeError> {
        let Some(shard) = self.shard() else { return Ok(()) };
        let path = self.config().hints_directory.clone();
        let opened = shard.handoff().open().await;
        opened.map_err(|source| NodeError::Directory { path, source })
    }

    /// Delivers no more hints, and writes those that wait.
    pub(crate) async fn close_hints(&self) {
        if let Some(shard) = self.shard() {
            shard.handoff().close().await;
        }
    }

    /// Tells the other nodes that this one stops; on the first shard.
    pub(crate) async fn leave_ring(&self) {
        if let Some(membership) = self.shard().and_then(|it| it.membership().cloned()) {
            membership.leave().await;
        }
    }
}

/// What the one comes to, unless the other ends first.
async fn first<T>(one: impl Future<Output = T>, other: impl Future<Output = ()>) -> Option<T> {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    std::future::poll_fn(move |cx| match one.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => other.as_mut().poll(cx).map(|()| None),
    })
    .await
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
