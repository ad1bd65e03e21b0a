//! How this node takes part in gossip: what it asks before, and what it waits for after
//! (`StorageService.prepareToJoin`). What follows from what it hears is `topology`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use env::Instant;
use env::sync::oneshot;
use gossip::{AppState, Event, HeartBeat, States, write_tokens};
use storage::StorageError;
use types::{Address, Uuid};

use super::{Membership, NO, NodeInfo, Nodes, Place, Stage, TAKES_WRITES, YES, peers};
use crate::peers::Places;

/// How long this node waits for those that it knows to be up before it takes its place.
const SETTLE_MAX: Duration = Duration::from_secs(10);
/// How often it looks whether they are.
const SETTLE_STEP: Duration = Duration::from_millis(200);
/// How often it looks whether all have heard of it.
const HEARD_STEP: Duration = Duration::from_millis(200);
/// So many times `ring_delay` it waits for that.
const HEARD_DELAYS: u32 = 10;
/// And at least so long: until one that died meanwhile is known to be down.
const HEARD_MIN: Duration = Duration::from_secs(60);

/// Nodes that have heard of this one, and how often each had forgotten it by then.
pub(crate) type Aware = BTreeMap<Address, u32>;

/// What the ring said when this node asked.
pub(crate) struct Asked {
    /// What was stored of other nodes.
    saved: Nodes,
    /// What the ring says of all nodes.
    pub states: States,
    /// The other nodes among them that are a part of the ring.
    pub others: Nodes,
}

impl Membership {
    /// Asks the ring what it knows; nothing where nobody answers.
    ///
    /// # Errors
    /// If what was stored of other nodes cannot be read.
    pub(crate) async fn ask_ring(self: &Rc<Self>) -> Result<Option<Asked>, StorageError> {
        let saved = peers::stored(&self.shard).await?;
        let place = |node: &NodeInfo| (node.data_center.clone(), node.rack.clone());
        self.peers.know_places(Places {
            snitch: self.snitch.clone(),
            said: saved.iter().map(|(address, node)| (*address, place(node))).collect(),
        });
        let states = self.shadow_round(saved.keys().copied().collect()).await;
        let local = self.local();
        Ok(states.map(|states| {
            let others = states.iter().filter(|(address, _)| **address != local);
            let of = |(address, state): (&Address, _)| NodeInfo::of(*address, state, false);
            let others = others.filter_map(of).map(|node| (node.address, node)).collect();
            Asked { saved, states, others }
        }))
    }

    /// Those that were asked and did not answer, and why.
    pub(crate) fn silent_seeds(&self) -> String {
        let gossiper = self.gossiper.borrow();
        let asked = gossiper.seeds().iter().map(|seed| match self.messenger.failure(*seed) {
            Some(why) => format!("/{seed} ({why})"),
            None => format!("/{seed}"),
        });
        asked.collect::<Vec<_>>().join(", ")
    }

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

    /// Takes part in gossip, standing where it is said, and waits for the others and for the
    /// ring's schema, not for ever. Who has a schema that did not come; `dead`, whose place this
    /// node takes, does not count.
    pub(crate) async fn take_part(
        self: &Rc<Self>,
        asked: Asked,
        place: Place,
        dead: Option<Address>,
    ) -> Vec<Address> {
        let others = asked.others.clone();
        self.place.replace(place);
        self.start(asked);
        self.wait_for(&others).await;
        self.wait_for_schema(dead).await
    }

    fn start(self: &Rc<Self>, asked: Asked) {
        let Asked { saved, states: ring, .. } = asked;
        for node in saved.values() {
            let host_id = Uuid::from_bytes(node.host_id).to_string();
            let values =
                vec![(AppState::HOST_ID, host_id), (AppState::TOKENS, write_tokens(&node.tokens))];
            self.step(Event::Saved { node: node.address, values });
        }
        *self.saved.borrow_mut() = saved;
        let identity = &self.shard.identity;
        let local = self.local();
        // a start within a second of the last one, or on another's directory, comes after what the
        // ring has heard
        let heard = ring.get(&local).map_or(HeartBeat::NONE, |own| own.heartbeat);
        let generation = identity.generation.max(heard.generation.saturating_add(1));
        let version = self.shard.schema().version();
        self.schema.set(version);
        let host_id = Uuid::from_bytes(self.shard.engine.host_id());
        let mut states = vec![
            (AppState::NET_VERSION, internode::VERSION_40.to_string()),
            (AppState::HOST_ID, host_id.to_string()),
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
        states.extend(self.place.borrow().first_states());
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

    /// Waits until all that are up have asked whether this node is, but not for long. A coordinator
    /// that hears of a node that joins, and holds it for down, refuses writes, as Cassandra's does.
    pub(crate) async fn be_seen(&self) {
        if self.env.planted("join_is_unseen") {
            return;
        }
        let until = self.env.now() + SETTLE_MAX;
        while self.gossiper.borrow().not_seen_by().next().is_some() && self.env.now() < until {
            self.env.sleep(SETTLE_STEP).await;
        }
        // the last answer is on its way
        self.env.sleep(SETTLE_STEP).await;
    }

    /// Waits until all that are up have heard where this node stands, and at least for
    /// `ring_delay`. Whoever has not heard it in ten times as long is returned.
    ///
    /// A coordinator that has not heard it writes past this node: time alone, which is what
    /// Cassandra waits for, does not show that there is none.
    pub(crate) async fn be_heard(self: &Rc<Self>) -> Vec<Address> {
        self.tell_all(self.shard.config.ring_delay, Vec::new).await
    }

    /// Says that this node, which has left, takes no writes any more, since nobody reads from it;
    /// waits until all that are up have heard it.
    pub async fn be_forgotten(self: &Rc<Self>) {
        self.publish(vec![(TAKES_WRITES, NO.to_owned())]);
        self.tell_all(Duration::ZERO, Vec::new).await;
    }

    /// Waits until all that are up have heard the present version, `least` has passed, and nobody
    /// is absent. Whoever is missing when the time is up is returned.
    async fn tell_all(
        self: &Rc<Self>,
        least: Duration,
        absent: impl Fn() -> Vec<Address>,
    ) -> Vec<Address> {
        let start = self.env.now();
        let version = self.gossiper.borrow().version();
        // a case for worlds, and bugs that it makes common: who hears when is left to chance
        let slow = ["news_are_slow", "leave_forgets_departed", "join_forgets_former"];
        if !slow.iter().any(|name| self.env.planted(name)) {
            self.step(Event::Tell(version));
        }
        let limit = self.heard_limit();
        loop {
            let mut missing: Vec<_> = self.gossiper.borrow().unaware(version).collect();
            missing.extend(absent());
            let now = self.env.now();
            if now >= limit || (missing.is_empty() && now >= start + least) {
                self.told_version.set(version);
                return missing;
            }
            self.env.sleep(HEARD_STEP).await;
        }
    }

    /// Until when others are waited for that have not heard something.
    fn heard_limit(&self) -> Instant {
        self.env.now() + (self.shard.config.ring_delay * HEARD_DELAYS).max(HEARD_MIN)
    }

    /// Waits until no other node of the ring is so; one that stays so for as long as
    /// [`Self::be_heard`] waits is returned.
    pub(crate) async fn until_none(&self, is_so: impl Fn(&NodeInfo) -> bool) -> Option<Address> {
        let limit = self.heard_limit();
        loop {
            let nodes = self.nodes();
            let found = nodes.values().find(|node| is_so(node)).map(|node| node.address);
            if found.is_none() || self.env.now() >= limit {
                return found;
            }
            self.env.sleep(HEARD_STEP).await;
        }
    }

    /// Says something new, and waits until all that are up have heard it, and half of the members
    /// are up. Whoever is missing after as long as [`Self::be_heard`] waits is returned: this node
    /// may be cut off.
    pub(crate) async fn be_confirmed(self: &Rc<Self>) -> Vec<Address> {
        self.publish_load();
        self.tell_all(Duration::ZERO, || self.down_if_most()).await
    }

    /// The members that are down here, if they are more than half of all.
    fn down_if_most(&self) -> Vec<Address> {
        let (nodes, local) = (self.nodes.borrow(), self.local());
        let members = nodes.values().filter(|node| node.life.is_member() && node.address != local);
        let (up, down): (Vec<_>, Vec<_>) = members.partition(|node| node.is_up);
        match down.len() > up.len() {
            true => down.into_iter().map(|node| node.address).collect(),
            false => Vec::new(),
        }
    }

    /// Those that are up and have heard where this node stands, and how often each had forgotten
    /// it.
    pub(crate) fn aware(&self) -> Aware {
        let gossiper = self.gossiper.borrow();
        let unaware: BTreeSet<_> = gossiper.unaware(self.told_version.get()).collect();
        let nodes = self.nodes.borrow();
        let is_aware = |node: &Address| gossiper.is_up(*node) && !unaware.contains(node);
        let aware = nodes.keys().copied().filter(is_aware);
        aware.map(|node| (node, gossiper.times_forgotten(node))).collect()
    }

    /// Those that are up and were not among these, or have forgotten this node since: one that
    /// comes back after it was cut off may have written without hearing of it, and so may one from
    /// which this node was cut off.
    pub(crate) fn late(&self, aware: &Aware) -> Vec<Address> {
        let (nodes, gossiper) = (self.nodes.borrow(), self.gossiper.borrow());
        let up = nodes.values().filter(|node| node.is_up).map(|node| node.address);
        let is_aware = |node: &Address| aware.get(node) == Some(&gossiper.times_forgotten(*node));
        up.filter(|node| !is_aware(node)).collect()
    }

    /// Nodes of the ring that this one was told of and has heard nothing from.
    pub(crate) fn unheard_of(&self, told: &Nodes) -> Vec<Address> {
        let nodes = self.nodes.borrow();
        told.keys().copied().filter(|node| !nodes.contains_key(node)).collect()
    }

    /// Says that this node leaves its place: what others hold ready for it they let go.
    pub(crate) fn withdraw(self: &Rc<Self>) {
        let first = self.place.borrow().tokens.first().map_or(0, |token| token.0);
        let left = gossip::Status::left(first, self.env.unix_micros() / 1000 + gossip::REMEMBERED);
        let was = self.place.replace(Place::default()).stage;
        if was == Stage::Leaving {
            // it serves until all have heard of it
            self.remember_ring();
        }
        let takes_writes = if was == Stage::Leaving { YES } else { NO };
        self.publish(vec![
            // first: whoever hears that it left has heard this
            (TAKES_WRITES, takes_writes.to_owned()),
            (AppState::STATUS_WITH_PORT, left.clone()),
            (AppState::STATUS, left),
        ]);
        self.look_around();
    }

    /// Is nothing heard of a node for as long as news take to be known everywhere?
    pub(crate) async fn is_silent(self: &Rc<Self>, node: Address) -> bool {
        let heartbeat = || self.gossiper.borrow().peer(node).map(|peer| peer.state.heartbeat);
        let before = heartbeat();
        let until = self.env.now() + self.shard.config.ring_delay;
        while self.env.now() < until {
            if heartbeat() != before || self.gossiper.borrow().is_up(node) {
                return false;
            }
            self.env.sleep(HEARD_STEP).await;
        }
        true
    }

    /// Does the configuration name this node as a seed?
    pub(crate) fn is_seed(&self) -> bool {
        self.gossiper.borrow().is_seed()
    }

    /// All nodes as this one sees them now.
    pub(crate) fn ring(&self) -> Option<std::sync::Arc<ring::Ring>> {
        self.ring.borrow().clone()
    }

    /// Other nodes, and those of them that are down.
    pub(crate) fn census(&self) -> (usize, Vec<Address>) {
        let nodes = self.nodes.borrow();
        let down = nodes.values().filter(|node| !node.is_up).map(|node| node.address).collect();
        (nodes.len(), down)
    }
}
