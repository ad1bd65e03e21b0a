//! The nodes of the cluster.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use admin::{
    Answer, Cluster, Decommission, Endpoint, Failing, FailurePlan, GossipValue, Life, Liveness,
    MovePlan, NodesOf, PlanChange, RangeReplica, RebuildOrder, Refusal, ReplicatedRange, Ring,
    RingNode, RingOperator, TableName,
};
use cluster::{Join, JoinError, Membership, Relocation, Removal};
use metrics::Level;
use schema::{Keyspace, Strategy};
use storage::PartitionKey;
use storage::shards::Stopping;
use types::{Address, Token, Uuid};

use super::tables::key_bytes;
use super::{Operations, failed};
use crate::addresses::socket;
use crate::own_keyspaces::is_system;
use crate::prepared::load_statements;

/// Cassandra's words where keyspaces cannot be compared (`StorageService.effectiveOwnership`).
const MEANINGLESS: &str = "Non-system keyspaces don't have the same replication settings, \
     effective ownership information is meaningless";
const MEANINGLESS_LOCAL: &str = "Ownership values for keyspaces with LocalStrategy are meaningless";
/// The partitioner's class, as `describecluster` shows it.
const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
/// Under which nodes are listed that do not tell their schema.
const UNREACHABLE: &str = "UNREACHABLE";

/// The share of each node, and why that is not of a replication, if so.
type Shares = (Vec<Option<f32>>, Option<String>);

impl Operations {
    fn membership(&self) -> Answer<&Rc<Membership>> {
        self.shard.membership().ok_or_else(|| failed(Stopping))
    }

    fn way_in(&self) -> Answer<&Rc<Join>> {
        self.shard.join().ok_or_else(|| failed(Stopping))
    }

    fn relocation(&self) -> Answer<&Rc<Relocation>> {
        self.shard.relocation().ok_or_else(|| failed(Stopping))
    }

    fn removal(&self) -> Answer<&Rc<Removal>> {
        self.shard.removal().ok_or_else(|| failed(Stopping))
    }

    /// Serves clients, now that the node is where it was to get.
    async fn serve_as_member(&self) -> Answer<()> {
        if !self.config.native_transport.start || self.clients.serves() {
            return Ok(());
        }
        // a survey with logins is not served, which is no failure of what got it here
        if self.clients.check_standing().is_err() {
            return Ok(());
        }
        load_statements(&self.shard, &self.journal).await;
        Ok(self.clients.start().await?)
    }

    pub(super) fn known_ring(&self) -> Answer<Arc<ring::Ring>> {
        let ring = self.shard.peers().ring();
        ring.ok_or_else(|| failed("the node has not joined the ring yet"))
    }

    /// What each node owns under the replication of a keyspace; of any, if there is none.
    fn shares(&self, ring: &ring::Ring, keyspace: Option<&str>) -> Answer<Shares> {
        let schema = self.shard.engine().schema();
        let of = |keyspace: &Keyspace| {
            let placement = ring.placement(&keyspace.replication.strategy);
            placement.map_or_else(|| ring.ownership(), |placement| placement.effective_ownership())
        };
        if let Some(name) = keyspace {
            let Some(keyspace) = schema.keyspace(name).filter(|keyspace| !keyspace.is_virtual)
            else {
                let text = format!("The keyspace {name}, does not exist");
                return Err(Refusal::BadUse(text));
            };
            return Ok(match keyspace.replication.strategy {
                Strategy::Local => (ring.ownership(), Some(MEANINGLESS_LOCAL.to_owned())),
                _ => (of(keyspace), None),
            });
        }
        let all = schema.keyspaces().values();
        let mut users = all.filter(|keyspace| !keyspace.is_virtual && !is_system(&keyspace.name));
        let Some(first) = users.next() else {
            // Cassandra takes a keyspace of its own that is replicated
            let own = schema.keyspace("system_traces");
            return Ok((own.map_or_else(|| ring.ownership(), |own| of(own)), None));
        };
        Ok(match users.all(|keyspace| keyspace.replication == first.replication) {
            true => (of(first), None),
            false => (ring.ownership(), Some(MEANINGLESS.to_owned())),
        })
    }
}

impl RingOperator for Operations {
    async fn cluster(&self) -> Answer<Cluster> {
        let identity = self.shard.identity();
        let own = self.address();
        let version = |bytes: [u8; 16]| Uuid::from_bytes(bytes).to_string();
        let mut schemas: BTreeMap<String, Vec<SocketAddr>> = BTreeMap::new();
        let mut releases: BTreeMap<String, Vec<SocketAddr>> = BTreeMap::new();
        schemas.entry(version(self.shard.engine().schema().version())).or_default().push(own);
        releases.entry(identity.release_version.clone()).or_default().push(own);
        for node in self.membership().map(|it| it.nodes()).unwrap_or_default().values() {
            let address = socket(node.address);
            let schema = node.schema.filter(|_| node.is_up).map_or(UNREACHABLE.to_owned(), version);
            schemas.entry(schema).or_default().push(address);
            releases.entry(node.release.clone()).or_default().push(address);
        }
        let of = |(version, nodes)| NodesOf { version, nodes };
        let snitch = &self.config.snitch;
        Ok(Cluster {
            name: identity.cluster_name.clone(),
            snitch: format!("org.apache.cassandra.locator.{snitch}"),
            dynamic_snitch: self.config.dynamic_snitch.is_some(),
            partitioner: PARTITIONER.to_owned(),
            schema_versions: schemas.into_iter().map(of).collect(),
            releases: releases.into_iter().map(of).collect(),
        })
    }

    async fn ring(&self, keyspace: Option<&str>) -> Answer<Ring> {
        let ring = self.known_ring()?;
        let (shares, note) = self.shares(&ring, keyspace)?;
        let others = self.membership()?.nodes();
        let node = |(node, owns): (&ring::Node, Option<f32>)| {
            let load = match node.is_local {
                true => Some(self.shard.engine().disk_bytes()),
                false => others.get(&node.address).and_then(|node| node.load).map(|n| n as u64),
            };
            RingNode {
                address: socket(node.address),
                liveness: if node.is_up { Liveness::Up } else { Liveness::Down },
                life: match node.state {
                    ring::State::Normal => Life::Normal,
                    ring::State::Joining | ring::State::Replacing(_) => Life::Joining,
                    ring::State::Leaving | ring::State::Left => Life::Leaving,
                    ring::State::Moving(_) => Life::Moving,
                },
                load_bytes: load,
                tokens: node.tokens.iter().map(|token| token.to_string()).collect(),
                owns_share: owns.map(f64::from),
                host_id: node.host_id.to_string(),
                data_center: node.data_center.to_string(),
                rack: node.rack.to_string(),
            }
        };
        let shares = shares.into_iter().chain(std::iter::repeat(None));
        let all = ring.nodes().iter().zip(shares);
        let there = all.filter(|(node, _)| node.state != ring::State::Left);
        Ok(Ring { nodes: there.map(node).collect(), note })
    }

    async fn schema_version(&self) -> Answer<String> {
        Ok(Uuid::from_bytes(self.shard.engine().schema().version()).to_string())
    }

    /// In the order of the ring.
    async fn ranges(&self, keyspace: &str) -> Answer<Vec<ReplicatedRange>> {
        let schema = self.shard.engine().schema();
        let none = |text: String| Err(Refusal::Failed(text));
        let Some(found) = schema.keyspace(keyspace) else {
            return none(format!("No such keyspace: {keyspace}"));
        };
        if found.is_virtual || found.replication.strategy == Strategy::Local {
            return none(format!("There is no ring for the keyspace: {keyspace}"));
        }
        let ring = self.known_ring()?;
        let Some(placement) = ring.placement(&found.replication.strategy) else {
            return none(format!("There is no ring for the keyspace: {keyspace}"));
        };
        let (own, others) = (self.shard.identity().rpc, self.membership()?.nodes());
        let replica = |index: &ring::NodeIndex| {
            let node = ring.node(*index);
            let native = match node.is_local {
                true => Some(own),
                false => others.get(&node.address).map(|other| other.native),
            };
            RangeReplica {
                address: socket(node.address),
                native: native.unwrap_or_else(|| socket(node.address)),
                data_center: node.data_center.to_string(),
                rack: node.rack.to_string(),
            }
        };
        let range = |row: ring::RangeRow<'_>| ReplicatedRange {
            start: row.range.left.to_string(),
            end: row.range.right.to_string(),
            replicas: row.replicas.iter().map(replica).collect(),
        };
        Ok(placement.ranges().map(range).collect())
    }

    async fn endpoints(&self, name: &TableName, key: &str) -> Answer<Vec<SocketAddr>> {
        let schema = self.shard.engine().schema();
        let Some(keyspace) = schema.keyspace(&name.keyspace) else {
            return Err(Refusal::BadUse(format!("Unknown keyspace '{}'", name.keyspace)));
        };
        let Some(table) = keyspace.tables.get(&name.table) else {
            let TableName { keyspace, table } = name;
            let text = format!("Unknown table '{table}' in keyspace '{keyspace}'");
            return Err(Refusal::BadUse(text));
        };
        let key = key_bytes(table, key, false)?;
        let token = PartitionKey::new(key.as_slice()).token;
        let ring = self.known_ring()?;
        let Some(placement) = ring.placement(&keyspace.replication.strategy) else {
            return Ok(vec![self.address()]);
        };
        let replicas = placement.at(token).natural.iter();
        Ok(replicas.map(|node| socket(ring.node(*node).address)).collect())
    }

    async fn gossip(&self) -> Answer<Vec<Endpoint>> {
        let value = |name: &str, version, value| {
            let name = name.to_owned();
            GossipValue { name, version, value }
        };
        let endpoint = |endpoint: cluster::Endpoint| {
            let state = endpoint.state;
            let values = state.values.iter();
            Endpoint {
                address: socket(endpoint.address),
                generation: state.heartbeat.generation,
                version: state.heartbeat.version,
                values: values
                    .map(|(k, v)| value(k.name(), v.version, v.value.to_string()))
                    .collect(),
                phi: endpoint.phi,
            }
        };
        Ok(self.membership()?.endpoints().into_iter().map(endpoint).collect())
    }

    async fn gossip_active(&self) -> Answer<bool> {
        Ok(self.membership().is_ok_and(|membership| membership.is_running()))
    }

    async fn set_gossip(&self, takes_part: bool) -> Answer<()> {
        let membership = self.membership()?;
        match (takes_part, self.mode.name()) {
            (true, "DRAINED") => Err(Refusal::BadUse(
                "Unable to start gossip because the node was drained.".to_owned(),
            )),
            (true, "DRAINING") => Err(Refusal::BadUse(
                "Unable to start gossip because the node is draining.".to_owned(),
            )),
            (true, _) => {
                membership.start_gossip();
                Ok(())
            }
            (false, _) => {
                if self.clients.serves() && membership.is_running() {
                    let text = "Disabling gossip while native transport is still active is unsafe";
                    self.journal.say(Level::Warn, text.to_owned());
                }
                membership.stop_gossip();
                Ok(())
            }
        }
    }

    async fn seeds(&self) -> Answer<Vec<SocketAddr>> {
        Ok(self.membership()?.seeds().into_iter().map(socket).collect())
    }

    async fn reload_seeds(&self) -> Answer<Option<Vec<SocketAddr>>> {
        match self.ring_entry.reload_seeds().await {
            Ok(seeds) => Ok(seeds.map(|seeds| seeds.into_iter().map(socket).collect())),
            Err(why) => {
                self.journal.say(Level::Warn, format!("Error while getting seed node list: {why}"));
                Ok(None)
            }
        }
    }

    async fn rebuild(&self, order: &RebuildOrder) -> Answer<()> {
        self.fetch_from_others(order).await
    }

    async fn resume_bootstrap(&self) -> Answer<bool> {
        match self.way_in()?.resume().await {
            Ok(()) => {}
            Err(JoinError::NotBroken) => return Ok(false),
            Err(error) => return Err(failed(error)),
        }
        self.serve_as_member().await?;
        Ok(true)
    }

    async fn join(&self) -> Answer<()> {
        match self.way_in()?.join().await {
            Ok(()) => self.serve_as_member().await,
            Err(error @ (JoinError::Joined | JoinError::Incomplete)) => {
                Err(Refusal::BadUse(error.to_string()))
            }
            Err(error) => Err(failed(format!("Error during joining the ring: {error}"))),
        }
    }

    async fn decommission(&self, force: bool) -> Answer<Decommission> {
        let relocation = self.relocation()?;
        match (relocation.mode(), relocation.decommission(force).await) {
            (_, Ok(true)) => {
                self.clients.stop(false).await?;
                let membership = self.membership()?;
                membership.be_forgotten().await;
                membership.leave().await;
                Ok(Decommission::Done)
            }
            (Some("DECOMMISSIONED"), Ok(false)) => Ok(Decommission::Before),
            (_, Ok(false)) => Ok(Decommission::UnderWay),
            (_, Err(error)) if error.is_refusal() => {
                Err(Refusal::BadUse(format!("Unsupported operation: {error}")))
            }
            (_, Err(error)) => Err(failed(format!("Error while decommissioning node: {error}"))),
        }
    }

    async fn move_to(&self, token: &str) -> Answer<()> {
        let token = token.parse().map(Token).map_err(|_| {
            Refusal::BadUse(format!(
                "Invalid token for Murmur3Partitioner. Got {token} but expected a long value \
                     (unsigned 8 bytes integer)."
            ))
        })?;
        self.relocation()?.move_to(token).await.map_err(failed)
    }

    async fn remove_node(&self, host: &str) -> Answer<()> {
        let id = Uuid::parse(host)
            .ok_or_else(|| Refusal::BadUse(format!("Invalid UUID string: {host}")))?;
        self.removal()?.remove(id).await.map_err(failed)
    }

    async fn removal_status(&self) -> Answer<String> {
        let Some(status) = self.removal()?.status() else {
            return Ok("No token removals in process.".to_owned());
        };
        let waits: Vec<_> = status.waits_for.iter().map(|node| node.ip.to_string()).collect();
        Ok(format!(
            "Removing token ({}). Waiting for replication confirmation from [{}].",
            status.token,
            waits.join(",")
        ))
    }

    async fn force_removal(&self) -> Answer<()> {
        self.removal()?.force();
        Ok(())
    }

    async fn plan(&self, change: &PlanChange) -> Answer<MovePlan> {
        self.plan_of(change).await
    }

    async fn failures(&self, failing: Failing) -> Answer<FailurePlan> {
        self.failures_of(failing).await
    }

    async fn assassinate(&self, address: &str) -> Answer<()> {
        let unknown = || Refusal::BadUse(format!("{address} is not a valid address"));
        let port = self.shard.identity().storage_port;
        let node = match address.trim_start_matches('/').parse::<SocketAddr>() {
            Ok(address) => Address::new(address.ip(), address.port()),
            Err(_) => {
                let ip = address.trim_start_matches('/').parse::<std::net::IpAddr>();
                Address::new(ip.map_err(|_| unknown())?, port)
            }
        };
        self.membership()?.assassinate(node).await.map_err(failed)
    }
}
