//! How this node becomes a part of the ring (`StorageService.joinRing`, `prepareToJoin`).
//!
//! The steps, in order:
//!
//! - A shadow round asks the ring what it knows. Without an answer the node does not join.
//! - The address must not be another node's.
//! - A new node of a ring with others needs `auto_bootstrap: false`: nothing is streamed to it.
//! - The node takes part in gossip, and waits for the others and for the ring's schema, not for
//!   ever.
//! - The schema must not have what this release does not support.
//! - The node says NORMAL.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use env::sync::oneshot;
use gossip::{AppState, Event, HeartBeat, States, write_tokens};
use metrics::Level;
use storage::StorageError;
use thiserror::Error;
use types::{Address, Token, Uuid};

use super::{Membership, NodeInfo, Nodes, peers};
use crate::boot::write_bootstrapped;
use crate::peers::Places;

/// How long this node waits for those that it knows to be up before it takes its place.
const SETTLE_MAX: Duration = Duration::from_secs(10);
/// How often it looks whether they are.
const SETTLE_STEP: Duration = Duration::from_millis(200);

/// Why this node does not become a part of the ring. One line each.
#[derive(Debug, Error)]
pub enum JoinError {
    /// Storage does not give what was stored of other nodes.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Nobody answers.
    #[error(
        "Unable to gossip with any peers: none of {0} answers; check that cluster_name is the \
         same there and that their storage_port is open"
    )]
    NoPeers(String),
    /// Another node has its address.
    #[error(
        "A node with address /{0} already exists, cancelling join: it has another host ID than \
         this data directory. Set another listen_address, or stop that node and remove it \
         (nodetool removenode on a Cassandra node)"
    )]
    AddressTaken(Address),
    /// The ring has what this node cannot serve.
    #[error(
        "did not join the ring: its schema has objects that this release does not support: {0}; \
         drop them on a Cassandra node, or keep Cassandra on this one"
    )]
    Unserved(String),
    /// It would have to be given data by others.
    #[error(
        "did not join the ring: this node is new to a ring of {0} other nodes, and this release \
         does not stream their data to it; start it on the data directory of a node of the ring, \
         or set auto_bootstrap to false to join without the data written so far"
    )]
    NoBootstrap(usize),
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Joined {
    /// Other nodes of the ring.
    pub others: usize,
    /// Those that are down.
    pub down: Vec<Address>,
}

/// What is asked of a node that joins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Did this data directory belong to a node of a ring before?
    pub is_known: bool,
    /// `auto_bootstrap`.
    pub bootstraps: bool,
}

impl Membership {
    /// Becomes a part of the ring.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub(crate) async fn join(self: &Rc<Self>, entry: Entry) -> Result<Joined, JoinError> {
        let saved = peers::stored(&self.shard).await?;
        let place = |node: &NodeInfo| (node.data_center.clone(), node.rack.clone());
        self.peers.know_places(Places {
            snitch: self.snitch.clone(),
            said: saved.iter().map(|(address, node)| (*address, place(node))).collect(),
        });
        let ring = self.shadow_round(saved.keys().copied().collect()).await;
        let local = self.messenger.settings().local;
        let Some(ring) = ring else {
            let gossiper = self.gossiper.borrow();
            let asked = gossiper.seeds().iter().map(|seed| match self.messenger.failure(*seed) {
                Some(why) => format!("/{seed} ({why})"),
                None => format!("/{seed}"),
            });
            let asked: Vec<String> = asked.collect();
            return Err(JoinError::NoPeers(asked.join(", ")));
        };
        let host_id = Uuid::from_bytes(self.shard.identity.host_id).to_string();
        if let Some(own) = ring.get(&local) {
            let is_another = own.get(AppState::HOST_ID).is_some_and(|other| other != host_id);
            if is_another && !own.status().is_dead() {
                return Err(JoinError::AddressTaken(local));
            }
        }
        let members = |states: &States| -> Nodes {
            let others = states.iter().filter(|(address, _)| **address != local);
            let of = |(address, state): (&Address, _)| NodeInfo::of(*address, state, false);
            others.filter_map(of).map(|node| (node.address, node)).collect()
        };
        let others = members(&ring);
        let is_ours = |node: &NodeInfo| node.host_id == self.shard.identity.host_id;
        if !others.is_empty()
            && !entry.is_known
            && entry.bootstraps
            && !others.values().any(is_ours)
        {
            return Err(JoinError::NoBootstrap(others.len()));
        }
        self.start(saved, &ring);
        self.wait_for(&others).await;
        let behind = self.wait_for_schema().await;
        if !behind.is_empty() {
            let names: Vec<_> = behind.iter().map(|node| format!("/{node}")).collect();
            let text = format!(
                "did not receive the schema of {} in time: joining without it, and still asking \
                 for it",
                names.join(", ")
            );
            self.note(Level::Warn, text);
        }
        let unserved = schema::unserved(&self.shard.schema());
        if !others.is_empty() && !unserved.is_empty() {
            let names: Vec<_> = unserved.iter().map(ToString::to_string).collect();
            return Err(JoinError::Unserved(names.join("; ")));
        }
        let token = self.shard.identity.tokens.first().copied().unwrap_or(Token(0));
        let normal = format!("NORMAL,{token}");
        self.publish(vec![
            (AppState::TOKENS, self.own_tokens()),
            (AppState::STATUS_WITH_PORT, normal.clone()),
            (AppState::STATUS, normal),
        ]);
        if !entry.is_known {
            write_bootstrapped(&self.shard.engine, &self.shard.schema()).await?;
        }
        let nodes = self.nodes.borrow();
        let down = nodes.values().filter(|node| !node.is_up).map(|node| node.address).collect();
        Ok(Joined { others: nodes.len(), down })
    }

    /// Asks the ring what it knows; nothing where nobody answers.
    async fn shadow_round(self: &Rc<Self>, peers: BTreeSet<Address>) -> Option<States> {
        let (sender, receiver) = oneshot();
        *self.shadow.borrow_mut() = Some(sender);
        self.step(Event::ShadowRound { peers });
        receiver.await.unwrap_or_default()
    }

    pub(super) fn end_shadow_round(&self, states: Option<States>) {
        if states.is_some() {
            self.env.mark("gossip.shadow_round");
        }
        let waiting = self.shadow.borrow_mut().take();
        if let Some(waiting) = waiting {
            let _ = waiting.send(states);
        }
    }

    /// Takes part in gossip, as one that owns nothing yet.
    fn start(self: &Rc<Self>, saved: Nodes, ring: &States) {
        for node in saved.values() {
            let host_id = Uuid::from_bytes(node.host_id).to_string();
            let values =
                vec![(AppState::HOST_ID, host_id), (AppState::TOKENS, write_tokens(&node.tokens))];
            self.step(Event::Saved { node: node.address, values });
        }
        *self.saved.borrow_mut() = saved;
        let identity = &self.shard.identity;
        let local = self.messenger.settings().local;
        // a start within a second of the last one, or on another's directory, comes after what the
        // ring has heard
        let heard = ring.get(&local).map_or(HeartBeat::NONE, |own| own.heartbeat);
        let generation = identity.generation.max(heard.generation.saturating_add(1));
        let version = self.shard.schema().version();
        self.schema.set(version);
        let mut states = vec![
            (AppState::NET_VERSION, internode::VERSION_40.to_string()),
            (AppState::HOST_ID, Uuid::from_bytes(identity.host_id).to_string()),
            (AppState::RELEASE_VERSION, identity.release_version.clone()),
            (AppState::SSTABLE_VERSIONS, "big-nb".to_owned()),
            (AppState::DC, identity.data_center.clone()),
            (AppState::RACK, identity.rack.clone()),
            (AppState::RPC_ADDRESS, identity.rpc.ip().to_string()),
            (AppState::NATIVE_ADDRESS_AND_PORT, identity.rpc.to_string()),
            (AppState::INTERNAL_ADDRESS_AND_PORT, local.to_string()),
            (AppState::RPC_READY, "false".to_owned()),
            (AppState::SCHEMA, Uuid::from_bytes(version).to_string()),
            (AppState::LOAD, self.load().to_string()),
        ];
        states.push((AppState::TOKENS, self.own_tokens()));
        self.step(Event::Start { generation, states });
        self.start_agreeing();
        self.look_around();
        self.publish_index_status();
    }

    /// Waits until those that the ring said to be there are heard of and up, but not for long: one
    /// that is down does not keep this one from its place.
    async fn wait_for(&self, others: &Nodes) {
        let until = self.env.now() + SETTLE_MAX;
        let is_there = || others.keys().all(|node| self.gossiper.borrow().is_up(*node));
        while !is_there() && self.env.now() < until {
            self.env.sleep(SETTLE_STEP).await;
        }
    }

    pub(super) fn own_tokens(&self) -> String {
        let tokens: Vec<Token> = self.shard.identity.tokens.iter().copied().collect();
        write_tokens(&tokens)
    }
}
